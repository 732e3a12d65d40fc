"""Descents one after the other: to the nearest minimum, and on to lower ones.

A matrix factorisation under constraints has many local minima.  Once a descent has converged, some
components of the best factors are replaced by random ones or by rows of X, and the next descent
begins there; the second one begins at nonnegative parts of the SVD.  A descent ends when it has
converged, or when its pace would not bring it below the best.  After a descent
that failed the best
factors descend further, for as many steps.  The iterates are the best factors so far, so the
objective never rises.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.progress import StopReason
from nmd_lab.data.entries import FloatArray
from nmd_lab.model.model import make_model
from nmd_lab.problem.initialization import Start, svd_start
from nmd_lab.problem.problem import Problem
from nmd_lab.problem.state import Iterate
from nmd_lab.request.constraints import FactorConstraint, InUnits, Simplex, is_nonnegative

from .constrained_descents import Descent, DivergenceDescent, LeastSquaresDescent, kind_of_descent

N_DESCENT_STEPS = 20  # steps over which the progress of a descent is measured


@dataclass
class SearchState:
    """Where the descents stand.

    Attributes
    ----------
    descent : LeastSquaresState or DivergenceState
        State of the present descent.
    rng : Generator
        Random numbers.
    best : Iterate or None
        Factors of lowest objective so far; the dual residual is ρ‖W⁺H⁺ - WH‖ from those before.
    recent : deque of float
        Objectives of the last steps of the present descent.
    from_best : bool
        Whether this descent continues from the best factors.
    n_restarts, steps, steps_of_last_failure : int
        Descents that began elsewhere; steps of the present descent, and of the one before.
    """

    descent: Any
    rng: np.random.Generator
    best: Iterate | None = None
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=N_DESCENT_STEPS + 1))
    from_best: bool = False
    n_restarts: int = 0
    steps: int = 0
    steps_of_last_failure: int = 0


class Constrained:
    """Descents under constraints as an engine."""

    def __init__(self, *, exact: float = 0.0) -> None:
        self.exact = exact
        self._descent: Descent | None = None

    def init(self, problem: Problem, start: Start) -> SearchState:
        """Return the state before the first step."""
        self._descent = None
        descent = self._descent_of(problem, start.W.shape[1])
        return SearchState(descent.begin(*problem.projected(start)), np.random.default_rng(0))

    def step(self, problem: Problem, state: SearchState) -> SearchState:
        """Do a step of the present descent, and begin another one if it has ended."""
        rank = state.descent.W.shape[1] - problem.offset_columns.width
        descent, before = self._descent_of(problem, rank), state.best
        reached = descent.step(state.descent)
        state.steps += 1
        state.recent.append(reached.objective)
        best = reached if before is None or reached.objective < before.objective else before
        change = 0.0 if before is best or before is None else _change(before, best)
        state.best = best = replace(best, dual_residual=best.penalty * change)
        if _has_ended(state, best):
            _begin_next(problem, descent, state, best)
        return state

    def iterate(self, problem: Problem, state: SearchState) -> Iterate:
        """Return the best factors, and the numbers to record."""
        assert state.best is not None
        return state.best

    def status(self, state: SearchState) -> StopReason | None:
        """Return why the run ends if the fit is exact, or None."""
        if state.best is not None and state.best.relative_error <= self.exact:
            return StopReason("converged", f"converged: relative error at or below {self.exact:g}")
        return None

    def _descent_of(self, problem: Problem, rank: int) -> Descent:
        """Return the descent that goes with a problem."""
        if self._descent is None:
            squares = kind_of_descent(problem) == "squares"
            kind = LeastSquaresDescent if squares else DivergenceDescent
            self._descent = kind(problem, rank)
        return self._descent


def after_least_squares(problem: Problem, start: Start) -> Start:
    """Return a random start of the divergence after some steps of least squares, which are fast.

    Other starts, and those of data with missing entries or weights, are unchanged.  No number is 0
    after it.
    """
    free = replace(problem, model=make_model("identity", "frobenius"), observed_only=False)
    if kind_of_descent(problem) != "divergence" or kind_of_descent(free) != "squares":
        return start
    descent = LeastSquaresDescent(free, start.W.shape[1])
    state = descent.begin(*problem.projected(start))
    for _ in range(10):
        reached = descent.step(state)
    W, H, offsets = problem.offset_columns.split(reached.W_aug, reached.H_aug)
    W, H = (np.maximum(each, each.dtype.type(1e-3 * each.mean())) for each in (W, H))
    return Start(W, H, start.from_factors, offsets)


def _change(before: Iterate, after: Iterate) -> float:
    """Return ‖W⁺H⁺ - WH‖ from the Gram matrices of [W⁺, W] and [H⁺; -H]."""
    W = np.hstack([after.W_aug, before.W_aug]).astype(np.float64)
    H = np.vstack([after.H_aug, -before.H_aug]).astype(np.float64)
    return math.sqrt(max(float(np.sum((W.T @ W) * (H @ H.T))), 0.0))


def _has_ended(state: SearchState, best: Iterate) -> bool:
    """Return whether the descent has converged, or would not reach the best in four windows."""
    recent = state.recent
    if len(recent) <= N_DESCENT_STEPS:
        return False
    if state.from_best and state.steps >= state.steps_of_last_failure:
        return True
    fell, last = recent[0] - recent[-1], recent[-1]
    limit = 1e-7 if state.from_best else 1e-4
    if fell <= limit * abs(last):
        return True
    return last - 4 * fell > best.objective


def _begin_next(problem: Problem, descent: Descent, state: SearchState, best: Iterate) -> None:
    """Begin another descent: from other components, or, after one that failed, from the best."""
    has_failed = state.recent[-1] > best.objective
    state.recent.clear()
    state.steps_of_last_failure, state.steps = state.steps, 0
    state.from_best = has_failed and not state.from_best
    factors = best.W_aug, best.H_aug
    if not state.from_best:
        factors = _perturbed_start(problem, state, best)
    state.descent = descent.begin(*factors)


def _perturbed_start(
    problem: Problem, state: SearchState, best: Iterate
) -> tuple[FloatArray, FloatArray]:
    """Return feasible factors to begin with: first parts of the SVD, then the best, changed.

    Some components get random numbers, or, every other time, rows of X.
    """
    rank, rng = best.H_aug.shape[0] - problem.offset_columns.width, state.rng
    W, H, offsets = problem.offset_columns.split(best.W_aug, best.H_aug)
    state.n_restarts += 1
    if state.n_restarts == 1 and problem.constraints.nonnegative:
        data = problem.starting_data
        start = svd_start(*data, rank, offsets, rng, "nndsvd")
        return problem.projected(with_simplex(problem, filled(start, rng)))
    most = -(-0.4 * rank // 1)
    count = int(rng.integers(1, most + 1))
    chosen = rng.choice(rank, count, replace=False)
    W, H = W.copy(), H.copy()
    for factor in (W.T, H):  # random numbers of the mean size of all
        size = float(np.mean(np.abs(factor)))
        new = 2 * size * rng.random((count, factor.shape[1]))
        factor[chosen] = new if factor.min() >= 0 else np.sqrt(3) * (new - size)
    if state.n_restarts % 2:
        _take_rows(problem, H, chosen, rng)
    return problem.projected(Start(W, H, True, offsets))


def _take_rows(
    problem: Problem, H: FloatArray, chosen: NDArray[np.intp], rng: np.random.Generator
) -> None:
    """Put rows of X into some rows of H, in the size that these have."""
    observations, f = problem.observations, problem.model.nonlinearity
    for c in chosen:
        row = int(rng.integers(observations.shape[0]))
        entries = observations.csr_rows(slice(row, row + 1))
        T, size = np.abs(f.pseudo_inverse(entries.values)), float(np.mean(np.abs(H[c])))
        if T.any():
            H[c] *= 0.1
            H[c, entries.indices] += T * (size / T.sum() * observations.shape[1])


def random_within(problem: Problem, rank: int, start: Start, rng: np.random.Generator) -> Start:
    """Return a random start that suits the constraints of a problem.

    Nonnegative factors are uniform, of such a size that the mean of WH is that of T, so that no
    component begins at 0.  A factor without a bound keeps the numbers of `start`.
    """
    constraints = problem.constraints
    observations, model = problem.starting_data
    pseudo_inverse = model.nonlinearity.pseudo_inverse
    total, size = observations.weighted_sums(lambda x: np.abs(pseudo_inverse(x)))
    mean = size / total
    largest = 2.0 * np.sqrt((mean or 1.0) / rank)
    W, H = start.W, start.H
    if is_nonnegative(constraints.W):
        W = (largest * rng.random(W.shape)).astype(W.dtype)
    if is_nonnegative(constraints.H):
        H = (largest * rng.random(H.shape)).astype(H.dtype)
    return with_simplex(problem, start._replace(W=W, H=H))


def filled(start: Start, rng: np.random.Generator) -> Start:
    """Return a nonnegative start without zeros, which an iteration might not leave."""
    W, H = start.W, start.H
    for factor in (W, H):
        mean = float(np.mean(factor))
        zeros = factor <= 0
        factor[zeros] = (0.02 * mean * rng.random(int(zeros.sum()))).astype(factor.dtype)
    return start


def with_simplex(problem: Problem, start: Start) -> Start:
    """Return a start in which rows that must sum to one do so, at nearly the same product."""
    constraints, size = problem.constraints, 2.0**problem.units.exponent
    W, H = start.W, start.H
    if _is_simplex(constraints.W):
        W, mean = _normalized(W, size)
        H = H * H.dtype.type(mean)
    if _is_simplex(constraints.H):
        columns, mean = _normalized(H.T, size)
        H = np.ascontiguousarray(columns.T)
        W = W * W.dtype.type(mean) if not _is_simplex(constraints.W) else W
    return start._replace(W=np.ascontiguousarray(W), H=np.ascontiguousarray(H))


def _is_simplex(constraint: FactorConstraint | None) -> bool:
    return isinstance(constraint.plain if isinstance(constraint, InUnits) else constraint, Simplex)


def _normalized(rows: FloatArray, size: float) -> tuple[FloatArray, float]:
    """Return rows with sums of 1 / size, and the mean factor that this takes from them."""
    sums = np.abs(rows).sum(axis=1, keepdims=True) * size
    mean = float(np.mean(sums)) or 1.0
    return rows / np.where(sums > 0, sums, 1.0), mean
