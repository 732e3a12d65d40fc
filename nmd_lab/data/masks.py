"""Masks, weights, groups of rows and limits, checked and brought into the order of the data.

A limit says that an entry is only known to be at most, or at least, a value.  A value below the
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

from .dense import DenseObservations
from .entries import EntryLimits, FloatArray, IntArray, checked_csr
from .frames import without_tensors
from .labels import Labels, is_frame
from .observations import Observations
from .sparse import SparseObservations


def dense_mask(observed: Any, X: Any, labels: Labels) -> NDArray[np.bool_]:
    """Return a mask as a boolean matrix in the order of X."""
    return as_booleans(_as_matrix("observed", observed, X, labels))


def as_booleans(
    observed: NDArray[Any], name: str = "observed", meaning: str = "True = observed"
) -> NDArray[np.bool_]:
    """Return a mask as booleans; numbers other than 0 and 1 are refused."""
    if observed.dtype == bool:
        return observed
    if observed.dtype.kind not in "buif" or not np.all((observed == 0) | (observed == 1)):
        raise TypeError(
            f"{name} has dtype {observed.dtype}: give booleans (or 0 and 1), {meaning}."
        )
    return observed.astype(bool)


def dense_values(name: str, other: Any, X: Any, labels: Labels) -> NDArray[Any]:
    """Return booleans or numbers as a matrix in the order of X."""
    return _as_matrix(name, other, X, labels)


def dense_weights(weights: Any, X: Any, labels: Labels, dtype: np.dtype[Any]) -> FloatArray:
    """Return weights as a matrix of floats in the order of X."""
    array = _as_matrix("weights", weights, X, labels)
    if array.dtype.kind not in "buif":
        raise TypeError(f"weights has dtype {array.dtype}: give real numbers >= 0.")
    check_weights(array)
    return np.ascontiguousarray(array, dtype=dtype)


def check_weights(weights: NDArray[Any]) -> None:
    """Raise ValueError if a weight is negative, infinite or NaN."""
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError("weights holds a negative or non-finite number: give numbers >= 0.")


def infinity_error(row: int, column: int) -> ValueError:
    """Return the error for an infinite value of X."""
    return ValueError(
        f"X holds an infinity at row {row}, column {column}: replace it, or hide it with observed=."
    )


def _as_matrix(name: str, other: Any, X: Any, labels: Labels) -> NDArray[Any]:
    """Return a mask or weights as a matrix in the order of X, by label where both have labels."""
    if isinstance(other, xr.DataArray) and isinstance(X, xr.DataArray):
        if set(other.dims) != set(X.dims):
            raise ValueError(f"{name} has the dimensions {other.dims}: X has {X.dims}.")
        other = other.transpose(*X.dims)
        indexes = {dim: (other.indexes[dim], X.indexes[dim])
                   for dim in X.dims if dim in other.indexes and dim in X.indexes}  # fmt: skip
        other = other if _all_equal(name, indexes) else other.reindex_like(X)
    elif is_frame(other) and is_frame(X):
        indexes = {"row": (other.index, X.index), "column": (other.columns, X.columns)}
        other = other if _all_equal(name, indexes) else other.reindex_like(X)
    array = np.asarray(other)
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
        other = np.asarray(other)
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
        if is_frame(mask):
            _check_labels(name, mask, X)
            mask = mask.astype(bool)
        values = dense_values(name, mask, X, observations.labels)[rows, columns]
    return as_booleans(values, name, "True = held out")


def _check_labels(name: str, mask: pd.DataFrame, X: Any) -> None:
    """Raise ValueError if a mask lacks a label of X."""
    pairs = ((mask.index, X.index), (mask.columns, X.columns)) if is_frame(X) else ()
    for labels, wanted in pairs:
        absent = wanted.difference(labels)
        if len(absent) and len(labels) != len(wanted):
            raise ValueError(
                f"{name} lacks the label {absent[0]!r} of X: give a mask with all labels of X."
            )


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
    found: NDArray[np.intp] = np.unique(text, return_inverse=True)[1].reshape(m)
    return found


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
        sizes = [labels.shape[labels.dims.index(dim)] for dim in labels.rows]
        along = coords[name].broadcast_like(_empty(labels.rows, sizes)).transpose(*labels.rows)
        return np.asarray(along.values).ravel()
    raise ValueError(
        f"groups={name!r} is no column, index level or coordinate of the rows of X: give the name "
        "of one, or a label for each row."
    )


def _empty(dims: tuple[str, ...], sizes: list[int]) -> xr.DataArray:
    return xr.DataArray(np.empty(sizes, dtype=bool), dims=dims)


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
    if not limits:
        return observations
    read = _Reader(observations, X)
    codes = np.zeros(read.values.size, np.int8)
    for name, code in (("at_most", AT_MOST), ("at_least", AT_LEAST)):
        mask = getattr(limits, name)
        if mask is None:
            continue
        at = as_booleans(read(name, mask), name, "True where X is a limit")
        if np.any(at & ~read.seen):
            place = read.place(int(np.argmax(at & ~read.seen)))
            raise ValueError(
                f"{name} is True at {place}, where X has no value: put the limit into X there."
            )
        codes += np.where(at, np.int8(code), np.int8(0))
    uppers = _uppers(codes, limits, read)
    if not codes.any():
        return observations
    return read.with_limits(EntryLimits(codes, uppers))


def _uppers(codes: NDArray[np.int8], limits: GivenLimits, read: _Reader) -> FloatArray | None:
    """Return the upper limits of the entries that have two, after a check."""
    both = codes == AT_MOST + AT_LEAST
    if not both.any():
        if limits.upper is not None:
            raise ValueError(
                "upper= has no use where no entry has two limits: give at_most=True and "
                "at_least=True there."
            )
        return None
    if limits.upper is None:
        place = read.place(int(np.argmax(both)))
        raise ValueError(
            f"at_most and at_least are both True at {place}, but upper=None: give the upper limits."
        )
    uppers = np.asarray(read("upper", limits.upper))
    if uppers.dtype.kind not in "buif":
        raise TypeError(f"upper has dtype {uppers.dtype}: give real numbers.")
    uppers = uppers.astype(read.values.dtype)
    wrong = both & ~((uppers >= read.values) & np.isfinite(uppers))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(
            f"upper={uppers[at]:g} at {read.place(at)} is no upper limit of X, which has the lower "
            f"one, {read.values[at]:g}: give finite numbers that are not below it."
        )
    return np.where(both, uppers, read.values)


class _Reader:
    """Reads masks and numbers at the stored entries of observations, flat."""

    def __init__(self, observations: Observations, X: Any) -> None:
        self.observations, self.X = observations, X
        if isinstance(observations, DenseObservations):
            self.values: FloatArray = observations.stored.ravel()
            self.seen = observations.seen.ravel()
            self.rows, self.columns = np.divmod(np.arange(self.values.size), observations.shape[1])
        else:
            entries = observations.entries()
            self.rows, self.columns, self.values = entries
            self.seen = np.ones(self.values.size, bool)

    def __call__(self, name: str, other: Any) -> NDArray[Any]:
        """Return a mask or numbers at the stored entries."""
        if isinstance(self.observations, DenseObservations):
            return dense_values(name, other, self.X, self.observations.labels).ravel()
        return at_entries(name, other, self.observations.shape, self.rows, self.columns)

    def place(self, entry: int) -> str:
        """Return the position of an entry in words."""
        return f"row {self.rows[entry]}, column {self.columns[entry]}"

    def with_limits(self, limits: EntryLimits) -> Observations:
        """Return the observations with limits."""
        assert isinstance(self.observations, DenseObservations | SparseObservations)
        return replace(self.observations, limits=limits)
