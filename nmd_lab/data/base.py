"""The interface of observations: what the solver and the results may ask of data.

A problem is a matrix of which some entries are observed.  `DenseObservations` stores every entry,
`SparseObservations` stores some of them row after row.  Code outside this package uses the methods
below and never asks which of the two it has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from .labels import Labels

FloatArray = NDArray[np.floating]
IntArray = NDArray[np.integer]

Transform = Callable[[FloatArray], FloatArray]
"""A function of arrays that works entry by entry."""


class Entries(NamedTuple):
    """The observed entries in the order of rows.

    Attributes
    ----------
    rows, columns : ndarray of int (n_observed,)
        Positions.
    values : ndarray of float (n_observed,)
        Observed values.
    """

    rows: IntArray
    columns: IntArray
    values: FloatArray


class CsrRows(NamedTuple):
    """The observed entries of some consecutive rows, in compressed form.

    Attributes
    ----------
    indptr : ndarray of int64 (n_rows + 1,)
        Row i of the range has the entries indptr[i] to indptr[i + 1].
    indices : ndarray of int64 (n_entries,)
        Columns of the entries.
    values, weights : ndarray of float64 (n_entries,)
        Observed values and their weights.
    """

    indptr: IntArray
    indices: IntArray
    values: NDArray[np.float64]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, indptr: Any, indices: Any, values: Any, weights: Any) -> CsrRows:
        """Return the arrays with the types above; no weights are ones."""
        weights = np.ones(values.size) if weights is None else weights
        return cls(
            np.asarray(indptr, dtype=np.int64),
            np.asarray(indices, dtype=np.int64),
            np.asarray(values, dtype=np.float64),
            np.asarray(weights, dtype=np.float64),
        )


class EntryReader(Protocol):
    """Stored values that can be read a range at a time; an array is one."""

    def __getitem__(self, entries: slice, /) -> Any:
        """Return the values of a range of stored entries, flat."""


class Observations(ABC):
    """A partly observed matrix.

    Attributes
    ----------
    values : ndarray
        Observed values, float32 or float64.
    weights : ndarray or None
        Weights of the values, >= 0; None if every value has weight 1.
    labels : Labels
        Dimensions and coordinates to put back on results.
    """

    values: FloatArray
    weights: NDArray[Any] | None
    labels: Labels

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""

    @property
    @abstractmethod
    def n_observed(self) -> int:
        """Number of observed entries."""

    @property
    @abstractmethod
    def pattern(self) -> tuple[IntArray, IntArray] | None:
        """`indptr` and `indices` of the entries that a solver stores; None if it stores all."""

    @property
    @abstractmethod
    def absent_are_zeros(self) -> bool:
        """Whether entries that are not in memory are observed and equal to 0."""

    @property
    def n_stored(self) -> int:
        """Number of entries that a solver stores, observed or not."""
        return self.shape[0] * self.shape[1] if self.pattern is None else self.values.size

    @abstractmethod
    def reader(self) -> EntryReader:
        """Return the values of the stored entries, flat, for reading a range at a time."""

    @abstractmethod
    def transformed(self, transform: Transform) -> FloatArray:
        """Return a function of the values of the stored entries, flat, as a new array."""

    @abstractmethod
    def centred(
        self, transform: Transform, mean: float, rows: FloatArray | None, columns: FloatArray | None
    ) -> tuple[FloatArray | sparse.csr_array, float]:
        """Return transform(X) less offsets, and a constant to add to each of its entries.

        Parameters
        ----------
        transform : callable
            Function of the values.
        mean : float
            Global offset.
        rows, columns : ndarray (m,) and (n,), or None
            Offsets of rows and columns.

        Returns
        -------
        matrix : ndarray or csr_array (m, n)
            Missing entries are 0 if there are offsets, and the mean of the others if not.
        constant : float
            Part of the fill that a sparse matrix cannot hold.
        """

    @abstractmethod
    def observed(self) -> tuple[FloatArray, FloatArray]:
        """Return the observed values and their weights, flat, in double precision."""

    @abstractmethod
    def entries(self) -> Entries:
        """Return the observed entries in the order of rows."""

    @abstractmethod
    def select(self, keep: NDArray[np.bool_]) -> Self:
        """Return observations of some of the `entries`, a mask over them being given."""

    @abstractmethod
    def csr_rows(self, block: slice) -> CsrRows:
        """Return the observed entries of a range of rows."""

    @abstractmethod
    def as_sparse(self) -> Any:
        """Return the observed entries as `SparseObservations`."""

    @abstractmethod
    def to_array(self) -> FloatArray:
        """Return the matrix (m, n) with NaN where nothing is observed."""

    @abstractmethod
    def with_values(self, values: FloatArray) -> Self:
        """Return the same pattern, weights and labels with other values."""

    @abstractmethod
    def counts(self, axis: int) -> NDArray[np.integer]:
        """Return the number of observed entries of each column (axis 0) or row (axis 1)."""

    def empty_rows_and_columns(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the positions of rows and of columns without an observed entry."""
        return np.flatnonzero(self.counts(1) == 0), np.flatnonzero(self.counts(0) == 0)


def row_pointers(rows: IntArray, n_rows: int, dtype: Any) -> IntArray:
    """Return `indptr` of entries in the order of rows."""
    counts = np.bincount(rows, minlength=n_rows)
    return np.concatenate([[0], np.cumsum(counts)]).astype(dtype)


def index_dtype(*sizes: int) -> type[np.signedinteger]:
    """Return the smallest integer type, of 32 or 64 bits, that can count to all sizes."""
    return np.int32 if max(sizes) < 2**31 else np.int64


def float_dtype(array: NDArray[Any], dtype: DTypeLike | None) -> np.dtype[Any]:
    """Return the working precision."""
    if dtype is None:
        return np.dtype(np.float32 if array.dtype in (np.float16, np.float32) else np.float64)
    try:
        wanted = np.dtype(dtype)
    except TypeError:
        wanted = np.dtype(object)
    if wanted not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype={dtype!r} is not supported: use 'float32' or 'float64'.")
    return wanted
