"""New rows of W under a constraint, with H fixed.

As `nmd_lab.solver.new_rows`, by the T- and U-update and a factor step under the constraint.  Each
row has its own ρ, rounded to a power of two, and its own end; rows of one ρ are worked on together,
and none depends on the others.  ρ is fixed: it gives loss and constraint the same weight in the
row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from nmd_lab._runtime.compiler import compile_kernel
from nmd_lab.data.entries import FloatArray
from nmd_lab.model.kind import AnyStructure
from nmd_lab.solver.devices.compiled_passes import compile_entry_update, has_limits
from nmd_lab.solver.gram import chunk_of_rows, per_row
from nmd_lab.solver.row_kernel import kernel_name, marks_of
from nmd_lab.solver.row_updates import update_rows
from nmd_lab.solver.storage import Block, CsrStorage
from nmd_lab.solver.unit_rows import Doubles, UnitRows, by_value

from .base import FactorConstraint
from .factor_constraints import is_nonnegative
from .steps import ConstrainedColumns

ITERATIONS = 600  # largest number of iterations of a start
PERIOD = 30  # iterations over which the progress is measured
PROGRESS = 1e-9  # relative decrease of the objective of a row in a period at which the row ends
STARTS = 4  # random starts in addition to one at 0, if f makes the problem non-convex


def solve_constrained(unit: UnitRows, constraint: FactorConstraint, rank: int) -> Doubles:
    """Return the best allowed rows of W; the last `rank` columns are constrained."""
    width, scaling = unit.shape[1], unit.scaling
    scaled = constraint.scaled(2.0**scaling.exponent, 2.0**scaling.of_objective)
    columns = ConstrainedColumns(scaled, slice(width - rank, width))
    starts = np.zeros((1, width))
    if not unit.model.linear:
        drawn = np.random.default_rng(0).standard_normal((STARTS, width))
        starts = np.vstack([starts, np.abs(drawn) if is_nonnegative(constraint) else drawn])
    W, lowest = np.zeros(unit.shape), np.full(unit.shape[0], math.inf)
    for exponent, chosen in by_value(np.round(np.log2(unit.natural_penalties()))):
        some = unit.take(chosen)
        spread = _spread(some)[:, None]
        for start in starts:
            reached, objectives = _iterate(
                some, columns.project(spread * start), columns, 2.0**exponent
            )
            better = objectives < lowest[chosen]
            W[chosen[better]], lowest[chosen[better]] = reached[better], objectives[better]
    return W


def _spread(unit: UnitRows) -> Doubles:
    """Return the size of numbers of W with which WH is as large as T, for each row."""
    squares = np.bincount(unit.rows.row_of_entry, unit.starting_T**2, unit.shape[0])
    mean_square = float(np.mean(np.sum(np.square(unit.Ht), axis=1)))
    lengths = np.maximum(np.diff(unit.rows.indptr), 1)
    return np.sqrt(squares / lengths / max(mean_square, 1e-300))


def _iterate(
    unit: UnitRows, W: FloatArray, columns: ConstrainedColumns, rho: float
) -> tuple[FloatArray, FloatArray]:
    """Return the best iterate of each row, and its objective."""
    model, rows = unit.model, unit.rows
    storage = CsrStorage((len(W), len(unit.Ht)), rows.indptr, rows.indices)
    block = Block(slice(0, len(W)), slice(0, rows.indices.size))
    t, offset = unit.starting_T.copy(), unit.base[rows.indices]
    u, S, loss_sums = np.zeros_like(t), np.empty_like(t), np.empty(len(W))
    entries = rows.indptr, rows.values, rows.weights, marks_of(rows, model)
    update = _update_kernel(model.structure, kernel_name("constrained_update", unit), model.is_ours)
    ridge = unit.ridge + unit.alphas / rho
    best, lowest, earlier = W.copy(), np.full(len(W), math.inf), np.full(len(W), math.inf)
    active = np.ones(len(W), bool)
    for iteration in range(1, ITERATIONS + 1):
        storage.products(block, W, unit.Ht, S)
        S += offset
        update(*entries, rho, t, u, S, model.numbers, loss_sums)
        objective = loss_sums + 0.5 * np.square(W) @ unit.alphas
        objective += [columns.value(row[None]) for row in W]
        better = active & (objective < lowest)
        best[better], lowest[better] = W[better], objective[better]
        if iteration % PERIOD == 0:
            active &= earlier - lowest > PROGRESS * np.abs(lowest)
            earlier = lowest.copy()
            if not active.any():
                break
        W, gram = W.copy(), per_row(chunk_of_rows(storage), S, unit.Ht)
        update_rows(columns, gram, ridge, rho, block.rows, slice(0, W.shape[1]), W)
    return best, lowest


@cache
def _update_kernel(structure: AnyStructure, name: str, cached: bool) -> Callable[..., Any]:
    """Return the compiled T- and U-update of rows, which also turns WH into S."""
    update_entry = compile_entry_update(structure, has_limits(name))

    def update(indptr, x, weights, marks, rho, t, u, a, model, losses):  # type: ignore[no-untyped-def]
        codes, uppers, which = marks
        for i in range(losses.size):
            losses[i] = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                v, new, loss = update_entry(
                    a[k], u[k], x[k], rho / weights[k], 1.0, codes[k], uppers[k], which[k], model
                )
                losses[i] += weights[k] * loss
                t[k], u[k], a[k] = new, new - v, (new - a[k]) + (new - v)

    return compile_kernel(update, name, cached=cached)
