"""Several starts of one problem, and the best of their outcomes.

The first start runs to its end, and each other one ends early when it can no longer reach the
objective of the first one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from nmd_lab._runtime.progress import Interruption, StopReason, interruptible, is_interactive

from .initialization import Start
from .loop import WINDOW_CHOSEN, exact_for
from .problem import Problem
from .request import Decided
from .run import Outcome, RunState
from .starts import run_from
from .state import learned_state


def stopped_by(interruption: Interruption, outcome: Outcome) -> Outcome:
    """Return an outcome with a stop reason that tells of Ctrl-C, if it came."""
    if not interruption or interruption.reported:
        return outcome
    return outcome._replace(stop_reason=interruption.reason(outcome.n_iter))


def solve(decided: Decided) -> tuple[Outcome, list[dict[str, Any]]]:
    """Run each start and return the outcome of lowest objective (or validation error).

    With it come kind, objective, relative_error, n_iter, seconds and stop_reason of each start.
    """
    problem, options, held_out = decided.problem, decided.options, decided.held_out
    with interruptible() as interruption:
        first = next(decided.starts)
        runner = _Runner(decided, interruption)
        if not runner.outcomes:
            runner.record(runner.run(first, math.inf))
        outcome = runner.finished[0]
        if not outcome.complete:
            not_run = "the first start was stopped"
        elif held_out is None and outcome.state.relative_error <= exact_for(options.tol):
            not_run = "the first start left nothing to gain"
        else:
            not_run = "an earlier start was stopped"
            runner.run_others(decided.starts)
        best = min(runner.finished, key=lambda outcome: outcome.score)
        if runner.stopped is not None:
            best = best._replace(stop_reason=runner.stopped)
        rows = [
            _row_not_run(interruption.reason(0)) if outcome is None else outcome.row()
            for outcome in runner.outcomes
        ]
        skipped = StopReason("not run", f"not run: {not_run}")
        rows += [_row_not_run(skipped)] * (options.n_init - len(rows))
        if problem.units.model.learns:
            best = _with_last_learning(problem, best)
        return stopped_by(interruption, best), rows


def _with_last_learning(problem: Problem, outcome: Outcome) -> Outcome:
    """Return the outcome of a run with what is learned at its factors.

    A run may end before the next round, or by `max_iter` before the first one.
    """
    state = outcome.state
    learned = learned_state(problem, state, state)
    if learned is None:
        return outcome
    history = {name: list(numbers) for name, numbers in outcome.history.items()}
    for name in ("objective", "relative_error"):
        history[name][state.iteration - 1] = getattr(learned, name)
    learned = replace(learned, stop_reason=state.stop_reason)
    return outcome._replace(state=learned, history=history)


def _row_not_run(reason: StopReason) -> dict[str, Any]:
    """Return the entry of `Decomposition.starts` for a start that was not run, a random one."""
    numbers = {"objective": math.nan, "relative_error": math.nan, "n_iter": 0, "seconds": 0.0}
    return {"kind": "random", **numbers, "stop_reason": reason}


class _Runner:
    """Runs starts, one after the other.

    Attributes
    ----------
    outcomes : list of Outcome or None
        Outcomes of the starts that were begun; None if a start has done no iteration.
    stopped : StopReason or None
        Why the user or the time limit ended a start; the last reason of several.
    """

    def __init__(self, decided: Decided, interruption: Interruption) -> None:
        self.decided, self.interruption = decided, interruption
        self.options, self.outcomes = decided.after_choice, decided.state.outcomes
        self.stopped: StopReason | None = None
        self.began = time.perf_counter() - sum(outcome.seconds for outcome in self.finished)

    @property
    def finished(self) -> list[Outcome]:
        """Outcomes of the starts that have done an iteration."""
        return [outcome for outcome in self.outcomes if outcome is not None]

    def run_others(self, starts: Iterator[Start]) -> None:
        """Run the other starts, until the user or the time limit stops one."""
        try:
            for _ in islice(starts, len(self.outcomes) - 1):  # those that ended before a pause
                pass
            while self.stopped is None and len(self.outcomes) < self.options.n_init:
                if self._time_left() <= 0:
                    self.stopped = self._time_limit_reason()
                elif self.interruption:
                    self._record_interruption()
                else:
                    self.record(self._run_or_none(next(starts)))
        except KeyboardInterrupt:
            if not is_interactive():
                raise
            self._record_interruption()

    def run(self, start: Start, target: float) -> Outcome:
        """Run one start, until it ends or can no longer reach the target."""
        decided, options, save = self.decided, self.options, self.decided.save
        if options.time_limit is not None and self.outcomes:
            options = replace(options, time_limit=max(self._time_left(), 0.0))
        state = decided.state.run = decided.state.run or RunState()
        rules = replace(
            decided.rules,
            time_limit=options.time_limit,
            window=decided.plan.window or (WINDOW_CHOSEN if start.kind == "chosen" else None),
            target=target if decided.held_out is None else math.inf,
        )
        run = run_from(
            *(decided.problem, start, options, decided.plan, rules),
            state=state,
            held_out=decided.held_out,
            cancelled=self.interruption.__bool__,
            before_each=save,
        )
        outcome = run.advance(
            callback=options.callback,
            interruption=self.interruption,
            progress=options.progress,
            before_each=save,
        )
        if outcome.stop_reason.code == "time_limit":
            outcome = outcome._replace(stop_reason=self._time_limit_reason())
        return outcome._replace(kind=start.kind)

    def _run_or_none(self, start: Start) -> Outcome | None:
        """Run another start; return None if it is interrupted before its first iterate."""
        try:
            return self.run(start, self.finished[0].score)
        except KeyboardInterrupt:
            if not is_interactive():
                raise
            return None

    def record(self, outcome: Outcome | None) -> None:
        """Add the outcome of a start; None is that of a start interrupted before an iterate."""
        self.outcomes.append(outcome)
        if outcome is None:
            self._record_interruption()
            return
        self.decided.state.run = None
        if not outcome.complete:
            self.stopped = outcome.stop_reason

    def _record_interruption(self) -> None:
        """Record that Ctrl-C came between the iterations of starts."""
        self.stopped = self.interruption.reason(self.finished[0].n_iter)

    def _time_left(self) -> float:
        """Return the time that is left for all further starts, in seconds."""
        limit = self.options.time_limit
        return math.inf if limit is None else limit - (time.perf_counter() - self.began)

    def _time_limit_reason(self) -> StopReason:
        return StopReason("time_limit", f"time_limit: {self.decided.options.time_limit:g} s passed")
