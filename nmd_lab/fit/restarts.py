"""Several starts of one problem, one after the other, and the best of what comes of them.

The first start runs to its end, and each other one ends early when it can no longer reach the
objective of the first one.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import partial
from typing import Any

from nmd_lab._runtime.progress import Interruption, StopReason, interruptible, is_interactive
from nmd_lab.engines.plan import exact_for
from nmd_lab.problem.problem import Problem
from nmd_lab.problem.state import learned_state

from .loop import UNFINISHED, WINDOW_CHOSEN, FitProgress, fit_from
from .starts import engine_for, warmed_up
from .summary import Decided


def solve(decided: Decided) -> tuple[FitProgress, list[dict[str, Any]]]:
    """Run each start and return that of lowest objective (or validation error).

    With it come kind, objective, relative_error, n_iter, seconds and stop_reason of each start.
    """
    problem, options, plan = decided.problem, decided.after_choice, decided.plan
    runs, held_out = decided.state.runs, decided.held_out
    began = time.perf_counter() - sum(run.seconds for run in runs if run.result is not None)
    stopped: StopReason | None = None
    with interruptible() as interruption:
        try:
            for number in range(options.n_init):
                left, target = options.time_limit, math.inf
                if number > 0 and held_out is None:
                    assert runs[0].result is not None
                    if runs[0].result.relative_error <= exact_for(options.tol):
                        break
                    target = runs[0].score
                if number > 0 and left is not None:
                    left -= time.perf_counter() - began
                    stopped = _time_limit(decided) if left <= 0 else None
                if number > 0 and stopped is None and interruption:
                    stopped = interruption.reason(runs[0].n_iter)
                if stopped is not None:
                    break
                start = next(decided.starts)
                if number == len(runs):
                    runs.append(FitProgress(start.kind))
                elif runs[number].result is not None:  # it ended before a pause
                    continue
                rules = replace(decided.rules, time_limit=left, target=target)
                rules = replace(rules, callback=options.callback)
                if start.kind == "chosen" and not plan.window:
                    rules = replace(rules, window=WINDOW_CHOSEN)
                limited = replace(options, time_limit=left), plan, interruption.__bool__
                run = fit_from(
                    problem,
                    partial(warmed_up, problem, start, *limited),
                    rules,
                    engine_for(plan),
                    runs[number],
                    held_out=held_out,
                    interruption=interruption,
                    bar=options.progress,
                    save=decided.save,
                )
                run.engine = run.last = run.best = run.round_start = run.round_best = None
                if run.stop_reason.code == "time_limit":
                    run.stop_reason = _time_limit(decided)
                if run.stop_reason.code in UNFINISHED:
                    stopped = run.stop_reason
                    break
        except KeyboardInterrupt:
            if not (runs and runs[0].result is not None and is_interactive()):
                raise
            stopped = interruption.reason(runs[0].n_iter)
            if runs[-1].result is None:
                runs[-1] = FitProgress("random", stop_reason=interruption.reason(0))
        not_run = FitProgress("random", stop_reason=_why_not_run(runs[0], stopped))
        rows = [run.row() for run in runs] + [not_run.row()] * (options.n_init - len(runs))
        best = min((run for run in runs if run.result is not None), key=lambda run: run.score)
        best.stop_reason = stopped or best.stop_reason
        if problem.units.model.learns:
            _learn_at_the_end(problem, best)
        return stopped_by(interruption, best), rows


def stopped_by(interruption: Interruption, run: FitProgress) -> FitProgress:
    """Return a run whose stop reason tells of Ctrl-C, if it came."""
    if interruption and not interruption.reported:
        run.stop_reason = interruption.reason(run.n_iter)
    return run


def _learn_at_the_end(problem: Problem, run: FitProgress) -> None:
    """Learn at the factors of a result.

    A run may end before the next round, or by `max_iter` before the first one.
    """
    state = run.result
    assert state is not None
    learned = learned_state(problem, state, state)
    if learned is not None:
        for name in ("objective", "relative_error"):
            run.history[name][state.iteration - 1] = getattr(learned, name)
        run.result = replace(learned, stop_reason=state.stop_reason)


def _time_limit(decided: Decided) -> StopReason:
    return StopReason("time_limit", f"time_limit: {decided.options.time_limit:g} s passed")


def _why_not_run(first: FitProgress, stopped: StopReason | None) -> StopReason:
    """Return why starts were not run, given the first and why the user or the time stopped one."""
    if stopped is None:
        why = "the first start left nothing to gain"
    elif first.stop_reason.code in UNFINISHED:
        why = "the first start was stopped"
    else:
        why = "an earlier start was stopped"
    return StopReason("not run", f"not run: {why}")
