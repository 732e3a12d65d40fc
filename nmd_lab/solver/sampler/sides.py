"""The two half-sweeps over rows and over columns, for sparse and for dense data.

A side knows where the entries of its rows are.  For the columns the matrix is transposed, and its
rows are the columns of X.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.compiler import compile_kernel
from nmd_lab._runtime.machine import map_and_add
from nmd_lab.data.entries import FloatArray
from nmd_lab.solver.storage import CsrStorage

from .entry_sums import spread
from .few_holes import FewHoles, Holes, Shared
from .hyperparameters import RowPrior
from .row_draws import row_kernel
from .streams import fill_normal, new_stream, start_stream

SHARE = 1 << 13
"""Smallest number of entries of a thread."""

BLOCK_ROWS = 256
"""Rows of a dense block; it does not depend on the number of threads, so that draws do not."""


LARGEST = 1 << 22
"""Largest matrix of which a dense copy is made: 32 MiB."""

RhoOf = Literal["all", "rows", "partners"]
"""Whose ρ there is: one of all, or that of each row of a side or of each of its partners."""

Labels = NDArray[np.int64]
"""Groups of rows."""

NO_LABELS: Labels = np.empty(0, np.int64)
"""Groups of rows if there is one group."""


class Partner(NamedTuple):
    """What a side sees of the other factor.

    Attributes
    ----------
    vectors : ndarray (n, d)
        Rows of the other factor, with a column of ones if this side has an offset.
    constants : ndarray (n,)
        Offsets of the other side.
    mean : float
        Global offset.
    """

    vectors: FloatArray
    constants: FloatArray
    mean: float


class Key(NamedTuple):
    """What a stream of random numbers depends on, beside the row.

    Attributes
    ----------
    seed, sweep, kind : int
        Seed of the chain, number of the sweep, and kind of the draw.
    """

    seed: int
    sweep: int
    kind: int


class Side(Protocol):
    """A half-sweep; labels say in which group each row is, and are drawn where they are < 0."""

    def draw(
        self,
        target: FloatArray,
        partner: Partner,
        prior: RowPrior,
        rho: NDArray[np.float64],
        key: Key,
        rows: FloatArray,
        labels: Labels = NO_LABELS,
    ) -> FloatArray:
        """Draw all rows in place, and return the weighted sum of squares that each leaves."""


@dataclass(frozen=True)
class SparseSide:
    """A half-sweep over stored entries; `rho_of` says whose ρ there is."""

    storage: CsrStorage
    order: NDArray[np.integer] | None
    weights: FloatArray | None
    threads: int
    rho_of: RhoOf = "all"

    def draw(
        self,
        target: FloatArray,
        partner: Partner,
        prior: RowPrior,
        rho: NDArray[np.float64],
        key: Key,
        rows: FloatArray,
        labels: Labels = NO_LABELS,
    ) -> FloatArray:
        """Draw all rows; see `Side.draw`."""
        here = target if self.order is None else target.take(self.order)
        weights = np.empty(0, target.dtype) if self.weights is None else self.weights
        alone = self.rho_of == "all"
        of_rows, of_partners = (
            (np.ones(1), rho) if self.rho_of == "partners" else (rho, np.empty(0))
        )
        misfit = np.zeros(rows.shape[0] if alone else 0)  # that of several kinds is needed apart
        of_all = sums = np.empty((0, 0))
        by_holes: FewHoles | None = None
        if not weights.size and self._few_holes is not None:
            vectors = partner.vectors.astype(np.float64, copy=False)
            weighted = vectors * of_partners[:, None] if of_partners.size else vectors
            of_all = weighted.T @ vectors
            of_partner = self.storage.indices, partner.constants, partner.mean
            y = spread(here, *of_partner, self._few_holes, self.storage.shape)
            by_holes = self._by_holes(vectors, of_partners, of_all, prior)
            if by_holes is not None:
                self._fill(by_holes, rows, vectors, of_partners, key, y)
            sums = y @ weighted
        done = np.empty(0, bool) if by_holes is None else by_holes.few
        of_prior = prior.linear, prior.precision, prior.log_weights
        kernel = row_kernel(f"{rows.dtype}_{target.dtype}_{self.storage.indices.dtype}")

        def share(first: int, last: int) -> None:
            pattern = (self.storage.indptr, self.storage.indices, first, last)
            data = (here, weights, *partner, *of_prior, of_rows, of_partners, of_all, sums)
            if by_holes is not None:
                by_holes.draw(first, last, key, sums, labels, rows)
            kernel(*pattern, *data, *key, labels, rows, misfit, done)

        each_share(self.storage.indptr, self.threads, share)
        return misfit

    @cached_property
    def _holes(self) -> Holes:
        assert self._few_holes is not None
        return Holes.of(self._few_holes, self.storage.shape)

    def _by_holes(
        self,
        vectors: NDArray[np.float64],
        rho: NDArray[np.float64],
        of_all: NDArray[np.float64],
        prior: RowPrior,
    ) -> FewHoles | None:
        """Return the draw of rows with few holes; None if it does not pay."""
        if self.rho_of != "partners":
            return None
        few = self._holes.rows_with_few(*prior.mean.shape)
        if not few.any():
            return None
        return FewHoles(few, self._holes, Shared.of(vectors * np.sqrt(rho)[:, None], of_all, prior))

    def _fill(
        self,
        by_holes: FewHoles,
        rows: FloatArray,
        vectors: NDArray[np.float64],
        rho: NDArray[np.float64],
        key: Key,
        y: NDArray[np.float64],
    ) -> None:
        """Fill most holes of y given the rows as they are."""
        predicted, spreads = rows.astype(np.float64, copy=False) @ vectors.T, 1 / np.sqrt(rho)

        def share(first: int, last: int) -> None:
            by_holes.fill(first, last, key, predicted, spreads, y)

        each_share(self.storage.indptr, self.threads, share)

    @cached_property
    def _few_holes(self) -> NDArray[np.intp] | None:
        """Positions of the entries, if most are stored."""
        return positions_of_most(self.storage)


@dataclass(frozen=True)
class DenseSide:
    """A half-sweep over a matrix without holes and weights: one precision serves all rows."""

    shape: tuple[int, int]
    transposed: bool
    threads: int

    def draw(
        self,
        target: FloatArray,
        partner: Partner,
        prior: RowPrior,
        rho: NDArray[np.float64],
        key: Key,
        rows: FloatArray,
        labels: Labels = NO_LABELS,
    ) -> FloatArray:
        """Draw all rows; see `Side.draw`."""
        T = target.reshape(self.shape)
        T = T.T if self.transposed else T
        (vectors, constants, mean), of_all = partner, float(rho[0])
        normal = prior.precision[0] + of_all * (vectors.T @ vectors).astype(np.float64)
        L = np.linalg.cholesky(normal)
        inverse = np.linalg.inv(L)  # of a small triangle
        linear = prior.linear[0]
        misfit = np.zeros(rows.shape[0])
        kernel = _noise_kernel()

        def block(first: int) -> None:
            block = slice(first, min(first + BLOCK_ROWS, rows.shape[0]))
            target_here = T[block] - (constants + rows.dtype.type(mean))
            b = of_all * (target_here @ vectors).astype(np.float64) + linear
            noise = np.empty(b.shape)
            kernel(*key, first, noise)
            rows[block] = (b @ inverse.T + noise) @ inverse
            target_here -= rows[block] @ vectors.T
            misfit[block] = np.sum(np.square(target_here, dtype=np.float64), axis=1)

        each_block(rows.shape[0], self.threads if T.size >= SHARE else 1, block)
        return misfit


def positions_of_most(storage: CsrStorage) -> NDArray[np.intp] | None:
    """Return the positions in a flat matrix, if most of one of moderate size is stored in order."""
    m, n = storage.shape
    if not 2 * storage.indices.size > m * n or m * n > LARGEST:
        return None
    positions = np.repeat(np.arange(m) * n, np.diff(storage.indptr)) + storage.indices
    return positions if np.all(np.diff(positions) > 0) else None


def each_share(indptr: NDArray[np.integer], threads: int, work: Callable[[int, int], None]) -> None:
    """Call a function of first and last row for each thread, with equal numbers of entries."""
    entries, m = int(indptr[-1]), indptr.size - 1
    parts = max(1, min(threads, entries // SHARE, m))
    ends = np.searchsorted(indptr, np.linspace(0, entries, parts + 1)[1:-1])
    borders = [0, *ends.tolist(), m]

    def share(number: int) -> tuple[Any, ...]:
        work(borders[number], borders[number + 1])
        return ()

    map_and_add(share, parts)


def each_block(m: int, threads: int, work: Callable[[int], None]) -> None:
    """Call a function of the first row of each dense block, in several threads."""
    firsts = range(0, m, BLOCK_ROWS)
    parts = max(1, min(threads, len(firsts)))

    def share(number: int) -> tuple[Any, ...]:
        for first in firsts[number::parts]:
            work(first)
        return ()

    map_and_add(share, parts)


@cache
def _noise_kernel() -> Any:
    return compile_kernel(_noise, "row_noise", cached=True)


def _noise(seed, sweep, kind, first, out):  # type: ignore[no-untyped-def]
    stream = new_stream()
    for i in range(out.shape[0]):
        start_stream(stream, seed, sweep, kind, first + i)
        fill_normal(stream, out[i])
