"""Draws of the rows of a factor, given the other factor: one small Gaussian for each row.

A column is a row of the transposed matrix.  With τ_ij = ρ times the weight of an entry, and p_j a
row of the other factor (with a one for the offset), row i has

    precision  P_i = Λ + Σ_j τ_ij p_j p_jᵀ,      mean  P_i⁻¹ (Λ μ + Σ_j τ_ij y_ij p_j),

where y_ij is T minus the offset of the column and the mean.  Λ and μ are those of the group of the
row.  A row without a label draws one before, with its vector integrated out: group c has the
logarithm of its probability, up to a constant,

    log π_c + ½ log |Λ_c| - ½ μ_cᵀ Λ_c μ_c - ½ log |P_ic| + ½ b_icᵀ P_ic⁻¹ b_ic,

where b_ic is the bracket of the mean.  Where more than half of a row is stored, and entries have no
weights, the sum over j is that over all columns less that over the others.

What the draw of a row with few missing cells costs grows with these alone.  If all entries were
stored, the rows of a group c would share one precision,

    A_c = Λ_c + Σ_j ρ_j p_j p_jᵀ      over all columns j.

Row i has P_ic = A_c - Uᵀ U, where U has a row √ρ_j p_jᵀ for each missing cell.  Let b be the linear
term of the row, M = I - U A_c⁻¹ Uᵀ and z = U A_c⁻¹ b.  Then

    log |P| = log |A| + log |M|,      bᵀ P⁻¹ b = bᵀ A⁻¹ b + zᵀ M⁻¹ z

give the probability of a label, and a row is drawn in two steps.  The first one fills the missing
cells, with the row integrated out:

    s ~ N(M⁻¹ z, M⁻¹),      w ~ N(A⁻¹ (b + Uᵀ s), A⁻¹).

With L Lᵀ = A, all of this needs only L⁻¹ b, L⁻¹ p_j and their products over pairs of columns, which
are the same for all rows.  So a row with h missing cells takes a Cholesky factor of size h.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.compiler import cached_kernel, compile_inner
from nmd_lab._runtime.machine import in_threads
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import row_borders
from nmd_lab.kernels.products import CsrStorage
from nmd_lab.kernels.row_steps import factorize

from .priors import Doubles, RowPrior
from .random_numbers import NO_KEYS, draw_index, new_stream, normal, numbers, start_of

CHUNK = 256
"""Entries of a row whose vectors are gathered at a time."""


@compile_inner
def add_entries(columns, begin, end, y, weights, rho, other, scratch, P, b):  # type: ignore[no-untyped-def]
    """Add Σ τ p pᵀ over the entries of a row to `P` and, if y is given, Σ τ y p to `b`."""
    rho_of_columns, vectors = other
    gathered, product = scratch
    count = 0
    for k in range(begin, end):
        j = columns[k]
        tau = rho * rho_of_columns[j]
        if weights.size:
            tau *= weights[k]
        root = math.sqrt(tau)
        scaled_y = root * y[k - begin] if y.size else 0.0
        for a in range(b.size):
            scaled = root * vectors[j, a]
            gathered[count, a] = scaled
            b[a] += scaled_y * scaled
        count += 1
        if count == CHUNK or k == end - 1:
            np.dot(gathered[:count].T, gathered[:count], product)
            for a in range(b.size):
                for c in range(b.size):
                    P[a, c] += product[a, c]
            count = 0


@compile_inner
def half_solve(P, no_ridge, y):  # type: ignore[no-untyped-def]
    """Put the factor L of P into its place, and L⁻¹ y into that of y; return ½ yᵀ y - log |L|."""
    factorize(P, no_ridge, P)
    score = 0.0
    for a in range(y.size):
        total = y[a]
        for c in range(a):
            total -= P[a, c] * y[c]
        y[a] = total / P[a, a]
        score += 0.5 * y[a] * y[a] - math.log(P[a, a])
    return score


@compile_inner
def draw_solved(L, y, stream):  # type: ignore[no-untyped-def]
    """Put a draw of N(P⁻¹ b, P⁻¹) into the place of y = L⁻¹ b."""
    for a in range(y.size - 1, -1, -1):
        y[a] = (y[a] + normal(stream)) / L[a, a]
        for c in range(a):
            y[c] -= L[a, c] * y[a]


@compile_inner
def half_solve_group(P, b, linear, precision, no_ridge, L, y):  # type: ignore[no-untyped-def]
    """Put the prior of a group and the sums over entries into L and y, and half solve them."""
    for a in range(b.size):
        y[a] = b[a] + linear[a]
        for c in range(a + 1):
            L[a, c] = P[a, c] + precision[a, c]
    return half_solve(L, no_ridge, y)


def draw_rows(first, last, entries, other, prior, rho, of_all, key, rows, labels, done):  # type: ignore[no-untyped-def]
    """Draw some sparse rows in place, with the labels that are unknown."""
    indptr, indices, target, weights = entries
    vectors, constants = other
    linear, precision, log_weights = prior
    rho_of_rows, rho_of_columns = rho
    gram, sums, starts_absent, absent = of_all
    seed, sweep, kind, keys = key
    n, d = vectors.shape
    P, b, L, row = np.empty((d, d)), np.empty(d), np.empty((d, d)), np.empty(d)
    scores, no_ridge = np.empty(log_weights.size), np.zeros(d)
    by_column = rho_of_columns, vectors
    narrow = np.empty((CHUNK, d), vectors.dtype), np.empty((d, d), vectors.dtype)
    wide = np.empty((CHUNK, d)), np.empty((d, d))
    y, none = np.empty(n), np.empty(0)
    for i in range(first, last):
        if done.size and done[i]:
            continue
        for a in range(d):
            b[a] = 0.0
            for c in range(d):
                P[a, c] = 0.0
        rho_of_row = rho_of_rows[i]
        begin, end = np.int64(indptr[i]), np.int64(indptr[i + 1])
        if gram.size and 2 * (end - begin) > n:
            begin, end = starts_absent[i], starts_absent[i + 1]
            add_entries(absent, begin, end, none, none, 1.0, by_column, wide, P, b)
            for a in range(d):
                b[a] = rho_of_row * sums[i, a]
                for c in range(d):
                    P[a, c] = rho_of_row * (gram[a, c] - P[a, c])
        else:
            for k in range(begin, end):
                y[k - begin] = target[k] - constants[indices[k]]
            add_entries(indices, begin, end, y, weights, rho_of_row, by_column, narrow, P, b)
        stream = new_stream(start_of(seed, sweep, kind, keys[i] if keys.size else i))
        group = labels[i]
        if group < 0:
            for g in range(scores.size):
                scores[g] = log_weights[g]
                scores[g] += half_solve_group(P, b, linear[g], precision[g], no_ridge, L, row)
            group = labels[i] = draw_index(scores, stream)
        half_solve_group(P, b, linear[group], precision[group], no_ridge, L, row)
        draw_solved(L, row, stream)
        for a in range(d):
            rows[i, a] = row[a]


@compile_inner
def half_solve_few(b, linear, inverse, white, pairs, cells, y, L, z):  # type: ignore[no-untyped-def]
    """Put L⁻¹ b, the factor of M and its solution for z into place; return their log-density.

    M is so small that a call of `half_solve` would take longer.
    """
    score, determinant = 0.0, 1.0
    for a in range(b.size):
        total = 0.0
        for e in range(a + 1):
            total += inverse[a, e] * (b[e] + linear[e])
        y[a] = total
        score += 0.5 * total * total
    for p in range(cells.size):
        j = cells[p]
        total, pivot = 0.0, 1.0 - pairs[j, j]
        for a in range(b.size):
            total += white[j, a] * y[a]
        for q in range(p):
            entry = -pairs[j, cells[q]]
            for r in range(q):
                entry -= L[p, r] * L[q, r]
            entry /= L[q, q]
            L[p, q] = entry
            total -= entry * z[q]
            pivot -= entry * entry
        pivot = math.sqrt(pivot)
        L[p, p] = pivot
        z[p] = total / pivot
        score += 0.5 * z[p] * z[p]
        determinant *= pivot
        if determinant < 1e-200:  # before it underflows
            score -= math.log(determinant)
            determinant = 1.0
    return score - math.log(determinant)


def draw_rows_with_few(first, last, few, shared, of_all, key, labels, rows):  # type: ignore[no-untyped-def]
    """Draw rows with few missing cells in place, with the labels that are unknown."""
    linear, inverse, white, pairs, logs = shared
    _, sums, starts_absent, absent = of_all
    seed, sweep, kind = key
    d = sums.shape[1]
    y, row, scores = np.empty(d), np.empty(d), np.empty(logs.size)
    L, z = np.empty((d, d)), np.empty(d)
    for i in range(first, last):
        if not few[i]:
            continue
        stream = new_stream(start_of(seed, sweep, kind, i))
        cells = absent[starts_absent[i] : starts_absent[i + 1]]
        c = labels[i]
        if c < 0:
            for g in range(logs.size):
                scores[g] = logs[g] + half_solve_few(
                    sums[i], linear[g], inverse[g], white[g], pairs[g], cells, y, L, z
                )
            c = labels[i] = draw_index(scores, stream)
        half_solve_few(sums[i], linear[c], inverse[c], white[c], pairs[c], cells, y, L, z)
        draw_solved(L, z[: cells.size], stream)  # s
        for a in range(d):
            y[a] += normal(stream)
            row[a] = 0.0
        for p in range(cells.size):
            for a in range(d):
                y[a] += z[p] * white[c, cells[p], a]
        for a in range(d):
            for e in range(a + 1):
                row[e] += inverse[c, a, e] * y[a]
        for a in range(d):
            rows[i, a] = row[a]


MIN_THREAD_ENTRIES = 1 << 13
"""Smallest number of entries of a thread."""

Labels = NDArray[np.int64]
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
    keys: NDArray[np.int64] = NO_KEYS


def draw_alike(
    T: FloatArray, rows: FloatArray, other: OtherFactor, prior: RowPrior, rho: float, key: StreamId
) -> None:
    """Draw all rows in place if each has all entries, so that they share their precision."""
    (vectors, constants), (linear, precision, _) = other, prior.gaussians
    of_all = rho * (vectors.T @ vectors).astype(np.float64)
    inverse = np.linalg.inv(np.linalg.cholesky(precision[0] + of_all))  # of a small triangle
    b = rho * ((T - constants) @ vectors).astype(np.float64) + linear
    noise = numbers(key.seed, key.sweep, key.kind).standard_normal(b.shape)
    rows[:] = (b @ inverse.T + noise) @ inverse


@dataclass(frozen=True)
class RowUpdate:
    """The update of all rows over stored entries, whose positions it knows.

    For the columns of X the matrix is transposed, and its rows are the columns of X.  ρ is one of
    all, or that of each column or of each row.
    """

    storage: CsrStorage
    order: NDArray[np.integer] | None
    weights: FloatArray | None
    threads: int
    rho_of_rows: bool = False

    def draw(
        self,
        target: FloatArray,
        rows: FloatArray,
        other: OtherFactor,
        prior: RowPrior,
        rho: Doubles,
        key: StreamId,
        labels: Labels,
    ) -> None:
        """Draw all rows in place, given T, and the labels of those where they are < 0."""
        weights = np.empty(0, target.dtype) if self.weights is None else self.weights
        m, n = self.storage.shape
        is_complete = self.storage.n_entries == m * n and not weights.size
        if is_complete and not key.keys.size and prior.shares.size * rho.size == 1:
            T = target.reshape(m, n) if self.order is None else target.reshape(n, m).T
            draw_alike(T, rows, other, prior, float(rho[0]), key)
            return
        here = target if self.order is None else target.take(self.order)
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
    def most(self) -> Any:
        """Positions in a flat matrix, if all, or most of one of moderate size, is stored."""
        (m, n), indices = self.storage.shape, self.storage.indices
        if indices.size == m * n:
            return slice(None)
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


def each_share(indptr: NDArray[np.integer], threads: int, work: Callable[[int, int], None]) -> None:
    """Call a function of first and last row for each thread, with equal numbers of entries."""
    entries, m = int(indptr[-1]), indptr.size - 1
    parts = max(1, min(threads, entries // MIN_THREAD_ENTRIES, m))
    in_threads(lambda share: work(*share), pairwise(row_borders(indptr, parts)), parts)
