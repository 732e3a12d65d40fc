"""Algorithm 1 with refinements between its iterations.

Each iteration of the accelerated method is one iteration of Algorithm 1, whose iterates it does
not change, and as many passes of refinements (`nmd_lab.solver.refinement.stages`) as the pace
allows (`nmd_lab.solver.refinement.pace`): none while Algorithm 1 is fast, later several, in all at
most one for each iteration.  A refinement starts from the current iterate of Algorithm 1.  It is
followed by a polish of the best factors, if these have improved, and by the next refinement from
the iterate that is current then.  The method returns the best factors so far.  Its objective
therefore never increases, and after the same number of iterations it is at most that of Algorithm 1
alone.

The two complement each other.  Refinements converge fast, but to the nearest minimum.  Algorithm 1
is slow, but it moves between minima, and so gives the refinements better starting points.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from itertools import islice
from typing import Any

from nmd_lab._stop_reason import StopReason
from nmd_lab.checkpoint.place import NOWHERE, Place
from nmd_lab.data.base import FloatArray
from nmd_lab.solver.admm import State, admm
from nmd_lab.solver.initialization import Start
from nmd_lab.solver.problem import Problem
from nmd_lab.solver.stopping import Trend

from .cost import pass_costs
from .lagrangian import Candidate
from .pace import Pace
from .plan import RefinementPlan
from .stages import QUICK, polish, refine, refine_with_homotopy

Refinement = Callable[..., Iterator[Candidate]]
"""Function of a problem, extended factors and a place that yields candidates."""

CATCH_UP = 4  # most passes after an iteration; in all there are at most as many as iterations
TO_BEGIN = 3  # evaluations for which there must be time when a refinement begins
NEARLY_EXACT = 0.02  # relative error from which refinements always run: they reach 0 much faster
FIRST_POLISH = 32  # iteration of the first polish without refinements; it doubles from then on
GAIN = 1e-6  # largest relative decrease by a refinement that counts as no gain
WITHOUT_GAIN = 2  # refinements in turn without gain after which a run may end
MAYBE_EXACT = 0.01  # relative error above which a fit is not checked for being exact, a pass


def accelerated(
    problem: Problem, start: Start, plan: RefinementPlan, place: Place = NOWHERE
) -> Iterator[State]:
    """Iterate Algorithm 1 with refinements between its iterations."""
    began = time.perf_counter()
    width = start.W.shape[1] + problem.offset_columns.width
    scheduler = RefinementScheduler(problem, plan, width, place.inner("refinement"))
    best: State | None = place.take()["best"] if place.goes_on else None
    place.mark(lambda: {"best": best})
    for state in admm(problem, start, place.inner("algorithm")):
        if best is None or state.objective < best.objective or not state.is_finite:
            best = state
        scheduler.iterated(state)
        for _ in range(CATCH_UP):
            candidate = scheduler.step(state, best)
            if candidate is None:
                break
            if candidate.objective < best.objective:
                best = scheduler.as_state(candidate, state)
        yield replace(
            best,
            iteration=state.iteration,
            primal_residual=state.primal_residual,
            dual_residual=state.dual_residual,
            penalty=state.penalty,
            relative_residual=(
                math.inf if scheduler.is_busy(state, best) else state.relative_residual
            ),
            stop_reason=scheduler.stop_reason(state, best),
            seconds=time.perf_counter() - began,
        )


class RefinementScheduler:
    """Runs refinements between the iterations, one after the other."""

    KEPT = ("polished", "before", "n_without_gain", "n_begun", "is_polish", "begun_at")

    def __init__(self, problem: Problem, plan: RefinementPlan, width: int, place: Place) -> None:
        self.problem, self.plan, self.place = problem, plan, place
        self.current: Iterator[Candidate] | None = None
        self.begun_at: tuple[FloatArray, FloatArray] | None = None  # factors, if one is running
        self.is_polish = False
        self.polished = math.inf  # objective after the last polish
        self.before = math.inf  # objective before the current refinement
        self.n_without_gain = self.n_begun = 0
        self.refinements = self._sequence()
        self.trend = Trend()
        self.pace = Pace()
        self.costs = pass_costs(problem, width, one_matrix=False)
        if place.goes_on:
            self._restore(place.take())
        place.mark(self._describe)

    def _describe(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in self.KEPT}
        return own | {"trend": self.trend.lowest, "pace": vars(self.pace)}

    def _restore(self, kept: dict[str, Any]) -> None:
        for name in self.KEPT:
            setattr(self, name, kept[name])
        self.trend.lowest = kept["trend"]
        vars(self.pace).update(kept["pace"])
        begun = list(islice(self.refinements, self.n_begun))
        if self.begun_at is not None:
            self._begin(polish if self.is_polish else begun[-1])

    def iterated(self, state: State) -> None:
        """Record an iteration of Algorithm 1."""
        self.trend.add(state.objective)
        self.pace.iterated(state.objective)

    def step(self, state: State, best: State) -> Candidate | None:
        """Do one pass of a refinement if the pace allows it, and return its candidate."""
        if not self._may_work(state, best):
            return None
        if self.current is None:
            self._start_next(state, best)
        if self.current is None:
            return None
        candidate = next(self.current, None)
        if candidate is not None:
            self.pace.passed(candidate.cost)
            return candidate
        gained = self.before - best.objective > GAIN * abs(best.objective)
        if self.is_polish:
            self.polished = best.objective
        else:
            self.n_without_gain = 0 if gained else self.n_without_gain + 1
        self.current = self.begun_at = None
        self.place.leave("pass")
        return None

    def _may_work(self, state: State, best: State) -> bool:
        """Return whether there is room for a pass, or for the beginning of a refinement."""
        cost = self.costs.evaluation
        if self.current is None:
            cost = self.costs.start + self.costs.preconditioner + TO_BEGIN * cost
        converged = state.relative_residual <= 100 * self.plan.fitted
        exact = best.relative_error <= NEARLY_EXACT
        limited = self.plan.limited and not (converged or exact)
        begins = self.current is None
        return self.pace.allows(cost, best.objective, limited=limited, begins=begins)

    def is_busy(self, state: State, best: State) -> bool:
        """Return whether a refinement is running, or a polish follows at the next step."""
        return self.current is not None or self._worth_polishing(best, state)

    def stop_reason(self, state: State, best: State) -> StopReason | None:
        """Return the reason to expect no further decrease of the objective, or None."""
        if best.relative_error <= MAYBE_EXACT and best.relative_error <= self.fitted:
            return StopReason(
                "converged", f"converged: relative error at or below {self.plan.fitted:g}"
            )
        if self.n_without_gain < WITHOUT_GAIN or self._worth_polishing(best, state):
            return None
        if self.trend.reaches(best.objective, state.iteration):
            return None
        return StopReason(
            "converged",
            f"converged: {self.n_without_gain} refinements in turn found nothing lower",
        )

    @cached_property
    def fitted(self) -> float:
        """Relative error at or below which the fit is exact."""
        pair, observations = self.problem.pair, self.problem.observations
        if not pair.fits_exactly:
            return -1.0
        loss = pair.loss
        exact = observations.sum_of(lambda x, weights: weights * loss(x, x))  # a floor may lift it
        return self.plan.fitted + 2 * loss.relative_error(exact, self.problem.reference)

    def as_state(self, candidate: Candidate, state: State) -> State:
        """Return the state of an iteration, with the factors of a candidate."""
        W_aug, H_aug, data_term, objective = candidate[:4]
        W, H, offsets = self.problem.offset_columns.split(W_aug, H_aug)
        return replace(
            state,
            W=W,
            H=H,
            offsets=offsets,
            W_aug=W_aug,
            H_aug=H_aug,
            objective=objective,
            relative_error=self.problem.pair.relative_error(data_term, self.problem.reference),
        )

    def _start_next(self, state: State, best: State) -> None:
        """Start the next refinement, if there is one."""
        first = self.plan.refine and math.isinf(self.before) and state.relative_residual > 0
        self.before, self.current, self.is_polish = best.objective, None, False
        if not first and self._worth_polishing(best, state):
            self.is_polish, self.begun_at = True, (best.W_aug, best.H_aug)
            self._begin(polish)
        elif state.relative_residual > 0:
            refinement = next(self.refinements, None)
            if refinement is not None:
                self.n_begun, self.begun_at = self.n_begun + 1, (state.W_aug, state.H_aug)
                self._begin(refinement)

    def _begin(self, refinement: Refinement) -> None:
        """Begin a refinement at `begun_at`, or go on with it."""
        assert self.begun_at is not None
        inside, factors = self.place.inner("pass"), self.begun_at
        self.current = inside.replay(lambda: refinement(self.problem, *factors, place=inside))

    def _sequence(self) -> Iterator[Refinement]:
        """Yield the refinements in their order."""
        plan = self.plan
        if plan.homotopy is True:
            yield refine_with_homotopy
        elif plan.refine:  # find the nearest minimum first: it pays soonest
            yield partial(refine, growth=QUICK)
        if plan.refine:
            yield refine
        if plan.homotopy == "auto":
            yield refine_with_homotopy
        while plan.refine:
            yield refine

    def _worth_polishing(self, best: State, state: State) -> bool:
        doublings = math.log2(state.iteration / FIRST_POLISH)
        due = self.plan.refine or (doublings >= 0 and doublings.is_integer())
        lower = best.objective < self.polished * (1 - GAIN)
        return self.plan.polish and due and lower
