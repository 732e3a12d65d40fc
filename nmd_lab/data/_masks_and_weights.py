"""Masks and weights, checked and brought into the order of the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import sparse

from ._csr import checked_csr
from .base import FloatArray, IntArray
from .labels import Labels, is_frame


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
