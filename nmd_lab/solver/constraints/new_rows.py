"""New rows of W under a constraint, with H fixed.

As `nmd_lab.solver.new_rows`, by the T- and U-update and a factor step under the constraint.  Each
row has its own ρ, rounded to a power of two, and its own end; rows of one ρ are worked on together,
and none depends on the others.  ρ is fixed: it gives loss and constraint the same weight in the
row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from nmd_lab._numba import compile_kernel
from nmd_lab.data.base import CsrRows, FloatArray
from nmd_lab.model.proximal import Pair, Structure
from nmd_lab.solver.devices.compiled_passes import compile_entry_update
from nmd_lab.solver.row_problems import constrained_rows
from nmd_lab.solver.scaling import Scaling
from nmd_lab.solver.storage import Block, CsrStorage

from .base import FactorConstraint
from .factor_constraints import is_nonnegative
from .steps import ConstrainedColumns

ITERATIONS = 600  # largest number of iterations of a start
PERIOD = 30  # iterations over which the progress is measured
PROGRESS = 1e-9  # relative decrease of the objective of a row in a period at which the row ends
STARTS = 4  # random starts in addition to one at 0, if f makes the problem non-convex


@dataclass(frozen=True)
class ConstrainedRows:
    """The problem of some new rows that share one unit."""

    scaling: Scaling
    Ht: NDArray[np.float64]
    base: NDArray[np.float64]
    alphas: NDArray[np.float64]
    epsilon_ridge: float
    constraint: FactorConstraint

    def solve(self, rows: CsrRows, rank: int) -> NDArray[np.float64]:
        """Return the best rows, (k, n_solved), for entries in the units of the problem."""
        found = np.zeros((rows.indptr.size - 1, self.Ht.shape[1]))
        for rho, chosen in self._penalties(rows):
            found[chosen] = self._solve_at(_rows_of(rows, chosen), rank, rho)
        return found

    @property
    def pair(self) -> Pair:
        """Nonlinearity and loss in the units of the problem."""
        return cast(Pair, self.scaling.scaled_pair())

    def _penalties(self, rows: CsrRows) -> Iterator[tuple[float, NDArray[np.intp]]]:
        """Yield each ρ and the rows that have it."""
        pair, lengths = self.pair, np.diff(rows.indptr)
        of_entry = np.repeat(np.arange(lengths.size), lengths)
        t = np.asarray(pair.preimage(rows.values), dtype=np.float64)

        def sums(numbers: FloatArray) -> FloatArray:
            return np.bincount(of_entry, rows.weights * numbers, lengths.size).astype(np.float64)

        total = np.maximum(sums(np.ones_like(t)), 1e-300)
        mean_x, mean_t = sums(rows.values) / total, sums(t) / total
        loss = sums(pair.loss(rows.values, mean_x[of_entry]))
        spread = 0.5 * sums(np.square(t - mean_t[of_entry]))
        ratio = np.divide(loss, spread, out=np.ones_like(loss), where=spread > 0)
        usable = np.isfinite(ratio) & (ratio > 0)
        exponents = np.round(np.log2(np.where(usable, ratio, 1.0)))
        for exponent in np.unique(exponents):
            yield float(2.0**exponent), np.flatnonzero(exponents == exponent)

    def _solve_at(self, rows: CsrRows, rank: int, rho: float) -> NDArray[np.float64]:
        """Return the best rows of all starts."""
        count, width = rows.indptr.size - 1, self.Ht.shape[1]
        size, objective = 2.0**self.scaling.exponent, 2.0**self.scaling.of_objective
        constraint = self.constraint.scaled(size, objective)
        columns = ConstrainedColumns(constraint, slice(width - rank, width))
        rng = np.random.default_rng(0)
        starts = [np.zeros(width)]
        if not self.pair.nonlinearity.linear:
            starts += list(rng.standard_normal((STARTS, width)))
        best, lowest = np.zeros((count, width)), np.full(count, math.inf)
        spread = self._spread(rows)
        for start in starts:
            begin = spread[:, None] * (np.abs(start) if is_nonnegative(self.constraint) else start)
            reached, objectives = self._iterate(rows, columns.project(begin), columns, rho)
            better = objectives < lowest
            best[better], lowest[better] = reached[better], objectives[better]
        return best

    def _spread(self, rows: CsrRows) -> NDArray[np.float64]:
        """Return the size of numbers of W with which WH is as large as T, for each row."""
        t = np.asarray(self.pair.nonlinearity.preimage(rows.values), dtype=np.float64)
        lengths = np.maximum(np.diff(rows.indptr), 1)
        of_entry = np.repeat(np.arange(lengths.size), np.diff(rows.indptr))
        squares = np.bincount(of_entry, t * t, lengths.size) / lengths
        mean_square = float(np.mean(np.sum(np.square(self.Ht), axis=1)))
        return np.sqrt(squares / max(mean_square, 1e-300))

    def _iterate(
        self, rows: CsrRows, W: FloatArray, columns: ConstrainedColumns, rho: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the best iterate of each row, and its objective."""
        storage = CsrStorage((len(W), len(self.Ht)), rows.indptr, rows.indices)
        block = Block(slice(0, len(W)), slice(0, rows.indices.size))
        t = np.array(self.pair.nonlinearity.preimage(rows.values), dtype=np.float64)  # a copy
        u, S, offset = np.zeros_like(t), np.empty_like(t), self.base[rows.indices]
        update, loss_sums = update_kernel(self.pair), np.empty(len(W))
        ridge = self.epsilon_ridge + self.alphas / rho
        best, lowest, earlier = W.copy(), np.full(len(W), math.inf), np.full(len(W), math.inf)
        active = np.ones(len(W), bool)
        for iteration in range(1, ITERATIONS + 1):
            storage.products(block, W, self.Ht, S)
            S += offset
            update(rows.indptr, rows.values, rows.weights, rho, t, u, S, self.pair.model, loss_sums)
            objective = loss_sums + 0.5 * np.square(W) @ self.alphas
            objective += [columns.value(row[None]) for row in W]
            better = active & (objective < lowest)
            best[better], lowest[better] = W[better], objective[better]
            if iteration % PERIOD == 0:
                active &= earlier - lowest > PROGRESS * np.abs(lowest)
                earlier = lowest.copy()
                if not active.any():
                    break
            W = W.copy()
            every = slice(0, W.shape[1])
            constrained_rows(columns, rho, storage, block, S, self.Ht, every, ridge, W)
        return best, lowest


def _rows_of(rows: CsrRows, chosen: NDArray[np.intp]) -> CsrRows:
    """Return some rows."""
    lengths = np.diff(rows.indptr)
    keep = np.repeat(np.isin(np.arange(lengths.size), chosen), lengths)
    indptr = np.append(0, np.cumsum(lengths[chosen]))
    return CsrRows.of(indptr, rows.indices[keep], rows.values[keep], rows.weights[keep])


def update_kernel(pair: Pair) -> Callable[..., Any]:
    """Return the compiled T- and U-update of rows, which also turns WH into S."""
    return _update_kernel(pair.structure, f"constrained_update_{pair.name}", pair.is_ours)


@cache
def _update_kernel(structure: Structure, name: str, cached: bool) -> Callable[..., Any]:
    update_entry = compile_entry_update(structure, False)

    def update(indptr, x, weights, rho, t, u, a, model, losses):  # type: ignore[no-untyped-def]
        for i in range(losses.size):
            losses[i] = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                v, new, loss = update_entry(
                    a[k], u[k], x[k], rho / weights[k], 1.0, 0, x[k], 0, model
                )
                losses[i] += weights[k] * loss
                t[k], u[k], a[k] = new, new - v, (new - a[k]) + (new - v)

    return compile_kernel(update, name, cached=cached)
