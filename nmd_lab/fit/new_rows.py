"""The best rows of W for new rows of X, with H fixed, and the compiled loops of single rows.

**Algorithm 1.**  A row has its own ρ and its own end.  ρ doubles whenever the objective makes no
progress, which ends the cycles that a small ρ allows.  A call works on the entries of one column
model.  The last call of an iteration has the sums over all of them, and takes the step of w where
this is compiled.

**Newton steps**, for rows without missing entries: the rows of sparse zeros have many flat entries,
on which Algorithm 1 halts far from a minimum.  Levenberg steps descend on the Moreau envelope with
U = 0 (`nmd_lab.kernels.envelope`), first for a small ρ and then for ever larger ones.  The w of
lowest objective is kept.

**Starts.**  With H fixed the rows of X do not depend on one another.  Each is a small problem of
its own,

    minimise over w   Σ over the row's entries of weight · d(x, f(w·h + base)) + alpha/2 ‖w‖²,

so that its result does not depend on the rows that come with it.  It is solved by the iteration of
a fit: the T- and U-update, and the w-step.  Unless f is the identity,
the problem may not be convex.  A row then starts several times, from the least-squares fit to the
starting T and from random w.  If the first starts agree, the best of them continues; otherwise
there are more, and the algorithm begins again from the best w of all.  Rows of a fit to sparse
zeros, with a smooth loss, take Newton steps from a few starts.

A kind with units of its own, t' = centre + size t, becomes one without: H and base are those of t',
and a squared residual of t' counts 1 / size².
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.checks import check_size
from nmd_lab._runtime.compiler import compile_inner, compile_kernel, compile_scalar, inlined
from nmd_lab._runtime.machine import all_threads, in_threads
from nmd_lab.data.entries import FloatArray, IntArray
from nmd_lab.data.labels import Labels
from nmd_lab.data.observations import Observations, row_ranges
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.kernels.products import CsrStorage
from nmd_lab.kernels.row_steps import (
    MAX_SWEEPS,
    SWEEP_TOL,
    ConstrainedColumns,
    chunk_of_rows,
    descend,
    factorize,
    invert_diagonal,
    row_sums,
    solver_for,
    substitute,
)
from nmd_lab.model.column_model import Structure
from nmd_lab.model.entry import compile_entry
from nmd_lab.model.fitted_values import RowModel
from nmd_lab.model.model import Model
from nmd_lab.problem.problem import Scaling, scaling_for
from nmd_lab.request.constraints import constraint_from, couples_rows
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
    metric: Doubles
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
        active, entries, Ht, base, states, terms, iterations, finish, model
    ):
        begin, end, columns, x, weights, metric, rates, codes, uppers = entries
        W, best, gradients, numbers, T, U = states
        copies, width = T.shape[0], W.shape[1]
        L, spare, H, gathered = np.empty((width, width)), np.empty((3, width)), Ht, -1
        for i in active:
            row, copy = i // copies, i % copies
            here = slice(begin[row], end[row])
            j, t, u = columns[here], T[copy, here], U[copy, here]
            xs, weight, sizes, rate = x[here], weights[here], metric[here], rates[here]
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
                    a, size = s[k], sizes[k]
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
    plain = observations.n_observed == math.prod(observations.shape)
    plain &= observations.limits is None and observations.weights is None and constraint is None
    zeros = fitted.absent_are_zeros and plain and can_descend(model)

    Ht = np.ascontiguousarray(fitted.H.T, dtype=np.float64)
    ones = math.sqrt(np.mean(Ht * Ht)) or 1.0
    Ht = np.hstack([np.full((n, 1), ones), Ht]) if has_offsets else Ht
    base = fitted.offsets.mean + fitted.offsets.of_columns(n, float) + np.zeros(n)
    epsilon = max(fitted.epsilon, np.finfo(float).eps)
    W = np.empty((observations.shape[0], Ht.shape[1]))

    def solve_block(block: slice) -> None:
        entries = observations.csr_rows(block)
        entries = replace(
            entries,
            values=entries.values.astype(np.float64),
            indptr=entries.indptr.astype(np.int64),
            indices=columns[entries.indices],
            labels=Labels.plain((entries.shape[0], n)),
        )
        for chosen, scaling, rows in _rows_by_unit(entries, model):
            size = scaling.exponent
            H, offset = np.ldexp(Ht, -size), np.ldexp(base, -2 * size)
            alphas = np.full(H.shape[1], scaling.scaled_alpha(fitted.alpha))
            if has_offsets:
                constant = math.ldexp(ones, -size)
                alphas[0] = scaling.scaled_offset_alpha(fitted.offset_alpha, constant)
            constrained = None
            if constraint is not None:
                scaled = constraint.scaled(2.0**size, 2.0**scaling.log2_unit_of_objective)
                constrained = ConstrainedColumns(scaled, slice(H.shape[1] - rank, H.shape[1]))
            problem = _Problem(
                rows, scaling.scaled_model(), H, offset, alphas, epsilon, constrained
            )
            W[block][chosen] = np.ldexp(problem.descend() if zeros else problem.solve(), size)

    # of about as many observed entries: zeros that are not stored take as much memory
    ranges = row_ranges(observations.shape[0], observations.n_observed)
    in_threads(solve_block, ranges, threads or all_threads())
    W[:, 0] *= ones if has_offsets else 1.0
    W = W.astype(fitted.H.dtype)
    return (W[:, 1:], W[:, 0]) if has_offsets else (W, None)


def _rows_by_unit(
    rows: SparseObservations, model: Model
) -> Iterator[tuple[NDArray[np.intp], Scaling, SparseObservations]]:
    """Yield the rows that share a unit, so that a result does not depend on the other rows."""
    largest = np.zeros(rows.shape[0])
    np.maximum.at(largest, rows.rows, np.abs(rows.values))
    exponents = np.array([scaling_for(model, size).exponent for size in largest.tolist()])
    for exponent in np.unique(exponents).tolist():
        chosen, scaling = np.flatnonzero(exponents == exponent), Scaling(model, exponent=exponent)
        yield chosen, scaling, scaling.scaled_observations(rows.of_rows(chosen))


class _Problem:
    """The problem of some new rows that share a unit.

    `Ht` (n, width) has a column of a constant before those of H if rows have offsets; `constrained`
    tells which columns of W have a constraint.
    """

    def __init__(
        self,
        rows: SparseObservations,
        model: Model,
        Ht: Doubles,
        base: Doubles,
        alphas: Doubles,
        epsilon: float,
        constrained: ConstrainedColumns | None,
    ) -> None:
        self.n_rows, (n, self.width) = rows.shape[0], Ht.shape
        self.model, self.constrained = model, constrained
        kinds, positions, units = model.by_function
        models, which = [Model((kind,)) for kind in kinds], model.index_at(0, np.arange(n))
        group, (centre, size, weight) = positions[which], units[:, which]
        # by kind, and in the order of H, so that the order of X changes no bit
        order = np.lexsort((rows.indices, group[rows.indices], rows.rows))
        self.rows = rows = rows.at(order, rows.indptr, rows.labels)
        x, j, limits = rows.values, rows.indices, rows.limits
        T = np.asarray(model.pseudo_inverse(x, columns=j), dtype=np.float64)
        self.Ht, self.base = Ht * size[:, None], centre + size * base
        self.T = centre[j] + size[j] * T

        codes = np.zeros(x.size, np.int8) if limits is None else limits.codes
        uppers = x if limits is None or limits.uppers is None else limits.uppers
        weights = weight[j] if rows.weights is None else rows.weights * weight[j]
        metric = 1 / size[j] ** 2
        shared: Any = j, x, weights, metric, metric / weights, codes, np.asarray(uppers, float)
        cell, count = rows.rows * len(models) + group[j], self.n_rows * len(models)
        borders = np.append(0, np.cumsum(np.bincount(cell, minlength=count)))
        begins, ends = (b.reshape(-1, len(models)).T.copy() for b in (borders[:-1], borders[1:]))
        self.passes = []
        for k, kind in enumerate(models):
            kernel = row_kernel(kind.only.structure, limits is not None)
            entries = KindEntries(begins[k], ends[k], *shared)
            self.passes.append((kernel, entries, kind.only.numbers))

        pattern = chunk_of_rows(CsrStorage((self.n_rows, n), rows.indptr, j))
        normals, self.gradients = row_sums([pattern], T - base[j], Ht, slice(0, self.n_rows))
        ridge, bounds = epsilon * float(np.sum(Ht * Ht)), (np.zeros(self.width),) * 2
        if constrained is not None and constrained.entrywise is not None:
            bounds = constrained.bounds(self.width, 1.0)
        self.terms = RowTerms(normals, ridge, alphas, *bounds)
        self.squares = np.bincount(rows.rows, T * T, self.n_rows)

    def solve(self) -> Doubles:
        """Return the best rows found."""
        states, rows = self._states(self._starts()), np.arange(self.n_rows)
        n_first, n_trial = 3, 30  # starts that suffice if they agree; iterations of each start
        n_most = 2000  # of the best one
        copies = len(states.T)
        if copies == 1:
            self._improve(states, rows, n_most)
            return states.best
        each = rows[:, None] * copies + np.arange(copies)
        self._improve(states, each[:, :n_first].ravel(), n_trial)
        lowest = states.numbers[:, LOWEST].reshape(each.shape)
        few = lowest[:, :n_first]
        # Relative to the objectives, which agree up to this.
        unsure = np.ptp(few, axis=1) > 1e-4 * few.min(axis=1)
        self._improve(states, each[unsure, n_first:].ravel(), n_trial)
        best = states.best.reshape(*each.shape, -1)[rows, np.argmin(lowest, axis=1)]
        again = self._states(best[:, None])
        self._improve(again, rows, n_most)
        return again.best

    def descend(self) -> Doubles:
        """Return the best rows found by Newton steps, of rows in which nothing is missing."""
        model, (ridge, alphas) = self.model, self.terms[1:3]
        X, T = (array.reshape(self.n_rows, -1) for array in (self.rows.values, self.T))
        y = np.array([[model.loss.constant(mean)] for mean in X.mean(axis=1).tolist()])
        loss, spread = np.sum(model.loss(X, y), axis=1), 0.5 * X.shape[1] * T.var(axis=1)
        natural = np.divide(loss, spread, out=np.ones_like(loss), where=spread > 0)
        natural[~(np.isfinite(natural) & (natural > 0))] = 1.0
        j, W = self.rows.indices[: X.shape[1]], np.zeros((self.n_rows, self.width))
        H, starts = np.ascontiguousarray(self.Ht[j].T), self._starts(as_first=True)
        few = np.ascontiguousarray(starts[:, :5])  # convex problems have one
        at = X, H, self.base[j], few, H @ H.T
        descend = descent_kernel(model.only.structure, model.degrees[0] or 1)
        descend(*at, natural, ridge, alphas[0], W, model.only.numbers)
        return W

    def _starts(self, as_first: bool = False) -> Doubles:
        """Return the allowed starts of each row (n_rows, n_starts, width).

        Random ones are as large as T asks for, or as the first one, which zeros make small.
        """
        normals, ridge, alphas = self.terms[:3]
        improve = solver_for(None, normals, ridge + alphas / BALANCED.initial, 1.0)
        first = improve(np.zeros_like(self.gradients), self.gradients)
        # In addition to a start of least squares, if the problem is not convex.
        drawn = np.random.default_rng(0).standard_normal((8, self.width))
        squares = self.squares / np.maximum(np.trace(normals, axis1=1, axis2=2), 1e-300)
        spread = np.sqrt(np.mean(first**2, axis=1) if as_first else squares)[:, None]
        others = [] if self.model.linear else [spread * start for start in drawn]
        starts = np.stack([first, *others], axis=1)
        if self.constrained is None:
            return starts
        allowed = self.constrained.project(starts.reshape(-1, self.width))
        return np.reshape(allowed, starts.shape).astype(np.float64, copy=False)

    def _states(self, starts: Doubles) -> RowStates:
        """Return the states at all starts."""
        copies, W = starts.shape[1], starts.reshape(-1, self.width)
        T, numbers = np.tile(self.T, (copies, 1)), np.zeros((len(W), N_NUMBERS))
        numbers[:, RHO], numbers[:, DUAL_SCALE] = BALANCED.initial, 1
        # Residuals, relative to the starting T, at which the best start ends.
        numbers[:, SMALL] = 1e-8**2 * np.repeat(np.maximum(self.squares, 1e-300), copies)
        numbers[:, [LOWEST, EARLIER]] = math.inf
        return RowStates(W, W.copy(), np.zeros_like(W), numbers, T, np.zeros_like(T))

    def _improve(self, states: RowStates, active: NDArray[np.intp], iterations: int) -> None:
        """Continue some states."""
        numbers = states.numbers
        finish = SOLVE
        if self.constrained is not None:
            finish = ELSEWHERE if self.constrained.entrywise is None else DESCEND
        at_once = len(self.passes) == 1 and finish != ELSEWHERE
        for _ in range(1 if at_once else iterations):
            if finish == ELSEWHERE:
                assert self.constrained is not None
                values = [self.constrained.value(row[None]) for row in states.W[active]]
                numbers[active, OBJECTIVE] = values
            for k, (kernel, entries, model) in enumerate(self.passes, 1):
                end = finish if k == len(self.passes) else NOT_YET
                shared = self.Ht, self.base, states, self.terms
                kernel(active, entries, *shared, iterations if at_once else 1, end, model)
            active = active[numbers[active, ENDED] == 0]
            if not active.size:
                break
            if finish == ELSEWHERE:
                self._move(states, active)

    def _move(self, states: RowStates, active: NDArray[np.intp]) -> None:
        """Take the step of w of some rows by the proximal map of the constraint."""
        assert self.constrained is not None
        normals, ridge, alphas = self.terms[:3]
        W, status = states.W[active], states.numbers[active]
        # ρ before its last change
        rho = (status[:, RHO] * status[:, DUAL_SCALE])[:, None]
        damping = rho * ridge + alphas
        normal = rho[:, :, None] * normals[active // len(states.T)]
        normal += np.tril(normal, -1).transpose(0, 2, 1) + damping[:, None] * np.eye(self.width)
        slopes = rho * states.gradients[active] - damping * W
        states.W[active] = self.constrained.solver(normal, 1.0, MAX_SWEEPS)(W, slopes)
        states.gradients[active] = 0
