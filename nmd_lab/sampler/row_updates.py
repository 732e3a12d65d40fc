"""The updates of all rows and of all columns, for sparse and for dense data.

An update knows where the entries of its rows are.  For the columns the matrix is transposed, and
its rows are the columns of X.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.compiler import cached_kernel
from nmd_lab._runtime.machine import in_threads
from nmd_lab.data.entries import FloatArray
from nmd_lab.kernels.products import CsrStorage

from .priors import Doubles, RowPrior
from .random_numbers import NO_KEYS, numbers
from .row_draws import draw_rows, draw_rows_with_few

MIN_THREAD_ENTRIES = 1 << 13
"""Smallest number of entries of a thread."""

BLOCK_ROWS = 256
"""Rows of a dense block; it does not depend on the number of threads, so that draws do not."""

Labels = NDArray[np.int64]
NO_LABELS: Labels = np.empty(0, np.int64)
"""Groups of rows if there is one group."""

MAX_PAIRS = 1 << 22
"""Largest number of pairs of columns, over all groups."""


class OtherFactor(NamedTuple):
    """What an update takes of the other factor.

    Attributes
    ----------
    vectors : ndarray (n, d)
        Rows of the other factor, with a column of ones if this one has an offset.
    constants : ndarray (n,)
        Offsets of the other factor, with the global offset.
    """

    vectors: FloatArray
    constants: FloatArray


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
class SparseUpdate:
    """An update over stored entries; ρ is one of all, or that of each column or of each row."""

    storage: CsrStorage
    order: NDArray[np.integer] | None
    weights: FloatArray | None
    threads: int
    rho_of_rows: bool = False

    def draw(self, target: FloatArray, inputs: RowInputs, rows: FloatArray) -> None:
        """Draw all rows in place."""
        other, prior, rho, key, labels = inputs
        here = target if self.order is None else target.take(self.order)
        weights = np.empty(0, target.dtype) if self.weights is None else self.weights
        m, n = self.storage.shape
        both_rho = (rho, np.ones(n)) if self.rho_of_rows else (np.ones(m), np.full(n, rho))
        roots = np.sqrt(both_rho[1])[:, None]
        few, gaussians, indices = None, prior.gaussians, self.storage.indices
        of_all: Any = np.empty((0, 0)), np.empty((0, 0)), np.empty(0, np.int64), indices[:0]
        if self.most is not None and not weights.size:
            of_all = *self._over_all(here, other, both_rho[1]), *self._absent
            if not self.rho_of_rows and not key.keys.size:  # whether it pays depends on all
                few = self._few(other.vectors * roots, of_all[0], gaussians)
        types = f"{rows.dtype}_{target.dtype}_{indices.dtype}"
        kernel = cached_kernel(draw_rows, f"draw_rows_{types}")
        kernel_of_few = cached_kernel(draw_rows_with_few, f"draw_rows_with_few_{types}")
        entries = self.storage.indptr, indices, here, weights
        arguments = (entries, tuple(other), gaussians, both_rho, of_all, tuple(key))
        done = np.empty(0, bool) if few is None else few[0]

        def share(first: int, last: int) -> None:
            if few is not None:
                kernel_of_few(first, last, *few, of_all, key[:3], labels, rows)
            kernel(first, last, *arguments, rows, labels, done)

        each_share(self.storage.indptr, self.threads, share)

    def _over_all(
        self, here: FloatArray, other: OtherFactor, rho: Doubles
    ) -> tuple[Doubles, Doubles]:
        """Return Σ_j ρ_j p_j p_jᵀ and, for each row, Σ_j ρ_j y_ij p_j over all columns."""
        vectors, y = other.vectors.astype(np.float64, copy=False), np.zeros(self.storage.shape)
        weighted = vectors * rho[:, None]
        y.ravel()[self.most] = here - other.constants[self.storage.indices]
        return weighted.T @ vectors, y @ weighted

    def _few(
        self, scaled: FloatArray, of_all: Doubles, gaussians: tuple[Doubles, Doubles, Doubles]
    ) -> tuple[Any, Any] | None:
        """Return which rows have few missing cells, and what their draw takes; None if too few."""
        linear, precision, log_weights = gaussians
        (m, n), counts = self.storage.shape, np.diff(self._absent[0])
        few = (2 * counts < n) & (counts < scaled.shape[1])
        if n > m or log_weights.size * n * n > MAX_PAIRS or 2 * np.count_nonzero(few) < m:
            return None
        roots = np.linalg.cholesky(precision + of_all)
        inverse = np.linalg.inv(roots)
        white = scaled @ inverse.transpose(0, 2, 1)  # L⁻¹ √ρ_j p_j of each group
        logs = log_weights - np.log(np.einsum("caa->ca", roots)).sum(axis=1)
        shared = linear, inverse, white, white @ white.transpose(0, 2, 1), logs
        return few, shared

    @cached_property
    def most(self) -> NDArray[np.intp] | None:
        """Positions in a flat matrix, if most of one of moderate size is stored in order."""
        (m, n), indices = self.storage.shape, self.storage.indices
        if not 2 * indices.size > m * n or m * n > 1 << 24:  # a dense copy has 128 MiB
            return None
        positions = np.repeat(np.arange(m) * n, np.diff(self.storage.indptr)) + indices
        return positions if np.all(np.diff(positions) > 0) else None

    @cached_property
    def _absent(self) -> tuple[NDArray[np.int64], NDArray[np.integer]]:
        """First missing cell of each row, and behind the last one, and the columns of all."""
        missing = np.ones(self.storage.shape, bool)
        missing.ravel()[self.most] = False
        starts = np.concatenate([[0], missing.sum(axis=1).cumsum()])
        return starts, np.nonzero(missing)[1].astype(self.storage.indices.dtype)


@dataclass(frozen=True)
class DenseUpdate:
    """An update over a full matrix without weights, whose precision is shared by all rows."""

    shape: tuple[int, int]
    transposed: bool
    threads: int

    def draw(self, target: FloatArray, inputs: RowInputs, rows: FloatArray) -> None:
        """Draw all rows in place."""
        T = target.reshape(self.shape)
        T = T.T if self.transposed else T
        (vectors, constants), prior, rho, key, _ = inputs
        linear, precision, _ = prior.gaussians
        of_all = float(rho[0])
        normal = precision[0] + of_all * (vectors.T @ vectors).astype(np.float64)
        L = np.linalg.cholesky(normal)
        inverse = np.linalg.inv(L)  # of a small triangle

        def block(first: int, last: int) -> None:
            block = slice(first, last)
            b = of_all * ((T[block] - constants) @ vectors).astype(np.float64) + linear
            noise = numbers(key.seed, key.sweep, key.kind, first).standard_normal(b.shape)
            rows[block] = (b @ inverse.T + noise) @ inverse

        each_block(T.shape, self.threads, block)


def each_share(indptr: NDArray[np.integer], threads: int, work: Callable[[int, int], None]) -> None:
    """Call a function of first and last row for each thread, with equal numbers of entries."""
    entries, m = int(indptr[-1]), indptr.size - 1
    parts = max(1, min(threads, entries // MIN_THREAD_ENTRIES, m))
    ends = np.searchsorted(indptr, np.linspace(0, entries, parts + 1)[1:-1])
    in_threads(lambda share: work(*share), pairwise([0, *ends.tolist(), m]), parts)


def each_block(shape: tuple[int, int], threads: int, work: Callable[[int, int], None]) -> None:
    """Call a function of first and last row of each block of `BLOCK_ROWS` rows, in threads."""
    m, n = shape
    parts = max(1, min(threads, m * n // MIN_THREAD_ENTRIES))
    in_threads(lambda i: work(i, min(i + BLOCK_ROWS, m)), range(0, m, BLOCK_ROWS), parts)
