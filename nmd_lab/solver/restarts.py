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
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from nmd_lab._progress import with_progress
from nmd_lab._stop_reason import StopReason
from nmd_lab.model.offsets import Offsets
from nmd_lab.model.proximal import make_pair

from .admm import State, admm
from .held_out import HeldOut
from .initialization import Start, given_start, random_start, svd_start
from .options import Options
from .penalty import BALANCED
from .problem import Problem
from .refinement.acceleration import accelerated
from .refinement.plan import RefinementPlan
from .refinement.stages import optimality
from .run import Outcome, Run
from .stopping import STOPPING, Trend


@dataclass(frozen=True)
class RestartOptions:
    """Constants of restarts.

    Attributes
    ----------
    warm_up : int
        Number of iterations of Modulus + Frobenius before a fit with an even f (``init="auto"``).
    fewest_side_by_side, most_side_by_side : int
        Smallest and largest number of entries for which several starts run at the same time.  For
        fewer entries the interpreter lock is the bottleneck.  For more entries the sweeps
        themselves use the threads.
    """

    warm_up: int = 200
    fewest_side_by_side: int = 1 << 16
    most_side_by_side: int = 1 << 19


RESTARTS = RestartOptions()


class NamedStart(NamedTuple):
    """Starting factors and their kind.

    Attributes
    ----------
    kind : {"svd", "randomized", "nndsvd", "random", "given"}
        Method that made the factors.
    start : Start
        Starting factors.
    """

    kind: str
    start: Start


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


def all_starts(
    problem: Problem, offsets: Offsets, rank: int, options: Options
) -> Iterator[NamedStart]:
    """Yield the start that `init` selects, then random ones; each is computed when requested.

    Parameters
    ----------
    problem : Problem
        Problem to solve.
    offsets : Offsets
        Starting offsets of every start.
    rank : int
        Number of components.
    options : Options
        `init`, `n_init` and `random_state`.
    """
    rng = options.generator()
    observations, f, init = problem.observations, problem.pair.nonlinearity, options.init
    for index in range(options.n_init):
        if index > 0 or init == "random" or (init == "auto" and f.even):
            yield NamedStart("random", random_start(observations, f, rank, offsets, rng))
        elif isinstance(init, str):
            kind = "svd" if init == "auto" else init
            yield NamedStart(kind, svd_start(observations, f, rank, offsets, rng, kind))
        else:
            yield NamedStart("given", given_start(observations, rank, init, offsets))


def iterate(
    problem: Problem, named: NamedStart, options: Options, plan: RefinementPlan
) -> Iterator[State]:
    """Iterate from a start, with the refinements of the plan; the times include the warm-up.

    Parameters
    ----------
    problem : Problem
        Problem to solve.
    named : NamedStart
        Start.  With ``init="auto"``, a random start begins with a warm-up that finds the signs.
    options : Options
        `init`, `tol` and `time_limit`.
    plan : RefinementPlan
        Refinements to run between the iterations.

    Yields
    ------
    State
        Result of each iteration.
    """
    began = time.perf_counter()
    start = named.start
    if named.kind == "random" and options.init == "auto":
        start = _warmed_up(problem, start, options)
    warm_up = time.perf_counter() - began
    for state in accelerated(problem, start, plan) if plan else admm(problem, start):
        yield replace(state, seconds=state.seconds + warm_up)


def _warmed_up(problem: Problem, start: Start, options: Options) -> Start:
    """Return the start for an even f, improved by iterations of Modulus + Frobenius.

    They fit the starting T and find the signs of WH.  For any other f the start is unchanged.
    """
    f, pair = problem.pair.nonlinearity, make_pair("modulus", "frobenius")
    if not f.even or problem.pair.structure == pair.structure:
        return start
    observations = problem.observations.with_values(f.preimage(problem.observations.values))
    warm_up = replace(problem, observations=observations, pair=pair, rule=BALANCED)
    run = Run(admm(warm_up, start), tol=options.tol)
    state, _, reason, _ = run.advance(RESTARTS.warm_up, time_limit=options.time_limit)
    if reason.code == "interrupted":
        raise KeyboardInterrupt
    return Start(state.W, state.H, from_factors=True, offsets=state.offsets)


def solve(
    problem: Problem,
    starts: Iterator[NamedStart],
    options: Options,
    plan: RefinementPlan,
    held_out: HeldOut | None,
) -> Solution:
    """Run each start and return the outcome of lowest objective (or validation error).

    Parameters
    ----------
    problem : Problem
        Problem to solve.
    starts : iterator of NamedStart
        Starts, at least one.
    options : Options
        Stopping rules, callback and progress bar.
    plan : RefinementPlan
        Refinements to run between the iterations.
    held_out : HeldOut or None
        Held-out entries.  If given, the score of a state is its error at them, and not its
        objective.
    """
    runner = _Runner(problem, options, plan, held_out)
    first = next(starts)
    outcomes = [runner.run(first, math.inf)]
    others, reason = list(starts), ""
    if not outcomes[0].complete:
        reason = "not run: the first start was stopped"
    elif held_out is None and outcomes[0].state.relative_error <= options.tol:
        reason = "not run: the first start left nothing to gain"
    if not reason:
        outcomes += runner.run_all(others, outcomes[0].score)
    best = min(outcomes, key=lambda outcome: outcome.score)
    stopped = [outcome.stop_reason for outcome in outcomes if not outcome.complete]
    if stopped:
        best = best._replace(stop_reason=stopped[-1])
    done = zip([first, *others], outcomes, strict=False)
    summary = [_summary(named.kind, outcome) for named, outcome in done]
    not_run = StopReason("not run", reason or "not run: an earlier start was stopped")
    summary += [_summary_not_run(named.kind, not_run) for named in others[len(outcomes) - 1 :]]
    return Solution(best, optimality(problem, best.state.W_aug, best.state.H_aug), summary)


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
    """Runs starts, one after the other or several at the same time."""

    def __init__(
        self, problem: Problem, options: Options, plan: RefinementPlan, held_out: HeldOut | None
    ) -> None:
        self.problem, self.options, self.plan = problem, options, plan
        self.held_out = held_out
        self.seconds = 0.0  # of all starts so far

    def run(
        self, named: NamedStart, target: float, cancelled: Callable[[], bool] | None = None
    ) -> Outcome:
        """Run one start, until it ends or can no longer reach the target."""
        options = self.options
        limit = options.time_limit
        states = iterate(self.problem, named, options, self.plan)
        if self.held_out is None and target < math.inf:
            states = _stop_when_behind(states, target, options.max_iter)
        if cancelled is None:
            states = with_progress(
                states,
                options.max_iter,
                options.progress,
                text=lambda state: f"error {state.relative_error:.3g}",
            )
        run = Run(states, tol=options.tol, held_out=self.held_out, patience=options.patience)
        outcome = run.advance(
            options.max_iter,
            callback=options.callback if cancelled is None else lambda _: cancelled(),
            time_limit=None if limit is None else limit - self.seconds,
        )
        if outcome.stop_reason.code == "time_limit":
            outcome = outcome._replace(
                stop_reason=StopReason("time_limit", f"time_limit: {limit:g} s passed")
            )
        self.seconds += outcome.history["seconds"][-1]
        return outcome

    def run_all(self, starts: Sequence[NamedStart], target: float) -> list[Outcome]:
        """Run several starts, until the user or the time limit stops one."""
        at_a_time = side_by_side(self.problem, self.options, len(starts))
        if at_a_time > 1:
            return self._side_by_side(starts, target, at_a_time)
        outcomes: list[Outcome] = []
        for named in starts:
            outcomes.append(self.run(named, target))
            if not outcomes[-1].complete:
                break
        return outcomes

    def _side_by_side(
        self, starts: Sequence[NamedStart], target: float, at_a_time: int
    ) -> list[Outcome]:
        """Run each start in a thread; Ctrl-C ends them all."""
        stop = threading.Event()
        with ThreadPoolExecutor(at_a_time) as pool:
            futures = [pool.submit(self.run, named, target, stop.is_set) for named in starts]
            try:
                return [future.result() for future in futures]
            except KeyboardInterrupt:
                stop.set()
                outcomes = [future.result() for future in futures]
                reason = StopReason("interrupted", "interrupted: Ctrl-C")
                return [o if o.complete else o._replace(stop_reason=reason) for o in outcomes]


def side_by_side(problem: Problem, options: Options, starts: int) -> int:
    """Return how many of some starts after the first run at the same time; at least 1."""
    alone = options.callback is not None or options.time_limit is not None
    entries = problem.observations.values.size
    suitable = RESTARTS.fewest_side_by_side <= entries <= RESTARTS.most_side_by_side
    return max(1, min(problem.threads, starts)) if suitable and not alone else 1


def _stop_when_behind(states: Iterator[State], target: float, max_iter: int) -> Iterator[State]:
    """Give states a stop reason if the run, at its present rate, cannot reach the target."""
    reason = StopReason("behind", "behind: it would not reach the first start any more")
    trend = Trend()
    for state in states:
        trend.add(state.objective)
        late = state.iteration >= 2 * STOPPING.trend_window
        if late and not trend.reaches(target, max_iter - state.iteration):
            state = replace(state, stop_reason=reason)
        yield state
