"""Observations of a sparse matrix: the stored entries, row after row, and nothing else.

A stored zero is an observation like any other.  What the absent entries are is said once, by
`absent_are_zeros`: data equal to 0 for `decompose`, missing for `complete`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from .labels import Labels, labels_of
from .observations import FloatArray, Observations, float_dtype, observe

IntArray = NDArray[np.integer]


@dataclass(frozen=True)
class SparseObservations:
    """A matrix of which some entries are stored.

    Attributes
    ----------
    values : ndarray (n_stored,)
        float32 or float64, row after row.
    weights : ndarray (n_stored,) or None
        None if every stored entry counts once, or floats > 0.
    indptr : ndarray of int (m + 1,)
        Row i has the stored entries indptr[i] to indptr[i + 1].
    indices : ndarray of int (n_stored,)
        Columns of the stored entries, ascending within a row.
    labels : Labels
        What to put back on results.
    absent_are_zeros : bool
        Whether entries that are not stored count, as zeros.
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
        """Number of entries that count."""
        m, n = self.shape
        return m * n if self.absent_are_zeros else self.values.size

    @property
    def rows(self) -> IntArray:
        """Rows of the stored entries."""
        return np.repeat(np.arange(self.shape[0], dtype=self.indices.dtype), np.diff(self.indptr))

    def observed(self) -> tuple[FloatArray, FloatArray]:
        """Return the values that count and their weights, flat, in double precision.

        Zeros that are not stored come as one value that weighs as much as all of them.
        """
        values: FloatArray = self.values.astype(np.float64, copy=False)
        weights = np.broadcast_to(1.0, values.size)
        if self.weights is not None:
            weights = self.weights.astype(np.float64, copy=False)
        absent = self.n_observed - values.size
        if absent:
            return np.append(values, 0.0), np.append(weights, float(absent))
        return values, weights

    def unobserved_lines(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the rows and the columns in which nothing is observed."""
        return np.flatnonzero(self.counts(1) == 0), np.flatnonzero(self.counts(0) == 0)

    def counts(self, axis: int) -> NDArray[np.integer]:
        """Return how many entries each column (axis 0) or row (axis 1) has."""
        if self.absent_are_zeros:
            return np.full(self.shape[1 - axis], self.shape[axis])
        if axis == 1:
            return np.diff(self.indptr)
        return np.bincount(self.indices, minlength=self.shape[1])

    def to_csr(self, values: FloatArray | None = None) -> sparse.csr_array:
        """Return the values, or others in their places, as a SciPy array that shares memory."""
        values = self.values if values is None else values
        return sparse.csr_array((values, self.indices, self.indptr), shape=self.shape)

    def __repr__(self) -> str:
        row, column = (", ".join(dims) for dims in (self.labels.rows, self.labels.columns))
        m, n = self.shape
        share = 100 * self.values.size / (m * n)
        return (
            f"<nmd_lab.SparseObservations>  {row}: {m}, {column}: {n}, "
            f"{self.values.size} stored entries ({share:.3g} %), {self.values.dtype}"
        )


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
        counts = np.bincount(rows[keep], minlength=m)
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(indptr.dtype)
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


def sparse_from_dense(observations: Observations) -> SparseObservations:
    """Return the observed entries of a dense matrix."""
    values, weights = observations.values, observations.weights
    seen = np.ones(values.shape, bool) if weights is None else weights > 0
    rows, columns = np.nonzero(seen)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=values.shape[0]))])
    counted = None if weights is None or weights.dtype == bool else weights[seen]
    kind: Any = np.int32 if rows.size < 2**31 else np.int64
    return SparseObservations(
        values[seen], counted, indptr.astype(kind), columns.astype(kind), observations.labels
    )


AnyObservations = Observations | SparseObservations


def observations_of(
    X: Any,
    *,
    mask: Any = None,
    weights: Any = None,
    dtype: DTypeLike | None = None,
    sample_dims: str | Sequence[str] | None = None,
    absent_are_zeros: bool = False,
) -> AnyObservations:
    """Turn any accepted input into observations, sparse input into sparse ones.

    Parameters
    ----------
    X, mask, weights, dtype, sample_dims
        As for `observe`, or for `observe_sparse`.
    absent_are_zeros : bool
        What the absent entries of a sparse matrix are.
    """
    if sparse.issparse(X) or isinstance(X, SparseObservations):
        return observe_sparse(
            X, mask=mask, weights=weights, dtype=dtype, absent_are_zeros=absent_are_zeros
        )
    return observe(X, mask=mask, weights=weights, dtype=dtype, sample_dims=sample_dims)
