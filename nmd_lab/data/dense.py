"""Observations of dense input: arrays, masked arrays, DataFrames and DataArrays.

NaN, masked entries, and entries with ``mask == False`` or weight 0 are missing.  Values at missing
entries have no influence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ._alignment import dense_mask, dense_weights, infinity_error
from ._csr import index_dtype, row_pointers
from .base import (
    BLOCK,
    CsrRows,
    FloatArray,
    Observations,
    ObservedEntries,
    Transform,
    float_dtype,
    has_offsets,
)
from .labels import Labels, is_frame, labels_of
from .sparse import SparseObservations, is_sparse


@dataclass(frozen=True)
class DenseObservations(Observations):
    """A dense, partly observed matrix.

    Attributes
    ----------
    values : ndarray (m, n)
        Observed values in C order, float32 or float64; 0 at missing entries.
    weights : ndarray (m, n) or None
        Floats >= 0, or booleans (True = observed); None if every entry has weight 1.
    labels : Labels
        Dimensions and coordinates for results.
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
        """Mask of the observed entries, shape (m, n)."""
        return np.ones(self.shape, bool) if self.weights is None else self.weights > 0

    @property
    def n_observed(self) -> int:
        """Number of observed entries."""
        return self.values.size if self.weights is None else int(np.count_nonzero(self.weights))

    def reader(self) -> FloatArray:
        """Return the values, flat."""
        return self.values.ravel()

    def transformed(self, transform: Transform) -> FloatArray:
        """Return transform(X) as a new flat array."""
        values = self.values.ravel()
        T = np.empty_like(values)
        for first in range(0, values.size, BLOCK):  # the transform may need temporary arrays
            T[first : first + BLOCK] = transform(values[first : first + BLOCK])
        return T

    def centred(
        self, transform: Transform, mean: float, rows: FloatArray | None, columns: FloatArray | None
    ) -> tuple[FloatArray, float]:
        """Return transform(X) minus offsets; see `Observations.centred`."""
        offsets = has_offsets(mean, rows, columns)
        if self.weights is None and not offsets:
            return np.asarray(transform(self.values)), 0.0
        T = self.transformed(transform).reshape(self.shape)
        seen = None if self.weights is None else self.weights > 0
        if offsets:
            T = _less_offsets(T, mean, rows, columns)
        fill = 0.0 if offsets or seen is None else _mean(T, seen)
        if seen is not None:
            np.copyto(T, T.dtype.type(fill), where=~seen)
        return T, 0.0

    def observed(self) -> tuple[FloatArray, FloatArray]:
        """Return the observed values and their weights, flat, in double precision."""
        if self.weights is None:
            values = self.values.ravel().astype(np.float64, copy=False)
            return values, np.broadcast_to(1.0, values.size)
        seen = self.seen
        return self.values[seen].astype(np.float64), self.weights[seen].astype(np.float64)

    def observed_blocks(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield what `observed` returns in blocks; see `Observations.observed_blocks`."""
        values = self.values.ravel()
        weights = None if self.weights is None else self.weights.ravel()
        for first in range(0, values.size, BLOCK):
            block = slice(first, first + BLOCK)
            x = values[block]
            if weights is None:
                yield x.astype(np.float64, copy=False), np.broadcast_to(1.0, x.size)
                continue
            w = weights[block]
            seen = w > 0
            yield x[seen].astype(np.float64), w[seen].astype(np.float64)

    def entries(self) -> ObservedEntries:
        """Return the observed entries, sorted by row and column."""
        seen = self.seen
        rows, columns = np.nonzero(seen)
        return ObservedEntries(rows, columns, self.values[seen])

    def select(self, keep: NDArray[np.bool_]) -> DenseObservations:
        """Return observations of those `entries` at which `keep` is True."""
        weights = np.zeros(self.shape, bool)
        rows, columns, _ = self.entries()
        weights[rows[keep], columns[keep]] = True
        values = np.where(weights, self.values, 0)
        if self.weights is not None:
            weights = np.where(weights, self.weights, self.weights.dtype.type(0))
        return replace(self, values=values, weights=weights)

    def csr_rows(self, block: slice) -> CsrRows:
        """Return the observed entries of a range of rows."""
        values = self.values[block]
        weights = None if self.weights is None else self.weights[block]
        seen = np.ones(values.shape, bool) if weights is None else weights > 0
        rows, columns = np.nonzero(seen)
        return CsrRows.of(
            row_pointers(rows, len(values), np.int64),
            columns,
            values[seen],
            None if weights is None else weights[seen],
        )

    def as_sparse(self) -> SparseObservations:
        """Return the observed entries as `SparseObservations`."""
        seen = self.seen
        rows, columns = np.nonzero(seen)
        dtype = index_dtype(rows.size)
        weights = self.weights
        return SparseObservations(
            self.values[seen],
            None if weights is None or weights.dtype == bool else weights[seen],
            row_pointers(rows, self.shape[0], dtype),
            columns.astype(dtype),
            self.labels,
        )

    def to_array(self) -> FloatArray:
        """Return the matrix (m, n), with NaN at missing entries."""
        return np.where(self.seen, self.values, self.values.dtype.type(np.nan))

    def with_values(self, values: FloatArray) -> DenseObservations:
        """Return other values with the same weights and labels."""
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
    """Return the observations of a dense input, which is not modified.

    Parameters
    ----------
    X : array_like (m, n), masked array, pandas.DataFrame or xarray.DataArray
        Data.
    mask : array_like of bool (m, n), optional
        Mask of the observed entries.
    weights : array_like (m, n), optional
        Weights of the entries, finite and >= 0.
    dtype : float32 or float64, optional
        Working precision; by default float32 for float32 input and float64 otherwise.
    sample_dims : str or sequence of str, optional
        Dimensions of a DataArray that form the rows; by default the first of two.

    Raises
    ------
    TypeError, ValueError
        If X, the mask or the weights are not valid.
    """
    if is_sparse(X):
        raise TypeError("X is a scipy.sparse matrix: only decompose() and complete() take one.")
    labels = labels_of(X, sample_dims)
    array, seen = (labels.flatten(each) for each in _array_and_mask(X))
    if array.size == 0:
        raise ValueError(f"X has shape {array.shape}, which holds no entry: give a larger matrix.")
    if mask is not None:
        seen = seen & dense_mask(mask, X, labels)
    with np.errstate(over="ignore"):  # what overflows is found below
        values = array.astype(float_dtype(array, dtype), order="C", copy=False)
    seen &= ~np.isnan(values)
    if np.any(np.isinf(values) & seen):
        raise infinity_error(*np.argwhere(np.isinf(values) & seen)[0])
    weighted: NDArray[Any] = seen
    if weights is not None:
        weighted = dense_weights(weights, X, labels, values.dtype)
        if not seen.all():
            weighted = weighted * seen
    if not weighted.any():
        raise ValueError("X has no observed entry: check mask=, weights= and the NaN in X.")
    if seen.all() and weights is None:
        return DenseObservations(np.ascontiguousarray(values), None, labels)
    if not np.all(weighted > 0):  # a copy: values at missing entries have no influence
        values = np.where(weighted > 0, values, values.dtype.type(0))
    return DenseObservations(np.ascontiguousarray(values), weighted, labels)


def _less_offsets(
    T: FloatArray, mean: float, rows: FloatArray | None, columns: FloatArray | None
) -> FloatArray:
    """Subtract offsets from a matrix, in place, and return it."""
    T -= T.dtype.type(mean)
    if rows is not None:
        T -= rows.astype(T.dtype)[:, None]
    if columns is not None:
        T -= columns.astype(T.dtype)
    return T


def _mean(T: FloatArray, seen: NDArray[np.bool_]) -> float:
    """Return the mean of the observed entries, in double precision."""
    total = sum(float(np.sum(row[at], dtype=np.float64)) for row, at in zip(T, seen, strict=True))
    return total / int(np.count_nonzero(seen))


def _array_and_mask(X: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the values of a dense input, and the mask of those that are not masked."""
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
    for name, dtype in frame.dtypes.items() if frame.size else ():
        if getattr(dtype, "kind", "O") not in "buif":
            raise TypeError(f"X has dtype {dtype} in column {name!r}: convert it to real numbers.")
    return np.float32 if all(str(t).lower() == "float32" for t in frame.dtypes) else np.float64
