"""The compiled loops of single rows of W, with H fixed; see `nmd_lab.fit.new_rows`.

Algorithm 1: a row has its own ρ and its own end.  ρ doubles whenever the objective makes no
progress, which ends the cycles that a small ρ allows.  A call works on the entries of one column
model.  The last call of an iteration has the sums over all of them, and takes the step of w where
this is compiled.

Newton steps, for rows without missing entries: the rows of sparse zeros have many flat entries, on
which Algorithm 1 halts far from a minimum.  Levenberg steps descend on the Moreau envelope with
U = 0 (`nmd_lab.kernels.envelope`), first for a small ρ and then for ever larger ones.  The w of
lowest objective is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.compiler import compile_inner, compile_kernel, compile_scalar, inlined
from nmd_lab.data.entries import FloatArray, IntArray
from nmd_lab.kernels.constrained_rows import MAX_SWEEPS, SWEEP_TOL, descend, invert_diagonal
from nmd_lab.kernels.row_sums import factorize, substitute
from nmd_lab.model.column_model import Structure
from nmd_lab.model.entry import compile_entry
from nmd_lab.model.model import Model
from nmd_lab.request.penalty import BALANCED, compare_residuals, relaxed_ratio

Doubles = NDArray[np.float64]

RATIO, RHO_STEP = BALANCED.factor, BALANCED.step

NOT_YET, ELSEWHERE, SOLVE, DESCEND = range(4)
"""How a call ends: other kinds follow; w moves in Python; it moves freely; under a constraint."""

RHO, DUAL_SCALE, SMALL, LOWEST, EARLIER, HALTS, ITERATION, ENDED = range(8)
OBJECTIVE, PRIMAL, CHANGE = range(8, 11)  # sums of an iteration
N_NUMBERS = 11


class KindEntries(NamedTuple):
    """The entries of one kind: those of row i are begin[i] to end[i].

    A squared residual of T counts `metric`, 1 but for a kind with a unit of its own, and `rates` is
    this over the weights.
    """

    begin: IntArray
    end: IntArray
    columns: IntArray
    x: Doubles
    weights: Doubles
    rates: Doubles
    codes: NDArray[np.int8]
    uppers: Doubles


class RowStates(NamedTuple):
    """The state of rows, each of which is there as often as it has starts, one after the other.

    Attributes
    ----------
    W, best, gradients : ndarray (n * copies, width)
        Present rows, those of lowest objective, and S Hᵀ.
    numbers : ndarray (n * copies, N_NUMBERS)
        ρ, objective and residuals, at the positions above.
    T, U : ndarray (copies, n_entries)
        Split variable and dual.
    """

    W: Doubles
    best: Doubles
    gradients: Doubles
    numbers: Doubles
    T: Doubles
    U: Doubles


class RowTerms(NamedTuple):
    """What the step of w needs: HHᵀ of each row, and ridge, l1 weight and bound of each column."""

    normals: FloatArray
    ridge: float
    alphas: Doubles
    l1: Doubles
    bounds: Doubles


@cache
def row_kernel(structure: Structure, limited: bool) -> Callable[..., None]:
    """Return the compiled loop for a model."""
    solve, loss = compile_entry(structure, limited)

    def iterate(  # type: ignore[no-untyped-def]
        active, entries, metric, Ht, base, states, terms, iterations, finish, model
    ):
        begin, end, columns, x, weights, rates, codes, uppers = entries
        W, best, gradients, numbers, T, U = states
        copies, width = T.shape[0], W.shape[1]
        L, spare, H, gathered = np.empty((width, width)), np.empty((3, width)), Ht, -1
        for i in active:
            row, copy = i // copies, i % copies
            first, here = begin[row], slice(begin[row], end[row])
            j, t, u = columns[here], T[copy, here], U[copy, here]
            xs, weight, rate = x[here], weights[here], rates[here]
            limit, upper = codes[here], uppers[here]
            if row != gathered:
                H, gathered = np.empty((width, j.size)), row
                for c in range(width):
                    h = H[c]
                    for k in range(j.size):
                        h[k] = Ht[j[k], c]
            s, offset = np.empty(j.size), base[j]
            w, g, status, factored = W[i], gradients[i], numbers[i], 0.0
            for _ in range(iterations):
                put(s, 1.0, offset)
                for c in range(width):
                    add_multiple(s, w[c], H[c])
                rho, scale = status[RHO], status[DUAL_SCALE]
                objective, primal, change = 0.0, 0.0, 0.0
                for k in range(j.size):
                    a, size = s[k], 1.0 if metric is None else metric[first + k]
                    v = a - scale * u[k]
                    new = solve(v, xs[k], rho * rate[k], limit[k], upper[k], model)
                    objective += weight[k] * loss(xs[k], a, limit[k], upper[k], model)
                    primal += size * (new - a) * (new - a)
                    change += size * (new - t[k]) * (new - t[k])
                    t[k], u[k], s[k] = new, new - v, size * ((new - a) + (new - v))
                for c in range(width):
                    g[c] += dot(s, H[c])
                status[OBJECTIVE] += objective
                status[PRIMAL] += primal
                status[CHANGE] += change
                if finish != NOT_YET:
                    assess(w, best[i], status, terms)
                    if status[ENDED] == 0.0 and finish != ELSEWHERE:
                        move(
                            w, g, terms.normals[row], rho, terms, finish, L, spare, rho != factored
                        )
                        factored = rho
                    if status[ENDED] != 0.0:
                        break

    name = f"rows_{structure.name}{'_limits' if limited else ''}"
    return compile_kernel(iterate, name, cached=structure.is_ours)


@inlined
def assess(w, best, status, terms):  # type: ignore[no-untyped-def]
    """Keep w if it is the best, and find out whether the row ends; otherwise set the next ρ."""
    objective, primal, change, rho = status[OBJECTIVE], status[PRIMAL], status[CHANGE], status[RHO]
    for c in range(w.size):
        objective += 0.5 * terms.alphas[c] * w[c] * w[c] + terms.l1[c] * abs(w[c])
    if objective < status[LOWEST]:
        status[LOWEST] = objective
        put(best, 1.0, w)
    status[OBJECTIVE], status[PRIMAL], status[CHANGE] = 0.0, 0.0, 0.0
    status[ITERATION] += 1.0
    period = 25  # iterations over which the progress is measured
    direction, at_end = 0, status[ITERATION] % period == 0.0
    if at_end:
        stuck = status[EARLIER] - status[LOWEST] <= 1e-6 * status[LOWEST]
        status[EARLIER], status[HALTS] = status[LOWEST], status[HALTS] + 1.0 if stuck else 0.0
        direction = 1 if stuck else 0
    # It ends after five periods in turn without progress.
    if max(primal, change) <= status[SMALL] or status[HALTS] == 5:
        status[ENDED] = 1.0
    if direction == 0:
        most = relax(RATIO, status[ITERATION], period)
        direction = compare(primal, rho * rho * change, most * most)
    status[DUAL_SCALE] = 1.0 if direction == 0 else (1.0 / RHO_STEP if direction > 0 else RHO_STEP)
    status[RHO] = rho / status[DUAL_SCALE]


@inlined
def move(w, g, normal, rho, terms, finish, L, spare, fresh):  # type: ignore[no-untyped-def]
    """Move w to the minimiser of its least-squares problem, and set the gradient back to 0."""
    damping, inverse, thresholds = spare[0], spare[1], spare[2]
    if fresh:
        for c in range(w.size):
            damping[c] = terms.ridge + terms.alphas[c] / rho
            thresholds[c] = terms.l1[c] / rho
            for other in range(c + 1):
                L[c, other] = L[other, c] = normal[c, other]
        if finish == SOLVE:
            factorize(normal, damping, L)
        else:
            for c in range(w.size):
                L[c, c] += damping[c]
            invert_diagonal(L, inverse)
    for c in range(w.size):
        g[c] -= damping[c] * w[c]
    if finish == SOLVE:
        substitute(L, g)
        add_multiple(w, 1.0, g)
    else:
        descend(w, g, L, inverse, thresholds, terms.bounds, MAX_SWEEPS, SWEEP_TOL)
    put(g, 0.0, w)


compare, relax = compile_scalar(compare_residuals), compile_scalar(relaxed_ratio)


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


def can_descend(model: Model) -> bool:
    """Return whether Newton steps suit a model: one smooth loss, and an f within its domain."""
    if model.is_mixed or not model.smooth:
        return False
    if model.only.pieces:
        return model.only.pieces == model.nonlinearity.pieces()
    (low, high), (smallest, largest) = model.loss.domain, model.nonlinearity.range
    return low <= smallest and largest <= high


@cache
def descent_kernel(structure: Structure, degree: int) -> Callable[..., None]:
    """Return the compiled descents of rows X from starts (n_rows, copies, width) to the best W."""
    solve, loss = compile_entry(structure, False)
    penalties = (10.0, 1e3, 1e5, 1e7, 1e9)  # ρ of each stage, in natural ones of a row
    n_steps = 20  # of a stage, at most

    def descend(X, H, base, starts, gram, natural, ridge, alpha, best, model):  # type: ignore[no-untyped-def]
        width, n = H.shape
        a, s, scaled = np.empty(n), np.empty(n), np.empty(n)
        w, trial, step, damping = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
        normal, L = np.empty((width, width)), np.empty((width, width))
        for i in range(len(X)):
            x, lowest = X[i], math.inf
            for copy in range(starts.shape[1]):
                put(trial, 1.0, starts[i, copy])
                for factor in penalties:
                    # The damping is relative to ρ times the Gram matrix of H.
                    rho, extent, value = factor * natural[i], 1e-5, math.inf
                    for k in range(n_steps + 1):
                        put(a, 1.0, base)
                        for c in range(width):
                            add_multiple(a, trial[c], H[c])
                        penalty, data_term, envelope = 0.5 * alpha * dot(trial, trial), 0.0, 0.0
                        for j in range(n):
                            t = solve(a[j], x[j], rho, 0, x[j], model)
                            s[j] = t - a[j]
                            data_term += loss(x[j], a[j], 0, x[j], model)
                            envelope += loss(x[j], t, 0, x[j], model) + 0.5 * rho * s[j] * s[j]
                        if data_term + penalty < lowest:
                            lowest = data_term + penalty
                            put(best[i], 1.0, trial)
                        gain, little = value - (envelope + penalty), False
                        if gain > 0.0:
                            little = gain <= 1e-4 * (envelope + penalty)
                            value = envelope + penalty
                            put(w, 1.0, trial)
                        if k > 0:
                            extent *= 0.2 if gain > 0.0 else 10.0
                        if little or extent >= 1e6 or k == n_steps:
                            break
                        if gain > 0.0:
                            for j in range(n):  # the slope of the envelope and its curvature
                                size = abs(x[j]) if degree == 1 else abs(x[j]) ** (1.0 / degree)
                                shift = 1e-4 * (abs(a[j]) + size + 1e-100)
                                rise = solve(a[j] + shift, x[j], rho, 0, x[j], model)
                                rise -= a[j] + s[j]
                                a[j] = min(max(1.0 - rise / shift, 0.0), 1.0)
                            for c in range(width):
                                step[c] = dot(s, H[c]) - alpha / rho * w[c]
                                for j in range(n):
                                    scaled[j] = a[j] * H[c, j]
                                for other in range(c + 1):
                                    normal[c, other] = dot(scaled, H[other])
                        for c in range(width):
                            damping[c] = ridge + alpha / rho
                            trial[c] = step[c]
                            for other in range(c + 1):
                                L[c, other] = normal[c, other] + extent * gram[c, other]
                        factorize(L, damping, L)
                        substitute(L, trial)
                        add_multiple(trial, 1.0, w)
                    put(trial, 1.0, w)

    return compile_kernel(descend, f"descend_{structure.name}", cached=structure.is_ours)
