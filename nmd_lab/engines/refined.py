"""Algorithm 1 with refinements between its iterations, and refinements alone on sparse zeros.

Each step of `Refined` is one iteration of Algorithm 1, whose iterates it does not change, and as
many passes of refinements (`nmd_lab.engines.stages`) as the budget of work allows: none while
Algorithm 1 is fast, later several, in all at most one for each iteration.  A refinement starts from
the current iterate of Algorithm 1.  It is followed by a polish of the best factors, if these have
improved, and by the next refinement from the iterate that is current then.  The iterates are the
best factors so far.  Their objective therefore never increases, and after the same number of
iterations it is at most that of Algorithm 1 alone.

The two complement each other.  Refinements converge fast, but to the nearest minimum.  Algorithm 1
is slow, but it moves between minima, and so gives the refinements better starting points.

Work that goes into refinements delays Algorithm 1.  As long as it converges fast, a delay costs
much and refinements have to wait; once it is slow, they may run; once they have found a lower
objective, they may run until Algorithm 1 would catch up.  So the best objective at any time is at
most a little above that of Algorithm 1 alone after the same time.

Whether a pass may run is decided by a forecast: the objective that Algorithm 1 alone would have by
then, if it went on at its recent rate.  The work is counted (`nmd_lab.engines.stages`), not
measured, so that a fit repeats bit for bit.

`ImplicitZeros` is for sparse data whose absent entries are zeros: Algorithm 1 would need T and U at
every entry.  The first two refinements begin at the start, with different penalties, since a small
ρ sometimes ends in a lower minimum and takes longer.  The following ones begin at the best factors
so far, each with a polish before it.  A step is one pass over the data.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from nmd_lab._runtime.progress import StopReason
from nmd_lab.devices import HOST
from nmd_lab.problem.initialization import Start
from nmd_lab.problem.problem import Problem
from nmd_lab.problem.state import Iterate
from nmd_lab.request.options import Options
from nmd_lab.request.settings import is_automatic

from .admm import Admm, AdmmState
from .constrained import kind_of_descent
from .lbfgs import MAX_KEPT_NUMBERS, MAX_PAIRS, memory_allows
from .stages import NEARLY_EXACT, QUICK, SLOW, PassCosts, Refinement, Refiner, pass_costs

N_TREND_ITERATIONS = 50  # iterations from which the present rate of decrease is estimated


def exact_for(tol: float) -> float:
    """Return the relative residual at or below which a run ends."""
    return min(tol, 1e-10)


def reaches(lowest: Sequence[float], objective: float, iterations: int) -> bool:
    """Return whether so many more iterations, at the recent rate, would reach an objective.

    `lowest` has the lowest objective after each iteration; a few of them determine no rate.
    """
    if len(lowest) <= N_TREND_ITERATIONS:
        return True
    decrease = (lowest[-N_TREND_ITERATIONS - 1] - lowest[-1]) / N_TREND_ITERATIONS
    return lowest[-1] - iterations * decrease <= objective


@dataclass(frozen=True)
class RefinementPlan:
    """The refinements of a fit.

    Attributes
    ----------
    fitted : float
        Relative residual at or below which nothing is left to refine.
    refine, homotopy, polish : bool or str
        Refinements between the iterations of Algorithm 1; see `stages`.
    engine : {"admm", "constrained", "implicit zeros"}
        What does the iterations.
    few_stored : bool
        Whether few entries are stored and all others are zeros, of which Algorithm 1 would store T
        and U.
    tol : float
        Tolerance of descents.
    """

    fitted: float
    refine: bool = False
    homotopy: str | bool = False
    polish: bool = False
    engine: Literal["admm", "constrained", "implicit zeros"] = "admm"
    few_stored: bool = False
    tol: float = 0.0

    @property
    def window(self) -> int | None:
        """Window of the stopping rule for the gain, endless for descents, which end by themselves.

        None stands for the usual one.
        """
        return sys.maxsize - 1 if self.engine == "implicit zeros" else None

    def __bool__(self) -> bool:
        """Return whether there is any refinement."""
        return bool(self.refine or self.homotopy or self.polish)


def make_plan(problem: Problem, rank: int, options: Options) -> RefinementPlan:
    """Return the refinements of a fit.

    "auto" means no refinements in each of these cases:

    - a fixed ρ, or the paper's rule;
    - given factors, ``tol=0`` and a `rho` other than "auto", since this is Algorithm 1 alone;
    - Identity + Frobenius on the observed entries, which is alternating least squares;
    - a memory of the quasi-Newton steps that is too large (`memory_allows`);
    - constraints on the factors, which quasi-Newton steps would break;
    - rows on the workers of a cluster;
    - sparse data whose absent entries are zeros, if descents take the place of Algorithm 1;
    - a sparse matrix with so many stored entries that a second pass takes too long.
    """
    model, observations = problem.model, problem.observations
    fitted = exact_for(options.tol) / 100
    if observations.remote:
        return RefinementPlan(fitted)
    m, n = observations.shape
    suits = problem.has_tiles and not model.learns and is_automatic(options.solver)
    few_stored = suits and problem.reference > 0 and observations.values.size < 0.3 * m * n
    if problem.is_constrained:
        is_allowed = options.solver.refine and options.solver.rho == "auto"
        is_allowed &= problem.device is HOST
        descends = is_allowed and kind_of_descent(problem) is not None
        return RefinementPlan(
            fitted, engine="constrained" if descends else "admm", few_stored=few_stored
        )
    if few_stored:
        return RefinementPlan(fitted, engine="implicit zeros", few_stored=True, tol=options.tol)
    adaptive = math.isfinite(problem.rule.factor) and not problem.rule.projected
    least_squares = model.is_least_squares and problem.observed_only
    stored = observations.n_stored if observations.scratch is None else 0  # it may be on disk
    small = memory_allows(2 * MAX_PAIRS * (m + n) * rank, stored)
    small &= not (problem.sparse and stored > MAX_KEPT_NUMBERS)
    plain = options.tol == 0 and options.solver.rho != "auto" and not isinstance(options.init, str)
    auto = adaptive and small and not least_squares and not plain
    refine = auto and options.solver.refine
    homotopy = options.solver.homotopy
    if homotopy == "auto" and not (refine and model.with_wider_bounds(1.0)):
        homotopy = False
    polish = auto if options.solver.polish == "auto" else bool(options.solver.polish)
    return RefinementPlan(fitted, refine, homotopy, polish)


MIN_GAIN = 1e-6  # largest relative decrease by a refinement that counts as no gain


@dataclass
class WorkBudget:
    """The account of the work of Algorithm 1 and of the refinements.

    Attributes
    ----------
    lowest : list of float
        Lowest objective after each iteration of Algorithm 1.
    passes : int
        Passes of refinements.
    spent : float
        Work of the refinements, in iterations of Algorithm 1.
    """

    lowest: list[float] = field(default_factory=list)
    passes: int = 0
    spent: float = 0.0

    @property
    def iterations(self) -> int:
        """Number of iterations of Algorithm 1."""
        return len(self.lowest)

    def iterated(self, objective: float) -> None:
        """Record an iteration of Algorithm 1."""
        self.lowest.append(min(objective, self.lowest[-1]) if self.lowest else objective)

    def passed(self, cost: float) -> None:
        """Record a pass of a refinement."""
        self.passes, self.spent = self.passes + 1, self.spent + cost

    def allows(self, cost: float, best: float, *, limited: bool, begins: bool) -> bool:
        """Return whether a refinement may do some more work."""
        if self.passes >= self.iterations:
            return False
        if not limited:
            return True
        if self.iterations < 16:  # Algorithm 1 is fastest then
            return False
        spent = self.spent + cost
        if spent <= 0.02 * self.iterations:  # whatever a wrong forecast promises
            return True
        if begins and best >= self.lowest[-1] and cost > self.iterations / 4:
            return False  # no forecast sees further
        return best <= 1.1 * self.forecast(spent)  # of Algorithm 1 alone

    def forecast(self, more: float) -> float:
        """Return the objective of Algorithm 1 after some more iterations at its recent rate.

        The rate is that of the second half of its iterations, for a constant relative decrease.
        """
        half, last = self.lowest[(self.iterations - 1) // 2], self.lowest[-1]
        if last <= 0:
            return last
        rate = math.log(half / last) / (self.iterations - 1 - (self.iterations - 1) // 2 or 1)
        return last * math.exp(-rate * more)


@dataclass
class RefinedState:
    """Where Algorithm 1 and its refinements stand.

    Attributes
    ----------
    plain : AdmmState
        State of Algorithm 1.
    costs : PassCosts
        Costs of a pass of a refinement.
    best : Iterate
        Best factors so far.
    current : Refinement or None
        The refinement that is under way.
    polished, before : float
        Objective after the last polish, and before the current refinement.
    n_without_gain, n_begun : int
        Refinements in turn without gain, and all so far, both without polishes.
    budget : WorkBudget
        The account of the work, and of the progress of Algorithm 1.
    fitted : float
        Relative error at or below which the fit is exact; NaN until it is needed.
    is_busy : bool
        Whether a refinement is under way, or a polish follows at the next step.
    reason : StopReason or None
        Why no further decrease of the objective is to be expected.
    """

    plain: AdmmState
    costs: PassCosts
    best: Iterate | None = None
    current: Refinement | None = None
    polished: float = math.inf
    before: float = math.inf
    n_without_gain: int = 0
    n_begun: int = 0
    budget: WorkBudget = field(default_factory=WorkBudget)
    fitted: float = math.nan
    is_busy: bool = False
    reason: StopReason | None = None


class Refined:
    """Algorithm 1 with refinements as an engine."""

    def __init__(self, plan: RefinementPlan) -> None:
        self.plan, self._plain, self._refiner = plan, Admm(), Refiner()

    def init(self, problem: Problem, start: Start) -> RefinedState:
        """Return the state before the first step."""
        self._refiner = Refiner()
        width = start.W.shape[1] + problem.offset_columns.width
        costs = pass_costs(problem, width, one_matrix=False)
        return RefinedState(self._plain.init(problem, start), costs)

    def step(self, problem: Problem, state: RefinedState) -> RefinedState:
        """Do one iteration of Algorithm 1, and the passes of refinements that it allows."""
        state.plain = self._plain.step(problem, state.plain)
        last = self._plain.iterate(problem, state.plain)
        best = state.best
        if best is None or last.objective < best.objective or not last.is_finite:
            best = last
        state.budget.iterated(last.objective)
        for _ in range(4):
            candidate = self._refine(problem, state, last, best)
            if candidate is None:
                break
            if candidate.objective < best.objective:
                best = candidate
        worth_polishing = self._is_worth_polishing(state, best)
        state.best, state.is_busy = best, state.current is not None or worth_polishing
        state.reason = self._reason(problem, state, best, worth_polishing)
        return state

    def iterate(self, problem: Problem, state: RefinedState) -> Iterate:
        """Return the best factors, with the residuals of Algorithm 1."""
        assert state.best is not None
        shown = state.best.with_residuals_of(self._plain.iterate(problem, state.plain))
        return replace(shown, relative_residual=math.inf) if state.is_busy else shown

    def status(self, state: RefinedState) -> StopReason | None:
        """Return why no further decrease of the objective is to be expected, or None."""
        return state.reason

    def _refine(
        self, problem: Problem, state: RefinedState, last: Iterate, best: Iterate
    ) -> Iterate | None:
        """Do one pass of a refinement if the budget of work allows it, and return its factors."""
        if not self._may_work(state, last, best):
            return None
        if state.current is None:
            self._begin_next(problem, state, last, best)
        if state.current is None:
            return None
        candidate = self._refiner.step(problem, state.current)
        if candidate is not None:
            state.budget.passed(state.current.state.cost)
            state.current.state.cost = 0.0
            return candidate
        gained = state.before - best.objective > MIN_GAIN * abs(best.objective)
        if state.current.kind == "polish":
            state.polished = best.objective
        else:
            state.n_without_gain = 0 if gained else state.n_without_gain + 1
        state.current = None
        return None

    def _may_work(self, state: RefinedState, last: Iterate, best: Iterate) -> bool:
        """Return whether there is room for a pass, or for the beginning of a refinement."""
        costs, begins = state.costs, state.current is None
        cost = costs.evaluation
        if begins:
            cost = costs.start + costs.preconditioner + 3 * cost  # for some evaluations, too
        converged = last.relative_residual <= 100 * self.plan.fitted
        exact = best.relative_error <= NEARLY_EXACT  # which they bring to 0 much faster
        # Refinements wait for a slow Algorithm 1; those that the user asks for do not.
        waits = self.plan.refine and self.plan.homotopy is not True
        limited = waits and not (converged or exact)
        return state.budget.allows(cost, best.objective, limited=limited, begins=begins)

    def _begin_next(
        self, problem: Problem, state: RefinedState, last: Iterate, best: Iterate
    ) -> None:
        """Begin a polish of the best factors, or the next refinement, if there is one."""
        moves = last.relative_residual > 0
        first = self.plan.refine and math.isinf(state.before) and moves
        state.before = best.objective
        if not first and self._is_worth_polishing(state, best):
            state.current = self._refiner.begin(problem, "polish", best)
        elif moves and (following := self._following(state.n_begun)) is not None:
            kind, growth = following
            state.n_begun += 1
            state.current = self._refiner.begin(problem, kind, last, growth)

    def _following(self, number: int) -> tuple[str, tuple[float, float]] | None:
        """Return kind and growth of a refinement by its number, from 0; None if there is none."""
        number_of_homotopy = {True: 0, "auto": 2}.get(self.plan.homotopy)
        if number == number_of_homotopy:
            return "homotopy", SLOW
        if not self.plan.refine:
            return None
        return "refine", SLOW if number else QUICK  # the nearest minimum first: it pays soonest

    def _is_worth_polishing(self, state: RefinedState, best: Iterate) -> bool:
        """Return whether a polish of the best factors is due.

        Without refinements, it is after 32 iterations, and each time that their number doubles.
        """
        doublings = math.log2(state.plain.iteration / 32)
        due = self.plan.refine or (doublings >= 0 and doublings.is_integer())
        lower = best.objective < state.polished * (1 - MIN_GAIN)
        return self.plan.polish and due and lower

    def _reason(
        self, problem: Problem, state: RefinedState, best: Iterate, worth_polishing: bool
    ) -> StopReason | None:
        """Return the reason to expect no further decrease of the objective, or None."""
        if best.relative_error <= 0.01:  # to check whether a fit is exact takes a pass
            if math.isnan(state.fitted):
                state.fitted = _exact_error(problem, self.plan.fitted)
            if best.relative_error <= state.fitted:
                reason = f"converged: relative error at or below {self.plan.fitted:g}"
                return StopReason("converged", reason)
        if state.n_without_gain < 2 or worth_polishing:
            return None
        if reaches(state.budget.lowest, best.objective, state.plain.iteration):
            return None
        return StopReason(
            "converged",
            f"converged: {state.n_without_gain} refinements in turn found nothing lower",
        )


def _exact_error(problem: Problem, fitted: float) -> float:
    """Return the relative error at or below which a fit is exact; -1 if none is."""
    if not problem.model.fits_exactly:
        return -1.0
    loss, observations = problem.model.loss, problem.observations
    exact = observations.sum_of(lambda x, weights: weights * loss(x, x))  # a floor may lift it
    return fitted + 2 * loss.relative_error(exact, problem.reference)


MIN_GAIN_OF_ZEROS = 1e-7  # smallest relative decrease of the objective that is a gain
N_FROM_START = 2  # refinements that begin at the start; the later ones, at the best factors


@dataclass
class DescentsState:
    """Where the refinements stand.

    Attributes
    ----------
    start, begun_at : Iterate
        Factors at the start, and those at which the present refinement, or its polish, began.
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

    start: Iterate
    begun_at: Iterate
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
        first = Iterate(*problem.projected(start))
        return DescentsState(first, first, self._begin(problem, 0, first), first, first)

    def step(self, problem: Problem, state: DescentsState) -> DescentsState:
        """Do one pass over the data."""
        while (candidate := self._refiner.step(problem, state.current)) is None:
            if state.current.kind != "polish":
                self._end_refinement(problem, state)
            if state.number < N_FROM_START or state.current.kind == "polish":
                state.current = self._begin(problem, state.number, state.begun_at)
            else:
                state.current = self._refiner.begin(problem, "polish", state.begun_at)
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
        elif state.n_without_gain >= 2:
            reason = (
                "converged: 2 refinements in turn lowered the objective by "
                f"at most {max(self.tol, MIN_GAIN_OF_ZEROS):g} of itself in 100 iterations"
            )
        else:
            return None
        return StopReason("converged", reason)

    def _begin(self, problem: Problem, number: int, at: Iterate) -> Refinement:
        """Return a refinement by its number."""
        growth = _growths(problem)[number if number < N_FROM_START else N_FROM_START + number % 2]
        # Stages count from a ρ of 1 on: below, the objective may rise.
        return self._refiner.begin(problem, "refine", at, growth, (6, 1e-2, 1.0))

    def _end_refinement(self, problem: Problem, state: DescentsState) -> None:
        """Note what a refinement has gained, and where the next one begins."""
        best, first = state.best, state.number < N_FROM_START
        enough = max(MIN_GAIN_OF_ZEROS, self.tol * state.passes / 100) * abs(best.objective)
        gained = state.before - best.objective > enough
        state.n_without_gain = 0 if gained or first else state.n_without_gain + 1
        state.number, state.passes, state.before = state.number + 1, 0, best.objective
        state.begun_at = state.start if state.number < N_FROM_START else best


def _growths(problem: Problem) -> tuple[tuple[float, float], ...]:
    """Return first ρ and growth of the refinements from the start, and of those that take turns.

    Without multipliers, the envelope of zeros is a multiple of a square at any ρ if their loss is a
    square, while a kink is smooth at a small ρ only.
    """
    if problem.model.loss.of_zero == "square":
        return (1.0, 1.6), (0.1, 1.2), (0.3, 1.6), (0.1, 1.2)
    return (0.1, 1.2), (0.03, 1.2), (0.3, 1.2), (0.1, 1.2)
