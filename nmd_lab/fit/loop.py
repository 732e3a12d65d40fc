"""The loop of a fit, from a start to the best factors, and the rules that end it.

It alone has the clock, the numbers of iterations, the best factors so far, the rules that end a
run, and the rounds of learning.  An engine (`nmd_lab.engines`) has none of these.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nmd_lab._runtime.checks import many
from nmd_lab._runtime.progress import Interruption, StopReason, is_interactive, progress_bar
from nmd_lab.engines import FitEngine
from nmd_lab.engines.refined import N_TREND_ITERATIONS, exact_for, reaches
from nmd_lab.problem.initialization import Start
from nmd_lab.problem.problem import Problem
from nmd_lab.problem.state import State, learned_state, state_of, with_learned

N_FIRST_ITERATIONS = 10  # iterations before the first learning

UNFINISHED = ("callback", "time_limit", "interrupted")
"""Codes of runs that the user or the time limit ended."""

UNDER_WAY = StopReason("other", "")

RECORDED = (
    *("objective", "relative_error"),
    *("primal_residual", "dual_residual", "penalty", "seconds"),
)
"""Numbers of a state that a history has."""

VALIDATION = "validation_rmse"
"""Name of the validation error in a history."""


@dataclass(frozen=True)
class Stopping:
    """The rules that end any run, and further ones that end the run of a fit by itself.

    Attributes
    ----------
    most : int
        Number of the last iteration.
    time_limit : float or None
        Seconds after which the run ends.
    callback : callable or None
        Function of what is shown of an iteration; a true value ends the run.
    tol : float
        Tolerance of the rules of a fit; 0 for none of them.
    patience : int
        Iterations without a lower validation error that end a run.
    window : int or None
        Iterations over which the decrease is measured; None for the usual number.
    target : float
        Objective that the run must be able to reach.
    """

    most: int
    time_limit: float | None = None
    callback: Callable[[Any], Any] | None = None
    tol: float = 0.0
    patience: int = 10
    window: int | None = None
    target: float = math.inf

    def reason(self, shown: Any, iteration: int) -> StopReason | None:
        """Show an iteration to the callback, and return why any run ends with it, or None."""
        asked = self.callback is not None and self.callback(shown)
        if iteration >= self.most:
            return StopReason("max_iter", f"max_iter: {many(self.most, 'iteration')} done")
        if asked:
            return StopReason("callback", f"callback: stopped after {many(iteration, 'iteration')}")
        if self.time_limit is not None and shown.seconds >= self.time_limit:
            return StopReason("time_limit", f"time_limit: {self.time_limit:g} s passed")
        return None

    def reason_of_fit(
        self, state: State, lowest: Sequence[float], since_best: int | None
    ) -> StopReason | None:
        """Return why a fit ends with an iteration, or None; the callback sees it first.

        `lowest` has the lowest score after each iteration.  With held-out entries, `since_best`
        iterations had no lower validation error.
        """
        ended = self.reason(state, state.iteration)
        if self.tol > 0:  # no further iteration would help
            exact, left = exact_for(self.tol), self.most - state.iteration
            if state.relative_residual <= exact:
                return StopReason("converged", f"converged: residuals at or below {exact:g}")
            if state.iteration >= 2 * N_TREND_ITERATIONS and not reaches(lowest, self.target, left):
                return StopReason("behind", "behind: it would not reach the first start any more")
            ended = state.stop_reason or ended
        if ended is not None:
            return ended
        if since_best is not None:
            text = f"validation: no lower error for {many(self.patience, 'iteration')}"
            return StopReason("validation", text) if since_best >= self.patience else None
        # Refinements need up to 60 iterations to overtake, and an even f finds its signs in leaps.
        usual = 200 if self.tol <= 1e-4 else 100
        window = self.window or usual
        if self.tol <= 0 or len(lowest) <= window:
            return None
        share = min(1.0, window / usual)
        if lowest[-window - 1] - lowest[-1] > share * self.tol * abs(lowest[-1]):
            return None
        limit = f"{share * self.tol:g}" if share < 1 else f"tol={self.tol:g}"
        text = f"the objective fell by at most {limit} of itself in {window} iterations"
        return StopReason("converged", f"converged: {text}")


@dataclass
class FitProgress:
    """Where a fit from one start stands: all that its next iteration depends on, and its result.

    Attributes
    ----------
    kind : str
        Kind of the start.
    engine : object or None
        State of the engine, in Algorithm 1 W, H, T, U and ρ; None before it begins.
    seconds : float
        Time so far, with that of the warm-up.
    history : dict of list of float
        Recorded numbers of all iterations.
    last, best : State or None
        Last state, and the state of lowest score.
    lowest : list of float
        Lowest score after each iteration.
    round_length, round_end : int
        Iterations of the present round of learning, and the number of its last one; 0 if nothing is
        learned.
    round_best : State or None
        State of lowest objective in the round, which is at first that with the learned parameters;
        None before the first iteration, and if nothing is learned.
    stop_reason : StopReason
        Why it ended or paused.
    result : State or None
        What it returned then: the best state, or the last one.
    """

    kind: str = ""
    engine: Any = None
    seconds: float = 0.0
    history: dict[str, list[float]] = field(default_factory=lambda: {n: [] for n in RECORDED})
    last: State | None = None
    best: State | None = None
    lowest: list[float] = field(default_factory=list)
    round_length: int = 0
    round_end: int = 0
    round_best: State | None = None
    stop_reason: StopReason = UNDER_WAY
    result: State | None = None

    @property
    def n_iter(self) -> int:
        """Number of iterations."""
        return len(self.history["seconds"])

    @property
    def score(self) -> float:
        """Objective of the result, or its validation error if there are held-out entries."""
        assert self.result is not None
        errors = self.history.get(VALIDATION)
        return self.result.objective if errors is None else errors[self.result.iteration - 1]

    def row(self) -> dict[str, Any]:
        """Return the entry of `Decomposition.starts`."""
        state = self.result
        return {
            "kind": self.kind,
            "objective": math.nan if state is None else state.objective,
            "relative_error": math.nan if state is None else state.relative_error,
            "n_iter": self.n_iter,
            "seconds": self.seconds,
            "stop_reason": self.stop_reason,
        }

    def with_learned(self, problem: Problem) -> Problem:
        """Return the problem of the present round of learning."""
        state = self.round_best
        if state is None or state.model is None:
            return problem
        return with_learned(problem, state.model, state.penalty)

    def begin(self, problem: Problem, start: Callable[[], Start]) -> Start:
        """Return where the engine begins: at the start, or with what has been learned."""
        if (state := self.round_best) is not None:
            return problem.units.scaled_start(Start(state.W, state.H, True, state.offsets))
        first = start()  # at the factors of a fit, parameters are learned after one iteration
        self.round_length = 1 if first.kind in ("chosen", "given") else N_FIRST_ITERATIONS
        self.round_end = self.round_length
        return first

    def learn(self, problem: Problem, state: State) -> State:
        """Return the state, or at the end of a round that with parameters of higher likelihood."""
        if self.round_best is None or state.objective < self.round_best.objective:
            self.round_best = state
        if state.iteration < self.round_end and state.stop_reason is None:
            return state
        learned = learned_state(problem, state, self.round_best)
        self.round_length = max(2 * self.round_length, N_FIRST_ITERATIONS)
        self.round_end = state.iteration + self.round_length
        if learned is None:
            return state
        self.round_best = learned
        self.engine = None  # the next round begins there
        return learned

    def record(self, state: State, held_out: Any) -> int | None:
        """Add a state; with held-out entries, return for how many iterations none was better."""
        for name in RECORDED:
            self.history[name].append(getattr(state, name))
        score = state.objective
        if held_out is not None:
            score = held_out.rmse(state.W_aug, state.H_aug, state.model)
            self.history.setdefault(VALIDATION, []).append(score)
        self.last = state
        is_best = self.best is None or score < self.lowest[-1]
        self.best = state if is_best or self.best is None else self.best
        self.lowest.append(score if is_best else self.lowest[-1])
        return None if held_out is None else state.iteration - self.best.iteration

    def end(self, reason: StopReason, *, plain: bool) -> None:
        """Set the result; a plain fit of `max_iter` iterations has the last state."""
        complete = min(map(len, self.history.values()))  # Ctrl-C may come between two numbers
        self.history = {name: numbers[:complete] for name, numbers in self.history.items()}
        self.stop_reason = reason
        self.result = self.last if plain and reason.code == "max_iter" else self.best


def fit_from(
    problem: Problem,
    start: Callable[[], Start],
    stopping: Stopping,
    engine: FitEngine,
    progress: FitProgress,
    *,
    held_out: Any = None,
    interruption: Interruption | None = None,
    bar: bool | None = False,
    save: Callable[[], None] = lambda: None,
) -> FitProgress:
    """Iterate from a start, or from where it stands, until there is a reason to end.

    The iterates do not depend on pauses.  The result is the state of lowest objective, or of lowest
    validation error.  With ``tol=0`` and no held-out entries, it is the last of `max_iter` states
    instead, as in Algorithm 1.  The time of `start` counts.
    """
    began, reason = time.perf_counter() - progress.seconds, None
    learns, before_learning = problem.units.model.learns, problem
    problem = progress.with_learned(problem)
    try:
        with progress_bar(stopping.most, bar, done=progress.n_iter) as show:
            while reason is None:
                save()
                with np.errstate(over="ignore", invalid="ignore"):  # an overflow is a stop reason
                    if progress.engine is None:
                        problem = progress.with_learned(before_learning)
                        progress.engine = engine.init(problem, progress.begin(problem, start))
                    progress.engine = engine.step(problem, progress.engine)
                    iterate = engine.iterate(problem, progress.engine)
                    ended, number = engine.status(progress.engine), progress.n_iter + 1
                    progress.seconds = time.perf_counter() - began
                    model = problem.units.model if learns else None
                    known = {"iteration": number, "seconds": progress.seconds, "model": model}
                    state = state_of(problem, iterate, stop_reason=ended, **known)
                    if learns:
                        state = progress.learn(problem, state)
                if state.is_finite:
                    since_best = progress.record(state, held_out)
                    shown = state
                    if stopping.callback is not None:
                        shown = replace(state, model=state.model or problem.units.model)
                    reason = stopping.reason_of_fit(shown, progress.lowest, since_best)
                else:
                    reason = StopReason("not finite", f"not finite: iteration {number} overflowed")
                    if progress.best is None:
                        raise FloatingPointError(
                            f"{reason}: bring X, weights= and alpha= nearer to 1, or raise epsilon."
                        )
                show(f"error {state.relative_error:.3g}")
                if interruption is not None:
                    interruption.begin()
                    if reason is None and interruption:
                        reason = interruption.reason(progress.n_iter)
    except KeyboardInterrupt:
        if interruption is None or progress.best is None or not is_interactive():
            raise
        reason = interruption.reason(progress.n_iter)
    progress.end(reason, plain=stopping.tol == 0 and held_out is None)
    return progress


@dataclass
class FitState:
    """Where a fit of several starts stands.

    Attributes
    ----------
    rng : Generator
        Random numbers, as they were before the fit.
    decided : list of dict or None
        What the choice changed of the options, and of what is known; None before it is done.
    runs : list of FitProgress
        Starts that were begun; those that have ended have a result.
    """

    rng: np.random.Generator
    decided: list[dict[str, Any]] | None = None
    runs: list[FitProgress] = field(default_factory=list)
