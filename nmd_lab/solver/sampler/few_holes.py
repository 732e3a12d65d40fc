"""Draws of rows of which most is stored: what they cost grows with their holes alone.

If all entries were stored, the rows of a group c would share one precision,

    A_c = Λ_c + Σ_j ρ_j p_j p_jᵀ      over all columns j.

Row i has P_ic = A_c - Uᵀ U, where U has a row √ρ_j p_jᵀ for each of its holes.  Let b be the linear
term of the row, M = I - U A_c⁻¹ Uᵀ and z = U A_c⁻¹ b.  Then

    log |P| = log |A| + log |M|,      bᵀ P⁻¹ b = bᵀ A⁻¹ b + zᵀ M⁻¹ z

give the probability of a label, and a row is drawn in two steps.  The first one fills the holes,
with the row integrated out:

    s ~ N(M⁻¹ z, M⁻¹),      w ~ N(A⁻¹ (b + Uᵀ s), A⁻¹).

With L Lᵀ = A, all of this needs only L⁻¹ b, L⁻¹ p_j and their products over pairs of columns, which
are the same for all rows.  So a row with h holes takes a Cholesky factor of size h.

Of more than `MOST` holes, those that say least about a row are filled before, given the row as it
is: y_ij ~ N(p_j·w, 1/ρ_j).  This is a Gibbs step of its own, which leaves the posterior as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.compiler import cached_kernel, compile_inner
from nmd_lab.data.entries import FloatArray

from .priors import RowPrior
from .streams import HOLES, draw_index, fill_normal, new_stream, normal, start_stream

Doubles = NDArray[np.float64]

MOST = 8
"""Holes of a row that are filled with the row integrated out."""

LARGEST = 1 << 22
"""Largest number of pairs of columns, over all groups."""


@dataclass(frozen=True)
class Holes:
    """The holes of rows.

    Attributes
    ----------
    starts, columns : ndarray of int
        Position of the first hole of each row, and behind the last; the columns of the holes.
    shape : tuple of int
        Number of rows and columns.
    """

    starts: NDArray[np.int64]
    columns: NDArray[np.int64]
    shape: tuple[int, int]

    @classmethod
    def of(cls, stored: NDArray[np.intp], shape: tuple[int, int]) -> Holes:
        """Return the holes of a matrix, given the flat positions of what is stored."""
        is_hole = np.ones(shape, bool)
        is_hole.ravel()[stored] = False
        starts = np.concatenate([[0], np.cumsum(np.count_nonzero(is_hole, axis=1))])
        return cls(starts, np.nonzero(is_hole)[1], shape)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Number of holes of each row."""
        return np.diff(self.starts)

    def rows_with_few(self, n_groups: int, d: int) -> NDArray[np.bool_]:
        """Return which rows of d components cost less by their holes; empty if it does not pay."""
        (m, n), counts = self.shape, self.counts
        few = (2 * counts < n) & (np.minimum(counts, MOST) < d)
        pays = n <= m and n_groups * n * n <= LARGEST and 2 * np.count_nonzero(few) >= m
        return few if pays else few[:0]


class FewHoles:
    """The draw of rows with few holes.

    Parameters
    ----------
    holes : Holes
        The holes of all rows.
    few : ndarray of bool (m,)
        Which rows have few.
    scaled : ndarray (n, d)
        √ρ_j p_j.
    of_all : ndarray (d, d)
        Σ_j ρ_j p_j p_jᵀ over all columns.
    prior : RowPrior
        Prior of the rows.
    """

    def __init__(
        self,
        holes: Holes,
        few: NDArray[np.bool_],
        scaled: Doubles,
        of_all: Doubles,
        prior: RowPrior,
    ) -> None:
        self.few, self._holes = few, holes
        self._chosen = np.empty((few.size, MOST), np.int64)
        roots = np.linalg.cholesky(prior.precision + of_all)
        inverse = np.linalg.inv(roots)
        white = scaled @ inverse.transpose(0, 2, 1)  # L⁻¹ √ρ_j p_j of each group
        pairs = white @ white.transpose(0, 2, 1)
        logs = prior.log_weights - np.log(np.einsum("caa->ca", roots)).sum(axis=1)
        self._shared = prior.linear, inverse, white, pairs, logs
        self._order = np.argsort(-(prior.shares @ np.einsum("cjj->cj", pairs)), kind="stable")

    def fill(
        self,
        key: tuple[int, int, int],
        predicted: Doubles,
        spreads: Doubles,
        y: Doubles,
        first: int,
        last: int,
    ) -> None:
        """Fill y in some rows, but for `MOST` holes of each, given p_j·w_i and 1/√ρ_j.

        These are the holes that say most about a row.
        """
        holes = self._holes.starts, self._holes.columns, self._order
        seed, sweep, _ = key
        kernel = cached_kernel(_fill_holes, "fill_holes")
        kernel(first, last, self.few, holes, predicted, spreads, (seed, sweep), self._chosen, y)

    def draw(
        self,
        first: int,
        last: int,
        key: tuple[int, int, int],
        sums: Doubles,
        labels: NDArray[np.int64],
        rows: FloatArray,
    ) -> None:
        """Draw some rows and their labels that are < 0, in place, given Σ_j ρ_j y_ij p_j."""
        pattern = self.few, self._holes.counts, self._chosen
        kernel = cached_kernel(_draw_rows, f"draw_rows_with_few_holes_{rows.dtype}")
        kernel(first, last, pattern, sums, self._shared, tuple(key), labels, rows)


def _fill_holes(first, last, few, holes, predicted, spreads, key, chosen, y):  # type: ignore[no-untyped-def]
    """List the first holes of each row, by `order`, and fill the others."""
    starts, columns, order = holes
    seed, sweep = key
    is_hole, stream = np.zeros(order.size, np.bool_), new_stream()
    most = chosen.shape[1]
    for i in range(first, last):
        if not few[i]:
            continue
        begin, end = starts[i], starts[i + 1]
        if end - begin <= most:
            for k in range(begin, end):
                chosen[i, k - begin] = columns[k]
            continue
        for k in range(begin, end):
            is_hole[columns[k]] = True
        count = 0
        for j in order:
            if count == most:
                break
            if is_hole[j]:
                is_hole[j] = False
                chosen[i, count] = j
                count += 1
        start_stream(stream, seed, sweep, HOLES, i)
        for k in range(begin, end):
            j = columns[k]
            if is_hole[j]:
                is_hole[j] = False
                y[i, j] = predicted[i, j] + spreads[j] * normal(stream)


@compile_inner
def factor(b, linear, inverse, white, pairs, chosen, count, y, L, z):  # type: ignore[no-untyped-def]
    """Put L⁻¹ b, the factor of M and its solution for z into place; return their log-density."""
    d = b.size
    score = 0.0
    for a in range(d):
        total = 0.0
        for e in range(a + 1):
            total += inverse[a, e] * (b[e] + linear[e])
        y[a] = total
        score += 0.5 * total * total
    for p in range(count):
        j = chosen[p]
        total = 0.0
        for a in range(d):
            total += white[j, a] * y[a]
        for q in range(p):
            entry = -pairs[j, chosen[q]]
            for r in range(q):
                entry -= L[p, r] * L[q, r]
            entry /= L[q, q]
            L[p, q] = entry
            total -= entry * z[q]
        pivot = 1.0 - pairs[j, j]
        for r in range(p):
            pivot -= L[p, r] * L[p, r]
        pivot = math.sqrt(pivot)
        L[p, p] = pivot
        z[p] = total / pivot
        score += 0.5 * z[p] * z[p] - math.log(pivot)
    return score


@compile_inner
def draw_row(chosen, count, inverse, white, y, L, z, noise, stream, row):  # type: ignore[no-untyped-def]
    """Put a draw of the row into place, given what `factor` has left."""
    d = y.size
    fill_normal(stream, noise[:count])
    for p in range(count - 1, -1, -1):  # Lᵀ s = z + noise
        total = z[p] + noise[p]
        for q in range(p + 1, count):
            total -= L[q, p] * z[q]
        z[p] = total / L[p, p]
    fill_normal(stream, noise[:d])
    for a in range(d):
        y[a] += noise[a]
        noise[a] = 0.0
    for p in range(count):
        j, s = chosen[p], z[p]
        for a in range(d):
            y[a] += s * white[j, a]
    for a in range(d):
        for e in range(a + 1):
            noise[e] += inverse[a, e] * y[a]
    for a in range(d):
        row[a] = noise[a]


def _draw_rows(first, last, pattern, sums, shared, key, labels, rows):  # type: ignore[no-untyped-def]
    few, counts, chosen = pattern
    linear, inverse, white, pairs, logs = shared
    seed, sweep, kind = key
    d, most = sums.shape[1], chosen.shape[1]
    y, noise = np.empty(d), np.empty(max(most, d))
    L, z, scores = np.empty((most, most)), np.empty(most), np.empty(logs.size)
    stream = new_stream()
    for i in range(first, last):
        if not few[i]:
            continue
        start_stream(stream, seed, sweep, kind, i)
        b, here, count = sums[i], chosen[i], min(counts[i], most)
        c = labels[i] if labels.size else 0
        if c < 0:
            for g in range(logs.size):
                scores[g] = logs[g] + factor(
                    b, linear[g], inverse[g], white[g], pairs[g], here, count, y, L, z
                )
            c = labels[i] = draw_index(scores, stream)
        factor(b, linear[c], inverse[c], white[c], pairs[c], here, count, y, L, z)
        draw_row(here, count, inverse[c], white[c], y, L, z, noise, stream, rows[i])
