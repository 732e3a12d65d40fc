"""The compiled solver of single rows of W, with H fixed; see `nmd_lab.solver.new_rows`.

A row has its own ρ and its own end.  Unless f is the identity, the problem is not convex.  A row
therefore starts several times, from the least-squares fit to the starting T and from random w, and
only the best start continues.  ρ doubles whenever the objective makes no progress, which ends the
cycles that a small ρ allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from nmd_lab._runtime.compiler import compile_inner, compile_kernel, compile_scalar
from nmd_lab.data.entries import CsrRows, FloatArray, IntArray
from nmd_lab.model.kind import AnyStructure
from nmd_lab.model.model import Model

from .devices.compiled_passes import compile_entry_update, has_limits
from .penalty import BALANCED, compare_residuals, relaxed_ratio
from .row_updates import factorize, substitute
from .unit_rows import Doubles, UnitRows

RANDOM_STARTS = 8  # of a row, in addition to one of least squares, if the problem is not convex
TRIAL = 30  # iterations of each start before the best one continues
MOST = 2000  # largest number of iterations of this one
TOL = 1e-8  # residuals, relative to the starting T, at which it ends
PERIOD = 25  # iterations over which the progress is measured
PROGRESS = 1e-6  # largest relative decrease of the objective in a period that is no progress
PATIENCE = 5  # periods in turn without progress after which a row ends


def solve_free(unit: UnitRows) -> Doubles:
    """Return the best rows of W without a constraint."""
    model, rows, width = unit.model, unit.rows, unit.shape[1]
    starts = np.random.default_rng(0).standard_normal((RANDOM_STARTS, width))
    starts = starts[: 0 if model.linear else RANDOM_STARTS]
    rule = (unit.ridge, unit.alphas, BALANCED.initial, BALANCED.factor, BALANCED.step)
    entries = (rows[:4], marks_of(rows, model), unit.starting_T)
    W = np.zeros(unit.shape)  # the kernel multiplies it by 0
    kernel = _row_kernel(model.structure, kernel_name("rows", unit), model.is_ours)
    kernel(*entries, unit.Ht, unit.base, starts, rule, TOL, MOST, model.numbers, W)
    return W


def marks_of(rows: CsrRows, model: Model) -> tuple[IntArray, FloatArray, IntArray]:
    """Return limit, upper value and kind of each entry of some rows."""
    x, limits = rows.values, rows.limits
    codes = np.zeros(x.size, np.int8) if limits is None else limits.codes
    uppers = x if limits is None or limits.uppers is None else limits.uppers
    which = model.which_at(0, rows.indices).astype(np.int64)
    return codes, np.asarray(uppers, dtype=np.float64), which


def kernel_name(loop: str, unit: UnitRows) -> str:
    """Return the name of the compiled loop over some rows."""
    return f"{loop}_{unit.model.name}{'' if unit.rows.limits is None else '_limits'}"


@cache
def _row_kernel(structure: AnyStructure, name: str, cached: bool) -> Callable[..., None]:
    improve = _improve_kernel(structure, name)

    def solve_rows(rows, marks, t, Ht, base, starts, rule, tol, max_iter, model, W):  # type: ignore[no-untyped-def]
        (indptr, indices, x, weights), (limits, uppers, parts) = rows, marks
        rank = Ht.shape[1]
        normal, L, vectors = np.empty((rank, rank)), np.empty((rank, rank)), np.empty((4, rank))
        w, best, step, damping = vectors[0], vectors[1], vectors[2], vectors[3]
        for i in range(indptr.size - 1):
            entries = slice(indptr[i], indptr[i + 1])
            columns, start_t, found = indices[entries], t[entries], W[i]
            put(found, 0.0, found)
            if columns.size == 0:
                continue
            H, offset, centred = np.empty((rank, columns.size)), base[columns], start_t.copy()
            add_multiple(centred, -1.0, offset)
            trace = 0.0
            for c in range(rank):
                row = H[c]
                for k in range(columns.size):
                    row[k] = Ht[columns[k], c]
                w[c] = dot(row, centred)
                for other in range(c + 1):
                    normal[c, other] = dot(row, H[other])
                trace += normal[c, c]
            set_damping(rule, rule[2], damping)
            factorize(normal, damping, L)
            substitute(L, w)
            spread = math.sqrt(dot(start_t, start_t) / max(trace, 1e-300))
            here = limits[entries], uppers[entries], parts[entries]
            problem = (x[entries], weights[entries], here, start_t, H, offset, normal)
            lowest, n_starts = math.inf, starts.shape[0]
            for start in range(n_starts + 2):
                if 0 < start <= n_starts:
                    put(w, spread, starts[start - 1])
                if start > n_starts:
                    put(w, 1.0, found)
                iterations = TRIAL if start <= n_starts else max_iter
                reached = improve(problem, rule, tol, iterations, model, w, best, step, damping, L)
                if reached < lowest:
                    lowest = reached
                    put(found, 1.0, best)

    return compile_kernel(solve_rows, name, cached=cached)


def _improve_kernel(structure: AnyStructure, name: str) -> Callable[..., float]:
    """Return the compiled loop that improves w of a row and returns the lowest objective."""
    update_entry = compile_entry_update(structure, has_limits(name))
    compare, relax = compile_scalar(compare_residuals), compile_scalar(relaxed_ratio)

    def improve(problem, rule, tol, max_iter, model, w, best, step, damping, L):  # type: ignore[no-untyped-def]
        x, weights, (limits, uppers, parts), start_t, H, offset, normal = problem
        _, alphas, rho, ratio, rho_step = rule
        t, u, s = start_t.copy(), np.zeros(x.size), np.empty(x.size)
        converged = tol * tol * max(dot(t, t), 1e-300)
        lowest, earlier, halts, dual_scale = math.inf, math.inf, 0, 1.0
        set_damping(rule, rho, damping)
        factorize(normal, damping, L)
        put(best, 1.0, w)
        for iteration in range(1, max_iter + 1):
            put(s, 1.0, offset)
            objective, primal, change = 0.0, 0.0, 0.0
            for c in range(w.size):
                objective += 0.5 * alphas[c] * w[c] * w[c]
                add_multiple(s, w[c], H[c])
            for k in range(x.size):
                a = s[k]
                marks = limits[k], uppers[k], parts[k]
                v, new, loss = update_entry(
                    a, u[k], x[k], rho / weights[k], dual_scale, *marks, model
                )
                objective += weights[k] * loss
                primal += (new - a) * (new - a)
                change += (new - t[k]) * (new - t[k])
                t[k], u[k], s[k] = new, new - v, (new - a) + (new - v)
            if objective < lowest:
                lowest = objective
                put(best, 1.0, w)
            if max(primal, change) <= converged:
                break
            for c in range(w.size):
                step[c] = dot(s, H[c]) - damping[c] * w[c]
            substitute(L, step)
            add_multiple(w, 1.0, step)
            direction, dual_scale = 0, 1.0
            if iteration % PERIOD == 0:
                stuck = earlier - lowest <= PROGRESS * lowest
                halts, earlier = (halts + 1 if stuck else 0), lowest
                if halts == PATIENCE:
                    break
                direction = 1 if stuck else 0
            if direction == 0:
                most = relax(ratio, iteration, PERIOD)
                direction = compare(primal, rho * rho * change, most * most)
            if direction != 0:
                dual_scale = 1.0 / rho_step if direction > 0 else rho_step
                rho /= dual_scale
                set_damping(rule, rho, damping)
                factorize(normal, damping, L)
        return lowest

    return compile_kernel(improve, f"improve_{name}", cached=False)


# Loops in the place of array expressions, which take seconds to compile.  Sums are local variables
# and indices begin at 0, so that the loops vectorise.


@compile_inner
def dot(a, b):  # type: ignore[no-untyped-def]
    """Return the inner product of two vectors."""
    total = 0.0
    for k in range(a.size):
        total += a[k] * b[k]
    return total


@compile_inner
def put(out, factor, a):  # type: ignore[no-untyped-def]
    """Put a multiple of a vector into another one."""
    for k in range(out.size):
        out[k] = factor * a[k]


@compile_inner
def add_multiple(out, factor, a):  # type: ignore[no-untyped-def]
    """Add a multiple of a vector to another one."""
    for k in range(out.size):
        out[k] += factor * a[k]


@compile_inner
def set_damping(rule, rho, damping):  # type: ignore[no-untyped-def]
    """Put the ridge of each component into `damping`."""
    for c in range(damping.size):
        damping[c] = rule[0] + rule[1][c] / rho
