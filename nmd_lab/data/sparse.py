"""Observations of a sparse input: the stored entries, row after row, and nothing else.

A stored zero is an observation like any other.  `absent_are_zeros` says what entries mean that are
not stored: True for `decompose`, where they are zeros, False for `complete`, where they are missing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from .base import (
    CsrRows,
    Entries,
    EntryReader,
    FloatArray,
    IntArray,
    Observations,
    Transform,
    float_dtype,
    row_pointers,
)
from .labels import Labels, labels_of


@dataclass(frozen=True)
class SparseObservations(Observations):
    """A matrix of which some entries are stored.

    Attributes
    ----------
    values : ndarray (n_stored,)
        float32 or float64, row after row.
    weights : ndarray (n_stored,) or None
        None if every stored entry has weight 1, or floats > 0.
    indptr : ndarray of int (m + 1,)
        Row i has the stored entries indptr[i] to indptr[i + 1].
    indices : ndarray of int (n_stored,)
        Columns of the stored entries, ascending within a row.
    labels : Labels
        Dimensions and coordinates to put back on results.
    absent_are_zeros : bool, default False
        Whether entries that are not stored are observed and equal to 0.
    """

    values: FloatArray
    weights: FloatArray | None
    indptr: IntArray
    indices: IntArray
    labels: Labels
    absent_are_zeros: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.labels.matrix_shape

    @property
    def n_observed(self) -> int:
        """Number of observed entries."""
        m, n = self.shape
        return m * n if self.absent_are_zeros else self.values.size

    @property
    def pattern(self) -> tuple[IntArray, IntArray] | None:
        """`indptr` and `indices`, or None if absent entries are zeros."""
        return None if self.absent_are_zeros else (self.indptr, self.indices)

    @property
    def rows(self) -> IntArray:
        """Rows of the stored entries."""
        return np.repeat(np.arange(self.shape[0], dtype=self.indices.dtype), np.diff(self.indptr))

    def reader(self) -> EntryReader:
        """Return the values, flat; with absent zeros as dense rows, a few at a time."""
        return _ZeroFilled(self.to_csr()) if self.absent_are_zeros else self.values

    def transformed(self, transform: Transform) -> FloatArray:
        """Return a function of the values, flat, as a new array."""
        dtype = self.values.dtype
        if not self.absent_are_zeros:
            return np.array(transform(self.values), dtype=dtype)
        absent = transform(np.zeros(1, dtype=dtype))[0]
        T = np.full(self.shape, absent, dtype=dtype)
        T[self.rows, self.indices] = transform(self.values)
        return T.ravel()

    def centred(
        self, transform: Transform, mean: float, rows: FloatArray | None, columns: FloatArray | None
    ) -> tuple[sparse.csr_array, float]:
        """Return transform(X) less offsets; see `Observations.centred`."""
        T = transform(self.values)
        if self.absent_are_zeros:  # and there are no offsets
            return self.to_csr(T), 0.0
        m, n = self.shape
        without = mean == 0 and rows is None and columns is None
        fill = float(T.mean()) if without else 0.0
        by_row = np.zeros(m) if rows is None else rows
        by_column = np.zeros(n) if columns is None else columns
        return self.to_csr(T - fill - mean - by_row[self.rows] - by_column[self.indices]), fill

    def observed(self) -> tuple[FloatArray, FloatArray]:
        """Return the observed values and their weights, flat, in double precision.

        Zeros that are not stored are one value with the weight of all of them.
        """
        values: FloatArray = self.values.astype(np.float64, copy=False)
        weights = np.broadcast_to(1.0, values.size)
        if self.weights is not None:
            weights = self.weights.astype(np.float64, copy=False)
        absent = self.n_observed - values.size
        if absent:
            return np.append(values, 0.0), np.append(weights, float(absent))
        return values, weights

    def entries(self) -> Entries:
        """Return the stored entries in the order of rows."""
        return Entries(self.rows, self.indices, self.values)

    def select(self, keep: NDArray[np.bool_]) -> SparseObservations:
        """Return observations of some of the `entries`."""
        return replace(
            self,
            values=self.values[keep],
            weights=None if self.weights is None else self.weights[keep],
            indptr=row_pointers(self.rows[keep], self.shape[0], self.indptr.dtype),
            indices=self.indices[keep],
        )

    def csr_rows(self, block: slice) -> CsrRows:
        """Return the observed entries of a range of rows."""
        if self.absent_are_zeros:
            n = self.shape[1]
            values = self.to_csr()[block].toarray()
            columns = np.tile(np.arange(n), len(values))
            return CsrRows.of(np.arange(len(values) + 1) * n, columns, values.ravel(), None)
        indptr = self.indptr[block.start : block.stop + 1]
        stored = slice(indptr[0], indptr[-1])
        weights = None if self.weights is None else self.weights[stored]
        return CsrRows.of(indptr - indptr[0], self.indices[stored], self.values[stored], weights)

    def as_sparse(self) -> SparseObservations:
        """Return the observations themselves."""
        return self

    def to_array(self) -> FloatArray:
        """Return the matrix (m, n) with NaN where nothing is observed."""
        absent = 0.0 if self.absent_are_zeros else np.nan
        array: FloatArray = np.full(self.shape, absent, dtype=self.values.dtype)
        array[self.rows, self.indices] = self.values
        return array

    def to_csr(self, values: FloatArray | None = None) -> sparse.csr_array:
        """Return the values, or others in their places, as a SciPy array that shares memory."""
        values = self.values if values is None else values
        return sparse.csr_array((values, self.indices, self.indptr), shape=self.shape)

    def with_values(self, values: FloatArray) -> SparseObservations:
        """Return the same pattern, weights and labels with other values."""
        return replace(self, values=values)

    def counts(self, axis: int) -> NDArray[np.integer]:
        """Return the number of observed entries of each column (axis 0) or row (axis 1)."""
        if self.absent_are_zeros:
            return np.full(self.shape[1 - axis], self.shape[axis])
        if axis == 1:
            return np.diff(self.indptr)
        return np.bincount(self.indices, minlength=self.shape[1])

    def __repr__(self) -> str:
        row, column = (", ".join(dims) for dims in (self.labels.rows, self.labels.columns))
        m, n = self.shape
        share = 100 * self.values.size / (m * n)
        return (
            f"<nmd_lab.SparseObservations>  {row}: {m}, {column}: {n}, "
            f"{self.values.size} stored entries ({share:.3g} %), {self.values.dtype}"
        )


class _ZeroFilled:
    """Values of a sparse matrix whose absent entries are zeros, read as whole dense rows."""

    def __init__(self, matrix: sparse.csr_array) -> None:
        self.matrix = matrix

    def __getitem__(self, entries: slice) -> FloatArray:
        """Return the values of whole rows, flat."""
        n = self.matrix.shape[1]
        block = self.matrix[entries.start // n : entries.stop // n]
        values: FloatArray = block.toarray().ravel()
        return values


def is_sparse(X: Any) -> bool:
    """Return whether an input is a SciPy sparse matrix or `SparseObservations`."""
    return sparse.issparse(X) or isinstance(X, SparseObservations)


def observe_sparse(
    X: Any,
    *,
    mask: Any = None,
    weights: Any = None,
    dtype: DTypeLike | None = None,
    absent_are_zeros: bool = False,
) -> SparseObservations:
    """Turn a SciPy matrix into `SparseObservations`; never densify or modify it.

    Parameters
    ----------
    X : scipy.sparse matrix or array, or SparseObservations
        The data, in any format.  NaN that are stored are missing.
    mask, weights : array_like (m, n) or scipy.sparse matrix, optional
        Which stored entries are observed, and how much they count.
    dtype : float32 or float64, optional
        By default float32 for float32 input and float64 otherwise.
    absent_are_zeros : bool
        Whether entries that are not stored count, as zeros.

    Raises
    ------
    TypeError, ValueError
        With the argument, the value and the remedy, if the input makes no sense.
    """
    labels = X.labels if isinstance(X, SparseObservations) else labels_of(X)
    m, n = labels.matrix_shape
    if m * n == 0:
        raise ValueError(f"X has shape {(m, n)}, which holds no entry: give a larger matrix.")
    if isinstance(X, SparseObservations):
        given: Any = X.values
        rows, indptr, indices = X.rows, X.indptr, X.indices
        weights = X.weights if weights is None else weights
    else:
        given, rows, indptr, indices = _row_by_row(X)
    values = given.astype(float_dtype(given, dtype), copy=False)
    keep = ~np.isnan(values)
    if mask is not None:
        keep &= _at_entries("mask", mask, (m, n), rows, indices).astype(bool)
    if np.any(np.isinf(values) & keep):
        k = int(np.argmax(np.isinf(values) & keep))
        raise ValueError(
            f"X holds an infinity at row {rows[k]}, column {indices[k]}: replace it, or hide it "
            "with mask=."
        )
    if weights is not None:
        weights = _at_entries("weights", weights, (m, n), rows, indices).astype(values.dtype)
        if not np.all(np.isfinite(weights)) or np.any(weights < 0):
            raise ValueError("weights holds a negative or non-finite number: give numbers >= 0.")
        keep &= weights > 0
    if absent_are_zeros and (weights is not None or not keep.all()):
        raise ValueError(
            "X is sparse with absent entries that count, so mask=, weights= and NaN are not "
            "supported: use complete(), or a dense X."
        )
    if not keep.all():
        values, indices = values[keep], indices[keep]
        weights = None if weights is None else weights[keep]
        indptr = row_pointers(rows[keep], m, indptr.dtype)
    if not values.size and not absent_are_zeros:
        raise ValueError("X has no observed entry: check mask=, weights= and what X stores.")
    return SparseObservations(values, weights, indptr, indices, labels, absent_are_zeros)


def _row_by_row(X: Any) -> tuple[NDArray[Any], IntArray, IntArray, IntArray]:
    """Return values, rows, row pointers and columns, sorted; refuse an entry that comes twice."""
    if X.dtype.kind not in "buif":
        raise TypeError(f"X has dtype {X.dtype}: convert it to real numbers, X.astype(float).")
    if X.format == "coo":
        csr = X.tocsr()  # adds duplicates up
        if csr.nnz < X.nnz:
            order = np.lexsort((X.col, X.row))
            _refuse_twice(X.row[order], X.col[order])
    else:
        csr = X.tocsr()
    if not csr.has_sorted_indices:
        csr = csr.copy() if csr is X else csr
        csr.sort_indices()
    indptr = csr.indptr
    values, indices = csr.data[: indptr[-1]], csr.indices[: indptr[-1]]
    rows = np.repeat(np.arange(X.shape[0], dtype=indices.dtype), np.diff(indptr))
    _refuse_twice(rows, indices)
    return values, rows, indptr, indices


def _refuse_twice(rows: IntArray, columns: IntArray) -> None:
    """Refuse sorted entries of which two are at the same place."""
    twice = (rows[1:] == rows[:-1]) & (columns[1:] == columns[:-1])
    if twice.any():
        k = int(np.argmax(twice))
        raise ValueError(
            f"X stores the entry at row {rows[k]}, column {columns[k]} more than once: keep one, "
            "or add them up with X.sum_duplicates()."
        )


def _at_entries(
    name: str, other: Any, shape: tuple[int, int], rows: IntArray, columns: IntArray
) -> NDArray[Any]:
    """Return a mask or weights at the stored entries."""
    if not sparse.issparse(other):
        other = np.asarray(other)
    if other.shape == rows.shape and not sparse.issparse(other):
        return np.asarray(other)
    if other.shape != shape:
        raise ValueError(f"{name} has shape {other.shape}: give it the shape of X, {shape}.")
    if other.dtype.kind not in "buif":
        raise TypeError(f"{name} has dtype {other.dtype}: give real numbers or booleans.")
    if not sparse.issparse(other):
        return np.asarray(other[rows, columns])
    matrix: Any = other
    found = matrix.tocsr()[rows, columns]  # a 1-D sparse array, or a matrix of one row
    array = found.toarray() if hasattr(found, "toarray") else found
    return np.asarray(array).ravel()


def stored_columns(X: Any, row: int) -> IntArray:
    """Return the columns of the entries that a sparse input stores in a row."""
    matrix = X if isinstance(X, SparseObservations) else X.tocsr()
    columns: IntArray = np.asarray(matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]])
    return columns
