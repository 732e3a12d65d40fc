"""A whole trial of linear f and squares in one compiled call, for small data.

The iterations are those of Algorithm 1 (`nmd_lab.solver.engines.admm`) with the balanced rule for
ρ, on dense or masked data without weights or limits.  In Python, each would take a hundred times as
long as its arithmetic.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from nmd_lab._runtime.compiler import compile_inner, compile_kernel
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.solver.devices import HOST
from nmd_lab.solver.initialization import Start
from nmd_lab.solver.problem import Problem
from nmd_lab.solver.row_updates import factorize, substitute

from .progress import (
    ITERATIONS_ABOVE_BEST,
    MAX_RATIO,
    MIN_ITERATIONS,
    NEAR,
    Progress,
    Run,
    predicted_fall,
)
from .trial import SETTLED

TINY = 16 * float(np.finfo(float).tiny)  # ridge that is always there, as in `Ridge`


def suits(problem: Problem, start: Start) -> bool:
    """Return whether the compiled iterations are those of the problem."""
    data, rule = problem.observations, problem.rule
    plain = data.pattern is None and data.limits is None
    if not plain or data.dtype != np.float64 or data.shape[0] * start.H.size > 1 << 16:
        return False
    weights = data.weight_reader()
    simple = problem.model.is_least_squares and not problem.is_constrained
    balanced = rule.period is None and not rule.projected and problem.alpha > 0
    on_host = problem.device is HOST and not problem.observed_only
    simple = simple and not problem.units.exponent
    return simple and balanced and on_host and (weights is None or weights.dtype == bool)


def run_of_squares(
    problem: Problem, start: Start, held_out: SparseObservations | None, progress: Progress
) -> Run:
    """Return where the iterations end from a start, by the rules of `Progress`."""
    data = problem.observations
    X, observed = np.zeros(data.shape), np.zeros(data.shape)
    at_rows, at_columns, known = data.entries()
    X[at_rows, at_columns], observed[at_rows, at_columns] = known, 1.0
    judged: Any = ([], [], np.zeros(0))
    if held_out is not None:
        judged = held_out.rows, held_out.indices, held_out.values
    at = np.array(judged[:2], np.int64)
    W, H = problem.projected(start)
    rank, rule, columns = start.W.shape[1], problem.rule, problem.offset_columns
    solved_W, solved_H = columns.solved(rank)
    if not start.from_factors:
        W[:, solved_W] = 0
    bounds = (0, solved_W.stop), (solved_H.start, solved_H.stop)
    numbers = (problem.epsilon, rule.initial, rule.unit, rule.factor, rule.step, problem.size_of_T)
    rules = (2 * progress.lowest, progress.fewest, progress.most, progress.keeps_best)
    factors = np.array(W.T, order="C"), H.copy()
    shape, size = data.shape, max(stop - first for first, stop in bounds)
    room = X.copy(), np.zeros(shape), np.empty(shape), np.empty(shape), np.empty(shape[::-1])
    small = np.empty((size, size)), np.empty(size), np.empty(size)
    empty = np.zeros(shape[0], bool), ~observed.any(axis=0)
    squares = np.empty((progress.most if progress.keeps_best else 1, len(judged[2])))
    with np.errstate(over="ignore", invalid="ignore"):
        progress.count = _kernel()(
            *(X, observed, empty, *at, judged[2], squares, factors, problem.alphas(rank), bounds),
            *(numbers, rules, start.from_factors, room, small),
        )
    curve: Any = 0.5 * squares[: progress.count]  # after each iteration, or after the last alone
    W, H, offsets = columns.split(factors[0].T, factors[1])
    return Run(curve[-1], Start(W, H, True, offsets), progress, curve)


def after_few(problem: Problem, start: Start, number: int) -> Start:
    """Return the factors after a number of iterations."""
    return run_of_squares(problem, start, None, Progress(math.inf, 0, most=number)).start


def _multiply(W, H, out):  # type: ignore[no-untyped-def]
    """Put the product of the transpose of W and H into `out`."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0.0
        for k in range(W.shape[0]):
            w = W[k, i]
            for j in range(out.shape[1]):
                out[i, j] += w * H[k, j]


def _step(S, rows, others, alphas, bounds, empty, epsilon, rho, small):  # type: ignore[no-untyped-def]
    """Add the least squares solution of S = (rows to add)ᵀ others to some rows of a factor."""
    (first, stop), (normal, ridge, step) = bounds, small
    size, square = stop - first, 0.0
    for a in range(size):
        for b in range(a + 1):
            total = 0.0
            for j in range(others.shape[1]):
                total += others[first + a, j] * others[first + b, j]
            normal[a, b] = total
        square += normal[a, a]
    for a in range(size):
        ridge[a] = epsilon * square + alphas[a] / rho + TINY
    L, ridge, step = normal[:size, :size], ridge[:size], step[:size]
    factorize(L, ridge, L)
    for i in range(rows.shape[1]):
        for a in range(size):
            total = -ridge[a] * rows[first + a, i]
            for j in range(others.shape[1]):
                total += S[i, j] * others[first + a, j]
            step[a] = total
        substitute(L, step)
        for a in range(size):
            rows[first + a, i] = 0.0 if empty[i] else rows[first + a, i] + step[a]


@cache
def _kernel() -> Any:
    step, multiply = compile_inner(_step), compile_inner(_multiply)
    further_fall = compile_inner(predicted_fall)

    def iterate(  # type: ignore[no-untyped-def]
        X, observed, empty, rows, columns, values, squares, factors, alphas, bounds, numbers, rules,
        warm, room, small
    ):  # fmt: skip
        (m, n), (W, H), (T, U, A, S, S_transposed) = X.shape, factors, room
        epsilon, rho, unit, ratio, rho_step, size = numbers
        lowest, fewest, most, keeps = rules
        primal = dual = change = 0.0
        means = before = earlier = lowest_here = math.inf
        count = best = 0
        multiply(W, H, A)
        while True:
            if count > 0 or warm:  # T and U at A = WH
                primal = change = 0.0
                for i in range(m):
                    for j in range(n):
                        v = A[i, j] - U[i, j]
                        t = (X[i, j] + rho * v) / (1.0 + rho) if observed[i, j] > 0 else v
                        primal += (t - A[i, j]) ** 2
                        change += (t - T[i, j]) ** 2
                        T[i, j], U[i, j] = t, t - v
                primal, dual = math.sqrt(primal), rho * math.sqrt(change)
            else:
                for i in range(m):
                    for j in range(n):
                        T[i, j] = T[i, j] if observed[i, j] > 0 else A[i, j]
            new_rho = rho
            if count > 0:
                total, at = 0.0, count - 1 if keeps else 0
                for e in range(values.size):
                    error = values[e] - A[rows[e], columns[e]]
                    squares[at, e] = error * error
                    total += error * error
                earlier, before, means = before, means, total / max(values.size, 1)
                if means < lowest_here:
                    best, lowest_here = count, means
                over = count >= most or not math.isfinite(means + primal + dual)
                if keeps:
                    grown = means > (1 + SETTLED) * lowest_here
                    near = max(primal, math.sqrt(change)) <= NEAR * size
                    over = over or (grown and count >= best + ITERATIONS_ABOVE_BEST) or near
                elif count >= max(fewest, MIN_ITERATIONS):
                    further = further_fall(earlier, before, means, MAX_RATIO)
                    over = over or min(means, means - further) > (1 + SETTLED) * lowest
                    over = over or 0 < abs(further) <= SETTLED * means
                if over:
                    return count
                if unit * primal > ratio * dual:
                    new_rho = rho * rho_step
                elif dual > ratio * unit * primal:
                    new_rho = rho / rho_step
            shrink, rho = rho / new_rho, new_rho
            for i in range(m):
                for j in range(n):
                    U[i, j] *= shrink
                    S[i, j] = T[i, j] + U[i, j] - A[i, j]
            step(S, W, H, alphas[0], bounds[0], empty[0], epsilon, rho, small)
            multiply(W, H, A)
            for i in range(m):
                for j in range(n):
                    S_transposed[j, i] = T[i, j] + U[i, j] - A[i, j]
            step(S_transposed, H, W, alphas[1], bounds[1], empty[1], epsilon, rho, small)
            multiply(W, H, A)
            count += 1

    return compile_kernel(iterate, "squares_trial", cached=True)
