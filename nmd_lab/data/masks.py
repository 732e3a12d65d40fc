"""Masks, weights, groups of rows and limits, checked and brought into the order of the data.

A limit means that an entry is only known to be at most, or at least, a value.  A value below the
detection limit of an instrument is at most that limit.  A value of a saturated sensor is at least
the largest value that it shows.  X has the limit at such an entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .any_frame import plain_array
from .dense import DenseObservations
from .entries import EntryLimits, FloatArray, IntArray, checked_csr
from .frames import without_tensors
from .labels import Labels, is_frame
from .observations import Observations
from .sparse import SparseObservations


def as_booleans(
    observed: NDArray[Any], name: str = "observed", meaning: str = "True = observed"
) -> NDArray[np.bool_]:
    """Return a mask as booleans; numbers other than 0 and 1 are refused."""
    if observed.dtype == bool:
        return observed
    if observed.dtype.kind not in "buif" or not np.all((observed == 0) | (observed == 1)):
        such = f", for example {name} > 0" if observed.dtype.kind in "ui" else ""
        raise TypeError(
            f"{name} has dtype {observed.dtype}: give booleans (or 0 and 1){such}, {meaning}."
        )
    return observed.astype(bool)


def dense_weights(weights: Any, X: Any, labels: Labels, dtype: np.dtype[Any]) -> FloatArray:
    """Return weights as a matrix of floats in the order of X."""
    array = dense_values("weights", weights, X, labels)
    if array.dtype.kind not in "buif":
        raise TypeError(f"weights has dtype {array.dtype}: give real numbers >= 0.")
    check_weights(array)
    return np.ascontiguousarray(array, dtype=dtype)


def check_weights(weights: NDArray[Any]) -> None:
    """Raise ValueError if a weight is negative, infinite or NaN."""
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError(
            "weights holds a negative, masked or non-finite number: give numbers >= 0."
        )


def infinity_error(row: int, column: int) -> ValueError:
    """Return the error for an infinite value of X."""
    return ValueError(
        f"X holds an infinity at row {row}, column {column}: replace it, or hide it with observed=."
    )


def dense_values(name: str, other: Any, X: Any, labels: Labels) -> NDArray[Any]:
    """Return a mask or numbers as a matrix in the order of X, by label where both have labels."""
    if isinstance(other, xr.DataArray) and isinstance(X, xr.DataArray):
        if set(other.dims) != set(X.dims):
            raise ValueError(f"{name} has the dimensions {other.dims}: X has {X.dims}.")
        other = other.transpose(*X.dims)
        indexes = {dim: (other.indexes[dim], X.indexes[dim])
                   for dim in X.dims if dim in other.indexes and dim in X.indexes}  # fmt: skip
        other = other if _all_equal(name, indexes) else other.reindex_like(X)
    elif is_frame(other) and is_frame(X):
        indexes = {"row": (other.index, X.index), "column": (other.columns, X.columns)}
        if not _all_equal(name, indexes):
            _check_labels(name, other, X)
            fill = {"fill_value": False} if name in LIMITING else {}
            other = other.reindex(index=X.index, columns=X.columns, **fill)
    if is_frame(other) and {getattr(dtype, "kind", "") for dtype in other.dtypes} == {"b"}:
        other = other.to_numpy(dtype=bool, na_value=False)  # as where a comparison has no answer
    array = plain_array(other)
    shape = labels.shape
    if labels.table is not None:
        shape = (shape[0], len(labels.table.columns))
        if array.shape == shape:
            return labels.table.cells(array)
    if array.shape != labels.shape:
        raise ValueError(f"{name} has shape {array.shape}: give it the shape of X, {shape}.")
    return labels.flatten(array)


def _all_equal(name: str, indexes: Mapping[Any, tuple[Any, Any]]) -> bool:
    """Return whether all pairs of indexes are equal; refuse to match labels that come twice."""
    if all(index.equals(target) for index, target in indexes.values()):
        return True
    for dim, pair in indexes.items():
        if not all(index.is_unique for index in pair):
            raise ValueError(
                f"{name} has a label along {dim!r} more than once, or X has: give an array in the "
                "order of X."
            )
    return False


def at_entries(
    name: str, other: Any, shape: tuple[int, int], rows: IntArray, columns: IntArray
) -> NDArray[Any]:
    """Return a mask or weights at the stored entries of a sparse matrix."""
    if not sparse.issparse(other):
        other = plain_array(other)
        if other.shape == rows.shape:
            return np.asarray(other)
    if other.shape != shape:
        raise ValueError(f"{name} has shape {other.shape}: give it the shape of X, {shape}.")
    if other.dtype.kind not in "buif":
        raise TypeError(f"{name} has dtype {other.dtype}: give real numbers or booleans.")
    if not sparse.issparse(other):
        return np.asarray(other[rows, columns])
    selected = checked_csr(name, other)[rows, columns]  # a 1-D sparse array, or a matrix of one row
    array = selected.toarray() if hasattr(selected, "toarray") else selected
    return np.asarray(array).ravel()


def is_mask(entries: Any) -> bool:
    """Return whether a matrix holds booleans, and not values."""
    if is_frame(entries):
        kinds = {getattr(dtype, "kind", "") for dtype in entries.dtypes}
        return kinds == {"b"} and not bool(entries.isna().any(axis=None))
    entries = without_tensors(entries)
    dtype = entries.dtype if hasattr(entries, "dtype") else np.asarray(entries).dtype
    return bool(dtype.kind == "b")


def at_observed(name: str, mask: Any, X: Any, observations: Observations) -> NDArray[np.bool_]:
    """Return a mask in the shape of X at the observed entries, flat."""
    X, mask = without_tensors(X), without_tensors(mask)
    rows, columns, _ = observations.entries()
    if observations.pattern is not None:
        values = at_entries(name, mask, observations.shape, rows, columns)
    else:
        mask = mask.toarray() if hasattr(mask, "toarray") else mask
        mask = mask.astype(bool) if is_frame(mask) else mask
        values = dense_values(name, mask, X, observations.labels)[rows, columns]
    return as_booleans(values, name, "True = held out")


def _check_labels(name: str, other: pd.DataFrame, X: pd.DataFrame) -> None:
    """Raise ValueError if a frame lacks a label of X; one of limits may have some of them only."""
    for labels, wanted in ((other.index, X.index), (other.columns, X.columns)):
        absent = wanted[~wanted.isin(labels)]
        if len(absent) and not (name in LIMITING and labels.isin(wanted).all()):
            what = name if name == "weights" else "a mask"
            raise ValueError(
                f"{name} lacks the label {absent[0]!r} of X: give {what} with all labels of X."
            )


LIMITING = ("at_most", "at_least")
"""Names of the masks that are False where they say nothing."""


def row_groups(groups: Any, X: Any, observations: Observations) -> NDArray[np.intp]:
    """Return the group of each row as a number, from labels or the name of what has them in X."""
    m = observations.shape[0]
    labels = _named(groups, X, observations) if isinstance(groups, str) else _in_order(groups, X)
    if labels.shape != (m,):
        raise ValueError(f"groups has shape {labels.shape}: give a label for each of the {m} rows.")
    missing = pd.isna(labels)
    if np.any(missing):
        raise ValueError(
            f"groups has no label for row {int(np.argmax(missing))}: give one to each row."
        )
    text = labels.astype(str) if labels.dtype == object else labels
    return np.asarray(np.unique(text, return_inverse=True)[1].reshape(m))


def _in_order(groups: Any, X: Any) -> NDArray[Any]:
    """Return labels in the order of the rows of X, matched by index where both have one."""
    has_index = is_frame(X) and hasattr(groups, "index") and hasattr(groups, "reindex")
    if not has_index or groups.index.equals(X.index):
        return np.asarray(groups)
    if not (groups.index.is_unique and X.index.is_unique):
        raise ValueError(
            "groups has another index than X, and labels come twice: give an array in the order of "
            "X."
        )
    return np.asarray(groups.reindex(X.index))


def _named(name: str, X: Any, observations: Observations) -> NDArray[Any]:
    """Return the labels of a column, an index level or a coordinate."""
    if is_frame(X):
        if name in X.columns:
            return np.asarray(X[name], dtype=object)
        if name in X.index.names:
            return np.asarray(X.index.get_level_values(name))
    labels = observations.labels
    coords = X.coords if isinstance(X, xr.DataArray) else labels.coords.coords
    if name in coords and set(coords[name].dims) <= set(labels.rows):
        shape = [labels.sizes[dim] for dim in labels.rows]
        along = coords[name].broadcast_like(xr.DataArray(np.empty(shape), dims=labels.rows))
        return np.asarray(along.transpose(*labels.rows).values).ravel()
    raise ValueError(
        f"groups={name!r} is no column, index level or coordinate of the rows of X: give the name "
        "of one, or a label for each row."
    )


AT_MOST, AT_LEAST = 1, 2
"""Codes of the two kinds of limits; their sum stands for both."""


@dataclass(frozen=True)
class GivenLimits:
    """The arguments of a fit that describe limits.

    Attributes
    ----------
    at_most, at_least : array_like of bool (m, n) or scipy.sparse matrix, optional
        True where X is only an upper limit, or only a lower limit.
    upper : array_like (m, n) or scipy.sparse matrix, optional
        Upper limits where both are True; X has the lower ones.
    """

    at_most: ArrayLike | None = None
    at_least: ArrayLike | None = None
    upper: ArrayLike | None = None

    def __bool__(self) -> bool:
        return any(each is not None for each in (self.at_most, self.at_least, self.upper))


NO_LIMITS = GivenLimits()


def with_limits(observations: Observations, X: Any, limits: GivenLimits) -> Observations:
    """Return observations with limits."""
    if isinstance(observations, DenseObservations):
        values, seen = observations.stored.ravel(), observations.seen.ravel()
        rows, columns = observations.stored_positions()
    else:
        rows, columns, values = observations.entries()
        seen = np.ones(values.size, bool)

    def read(name: str, other: Any) -> NDArray[Any]:
        if isinstance(observations, DenseObservations):
            return dense_values(name, other, X, observations.labels).ravel()
        return at_entries(name, other, observations.shape, rows, columns)

    def place(wrong: NDArray[np.bool_]) -> str:
        entry = int(np.argmax(wrong))
        return f"row {rows[entry]}, column {columns[entry]}"

    codes = np.zeros(values.size, np.int8)
    for name, code in zip(LIMITING, (AT_MOST, AT_LEAST), strict=True):
        mask = getattr(limits, name)
        if mask is None:
            continue
        at = as_booleans(read(name, mask), name, "True where X is a limit")
        if np.any(at & ~seen):
            raise ValueError(
                f"{name} is True at {place(at & ~seen)}, where X has no value: put the limit into "
                "X there."
            )
        codes += np.where(at, np.int8(code), np.int8(0))
    both, uppers = codes == AT_MOST + AT_LEAST, None
    if limits.upper is not None and not both.any():
        raise ValueError(
            "upper= has no use where no entry has two limits: give at_most=True and at_least=True "
            "there."
        )
    if both.any():
        if limits.upper is None:
            raise ValueError(
                f"at_most and at_least are both True at {place(both)}, but upper=None: give the "
                "upper limits."
            )
        uppers = np.asarray(read("upper", limits.upper))
        if uppers.dtype.kind not in "buif":
            raise TypeError(f"upper has dtype {uppers.dtype}: give real numbers.")
        uppers = uppers.astype(values.dtype)
        wrong = both & ~((uppers >= values) & np.isfinite(uppers))
        if wrong.any():
            first = int(np.argmax(wrong))
            raise ValueError(
                f"upper={uppers[first]:g} at {place(wrong)} is no upper limit of X, which has the "
                f"lower one, {values[first]:g}: give finite numbers that are not below it."
            )
        uppers = np.where(both, uppers, values)
    if not codes.any():
        return observations
    assert isinstance(observations, DenseObservations | SparseObservations)
    return replace(observations, limits=EntryLimits(codes, uppers))
