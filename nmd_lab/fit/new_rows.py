"""The best rows of W for new rows of X, with H fixed.

With H fixed the rows of X do not depend on one another.  Each is a small problem of its own,

    minimise over w   Σ over the row's entries of weight · d(x, f(w·h + base)) + alpha/2 ‖w‖²,

so that its result does not depend on the rows that come with it.  It is solved by the iteration of
a fit: the T- and U-update, and the w-step (`nmd_lab.fit.row_kernel`).  Unless f is the identity,
the problem may not be convex.  A row then starts several times, from the least-squares fit to the
starting T and from random w.  If the first starts agree, the best of them continues; otherwise
there are more, and the algorithm begins again from the best w of all.  Rows of a fit to sparse
zeros, with a smooth loss, take Newton steps from a few starts (`nmd_lab.fit.row_kernel`).

A kind with units of its own, t' = centre + size t, becomes one without: H and base are those of t',
and a squared residual of t' counts 1 / size².
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.checks import check_size
from nmd_lab._runtime.machine import all_threads, in_threads
from nmd_lab.data.entries import CsrRows, FloatArray
from nmd_lab.data.observations import BLOCK, Observations
from nmd_lab.kernels.constrained_rows import MAX_SWEEPS, ConstrainedColumns
from nmd_lab.kernels.products import CsrStorage
from nmd_lab.kernels.row_sums import chunk_of_rows, moved, row_sums
from nmd_lab.model.fitted_values import RowModel
from nmd_lab.model.model import Model
from nmd_lab.problem.scaling import Scaling, scaling_for
from nmd_lab.request.constraints import constraint_from, couples_rows
from nmd_lab.request.penalty import BALANCED

from . import row_kernel as kernels
from .row_kernel import Doubles, KindEntries, RowStates, RowTerms


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
    zeros = fitted.absent_are_zeros and plain and kernels.can_descend(model)

    Ht = np.ascontiguousarray(fitted.H.T, dtype=np.float64)
    ones = math.sqrt(np.mean(Ht * Ht)) or 1.0
    Ht = np.hstack([np.full((n, 1), ones), Ht]) if has_offsets else Ht
    base = fitted.offsets.mean + fitted.offsets.of_columns(n, float) + np.zeros(n)
    epsilon = max(fitted.epsilon, np.finfo(float).eps)
    W = np.empty((observations.shape[0], Ht.shape[1]))

    def solve_block(block: slice) -> None:
        entries = observations.csr_rows(block)
        entries = entries._replace(indices=columns[entries.indices])
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

    in_threads(solve_block, _blocks(observations), threads or all_threads())
    W[:, 0] *= ones if has_offsets else 1.0
    W = W.astype(fitted.H.dtype)
    return (W[:, 1:], W[:, 0]) if has_offsets else (W, None)


def _blocks(observations: Observations) -> Iterator[slice]:
    """Yield ranges of rows with about as many entries as a block may have."""
    m = observations.shape[0]
    rows = max(1, min(m, BLOCK * m // max(observations.n_observed, 1)))
    for start in range(0, m, rows):
        yield slice(start, min(start + rows, m))


def _rows_by_unit(
    rows: CsrRows, model: Model
) -> Iterator[tuple[NDArray[np.intp], Scaling, CsrRows]]:
    """Yield the rows that share a unit, so that a result does not depend on the other rows."""
    largest = np.zeros(rows.indptr.size - 1)
    np.maximum.at(largest, rows.row_of_entry, np.abs(rows.values))
    exponents = np.array([scaling_for(model, size).exponent for size in largest.tolist()])
    for exponent in np.unique(exponents).tolist():
        chosen, scaling = np.flatnonzero(exponents == exponent), Scaling(model, exponent=exponent)
        yield chosen, scaling, scaling.scaled_observations(rows.take(chosen))


class _Problem:
    """The problem of some new rows that share a unit.

    `Ht` (n, width) has a column of a constant before those of H if rows have offsets; `constrained`
    tells which columns of W have a constraint.
    """

    def __init__(
        self,
        rows: CsrRows,
        model: Model,
        Ht: Doubles,
        base: Doubles,
        alphas: Doubles,
        epsilon: float,
        constrained: ConstrainedColumns | None,
    ) -> None:
        self.n_rows, (n, self.width) = rows.indptr.size - 1, Ht.shape
        self.model, self.constrained = model, constrained
        kinds, positions, units = model.by_function
        models, which = [Model((kind,)) for kind in kinds], model.index_at(0, np.arange(n))
        group, (centre, size, weight) = positions[which], units[:, which]
        # by kind, and in the order of H, so that the order of X changes no bit
        order = np.lexsort((rows.indices, group[rows.indices], rows.row_of_entry))
        self.rows = rows = rows.entries_at(order)
        x, j, limits = rows.values, rows.indices, rows.limits
        T = np.asarray(model.pseudo_inverse(x, columns=j), dtype=np.float64)
        self.Ht, self.base = Ht * size[:, None], centre + size * base
        self.T = centre[j] + size[j] * T

        codes = np.zeros(x.size, np.int8) if limits is None else limits.codes
        uppers = x if limits is None or limits.uppers is None else limits.uppers
        weights, metric = rows.weights * weight[j], 1 / size[j] ** 2
        self.metric = metric if model.is_mixed else None
        shared = j, x, weights, metric / weights, codes, np.asarray(uppers, float)
        cell, count = rows.row_of_entry * len(models) + group[j], self.n_rows * len(models)
        borders = np.append(0, np.cumsum(np.bincount(cell, minlength=count)))
        begins, ends = (b.reshape(-1, len(models)).T.copy() for b in (borders[:-1], borders[1:]))
        self.passes = []
        for k, kind in enumerate(models):
            kernel = kernels.row_kernel(kind.only.structure, limits is not None)
            entries = KindEntries(begins[k], ends[k], *shared)
            self.passes.append((kernel, entries, kind.only.numbers))

        pattern = chunk_of_rows(CsrStorage((self.n_rows, n), rows.indptr, j))
        normals, self.gradients = row_sums([pattern], T - base[j], Ht, slice(0, self.n_rows))
        ridge, bounds = epsilon * float(np.sum(Ht * Ht)), (np.zeros(self.width),) * 2
        if constrained is not None and constrained.entrywise is not None:
            bounds = constrained.bounds(self.width, 1.0)
        self.terms = RowTerms(normals, ridge, alphas, *bounds)
        self.squares = np.bincount(rows.row_of_entry, T * T, self.n_rows)

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
        lowest = states.numbers[:, kernels.LOWEST].reshape(each.shape)
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
        descend = kernels.descent_kernel(model.only.structure, model.degrees[0] or 1)
        descend(*at, natural, ridge, alphas[0], W, model.only.numbers)
        return W

    def _starts(self, as_first: bool = False) -> Doubles:
        """Return the allowed starts of each row (n_rows, n_starts, width).

        Random ones are as large as T asks for, or as the first one, which zeros make small.
        """
        normals, ridge, alphas = self.terms[:3]
        ridges = ridge + alphas / BALANCED.initial
        first = moved(None, normals, self.gradients, ridges, 1.0, np.zeros(self.gradients.shape))
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
        T, numbers = np.tile(self.T, (copies, 1)), np.zeros((len(W), kernels.N_NUMBERS))
        numbers[:, kernels.RHO], numbers[:, kernels.DUAL_SCALE] = BALANCED.initial, 1
        # Residuals, relative to the starting T, at which the best start ends.
        numbers[:, kernels.SMALL] = 1e-8**2 * np.repeat(np.maximum(self.squares, 1e-300), copies)
        numbers[:, [kernels.LOWEST, kernels.EARLIER]] = math.inf
        return RowStates(W, W.copy(), np.zeros_like(W), numbers, T, np.zeros_like(T))

    def _improve(self, states: RowStates, active: NDArray[np.intp], iterations: int) -> None:
        """Continue some states."""
        numbers = states.numbers
        finish = kernels.SOLVE
        if self.constrained is not None:
            finish = kernels.ELSEWHERE if self.constrained.entrywise is None else kernels.DESCEND
        at_once = len(self.passes) == 1 and finish != kernels.ELSEWHERE
        for _ in range(1 if at_once else iterations):
            if finish == kernels.ELSEWHERE:
                assert self.constrained is not None
                values = [self.constrained.value(row[None]) for row in states.W[active]]
                numbers[active, kernels.OBJECTIVE] = values
            for k, (kernel, entries, model) in enumerate(self.passes, 1):
                end = finish if k == len(self.passes) else kernels.NOT_YET
                shared = self.metric, self.Ht, self.base, states, self.terms
                kernel(active, entries, *shared, iterations if at_once else 1, end, model)
            active = active[numbers[active, kernels.ENDED] == 0]
            if not active.size:
                break
            if finish == kernels.ELSEWHERE:
                self._move(states, active)

    def _move(self, states: RowStates, active: NDArray[np.intp]) -> None:
        """Take the step of w of some rows by the proximal map of the constraint."""
        assert self.constrained is not None
        normals, ridge, alphas = self.terms[:3]
        W, status = states.W[active], states.numbers[active]
        # ρ before its last change
        rho = (status[:, kernels.RHO] * status[:, kernels.DUAL_SCALE])[:, None]
        damping = rho * ridge + alphas
        normal = rho[:, :, None] * normals[active // len(states.T)]
        normal += np.tril(normal, -1).transpose(0, 2, 1) + damping[:, None] * np.eye(self.width)
        step = self.constrained.row_solver(normal, 1.0, MAX_SWEEPS)
        states.W[active] = step(W, rho * states.gradients[active] - damping * W)
        states.gradients[active] = 0
