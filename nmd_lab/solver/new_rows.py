"""The best w for one row of X, with H as it is, as compiled code.

With H fixed the rows of X have nothing to do with one another.  Each is a small problem of its own,

    minimise over w   Σ over the row's entries of weight · d(x, f(w·h + base)) + alpha/2 ‖w‖²,

solved by the T- and U-update of `nmd_lab.solver.split_variable` and the w-step of `nmd_lab.solver.observed_sweep`.  A row
has its own ρ and stops by itself, so what becomes of it does not depend on which rows it came with.

Unless f is the identity the problem is not convex.  A row therefore starts several times, from the
least-squares fit to the starting T and from random w, and only the best start goes on.  Whenever
the objective stands still ρ doubles, which ends the cycles that a small ρ allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from nmd_lab._numba import compile_kernel, compile_scalar
from nmd_lab.model.proximal import Pair, Structure, compile_t_update

TRIAL = 30
"""Iterations of each start before the best one goes on."""

PERIOD, PROGRESS, PATIENCE = 25, 1e-6, 5
"""A row ends when PATIENCE times in turn PERIOD iterations lower its objective by no more than this
share of it."""


def row_solver(pair: Pair) -> Callable[..., None]:
    """Return the compiled solver of the rows of a CSR pattern.

    It takes (indptr, indices, x, weights, t, right, base, starts, rule, tol, max_iter, model, W):
    the entries with their starting T, H transposed, random starts, `rule` = (ridge, alpha, ρ at
    the start, factor, step), `model` = (*pair.arguments, floor), and W, where the results go.

    Parameters
    ----------
    pair : Pair
        The nonlinearity and the loss.
    """
    return _row_solver(pair.structure, f"rows_{pair.name}", pair.is_ours)


@cache
def _row_solver(structure: Structure, name: str, cached: bool) -> Callable[..., None]:
    improve = compile_kernel(_improver(structure), f"improve_{name}", cached=False)
    factorize, substitute = compile_scalar(_factorize), compile_scalar(_substitute)

    def solve_rows(  # type: ignore[no-untyped-def]
        indptr, indices, x, weights, t, right, base, starts, rule, tol, max_iter, model, W
    ):
        rank = right.shape[1]
        normal, L, vectors = np.zeros((rank, rank)), np.zeros((rank, rank)), np.zeros((3, rank))
        for i in range(indptr.size - 1):
            entries = slice(indptr[i], indptr[i + 1])
            columns, start_t = indices[entries], t[entries]
            if columns.size == 0:
                W[i] = 0.0
                continue
            H, offset = np.empty((rank, columns.size)), base[columns]
            for c in range(rank):
                for k in range(columns.size):
                    H[c, k] = right[columns[k], c]
            w, best, step = vectors[0], vectors[1], vectors[2]
            for c in range(rank):
                w[c] = 0.0
                for k in range(columns.size):
                    w[c] += H[c, k] * (start_t[k] - offset[k])
                for other in range(c + 1):
                    normal[c, other] = 0.0
                    for k in range(columns.size):
                        normal[c, other] += H[c, k] * H[other, k]
            factorize(normal, rule[0] + rule[1] / rule[2], L)
            substitute(L, w)
            spread = math.sqrt(np.sum(start_t * start_t) / max(np.trace(normal), 1e-300))
            problem = (x[entries], weights[entries], start_t, H, offset, normal)
            lowest, n_starts = math.inf, starts.shape[0]
            for start in range(n_starts + 2):
                if 0 < start <= n_starts:
                    w[:] = spread * starts[start - 1]
                if start > n_starts:
                    w[:] = W[i]
                iterations = TRIAL if start <= n_starts else max_iter
                reached = improve(problem, rule, tol, iterations, model, w, best, step, L)
                if reached < lowest:
                    lowest = reached
                    W[i] = best

    return compile_kernel(solve_rows, name, cached=cached)


def _improver(structure: Structure) -> Callable[..., float]:
    """Return the loop that improves w of one row, keeps the best and returns its objective."""
    solve = compile_t_update(structure)
    value = compile_scalar(structure[1].value)
    forward = compile_scalar(structure[0].forward)
    factorize, substitute = compile_scalar(_factorize), compile_scalar(_substitute)

    def improve(problem, rule, tol, max_iter, model, w, best, step, L):  # type: ignore[no-untyped-def]
        x, weights, start_t, H, offset, normal = problem
        ridge, alpha, rho, factor, rho_step = rule
        pieces, pf, pd, floor = model
        t, u, s = start_t.copy(), np.zeros(x.size), np.empty(x.size)
        still = tol * tol * max(np.sum(t * t), 1e-300)
        lowest, earlier, halts, scale = math.inf, math.inf, 0, 1.0
        factorize(normal, ridge + alpha / rho, L)
        best[:] = w
        for iteration in range(1, max_iter + 1):
            s[:] = offset
            objective, primal, moved = 0.0, 0.0, 0.0
            for c in range(w.size):
                objective += 0.5 * alpha * w[c] * w[c]
                for k in range(x.size):
                    s[k] += w[c] * H[c, k]
            for k in range(x.size):
                a, weight = s[k], weights[k]
                v = a - scale * u[k]
                new = solve(v, x[k], rho / weight, pieces, pf, pd)
                objective += weight * value(x[k], max(forward(a, pf), floor), pd)
                primal += (new - a) * (new - a)
                moved += (new - t[k]) * (new - t[k])
                t[k], u[k], s[k] = new, new - v, (new - a) + (new - v)
            if objective < lowest:
                lowest = objective
                best[:] = w
            if max(primal, moved) <= still:
                break
            for c in range(w.size):
                step[c] = -(ridge + alpha / rho) * w[c]
                for k in range(x.size):
                    step[c] += s[k] * H[c, k]
            substitute(L, step)
            w += step
            stuck = False
            if iteration % PERIOD == 0:
                stuck = earlier - lowest <= PROGRESS * lowest
                halts, earlier = (halts + 1 if stuck else 0), lowest
                if halts == PATIENCE:
                    break
            # ρ is balanced less and less, so that it settles
            most = (factor * (1.0 + (iteration / PERIOD) ** 2)) ** 2
            scale = 1.0
            if stuck or primal > most * rho * rho * moved:
                scale = 1.0 / rho_step
            elif rho * rho * moved > most * primal:
                scale = rho_step
            if scale != 1.0:
                rho /= scale
                factorize(normal, ridge + alpha / rho, L)
        return lowest

    return improve


def _factorize(normal, ridge, L):  # type: ignore[no-untyped-def]
    """Put the Cholesky factor of normal + ridge I into L; a direction without data stays put."""
    for j in range(normal.shape[0]):
        pivot = normal[j, j] + ridge
        for k in range(j):
            pivot -= L[j, k] * L[j, k]
        L[j, j] = math.sqrt(pivot) if pivot > 1e-15 * normal[j, j] + 1e-300 else math.inf
        for i in range(j + 1, normal.shape[0]):
            total = normal[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = total / L[j, j]


def _substitute(L, b):  # type: ignore[no-untyped-def]
    """Turn b into the solution of L Lᵀ y = b."""
    for i in range(b.size):
        for k in range(i):
            b[i] -= L[i, k] * b[k]
        b[i] /= L[i, i]
    for i in range(b.size - 1, -1, -1):
        for k in range(i + 1, b.size):
            b[i] -= L[k, i] * b[k]
        b[i] /= L[i, i]
