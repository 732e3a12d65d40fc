"""Algorithm 1 with quasi-Newton steps beside it, and the better of the two after each iteration.

Each iteration of the accelerated method is one of Algorithm 1, exactly as it would be alone, and
one step beside it: a refinement that sets out from where the iteration stands, then a polish of the
best factors, then a refinement from where the iteration stands by then, and so on (see
`nmd_lab.solver.refinement.stages`).  The objective therefore never rises, and is never above that of the plain
method after as many iterations; the price is a second pass over the data for each.

The two complement each other.  Refinements are fast and end in the nearest minimum; the iteration
is slow and wanders, so that what it comes across is worth refining.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from nmd_lab.data.base import FloatArray
from nmd_lab.solver.admm import Problem, State, admm
from nmd_lab.solver.initialization import Start
from nmd_lab.solver.trend import Trend

from .lagrangian import Candidate
from .stages import QUICK_PACE, polish, refine, widened

Job = Callable[[Problem, FloatArray, FloatArray], Iterator[Candidate]]

FIRST_POLISH = 32
"""Without refinements, polishes begin after so many iterations, twice as many, and so on."""

GAIN = 1e-6
"""A refinement that lowers the objective by no more than this share of it was in vain."""

IN_VAIN = 2
"""The run has settled when so many refinements were in vain, and the iteration would not catch up
in as many iterations again."""


@dataclass(frozen=True)
class Plan:
    """What is done beside Algorithm 1.

    Parameters
    ----------
    refine : bool
        Whether refinements are.
    homotopy : {"auto", True, False}
        Whether the first refinement, or one of the later ones ("auto"), follows a homotopy in the
        interval of f.
    polish : bool
        Whether polishes are.
    fitted : float
        Relative error at which there is nothing left to gain.
    """

    refine: bool
    homotopy: str | bool
    polish: bool
    fitted: float = 0.0

    def __bool__(self) -> bool:
        """Return whether anything is."""
        return bool(self.refine or self.homotopy or self.polish)


def accelerated(problem: Problem, start: Start, plan: Plan) -> Iterator[State]:
    """Iterate Algorithm 1 with something beside it.

    Parameters
    ----------
    problem : Problem
        What is solved, and how.
    start : Start
        Starting factors.
    plan : Plan
        What is done beside the iteration.

    Yields
    ------
    State
        The best factors so far with their objective, and the residuals and ρ of Algorithm 1.
    """
    began = time.perf_counter()
    beside = Beside(problem, plan)
    best: State | None = None
    for state in admm(problem, start):
        if best is None or state.objective < best.objective or not state.is_finite:
            best = state
        for candidate in beside.step(state, best):
            if candidate.objective < best.objective:
                best = beside.as_state(candidate, state)
        yield replace(
            state,
            W=best.W,
            H=best.H,
            offsets=best.offsets,
            left=best.left,
            right=best.right,
            objective=best.objective,
            relative_error=best.relative_error,
            stillness=math.inf if beside.is_busy(state, best) else state.stillness,
            settled=beside.settled(state, best),
            seconds=time.perf_counter() - began,
        )


class Beside:
    """What goes on beside the iteration: one job after the other.

    Parameters
    ----------
    problem : Problem
        What is solved.
    plan : Plan
        What is to be done.
    """

    def __init__(self, problem: Problem, plan: Plan) -> None:
        self.problem, self.plan = problem, plan
        loss, (values, weights) = problem.pair.loss, problem.observations.observed()
        self.reference = loss.reference(values, weights)
        perfect = float(np.sum(weights * loss(values, values)))  # a floor may keep it above zero
        self.fitted = plan.fitted + 2 * loss.relative_error(perfect, self.reference)
        self.job: Iterator[Candidate] | None = None
        self.polishes = False
        self.polished = self.before = math.inf  # objectives: of the last polish, before the job
        self.in_vain = 0
        self.jobs = self._sequence()
        self.trend = Trend()

    def step(self, state: State, best: State) -> Iterator[Candidate]:
        """Yield what the next pass arrives at, if there is something to do."""
        self.trend.add(state.objective)
        if self.job is None:
            self._begin(state, best)
        if self.job is None:
            return
        candidate = next(self.job, None)
        if candidate is not None:
            yield candidate
            return
        gained = self.before - best.objective > GAIN * abs(best.objective)
        if self.polishes:
            self.polished = best.objective
        else:
            self.in_vain = 0 if gained else self.in_vain + 1
        self.job = None

    def is_busy(self, state: State, best: State) -> bool:
        """Return whether something is going on, or will be at the next step."""
        return self.job is not None or self._worth_polishing(best, state)

    def _begin(self, state: State, best: State) -> None:
        """Take up the next job, if there is one."""
        self.before, self.job, self.polishes = best.objective, None, False
        if state.iteration > 1 and self._worth_polishing(best, state):
            self.job, self.polishes = polish(self.problem, best.left, best.right), True
        elif state.stillness > 0:
            job = next(self.jobs, None)
            self.job = job and job(self.problem, state.left, state.right)

    def _sequence(self) -> Iterator[Job]:
        """Yield the refinements in their order."""
        plan = self.plan
        if plan.homotopy is True:
            yield widened
        elif plan.refine and math.isfinite(self.problem.pair.loss.domain[0]):
            # Next to a pole (KL) a small ρ is far from the loss: take the nearest minimum first.
            yield partial(refine, pace=QUICK_PACE)
        if plan.refine:
            yield refine
        if plan.homotopy == "auto":
            yield widened
        while plan.refine:
            yield refine

    def _worth_polishing(self, best: State, state: State) -> bool:
        doublings = math.log2(state.iteration / FIRST_POLISH)
        due = self.plan.refine or (doublings >= 0 and doublings.is_integer())
        return self.plan.polish and due and best.objective < self.polished * (1 - GAIN)

    def as_state(self, candidate: Candidate, state: State) -> State:
        """Return a candidate as the state of an iteration."""
        W, H, offsets = self.problem.extension.split(candidate.left, candidate.right)
        error = self.problem.pair.loss.relative_error(candidate.data_term, self.reference)
        return replace(
            state,
            W=W,
            H=H,
            offsets=offsets,
            left=candidate.left,
            right=candidate.right,
            objective=candidate.objective,
            relative_error=error,
        )

    def settled(self, state: State, best: State) -> str:
        """Return why nothing more is to be expected, or ""."""
        if best.relative_error <= self.fitted:
            return f"converged: relative error at or below {self.plan.fitted:g}"
        if self.in_vain < IN_VAIN or self._worth_polishing(best, state):
            return ""
        if self.trend.reaches(best.objective, state.iteration):
            return ""
        return f"converged: {self.in_vain} refinements in turn found nothing lower"
