"""The best rows of W for new rows of X, with H fixed.

With H fixed the rows of X do not depend on one another.  Each is a small problem of its own,

    minimise over w   Σ over the row's entries of weight · d(x, f(w·h + base)) + alpha/2 ‖w‖²,

so that its result does not depend on the rows that come with it.  It is solved by the iteration of
a fit: the T- and U-update, and the w-step, in one compiled loop (`nmd_lab.solver.row_kernel`).
Under a constraint the w-step is that of a fit (`nmd_lab.solver.new_rows`), and sparse
zeros have the envelope of a fit to them (`nmd_lab.solver.zero_rows`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.checks import check_size
from nmd_lab._runtime.compiler import compile_kernel
from nmd_lab._runtime.machine import all_threads
from nmd_lab.data.entries import CsrRows, FloatArray
from nmd_lab.data.observations import Observations
from nmd_lab.data.split import nonzero_rows
from nmd_lab.model.fitted_values import RowModel
from nmd_lab.model.kind import AnyStructure

from .constraints.base import FactorConstraint, couples_rows
from .constraints.factor_constraints import constraint_from, is_nonnegative
from .constraints.steps import ConstrainedColumns
from .devices.compiled_passes import compile_entry_update, has_limits
from .gram import chunk_of_rows, per_row
from .row_kernel import kernel_name, marks_of, solve_free
from .row_updates import update_rows
from .storage import Block, CsrStorage
from .unit_rows import Doubles, UnitRows, by_value, rows_by_unit
from .zero_rows import handles_rows, solve_zeros

BLOCK_ENTRIES = 1 << 16  # stored entries of the rows that a thread solves at a time
BATCH_ENTRIES = 1 << 22  # entries of WH of these rows with implicit zeros: 32 MiB of doubles


def solve_new_rows(
    fitted: RowModel,
    observations: Observations,
    columns: NDArray[np.intp],
    *,
    threads: int | None = None,
) -> tuple[FloatArray, FloatArray | None]:
    """Return W (m, rank) of new rows, and their offsets (m,) if the fit has row offsets.

    `columns` has the position in H of each column of the new rows.
    """
    model, (rank, n), has_offsets = fitted.model, fitted.H.shape, fitted.offsets.rows is not None
    sizes = [np.abs(x).max() for x, _ in observations.observed_blocks() if x.size]
    check_size("X", float(max(sizes, default=0)), observations.dtype)
    constraint = constraint_from(fitted.constraint)
    constraint = None if couples_rows(constraint) else constraint  # it restricts no single row
    complete = observations.n_observed == math.prod(observations.shape)
    plain = complete and observations.limits is None and observations.weights is None
    zeros = fitted.absent_are_zeros and plain and constraint is None and handles_rows(model)

    Ht = np.ascontiguousarray(fitted.H.T, dtype=np.float64)
    ones = math.sqrt(np.mean(Ht * Ht)) or 1.0
    Ht = np.hstack([np.full((n, 1), ones), Ht]) if has_offsets else Ht[columns] if zeros else Ht
    base = fitted.offsets.mean + fitted.offsets.of_columns(n, float) + np.zeros(n)
    epsilon = max(fitted.epsilon, np.finfo(float).eps)
    W = np.empty((observations.shape[0], Ht.shape[1]))

    def solve_block(block: slice) -> None:
        if zeros:
            entries = nonzero_rows(observations, block)
        else:
            entries = _in_order_of_H(observations.csr_rows(block), columns)
        for chosen, scaling, rows in rows_by_unit(entries, model):
            size = scaling.exponent
            H, offset = np.ldexp(Ht, -size), np.ldexp(base, -2 * size)
            alphas = np.full(H.shape[1], scaling.scaled_alpha(fitted.alpha))
            if has_offsets:
                constant = math.ldexp(ones, -size)
                alphas[0] = scaling.scaled_offset_alpha(fitted.offset_alpha, constant)
            ridge = epsilon * float(np.sum(H * H))
            unit = UnitRows(rows, scaling, H, offset, alphas, ridge, zeros)
            if zeros:
                found = solve_zeros(unit)
            elif constraint is not None:
                found = solve_constrained(unit, constraint, rank)
            else:
                found = solve_free(unit)
            W[block][chosen] = np.ldexp(found, size)

    most = BATCH_ENTRIES if zeros else BLOCK_ENTRIES
    with ThreadPoolExecutor(threads or all_threads()) as pool:
        list(pool.map(solve_block, _blocks(observations, most)))
    W[:, 0] *= ones if has_offsets else 1.0
    W = W.astype(fitted.H.dtype)
    return (W[:, 1:], W[:, 0]) if has_offsets else (W, None)


def _in_order_of_H(rows: CsrRows, columns: NDArray[np.intp]) -> CsrRows:
    """Return rows with the columns of H, ascending, so that the order of X changes no bit."""
    rows = rows._replace(indices=columns[rows.indices])
    if np.all(columns[1:] > columns[:-1]):
        return rows
    return rows.entries_at(np.lexsort((rows.indices, rows.row_of_entry)))


def _blocks(observations: Observations, entries: int) -> Iterator[slice]:
    """Yield ranges of rows with about as many entries as a block may have."""
    m = observations.shape[0]
    rows = max(1, min(m, entries * m // max(observations.n_observed, 1)))
    for start in range(0, m, rows):
        yield slice(start, min(start + rows, m))


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
