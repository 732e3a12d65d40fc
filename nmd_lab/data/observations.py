"""The interface of observations: what solver and results may ask of data.

Observations are a matrix of which some entries are observed.  `DenseObservations` stores every
entry, `SparseObservations` stores some of them in compressed rows.  Code outside this package uses
the methods below and never asks for the class.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from nmd_lab._runtime.machine import Scratch

from .entries import EntryLimits, FloatArray, GivenOffsets, IntArray, ObservedEntries, Transform
from .labels import Labels

BLOCK = 1 << 16
"""Entries of a block: 512 KiB of doubles, so that temporary arrays stay small and in the cache."""


def row_ranges(m: int, size: int) -> Iterator[slice]:
    """Yield ranges of m rows, each with about `BLOCK` of `size` entries."""
    rows = max(1, BLOCK * m // max(size, 1))
    return (slice(first, min(first + rows, m)) for first in range(0, m, rows))


def row_borders(indptr: IntArray, parts: int) -> list[int]:
    """Return where parts of rows with about equally many stored entries begin and end."""
    targets = [int(indptr[-1]) * k / parts for k in range(1, parts)]
    return [0, *(np.searchsorted(indptr, targets).tolist() if targets else []), indptr.size - 1]


def row_blocks(indptr: IntArray, first: int = 0, end: int | None = None) -> Iterator[slice]:
    """Yield ranges of rows with about `BLOCK` stored entries, however unequal the rows are."""
    end = indptr.size - 1 if end is None else end
    while first < end:
        last = int(np.searchsorted(indptr, indptr[first] + BLOCK, side="right")) - 1
        last = min(max(last, first + 1), end)
        yield slice(first, last)
        first = last


class Observations(ABC):
    """A partly observed matrix.

    Attributes
    ----------
    values : ndarray
        Observed values, float32 or float64.
    weights : ndarray or None
        Weights of the values, >= 0; None if every weight is one.
    labels : Labels
        Dimensions and coordinates for results.
    limits : EntryLimits or None
        Limits of the stored entries; None if all observed values are known.
    pattern : tuple of ndarray or None
        `indptr` and `indices` of the entries that a solver stores; None if it stores all.
    absent_are_zeros : bool
        Whether entries without a stored value are observed and equal to 0.
    scratch : Scratch or None
        Folder for arrays of the size of X, if X lies in a file; None (default) if not.
    remote : bool
        Whether the rows are on other machines, where a W stays, too.  Functions of the solver that
        work with rows have another implementation for such a class (`functools.singledispatch`).
    """

    values: FloatArray
    weights: NDArray[Any] | None
    labels: Labels
    limits: EntryLimits | None
    pattern: tuple[IntArray, IntArray] | None
    absent_are_zeros: bool
    scratch: Scratch | None = None
    remote: ClassVar[bool] = False

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        return self.values.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.labels.matrix_shape

    @property
    def n_observed(self) -> int:
        """Number of observed entries."""
        return int(self.counts(1).sum())

    @property
    def in_memory(self) -> bool:
        """Whether all entries are in the memory of this process."""
        return self.scratch is None and not self.remote

    @property
    def is_small_table(self) -> bool:
        """Whether they are dense and in memory, with few enough columns for a table."""
        return self.in_memory and self.pattern is None and self.shape[1] <= 100

    def row_ranges(self) -> Iterator[slice]:
        """Yield ranges of rows with about `BLOCK` stored entries."""
        return row_ranges(self.shape[0], self.n_stored)

    @property
    def n_stored(self) -> int:
        """Number of entries that a solver stores, observed or not."""
        return self.shape[0] * self.shape[1] if self.pattern is None else self.values.size

    @abstractmethod
    def reader(self) -> Any:
        """Return the values of the stored entries, flat, of which a slice gives an array.

        Where the weight is 0, the value may be anything, NaN too.
        """

    def weight_reader(self) -> NDArray[Any] | None:
        """Return the weights of the stored entries, to be read so; None if every one is 1."""
        return self.weights

    def limit_reader(self) -> EntryLimits | None:
        """Return the limits of the entries that a solver stores; None if there are none."""
        return self.limits

    def stored_positions(self) -> tuple[IntArray, IntArray]:
        """Return the row and the column of each entry that a solver stores, by default of all."""
        m, n = self.shape
        return np.repeat(np.arange(m), n), np.tile(np.arange(n), m)

    def transformed(self, transform: Transform) -> FloatArray:
        """Return transform(X) at the stored entries, as a new flat array; 0 if missing.

        It is in a file if the entries are.
        """
        values, weights = self.reader(), self.weight_reader()
        T: Any = self.new_array(self.dtype)
        for first in range(0, T.size, BLOCK):
            block = slice(first, first + BLOCK)
            seen = True if weights is None else weights[block] > 0
            T[block] = np.where(seen, transform(np.where(seen, values[block], 0)), 0)
        return T  # type: ignore[no-any-return]

    def new_array(self, dtype: Any) -> Any:
        """Return a new flat array with a number for each stored entry, in a file if they are."""
        size = self.n_stored
        return np.empty(size, dtype) if self.scratch is None else self.scratch.zeros(size, dtype)

    @abstractmethod
    def centred(
        self, transform: Transform, offsets: GivenOffsets
    ) -> tuple[FloatArray | sparse.csr_array, float]:
        """Return transform(X) minus offsets, as the sum of a matrix and a constant.

        Parameters
        ----------
        transform : callable
            Entrywise function of X.
        offsets : tuple
            Global offset, offsets of rows and offsets of columns.

        Returns
        -------
        matrix : ndarray or csr_array (m, n)
            First term of the sum, sparse if the observations are.
        constant : float
            Number to add to each entry of the matrix; 0 for dense data.

        Notes
        -----
        In the sum, a missing entry is 0 if there are offsets, and the mean of the observed entries
        otherwise.
        """

    def centred_sums(self, transform: Transform, offsets: GivenOffsets, axis: int) -> FloatArray:
        """Return the sums of `centred` over all rows (axis 0) or over all columns (axis 1)."""
        R: Any = self.centred(transform, offsets)[0]
        blocks = (R[first : first + 1024] for first in range(0, self.shape[0], 1024))
        sums = (block.sum(axis=axis, dtype=np.float64) for block in blocks)
        return np.concatenate([*sums]) if axis else np.asarray(sum(sums))

    def observed(self) -> tuple[FloatArray, FloatArray]:
        """Return the observed values and their weights, flat, in double precision.

        All zeros that are not stored are one value, with their number as its weight.  What needs
        no change is not copied.
        """
        return next(self.observed_blocks(self.n_stored))

    def observed_blocks(self, size: int = BLOCK) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield what `observed` returns in blocks of at most `size` stored entries."""
        values = self.values if self.absent_are_zeros else self.reader()
        weights = self.weight_reader()
        absent = self.n_observed - values.size if self.absent_are_zeros else 0
        for first in range(0, max(values.size, 1), max(size, 1)):
            x: Any = values[first : first + size]
            w: Any = np.broadcast_to(1.0, x.size)
            if weights is not None:
                w = weights[first : first + size]
                x, w = x[w > 0], w[w > 0].astype(np.float64)
            x = x.astype(np.float64, copy=False)
            if absent and first + size >= values.size:
                x, w = np.append(x, 0.0), np.append(w, float(absent))
            yield x, w

    def sum_of(self, function: Callable[[FloatArray, FloatArray], FloatArray]) -> float:
        """Return the sum of a function of values and weights over the entries, block by block."""
        return float(self.sum_of_blocks(lambda x, w: float(np.sum(function(x, w)))))

    def weighted_sums(self, *functions: Transform) -> tuple[float, ...]:
        """Return Σ w, and Σ w g(x) for each function g, in one pass with the bits of several."""
        total = self.sum_of_blocks(
            lambda x, w: np.array([np.sum(w), *(np.sum(w * g(x)) for g in functions)])
        )
        return tuple(np.broadcast_to(total, len(functions) + 1).tolist())

    def sum_of_blocks(self, function: Callable[[FloatArray, FloatArray], Any]) -> Any:
        """Return the sum of a function of the values and weights of a block over the blocks."""
        return sum((function(x, w) for x, w in self.observed_blocks()), 0.0)

    def range(self) -> tuple[float, float]:
        """Return the smallest and the largest observed value."""
        ranges = [(x.min(), x.max()) for x, _ in self.observed_blocks() if x.size]
        ranges = ranges or [(np.inf, -np.inf)]
        return float(min(low for low, _ in ranges)), float(max(high for _, high in ranges))

    @abstractmethod
    def entries(self) -> ObservedEntries:
        """Return the observed entries, sorted by row and column."""

    def missing(self) -> NDArray[np.bool_]:
        """Return a mask (m, n) of the missing entries."""
        missing, (rows, columns, _) = np.ones(self.shape, dtype=bool), self.entries()
        missing[rows, columns] = False
        return missing

    @abstractmethod
    def select(self, keep: NDArray[np.bool_]) -> Self:
        """Return observations of those `entries` at which `keep` is True."""

    @abstractmethod
    def of_rows(self, rows: slice | IntArray, labels: Labels | None = None) -> Observations:
        """Return the observations of some rows, by position, with other labels or without."""

    def csr_rows(self, block: slice) -> Any:
        """Return the observed entries of a range of rows as `SparseObservations`."""
        return self.of_rows(block).as_sparse()

    @abstractmethod
    def as_sparse(self) -> Any:
        """Return the observed entries as `SparseObservations`."""

    def to_array(self) -> FloatArray:
        """Return the matrix (m, n), with NaN at missing entries."""
        rows, columns, values = self.entries()
        array = np.full(self.shape, 0 if self.absent_are_zeros else np.nan, self.dtype)
        array[rows, columns] = values
        return array

    @abstractmethod
    def with_values(self, values: FloatArray) -> Self:
        """Return other values of the stored entries, with the same pattern, weights and labels."""

    def with_stored(self, values: FloatArray) -> Self:
        """Return other values of the stored entries, without limits."""
        return replace(self.with_values(values), limits=None)  # type: ignore[type-var]

    def mapped(self, transform: Transform) -> Self:
        """Return observations of transform(X); zeros that are not stored stay zeros."""
        zeros = self.absent_are_zeros
        values = np.asarray(transform(self.values)) if zeros else self.transformed(transform)
        limits = None if self.limits is None else self.limits.mapped(transform)
        return replace(self.with_values(values), limits=limits)  # type: ignore[type-var]

    def fingerprint(self) -> str:
        """Return the SHA-256 hash of everything but the labels."""
        digest = hashlib.sha256(f"{self.dtype} {self.shape} {self.absent_are_zeros}".encode())
        for block in self.row_ranges():
            rows = self.of_rows(block).as_sparse()
            limits = {} if rows.limits is None else vars(rows.limits)
            stored = (rows.values, rows.indices, rows.indptr, rows.weights, *limits.values())
            for array in stored:
                digest.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    @abstractmethod
    def counts(self, axis: int) -> NDArray[np.integer]:
        """Return the number of observed entries of each column (axis 0) or row (axis 1)."""

    @staticmethod
    def stacked(pieces: Sequence[Any], dtype: Any) -> Any:
        """Return a W of pieces side by side: matrices, single columns, and numbers for columns."""
        m = len(next(piece for piece in pieces if not isinstance(piece, float)))
        columns = [
            np.full((m, 1), piece) if isinstance(piece, float) else piece.reshape(m, -1)
            for piece in pieces
        ]
        return np.hstack(columns, dtype=dtype)

    def allow(self, W: Any, solved: slice, constraint: Any, empty: IntArray) -> None:
        """Set columns of W to the nearest allowed ones, those of rows without an entry near 0."""
        W[empty, solved] = 0
        if constraint is not None:
            W[:, solved] = constraint.project(W[:, solved])

    def gathered(self, W: Any) -> Any:
        """Return a copy of W for a result."""
        return W.copy()

    def computing(self) -> AbstractContextManager[Any]:
        """Return a context in which a W of a result is computed where the rows are."""
        return nullcontext()

    def checkpoint_files(self, path: Path) -> Any:
        """Return what belongs to a checkpoint at a path, None if nothing does."""
        return None

    def zero_unobserved(self, W: FloatArray, H: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return two factors, copied, with 0 for rows and columns without an observed entry."""
        W, H = W.copy(), H.copy()
        rows, columns = self.empty_rows_and_columns()
        W[rows], H[:, columns] = 0, 0
        return W, H

    def empty_rows_and_columns(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the positions of the rows and of the columns without an observed entry."""
        return np.flatnonzero(self.counts(1) == 0), np.flatnonzero(self.counts(0) == 0)


def float_dtype(array: NDArray[Any], dtype: DTypeLike | None) -> np.dtype[Any]:
    """Return the working precision: `dtype`, or by default float32 for float16 and float32."""
    if dtype is None:
        return np.dtype(np.float32 if array.dtype in (np.float16, np.float32) else np.float64)
    try:
        precision = np.dtype(dtype)
    except TypeError:
        precision = np.dtype(object)
    if precision not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype={dtype!r} is not supported: use 'float32' or 'float64'.")
    return precision
