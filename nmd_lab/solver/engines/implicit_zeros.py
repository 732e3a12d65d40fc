"""Descents on the augmented Lagrangian, one after the other, without Algorithm 1.

This is the engine for sparse data whose absent entries are zeros: Algorithm 1 would need T and U
at every entry.  The first two refinements (`nmd_lab.solver.refinement.stages`) begin at the start,
with different penalties, since a small ρ sometimes ends in a lower minimum and takes longer.  The
following ones begin at the best factors so far, each with a polish before it.  A step is one pass
over the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from nmd_lab._runtime.progress import StopReason
from nmd_lab.data.entries import FloatArray
from nmd_lab.solver.initialization import Start
from nmd_lab.solver.problem import Problem
from nmd_lab.solver.refinement.stages import Refinement, Refiner
from nmd_lab.solver.state import Iterate

# Pairs of the first ρ and its growth, for the refinements from the start, and for the later ones,
# in turn.  Without multipliers, the envelope of zeros is a multiple of a square at any ρ if their
# loss is a square, while a kink is smooth at a small ρ only.
OF_SQUARES = ((1.0, 1.6), (0.1, 1.2)), ((0.3, 1.6), (0.1, 1.2))  # if the loss of a zero is a square
OF_OTHERS = ((0.1, 1.2), (0.03, 1.2)), ((0.3, 1.2), (0.1, 1.2))  # for any other loss: a smaller ρ
PATIENCE = (6, 1e-2, 1.0)  # stages, their decrease, and ρ from which they count: it may rise below
WITHOUT_GAIN = 2  # refinements from the best factors in turn without gain that end a run
GAIN = 1e-7  # smallest relative decrease of the objective that is a gain


@dataclass
class DescentsState:
    """Where the refinements stand.

    Attributes
    ----------
    start : tuple of ndarray
        Extended factors at the start.
    begun_at : tuple of ndarray
        Extended factors at which the present refinement, or its polish, began.
    current : Refinement
        The present refinement.
    best, last : Iterate
        Factors of lowest objective, and of the last pass.
    number, passes : int
        Number of the refinement, from 0, and its passes so far.
    n_without_gain : int
        Refinements in turn without gain.
    before : float
        Lowest objective before the refinement.
    """

    start: tuple[FloatArray, FloatArray]
    begun_at: tuple[FloatArray, FloatArray]
    current: Refinement
    best: Iterate
    last: Iterate
    number: int = 0
    passes: int = 0
    n_without_gain: int = 0
    before: float = math.inf


class ImplicitZeros:
    """Descents without Algorithm 1 as an engine."""

    def __init__(self, *, exact: float, tol: float = 0.0) -> None:
        self.exact, self.tol, self._refiner = exact, tol, Refiner()

    def init(self, problem: Problem, start: Start) -> DescentsState:
        """Return the state before the first pass."""
        factors = problem.projected(start)
        none = Iterate(*factors, *[math.inf] * 6)
        current = self._begin(problem, 0, factors)
        return DescentsState(factors, factors, current, none, none)

    def step(self, problem: Problem, state: DescentsState) -> DescentsState:
        """Do one pass over the data."""
        while (candidate := self._refiner.step(problem, state.current)) is None:
            if state.current.kind != "polish":
                self._end_refinement(problem, state)
            if state.number < len(_growths(problem)[0]) or state.current.kind == "polish":
                state.current = self._begin(problem, state.number, state.begun_at)
            else:
                state.current = self._refiner.begin(problem, "polish", *state.begun_at)
        state.last, state.passes = candidate, state.passes + 1
        if math.isinf(state.best.objective) or candidate.objective < state.best.objective:
            state.best = candidate
        return state

    def iterate(self, problem: Problem, state: DescentsState) -> Iterate:
        """Return the factors of lowest objective, with the numbers of the last pass."""
        return state.best.with_residuals_of(state.last)

    def status(self, state: DescentsState) -> StopReason | None:
        """Return why the run ends: the fit is exact, or refinements gain no more; None if not."""
        if state.best.relative_error <= self.exact:
            reason = f"converged: relative error at or below {self.exact:g}"
        elif state.n_without_gain >= WITHOUT_GAIN:
            reason = (
                f"converged: {WITHOUT_GAIN} refinements in turn lowered the objective by "
                f"at most {max(self.tol, GAIN):g} of itself in 100 iterations"
            )
        else:
            return None
        return StopReason("converged", reason)

    def _begin(
        self, problem: Problem, number: int, factors: tuple[FloatArray, FloatArray]
    ) -> Refinement:
        """Return a refinement by its number."""
        of_first, of_later = _growths(problem)
        growths = of_first if number < len(of_first) else of_later
        growth = growths[number % len(growths)]
        return self._refiner.begin(problem, "refine", *factors, growth, PATIENCE)

    def _end_refinement(self, problem: Problem, state: DescentsState) -> None:
        """Note what a refinement has gained, and where the next one begins."""
        of_first, _ = _growths(problem)
        best, first = state.best, state.number < len(of_first)
        enough = max(GAIN, self.tol * state.passes / 100) * abs(best.objective)
        gained = state.before - best.objective > enough
        state.n_without_gain = 0 if gained or first else state.n_without_gain + 1
        state.number, state.passes, state.before = state.number + 1, 0, best.objective
        state.begun_at = state.start if state.number < len(of_first) else (best.W_aug, best.H_aug)


def _growths(problem: Problem) -> tuple[tuple[tuple[float, float], ...], ...]:
    """Return the first ρ and its growth, for refinements from the start and for later ones."""
    return OF_SQUARES if problem.model.loss.of_zero == "square" else OF_OTHERS
