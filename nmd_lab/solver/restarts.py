"""Several starts of one problem, and the best of their outcomes.

The first start runs to its end.  The others run beside one another, as many at a time as there are
threads, and each is given up when it cannot reach the first one's objective any more; so what
becomes of a start does not depend on how many run at a time.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

from nmd_lab._progress import with_progress
from nmd_lab.model.proximal import make_pair
from nmd_lab.solver.refinement.acceleration import Plan, accelerated

from .admm import Problem, State, admm
from .held_out import Validation
from .initialization import Start, given_start, random_start, svd_start
from .offsets import Offsets
from .options import Settings
from .penalty import BALANCED
from .stopping import Outcome, Stopping, run
from .trend import WINDOW, Trend

WARM_UP = 200
"""Iterations of Modulus + Frobenius that come before another even pair under ``init="auto"``."""


SIDE_BY_SIDE = (1 << 16, 1 << 19)
"""Stored entries for which starts run side by side: with fewer the interpreter is the bottleneck,
with more the sweeps themselves use the threads."""


class Point(NamedTuple):
    """A start and its name.

    Attributes
    ----------
    kind : {"svd", "randomized", "nndsvd", "random", "given"}
        What it is made from.
    start : Start
        The factors.
    """

    kind: str
    start: Start


def starts(problem: Problem, offsets: Offsets, rank: int, settings: Settings) -> Iterator[Point]:
    """Yield the chosen start, then random ones.

    Parameters
    ----------
    problem : Problem
        What is to be solved.
    offsets : Offsets
        What every start begins with.
    rank : int
        Number of components.
    settings : Settings
        `init`, `n_init` and the seed.
    """
    rng = settings.generator()
    observations, f, init = problem.observations, problem.pair.nonlinearity, settings.init
    for index in range(settings.n_init):
        if index > 0 or init == "random" or (init == "auto" and f.even):
            yield Point("random", random_start(observations, f, rank, offsets, rng))
        elif isinstance(init, str):
            kind = "svd" if init == "auto" else init
            yield Point(kind, svd_start(observations, f, rank, offsets, rng, kind))
        else:
            yield Point("given", given_start(observations, rank, init, offsets))


def iteration(problem: Problem, point: Point, settings: Settings, plan: Plan) -> Iterator[State]:
    """Iterate from a start: plainly, or with something beside it.

    Parameters
    ----------
    problem : Problem
        What is solved.
    point : Point
        Where from; under ``init="auto"`` an even f finds its signs first.
    settings : Settings
        What was asked for.
    plan : Plan
        What is done beside Algorithm 1.

    Yields
    ------
    State
        After each iteration; its seconds count the warm-up, too.
    """
    began = time.perf_counter()
    start = point.start
    if point.kind == "random" and settings.init == "auto":
        start = _warmed_up(problem, start, settings)
    passed = time.perf_counter() - began
    for state in accelerated(problem, start, plan) if plan else admm(problem, start):
        yield replace(state, seconds=state.seconds + passed)


def _warmed_up(problem: Problem, start: Start, settings: Settings) -> Start:
    """Let an even f find its signs first: Modulus + Frobenius on the starting T."""
    f, easy = problem.pair.nonlinearity, make_pair("modulus", "frobenius")
    if not f.even or problem.pair.structure == easy.structure:
        return start
    sizes = problem.observations.with_values(f.preimage(problem.observations.values))
    warm_up = replace(problem, observations=sizes, pair=easy, rule=BALANCED)
    stopping = Stopping(WARM_UP, settings.tol, settings.time_limit)
    state, _, why, *_ = run(admm(warm_up, start), stopping)
    if why.startswith("interrupted"):
        raise KeyboardInterrupt
    return Start(state.W, state.H, from_factors=True, offsets=state.offsets)


class Best(NamedTuple):
    """The best outcome, and an account of all starts.

    Attributes
    ----------
    outcome : Outcome
        Of lowest objective (or validation error).
    starts : list of dict
        Of each start: kind, objective, relative_error, n_iter, seconds, stop_reason.
    """

    outcome: Outcome
    starts: list[dict[str, Any]]


def best_outcome(
    problem: Problem,
    points: Iterator[Point],
    settings: Settings,
    plan: Plan,
    validation: Validation | None,
) -> Best:
    """Run each start and return the outcome of lowest objective (or validation error).

    Parameters
    ----------
    problem : Problem
        What is solved.
    points : iterator of Point
        Where from.
    settings : Settings
        When to stop.
    plan : Plan
        What is done beside Algorithm 1.
    validation : Validation or None
        What to judge by, if not by the objective.
    """
    runner = _Runner(problem, settings, plan, validation)
    first = next(points)
    outcomes = [runner.run(first, math.inf)]
    others, left_over = list(points), ""
    if not outcomes[0].complete:
        left_over = "not run: the first start was stopped"
    elif validation is None and outcomes[0].state.relative_error <= settings.tol:
        left_over = "not run: the first start left nothing to gain"
    if not left_over:
        outcomes += runner.run_all(others, outcomes[0].score)
    best = min(outcomes, key=lambda outcome: outcome.score)
    stopped = [outcome.stop_reason for outcome in outcomes if not outcome.complete]
    if stopped:
        best = best._replace(stop_reason=stopped[-1])
    done = zip([first, *others], outcomes, strict=False)
    table = [_account(point, outcome) for point, outcome in done]
    left_over = left_over or "not run: an earlier start was stopped"
    table += [_account(point, None, left_over) for point in others[len(outcomes) - 1 :]]
    return Best(best, table)


def _account(point: Point, outcome: Outcome | None, why: str = "") -> dict[str, Any]:
    """Return what is told about a start."""
    if outcome is None:
        numbers: dict[str, Any] = {"objective": math.nan, "relative_error": math.nan}
        return {"kind": point.kind, **numbers, "n_iter": 0, "seconds": 0.0, "stop_reason": why}
    seconds = outcome.history["seconds"]
    return {
        "kind": point.kind,
        "objective": outcome.state.objective,
        "relative_error": outcome.state.relative_error,
        "n_iter": len(seconds),
        "seconds": seconds[-1],
        "stop_reason": outcome.stop_reason,
    }


class _Runner:
    """Runs starts, one or several at a time."""

    def __init__(
        self, problem: Problem, settings: Settings, plan: Plan, validation: Validation | None
    ) -> None:
        self.problem, self.settings, self.plan = problem, settings, plan
        self.validation = validation
        self.seconds = 0.0

    def run(
        self, point: Point, target: float, cancelled: Callable[[], bool] | None = None
    ) -> Outcome:
        """Run one start; give it up when it falls behind the target."""
        settings = self.settings
        limit = settings.time_limit
        stopping = Stopping(
            settings.max_iter,
            settings.tol,
            None if limit is None else limit - self.seconds,
            settings.callback if cancelled is None else lambda _: cancelled(),
            self.validation,
            settings.patience,
        )
        states = iteration(self.problem, point, settings, self.plan)
        if self.validation is None and target < math.inf:
            states = _until_behind(states, target, settings.max_iter)
        if cancelled is None:
            states = with_progress(states, settings.max_iter, settings.progress)
        outcome = run(states, stopping)
        if outcome.stop_reason.startswith("time_limit"):
            outcome = outcome._replace(stop_reason=f"time_limit: {limit:g} s passed")
        self.seconds += outcome.history["seconds"][-1]
        return outcome

    def run_all(self, points: Sequence[Point], target: float) -> list[Outcome]:
        """Run several starts, until one is stopped from outside."""
        problem, settings = self.problem, self.settings
        alone = settings.callback is not None or settings.time_limit is not None
        entries = problem.observations.values.size
        fits = SIDE_BY_SIDE[0] <= entries <= SIDE_BY_SIDE[1]
        at_a_time = min(problem.threads, len(points)) if fits and not alone else 1
        if at_a_time > 1:
            return self._side_by_side(points, target, at_a_time)
        outcomes: list[Outcome] = []
        for point in points:
            outcomes.append(self.run(point, target))
            if not outcomes[-1].complete:
                break
        return outcomes

    def _side_by_side(
        self, points: Sequence[Point], target: float, at_a_time: int
    ) -> list[Outcome]:
        """Run starts in threads of their own; Ctrl-C ends them all."""
        stop = threading.Event()
        with ThreadPoolExecutor(at_a_time) as pool:
            futures = [pool.submit(self.run, point, target, stop.is_set) for point in points]
            try:
                return [future.result() for future in futures]
            except KeyboardInterrupt:
                stop.set()
                outcomes = [future.result() for future in futures]
                why = "interrupted: Ctrl-C"
                return [o if o.complete else o._replace(stop_reason=why) for o in outcomes]


def _until_behind(states: Iterator[State], target: float, max_iter: int) -> Iterator[State]:
    """Mark the state at which a run can no longer reach the target at its present pace."""
    trend = Trend()
    for state in states:
        trend.add(state.objective)
        late = state.iteration >= 2 * WINDOW
        if late and not trend.reaches(target, max_iter - state.iteration):
            state = replace(state, settled="behind: it would not reach the first start any more")
        yield state
