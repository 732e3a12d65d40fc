"""Observations of a dense input: arrays, masked arrays, DataFrames and DataArrays.

NaN, masked entries and entries with ``mask == False`` or weight 0 are missing.  The values under
them have no influence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .base import (
    CsrRows,
    Entries,
    FloatArray,
    Observations,
    Transform,
    float_dtype,
    index_dtype,
    row_pointers,
)
from .labels import Labels, is_frame, labels_of
from .sparse import SparseObservations, is_sparse


@dataclass(frozen=True)
class DenseObservations(Observations):
    """A dense, partly observed matrix.

    Attributes
    ----------
    values : ndarray (m, n)
        C-ordered float32 or float64; 0 where nothing is observed.
    weights : ndarray (m, n) or None
        None if every entry has weight 1; booleans (True = observed); or floats >= 0.
    labels : Labels
        Dimensions and coordinates to put back on results.
    """

    values: FloatArray
    weights: NDArray[Any] | None
    labels: Labels

    pattern = None
    absent_are_zeros = False

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        m, n = self.values.shape
        return m, n

    @property
    def seen(self) -> NDArray[np.bool_]:
        """True where an entry is observed, shape (m, n)."""
        return np.ones(self.shape, bool) if self.weights is None else self.weights > 0

    @property
    def n_observed(self) -> int:
        """Number of observed entries."""
        return self.values.size if self.weights is None else int(np.count_nonzero(self.weights))

    def reader(self) -> FloatArray:
        """Return the values, flat."""
        return self.values.ravel()

    def transformed(self, transform: Transform) -> FloatArray:
        """Return a function of the values, flat, as a new array."""
        return np.array(transform(self.values.ravel()), dtype=self.values.dtype)

    def centred(
        self, transform: Transform, mean: float, rows: FloatArray | None, columns: FloatArray | None
    ) -> tuple[FloatArray, float]:
        """Return transform(X) less offsets; see `Observations.centred`."""
        T = transform(self.values)
        offsets = _offset_matrix(mean, rows, columns, self.shape)
        if self.weights is None:
            return T - offsets, 0.0
        seen = self.seen
        without = mean == 0 and rows is None and columns is None
        fill = float(T[seen].mean()) if without else 0.0
        return np.where(seen, T - offsets, fill), 0.0

    def observed(self) -> tuple[FloatArray, FloatArray]:
        """Return the observed values and their weights, flat, in double precision."""
        if self.weights is None:
            values = self.values.ravel().astype(np.float64, copy=False)
            return values, np.broadcast_to(1.0, values.size)
        seen = self.seen
        return self.values[seen].astype(np.float64), self.weights[seen].astype(np.float64)

    def entries(self) -> Entries:
        """Return the observed entries in the order of rows."""
        seen = self.seen
        rows, columns = np.nonzero(seen)
        return Entries(rows, columns, self.values[seen])

    def select(self, keep: NDArray[np.bool_]) -> DenseObservations:
        """Return observations of some of the `entries`."""
        weights = np.zeros(self.shape, bool)
        rows, columns, _ = self.entries()
        weights[rows[keep], columns[keep]] = True
        values = np.where(weights, self.values, 0)
        if self.weights is not None:
            weights = np.where(weights, self.weights, self.weights.dtype.type(0))
        return replace(self, values=values, weights=weights)

    def csr_rows(self, block: slice) -> CsrRows:
        """Return the observed entries of a range of rows."""
        weights = None if self.weights is None else self.weights[block]
        return csr_rows_of(self.values[block], weights)

    def as_sparse(self) -> SparseObservations:
        """Return the observed entries as `SparseObservations`."""
        seen = self.seen
        rows, columns = np.nonzero(seen)
        kind = index_dtype(rows.size)
        weighted = self.weights is not None and self.weights.dtype != bool
        return SparseObservations(
            self.values[seen],
            self.weights[seen] if weighted and self.weights is not None else None,
            row_pointers(rows, self.shape[0], kind),
            columns.astype(kind),
            self.labels,
        )

    def to_array(self) -> FloatArray:
        """Return the matrix (m, n) with NaN where nothing is observed."""
        return np.where(self.seen, self.values, self.values.dtype.type(np.nan))

    def with_values(self, values: FloatArray) -> DenseObservations:
        """Return the same weights and labels with other values."""
        return replace(self, values=values)

    def counts(self, axis: int) -> NDArray[np.integer]:
        """Return the number of observed entries of each column (axis 0) or row (axis 1)."""
        if self.weights is None:
            return np.full(self.shape[1 - axis], self.shape[axis])
        counts: NDArray[np.integer] = np.asarray(np.count_nonzero(self.weights, axis=axis))
        return counts


def observe_dense(
    X: Any,
    *,
    mask: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    sample_dims: str | Sequence[str] | None = None,
) -> DenseObservations:
    """Turn any dense input into `DenseObservations`; never modify it.

    Parameters
    ----------
    X : array_like (m, n), masked array, pandas.DataFrame or xarray.DataArray
        The data.
    mask : array_like of bool (m, n), optional
        True = observed.
    weights : array_like (m, n), optional
        How much an entry counts, finite and >= 0.
    dtype : float32 or float64, optional
        By default float32 for float32 input and float64 otherwise.
    sample_dims : str or sequence of str, optional
        The dimensions of a DataArray that make the rows; by default the first of two.

    Raises
    ------
    TypeError, ValueError
        With the argument, the value and the remedy, if the input makes no sense.
    """
    if is_sparse(X):
        raise TypeError("X is a scipy.sparse matrix: only decompose() and complete() take one.")
    labels = labels_of(X, sample_dims)
    array, seen = (labels.flatten(part) for part in _array_and_mask(X))
    if array.size == 0:
        raise ValueError(f"X has shape {array.shape}, which holds no entry: give a larger matrix.")
    if mask is not None:
        seen = seen & _checked_mask(mask, X, labels)
    values = array.astype(float_dtype(array, dtype), order="C", copy=False)
    seen &= ~np.isnan(values)
    if np.any(np.isinf(values) & seen):
        row, column = np.argwhere(np.isinf(values) & seen)[0]
        raise ValueError(
            f"X holds an infinity at row {row}, column {column}: replace it, or hide it with mask=."
        )
    kept: NDArray[Any] = seen
    if weights is not None:
        kept = _checked_weights(weights, X, labels, values.dtype) * seen
    if not kept.any():
        raise ValueError("X has no observed entry: check mask=, weights= and the NaN in X.")
    if seen.all() and weights is None:
        return DenseObservations(np.ascontiguousarray(values), None, labels)
    return DenseObservations(np.where(kept > 0, values, values.dtype.type(0)), kept, labels)


def csr_rows_of(values: FloatArray, weights: NDArray[Any] | None) -> CsrRows:
    """Return the observed entries of an array in compressed rows."""
    seen = np.ones(values.shape, dtype=bool) if weights is None else weights > 0
    indptr = np.concatenate([[0], np.cumsum(np.count_nonzero(seen, axis=1))])
    kept = np.ones(indptr[-1]) if weights is None else weights[seen]
    return CsrRows.of(indptr, np.nonzero(seen)[1], values[seen], kept)


def _offset_matrix(
    mean: float, rows: FloatArray | None, columns: FloatArray | None, shape: tuple[int, int]
) -> FloatArray:
    """Return the sum of the offsets of each entry, in a shape that broadcasts to (m, n)."""
    by_row = np.zeros(shape[0]) if rows is None else rows
    by_column = np.zeros(shape[1]) if columns is None else columns
    return mean + by_row[:, None] + by_column


def _array_and_mask(X: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the bare numbers and what a masked array says of them."""
    if isinstance(X, np.ma.MaskedArray):
        array, seen = X.data, ~np.ma.getmaskarray(X)
    else:
        if isinstance(X, xr.DataArray):
            array = X.values
        elif is_frame(X):
            array = X.to_numpy(dtype=_frame_dtype(X), na_value=np.nan)
        else:
            array = np.asarray(X)
        seen = np.ones(array.shape, dtype=bool)
    if array.dtype.kind not in "buif":
        raise TypeError(f"X has dtype {array.dtype}: convert it to real numbers, X.astype(float).")
    return array, seen


def _frame_dtype(frame: Any) -> type:
    """Return float32 for a frame of float32 only, float64 for other numbers; refuse the rest."""
    for name, dtype in frame.dtypes.items():
        if getattr(dtype, "kind", "O") not in "buif":
            raise TypeError(f"X has dtype {dtype} in column {name!r}: convert it to real numbers.")
    return np.float32 if all(str(t).lower() == "float32" for t in frame.dtypes) else np.float64


def _aligned(name: str, other: Any, X: Any, labels: Labels) -> NDArray[Any]:
    """Return `other` as a matrix in the order of X, by label where both have labels."""
    if isinstance(other, xr.DataArray) and isinstance(X, xr.DataArray):
        if set(other.dims) != set(X.dims):
            raise ValueError(f"{name} has the dimensions {other.dims}: X has {X.dims}.")
        other = other.transpose(*X.dims).reindex_like(X)
    elif is_frame(other) and is_frame(X):
        other = other.reindex_like(X)
    array = np.asarray(other)
    if array.shape != labels.shape:
        raise ValueError(f"{name} has shape {array.shape}: give it the shape of X, {labels.shape}.")
    return labels.flatten(array)


def _checked_mask(mask: Any, X: Any, labels: Labels) -> NDArray[np.bool_]:
    array = _aligned("mask", mask, X, labels)
    if array.dtype != bool:
        if array.dtype.kind not in "buif" or not np.all((array == 0) | (array == 1)):
            raise TypeError(
                f"mask has dtype {array.dtype}: give booleans (or 0 and 1), True = observed."
            )
        array = array.astype(bool)
    return array


def _checked_weights(weights: Any, X: Any, labels: Labels, dtype: np.dtype[Any]) -> FloatArray:
    array = _aligned("weights", weights, X, labels)
    if array.dtype.kind not in "buif":
        raise TypeError(f"weights has dtype {array.dtype}: give real numbers >= 0.")
    if not np.all(np.isfinite(array)) or np.any(array < 0):
        raise ValueError("weights holds a negative or non-finite number: give numbers >= 0.")
    return np.ascontiguousarray(array, dtype=dtype)
