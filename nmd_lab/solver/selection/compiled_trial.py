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
    bounds = (solved_W.stop, solved_H.start, solved_H.stop)
    numbers = (problem.epsilon, rule.initial, rule.unit, rule.factor, rule.step, problem.size_of_T)
    rules = (2 * progress.lowest, progress.fewest, progress.most, progress.keeps_best)
    arrays = (X, observed, *at, judged[2], W, H, *problem.alphas(rank))
    with np.errstate(over="ignore", invalid="ignore"):
        W_aug, H_aug, progress.count, squares = _kernel()(
            *arrays, bounds, numbers, rules, start.from_factors
        )
    curve = 0.5 * squares[: progress.count]  # after each iteration, or after the last alone
    W, H, offsets = columns.split(W_aug, H_aug)
    return Run(curve[-1], Start(W, H, True, offsets), progress, curve)


def after_few(problem: Problem, start: Start, number: int) -> Start:
    """Return the factors after a number of iterations."""
    return run_of_squares(problem, start, None, Progress(math.inf, 0, most=number)).start


def _row_step(S, W, H, alphas, stop, epsilon, rho):  # type: ignore[no-untyped-def]
    """Return the next W, of which the first columns are solved for."""
    partners = H[:stop]
    ridge = epsilon * np.sum(partners * partners) + alphas / rho + TINY
    inverse = np.linalg.inv(partners @ partners.T + np.diag(ridge))
    step = (S @ H.T)[:, :stop] - ridge * W[:, :stop]
    solved = W[:, :stop] + np.ascontiguousarray(step) @ inverse
    return np.hstack((solved, W[:, stop:]))


def _column_step(S, W, next_W, H, alphas, first, stop, epsilon, rho):  # type: ignore[no-untyped-def]
    """Return the next H, of which some rows are solved for."""
    partners = np.ascontiguousarray(next_W[:, first:stop])
    rows = np.ascontiguousarray(H[first:stop])
    ridge = epsilon * np.sum(partners * partners) + alphas / rho + TINY
    inverse = np.linalg.inv(partners.T @ partners + np.diag(ridge))
    step = partners.T @ S - (partners.T @ (next_W - W)) @ H - ridge.reshape(-1, 1) * rows
    return np.vstack((H[:first], rows + inverse @ step, H[stop:]))


@cache
def _kernel() -> Any:
    row_step, column_step = compile_inner(_row_step), compile_inner(_column_step)
    further_fall = compile_inner(predicted_fall)

    def iterate(  # type: ignore[no-untyped-def]
        X, observed, rows, columns, values, W, H, W_alphas, H_alphas, bounds, numbers, rules, warm
    ):
        (m, n), (stop_W, first_H, stop_H) = X.shape, bounds
        epsilon, rho, unit, ratio, rho_step, size = numbers
        lowest, fewest, most, keeps = rules
        empty = np.zeros(n, np.bool_)
        for j in range(n):
            empty[j] = np.sum(observed[:, j]) == 0
        T, U, A = X.copy(), np.zeros((m, n)), W @ H
        squares = np.zeros((most if keeps else 1, values.size))
        primal = dual = change = 0.0
        means, before, earlier, count, best, lowest_here = np.inf, np.inf, np.inf, 0, 0, np.inf
        next_W = W
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
                primal, dual = np.sqrt(primal), rho * np.sqrt(change)
            else:
                for i in range(m):
                    for j in range(n):
                        T[i, j] = T[i, j] if observed[i, j] > 0 else A[i, j]
            if count > 0:
                total, at = 0.0, count - 1 if keeps else 0
                for e in range(values.size):
                    error = values[e] - A[rows[e], columns[e]]
                    squares[at, e] = error * error
                    total += error * error
                earlier, before, means = before, means, total / max(values.size, 1)
                if means < lowest_here:
                    best, lowest_here = count, means
                over = count >= most or not np.isfinite(means + primal + dual)
                if keeps:
                    grown = means > (1 + SETTLED) * lowest_here
                    near = max(primal, np.sqrt(change)) <= NEAR * size
                    over = over or (grown and count >= best + ITERATIONS_ABOVE_BEST) or near
                elif count >= max(fewest, MIN_ITERATIONS):
                    further = further_fall(earlier, before, means, MAX_RATIO)
                    over = over or min(means, means - further) > (1 + SETTLED) * lowest
                    over = over or 0 < abs(further) <= SETTLED * means
                if over:
                    return W, H, count, squares
                new_rho = rho
                if unit * primal > ratio * dual:
                    new_rho = rho * rho_step
                elif dual > ratio * unit * primal:
                    new_rho = rho / rho_step
                U *= rho / new_rho
                rho = new_rho
            S = T + U - A
            next_W = row_step(S, W, H, W_alphas, stop_W, epsilon, rho)
            next_H = column_step(S, W, next_W, H, H_alphas, first_H, stop_H, epsilon, rho)
            for j in range(n):
                for k in range(first_H, stop_H):
                    next_H[k, j] = 0.0 if empty[j] else next_H[k, j]
            W, H, count = next_W, next_H, count + 1
            A = W @ H

    return compile_kernel(iterate, "squares_trial", cached=True)
