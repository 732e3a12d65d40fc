"""Several starts of one problem, and the best of their outcomes.

The first start runs to its end.  The others may run at the same time, one for each thread.  Each
ends early when it can no longer reach the objective of the first start.  The comparison is with the
first start only, so that the outcome does not depend on how many starts run at the same time.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

from nmd_lab._interruption import Interruption, interruptible, is_interactive
from nmd_lab._progress import with_progress
from nmd_lab._stop_reason import StopReason
from nmd_lab.checkpoint.place import NOWHERE, Place

from .admm import State
from .held_out import HeldOut
from .learning import iterate_and_learn, with_last_learning
from .options import Options
from .problem import Problem
from .refinement.plan import RefinementPlan
from .refinement.stages import optimality
from .run import Ending, Outcome, Run
from .starts import NamedStart
from .stopping import TREND_WINDOW, WINDOW_CHOSEN, Trend, exact_for

FEWEST_SIDE_BY_SIDE = 1 << 16  # entries; for fewer, the interpreter lock is the bottleneck
MOST_SIDE_BY_SIDE = 1 << 19  # entries; for more, the sweeps themselves use the threads


class Solution(NamedTuple):
    """The best outcome, and a summary of all starts.

    Attributes
    ----------
    outcome : Outcome
        Outcome of lowest objective (or validation error).
    optimality : float
        Distance of its factors from the first-order conditions; see `Decomposition.optimality`.
    starts : list of dict
        Kind, objective, relative_error, n_iter, seconds and stop_reason of each start.
    """

    outcome: Outcome
    optimality: float
    starts: list[dict[str, Any]]

    def after(self, interruption: Interruption) -> Solution:
        """Return the solution with a stop reason that tells of Ctrl-C, if it came."""
        if not interruption or interruption.reported:
            return self
        reason = interruption.reason(len(self.outcome.history["seconds"]))
        return self._replace(outcome=self.outcome._replace(stop_reason=reason))


def solve(
    problem: Problem,
    starts: Iterator[NamedStart],
    options: Options,
    plan: RefinementPlan,
    held_out: HeldOut | None,
    ending: Ending,
    place: Place = NOWHERE,
) -> Solution:
    """Run each start and return the outcome of lowest objective (or validation error)."""
    with interruptible() as interruption:
        first = next(starts)
        runner = _Runner(problem, options, plan, held_out, interruption, ending, place)
        if not runner.outcomes:
            runner.run_first(first)
        outcome = runner.outcomes[0]
        if not outcome.complete:
            not_run = "the first start was stopped"
        elif held_out is None and outcome.state.relative_error <= exact_for(options.tol):
            not_run = "the first start left nothing to gain"
        else:
            not_run = "an earlier start was stopped"
            runner.run_others(starts, options.n_init - 1)
        best = min(runner.outcomes, key=lambda outcome: outcome.score)
        if runner.stopped is not None:
            best = best._replace(stop_reason=runner.stopped)
        skipped = StopReason("not run", f"not run: {not_run}")
        missing = options.n_init - len(runner.summary)
        summary = runner.summary + [_summary_not_run("random", skipped)] * missing
        best = with_last_learning(problem, best)
        own = problem.of(best.state)
        distance = optimality(own, *own.extended(best.state))
        return Solution(best, distance, summary).after(interruption)


def _summary(kind: str, outcome: Outcome) -> dict[str, Any]:
    """Return the entry of `Decomposition.starts` for a start."""
    seconds = outcome.history["seconds"]
    return {
        "kind": kind,
        "objective": outcome.state.objective,
        "relative_error": outcome.state.relative_error,
        "n_iter": len(seconds),
        "seconds": seconds[-1],
        "stop_reason": outcome.stop_reason,
    }


def _summary_not_run(kind: str, reason: StopReason) -> dict[str, Any]:
    """Return the entry of `Decomposition.starts` for a start that was not run."""
    numbers = {"objective": math.nan, "relative_error": math.nan, "n_iter": 0, "seconds": 0.0}
    return {"kind": kind, **numbers, "stop_reason": reason}


class _Runner:
    """Runs starts, one after the other or several at the same time.

    Attributes
    ----------
    outcomes : list of Outcome
        Outcomes of the starts that have done an iteration.
    summary : list of dict
        Summary of the starts that were begun.
    stopped : StopReason or None
        Why the user or the time limit ended a start; the last reason of several.
    """

    def __init__(
        self,
        problem: Problem,
        options: Options,
        plan: RefinementPlan,
        held_out: HeldOut | None,
        interruption: Interruption,
        ending: Ending,
        place: Place,
    ) -> None:
        self.problem, self.options, self.plan = problem, options, plan
        self.held_out, self.interruption = held_out, interruption
        self.ending = ending if held_out is None else Ending()
        self.began = time.perf_counter()
        self.outcomes: list[Outcome] = []
        self.summary: list[dict[str, Any]] = []
        self.stopped: StopReason | None = None
        self.place = place
        if place.goes_on:
            kept = place.take()
            self.outcomes, self.summary = kept["outcomes"], kept["summary"]
            self.began -= kept["elapsed"]
        place.mark(self._describe)

    def _describe(self) -> dict[str, Any]:
        elapsed = time.perf_counter() - self.began
        return {"outcomes": self.outcomes, "summary": self.summary, "elapsed": elapsed}

    def run_first(self, named: NamedStart) -> None:
        """Run the first start; raise KeyboardInterrupt if it is interrupted before an iterate."""
        self._record(named.kind, self.run(named, math.inf))

    def run_others(self, starts: Iterator[NamedStart], n_starts: int) -> None:
        """Run the other starts, until the user or the time limit stops one."""
        options, target = self.options, self.outcomes[0].score
        at_a_time = side_by_side(self.problem, options, n_starts)
        done = len(self.summary) - 1
        try:
            if at_a_time > 1:
                self._side_by_side(list(starts)[done:], target, at_a_time)
                return
            for _ in islice(starts, done):
                pass
            while self.stopped is None and len(self.summary) < options.n_init:
                if self._time_left() <= 0:
                    self.stopped = self._time_limit_reason()
                elif self.interruption:
                    self._record_interruption()
                else:
                    named = next(starts)
                    self._record(named.kind, self._run_or_none(named, target))
        except KeyboardInterrupt:
            if not is_interactive():
                raise
            self._record_interruption()

    def run(
        self, named: NamedStart, target: float, cancelled: Callable[[], bool] | None = None
    ) -> Outcome:
        """Run one start, until it ends or can no longer reach the target."""
        options = self.options
        if options.time_limit is not None and self.outcomes:
            options = replace(options, time_limit=max(self._time_left(), 0.0))
        ended = cancelled or (lambda: bool(self.interruption))
        place = self.place.inner("start") if cancelled is None else NOWHERE
        states = iterate_and_learn(
            self.problem, named, options, self.plan, ended, place.inner("states")
        )
        if self.held_out is None and target < math.inf:
            trend = place.inner("trend")
            states = _stop_when_behind(states, target, options.max_iter, trend)
        if cancelled is None:
            states = with_progress(
                states,
                options.max_iter,
                options.progress,
                text=lambda state: f"error {state.relative_error:.3g}",
            )
        run = Run(
            states,
            tol=options.tol,
            held_out=self.held_out,
            patience=options.solver.patience,
            window=self.plan.window or (WINDOW_CHOSEN if named.kind == "chosen" else None),
            last=self.ending.last,
            place=place.inner("run"),
        )
        limit = min(options.max_iter, self.ending.iterations or options.max_iter)
        outcome = run.advance(
            limit - run.n_iter,
            callback=options.callback if cancelled is None else lambda _: cancelled(),
            time_limit=options.time_limit,
            interruption=self.interruption,
        )
        if outcome.stop_reason.code == "max_iter" and limit < options.max_iter:
            why = f"validation: {limit} iterations, as many as held-out entries asked for"
            outcome = outcome._replace(stop_reason=StopReason("validation", why))
        if outcome.stop_reason.code == "time_limit":
            outcome = outcome._replace(stop_reason=self._time_limit_reason())
        self.place.leave("start")
        return outcome

    def _run_or_none(
        self, named: NamedStart, target: float, cancelled: Callable[[], bool] | None = None
    ) -> Outcome | None:
        """Run one start; return None if it is interrupted before its first iterate."""
        try:
            return self.run(named, target, cancelled)
        except KeyboardInterrupt:
            if not is_interactive():
                raise
            return None

    def _side_by_side(self, starts: Sequence[NamedStart], target: float, at_a_time: int) -> None:
        """Run each start in a thread; Ctrl-C ends them all."""
        stop = threading.Event()

        def cancelled() -> bool:
            return bool(self.interruption) or stop.is_set()

        with ThreadPoolExecutor(at_a_time) as pool:
            futures = [pool.submit(self._run_or_none, s, target, cancelled) for s in starts]
            for named, future in zip(starts, futures, strict=True):
                try:
                    outcome = future.result()
                except KeyboardInterrupt:
                    stop.set()
                    if not is_interactive():
                        raise
                    outcome = future.result()
                if outcome is not None and not outcome.complete:
                    reason = self.interruption.reason(len(outcome.history["seconds"]))
                    outcome = outcome._replace(stop_reason=reason)
                self._record(named.kind, outcome)
                self.place.tick()

    def _record(self, kind: str, outcome: Outcome | None) -> None:
        """Add the outcome of a start; None is that of a start interrupted before an iterate."""
        if outcome is None:
            self._record_interruption()
            self.summary.append(_summary_not_run(kind, self.interruption.reason(0)))
            return
        self.outcomes.append(outcome)
        self.summary.append(_summary(kind, outcome))
        if not outcome.complete:
            self.stopped = outcome.stop_reason

    def _record_interruption(self) -> None:
        """Record that Ctrl-C came between the iterations of starts."""
        self.stopped = self.interruption.reason(len(self.outcomes[0].history["seconds"]))

    def _time_left(self) -> float:
        """Return the time that is left for all further starts, in seconds."""
        limit = self.options.time_limit
        return math.inf if limit is None else limit - (time.perf_counter() - self.began)

    def _time_limit_reason(self) -> StopReason:
        return StopReason("time_limit", f"time_limit: {self.options.time_limit:g} s passed")


def side_by_side(problem: Problem, options: Options, starts: int) -> int:
    """Return how many of some starts after the first run at the same time; at least 1."""
    alone = options.callback is not None or options.time_limit is not None
    entries = problem.observations.n_stored
    alone |= problem.observations.elsewhere is not None
    suitable = FEWEST_SIDE_BY_SIDE <= entries <= MOST_SIDE_BY_SIDE
    return max(1, min(problem.threads, starts)) if suitable and not alone else 1


def _stop_when_behind(
    states: Iterator[State], target: float, max_iter: int, place: Place
) -> Iterator[State]:
    """Give states a stop reason if the run, at its present rate, cannot reach the target."""
    reason = StopReason("behind", "behind: it would not reach the first start any more")
    trend = Trend()
    if place.goes_on:
        trend.lowest = place.take()["lowest"]
    place.mark(lambda: {"lowest": trend.lowest})
    for state in states:
        trend.add(state.objective)
        late = state.iteration >= 2 * TREND_WINDOW
        if late and not trend.reaches(target, max_iter - state.iteration):
            state = replace(state, stop_reason=reason)
        yield state
