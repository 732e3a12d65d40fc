"""The updates of all rows and of all columns, for sparse and for dense data.

An update knows where the entries of its rows are.  For the columns the matrix is transposed, and
its rows are the columns of X.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.compiler import cached_kernel
from nmd_lab._runtime.machine import in_threads
from nmd_lab.data.entries import FloatArray
from nmd_lab.kernels.products import CsrStorage

from .priors import Doubles, RowPrior
from .random_numbers import MISSING, NO_KEYS, numbers
from .row_draws import draw_rows, draw_rows_with_few

MIN_THREAD_ENTRIES = 1 << 13
"""Smallest number of entries of a thread."""

BLOCK_ROWS = 256
"""Rows of a dense block; it does not depend on the number of threads, so that draws do not."""

Labels = NDArray[np.int64]
NO_LABELS: Labels = np.empty(0, np.int64)
"""Groups of rows if there is one group."""

MAX_INTEGRATED = 8
"""Missing cells of a row that are filled with the row integrated out."""

MAX_PAIRS = 1 << 22
"""Largest number of pairs of columns, over all groups."""


class OtherFactor(NamedTuple):
    """What an update takes of the other factor.

    Attributes
    ----------
    vectors : ndarray (n, d)
        Rows of the other factor, with a column of ones if this one has an offset.
    constants : ndarray (n,)
        Offsets of the other factor.
    mean : float
        Global offset.
    """

    vectors: FloatArray
    constants: FloatArray
    mean: float


class StreamId(NamedTuple):
    """What a stream of random numbers depends on, with the row.

    Attributes
    ----------
    seed, sweep, kind, keys : int, int, int, ndarray of int64
        Seed of the chain, number of the sweep, kind of the draw, and keys of new rows.
    """

    seed: int
    sweep: int
    kind: int
    keys: NDArray[np.int64] = NO_KEYS.rows


class RowInputs(NamedTuple):
    """What all rows are drawn from, besides T.

    Attributes
    ----------
    other, prior : OtherFactor, RowPrior
        The other factor, and the prior of a row of each group.
    rho : ndarray
        Precisions of T: one of all, or that of each row or of each column.
    key : StreamId
        Random numbers.
    labels : ndarray of int (m,)
        Group of each row, drawn where it is < 0; empty if there is one group.
    """

    other: OtherFactor
    prior: RowPrior
    rho: Doubles
    key: StreamId
    labels: Labels = NO_LABELS


@dataclass(frozen=True)
class MissingCells:
    """The missing cells: rows in ascending order, and columns."""

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    shape: tuple[int, int]

    @classmethod
    def of(cls, stored: NDArray[np.intp], shape: tuple[int, int]) -> MissingCells:
        """Return the missing cells of a matrix, given the flat positions of what is stored."""
        missing = np.ones(shape, bool)
        missing.ravel()[stored] = False
        rows, columns = np.nonzero(missing)
        return cls(rows, columns, shape)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Number of missing cells of each row."""
        return np.bincount(self.rows, minlength=self.shape[0])

    @cached_property
    def first(self) -> NDArray[np.int64]:
        """Columns of the first missing cells of each row, and 0 behind the last."""
        found, place = np.zeros((self.shape[0], MAX_INTEGRATED), np.int64), places_of(self.rows)
        first = place < MAX_INTEGRATED
        found[self.rows[first], place[first]] = self.columns[first]
        return found

    def rows_with_few(self, n_groups: int, d: int) -> NDArray[np.bool_]:
        """Return which rows of d components cost less by them; empty if it does not pay."""
        (m, n), counts = self.shape, self.counts
        few = (2 * counts < n) & (np.minimum(counts, MAX_INTEGRATED) < d)
        pays = n <= m and n_groups * n * n <= MAX_PAIRS and 2 * np.count_nonzero(few) >= m
        return few if pays else few[:0]


def places_of(rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the position of each cell among those of its row, given their sorted rows."""
    return np.arange(rows.size) - np.searchsorted(rows, rows)


class FewMissing:
    """The draw of rows with few missing cells; see `row_draws`.

    Parameters
    ----------
    missing, few : MissingCells, ndarray of bool (m,)
        The missing cells of all rows, and which rows have few.
    scaled, of_all : ndarray (n, d) and (d, d)
        √ρ_j p_j, and Σ_j ρ_j p_j p_jᵀ over all columns.
    gaussians : tuple of ndarray
        `RowPrior.gaussians` of the rows.
    shares : ndarray (n_groups,)
        Probability of each group.
    """

    def __init__(
        self,
        missing: MissingCells,
        few: NDArray[np.bool_],
        scaled: Doubles,
        of_all: Doubles,
        gaussians: tuple[Doubles, Doubles, Doubles],
        shares: Doubles,
    ) -> None:
        self.few, self._missing = few, missing
        self._chosen = missing.first.copy()
        linear, precision, log_weights = gaussians
        roots = np.linalg.cholesky(precision + of_all)
        inverse = np.linalg.inv(roots)
        white = scaled @ inverse.transpose(0, 2, 1)  # L⁻¹ √ρ_j p_j of each group
        pairs = white @ white.transpose(0, 2, 1)
        logs = log_weights - np.log(np.einsum("caa->ca", roots)).sum(axis=1)
        self._shared = linear, inverse, white, pairs, logs
        self._news = shares @ np.einsum("cjj->cj", pairs)

    def fill(
        self, rng: np.random.Generator, rows: FloatArray, vectors: Doubles, rho: Doubles, y: Doubles
    ) -> None:
        """Fill y in rows with many missing cells, but for the cells that say most of a row."""
        has_many = self.few & (self._missing.counts > MAX_INTEGRATED)
        many = has_many[self._missing.rows]
        i, j = self._missing.rows[many], self._missing.columns[many]
        j = j[np.lexsort((-self._news[j], i))]
        place = places_of(i)
        first, rest = place < MAX_INTEGRATED, place >= MAX_INTEGRATED
        self._chosen[i[first], place[first]] = j[first]
        i, j = i[rest], j[rest]
        predicted = np.einsum("ka,ka->k", rows[i], vectors[j])
        y[i, j] = predicted + rng.standard_normal(i.size) / np.sqrt(rho[j])

    def draw(
        self, first: int, last: int, key: StreamId, sums: Doubles, labels: Labels, rows: FloatArray
    ) -> None:
        """Draw some rows and their labels that are < 0, in place, given Σ_j ρ_j y_ij p_j."""
        pattern = self.few, self._missing.counts, self._chosen
        kernel = cached_kernel(draw_rows_with_few, f"draw_rows_with_few_{rows.dtype}")
        kernel(first, last, pattern, sums, self._shared, key[:3], labels, rows)


@dataclass(frozen=True)
class SparseUpdate:
    """An update over stored entries; ρ is one of all, or that of each row or of each column."""

    storage: CsrStorage
    order: NDArray[np.integer] | None
    weights: FloatArray | None
    threads: int
    rho_of: Literal["all", "rows", "columns"] = "all"

    def draw(self, target: FloatArray, inputs: RowInputs, rows: FloatArray) -> FloatArray:
        """Draw all rows in place, and return the weighted sum of squares that each leaves.

        There is no such sum if ρ is not one of all.
        """
        other, prior, rho, key, labels = inputs
        here = target if self.order is None else target.take(self.order)
        weights = np.empty(0, target.dtype) if self.weights is None else self.weights
        both_rho = (np.ones(1), rho) if self.rho_of == "columns" else (rho, np.empty(0))
        squares = np.zeros(rows.shape[0] if self.rho_of == "all" else 0)
        of_all, few, gaussians = (np.empty((0, 0)), np.empty((0, 0))), None, prior.gaussians
        if self._most is not None and not weights.size:
            of_all, few = self._over_all(here, inputs, gaussians, both_rho[1], rows)
        types = f"{rows.dtype}_{target.dtype}_{self.storage.indices.dtype}"
        kernel = cached_kernel(draw_rows, f"draw_rows_{types}")
        entries = self.storage.indptr, self.storage.indices, here, weights
        arguments = (entries, tuple(other), gaussians, both_rho, of_all, tuple(key))
        done = np.empty(0, bool) if few is None else few.few

        def share(first: int, last: int) -> None:
            if few is not None:
                few.draw(first, last, key, of_all[1], labels, rows)
            kernel(first, last, *arguments, rows, labels, squares, done)

        each_share(self.storage.indptr, self.threads, share)
        return squares

    def _over_all(
        self,
        here: FloatArray,
        inputs: RowInputs,
        gaussians: tuple[Doubles, Doubles, Doubles],
        rho: Doubles,
        rows: FloatArray,
    ) -> tuple[tuple[Doubles, Doubles], FewMissing | None]:
        """Return the sums over all columns, and the draw of rows with few missing cells if any."""
        other, shares, key = inputs.other, inputs.prior.shares, inputs.key
        vectors, mean = other.vectors.astype(np.float64, copy=False), here.dtype.type(other.mean)
        weighted = vectors * rho[:, None] if rho.size else vectors
        gram, y, found = weighted.T @ vectors, np.zeros(self.storage.shape), None
        y.ravel()[self._most] = here - other.constants[self.storage.indices] - mean
        if self.rho_of == "columns" and not key.keys.size:  # whether it pays depends on all rows
            few = self._missing.rows_with_few(shares.size, vectors.shape[1])
            if few.any():
                scaled = vectors * np.sqrt(rho)[:, None]
                found = FewMissing(self._missing, few, scaled, gram, gaussians, shares)
                found.fill(numbers(key.seed, key.sweep, MISSING), rows, vectors, rho, y)
        return (gram, y @ weighted), found

    @cached_property
    def _most(self) -> NDArray[np.intp] | None:
        """Positions of the entries, if most are stored."""
        return positions_of_most(self.storage)

    @cached_property
    def _missing(self) -> MissingCells:
        assert self._most is not None
        return MissingCells.of(self._most, self.storage.shape)


@dataclass(frozen=True)
class DenseUpdate:
    """An update over a full matrix without weights, whose precision is shared by all rows."""

    shape: tuple[int, int]
    transposed: bool
    threads: int

    def draw(self, target: FloatArray, inputs: RowInputs, rows: FloatArray) -> FloatArray:
        """Draw all rows; see `SparseUpdate.draw`."""
        T = target.reshape(self.shape)
        T = T.T if self.transposed else T
        (vectors, constants, mean), prior, rho, key, _ = inputs
        of_all = float(rho[0])
        normal = prior.precision[0] + of_all * (vectors.T @ vectors).astype(np.float64)
        L = np.linalg.cholesky(normal)
        inverse = np.linalg.inv(L)  # of a small triangle
        linear = prior.linear[0]
        squares = np.zeros(rows.shape[0])

        def block(first: int, last: int) -> None:
            block = slice(first, last)
            residual = T[block] - (constants + rows.dtype.type(mean))
            b = of_all * (residual @ vectors).astype(np.float64) + linear
            noise = numbers(key.seed, key.sweep, key.kind, first).standard_normal(b.shape)
            rows[block] = (b @ inverse.T + noise) @ inverse
            residual -= rows[block] @ vectors.T
            squares[block] = np.sum(np.square(residual, dtype=np.float64), axis=1)

        m, n = T.shape
        each_block(np.arange(m + 1) * n, self.threads, block, dense=True)
        return squares


def positions_of_most(storage: CsrStorage) -> NDArray[np.intp] | None:
    """Return the positions in a flat matrix, if most of one of moderate size is stored in order."""
    m, n = storage.shape
    if not 2 * storage.indices.size > m * n or m * n > 1 << 24:  # a dense copy has 128 MiB
        return None
    positions = np.repeat(np.arange(m) * n, np.diff(storage.indptr)) + storage.indices
    return positions if np.all(np.diff(positions) > 0) else None


def each_share(
    indptr: NDArray[np.integer], threads: int, work: Callable[[int, int], None], unit: int = 1
) -> None:
    """Call a function of first and last row for each thread, with equal numbers of entries.

    All threads but the last have a multiple of `unit` rows.
    """
    entries, m = int(indptr[-1]), indptr.size - 1
    parts = max(1, min(threads, entries // MIN_THREAD_ENTRIES, m))
    ends = np.searchsorted(indptr, np.linspace(0, entries, parts + 1)[1:-1]) // unit * unit
    in_threads(lambda share: work(*share), pairwise([0, *ends.tolist(), m]), parts)


def each_block(
    indptr: NDArray[np.integer], threads: int, work: Callable[[int, int], None], *, dense: bool
) -> None:
    """Call a function of first and last row of each block of `BLOCK_ROWS` rows, in threads."""

    def rows(first: int, last: int) -> None:
        for begin in range(first, last, BLOCK_ROWS):
            work(begin, min(begin + BLOCK_ROWS, last))

    each_share(indptr, threads, rows, BLOCK_ROWS if dense else 1)
