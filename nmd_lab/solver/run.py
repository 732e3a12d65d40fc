"""The loop: a run of an engine from one start, which can pause after any iteration and go on.

It alone knows the clock, the numbers of iterations, the best factors so far, the rules that end a
run, and the rounds of learning.  An engine knows none of these.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from nmd_lab._runtime.progress import Interruption, StopCode, StopReason, is_interactive

from .engines.protocol import FitEngine
from .held_out import HeldOut
from .initialization import Start
from .learning import learned_state, with_learned
from .loop import loop, nothing
from .problem import Problem
from .run_state import FIRST_ROUND, RECORDED, Outcome, Round, RunState
from .state import State, state_of
from .stopping import TREND_WINDOW, Stopping, StopPolicy

GROWTH = 2.0  # ratio of the length of a round of learning to that of the one before

VALIDATION = "validation_rmse"
"""Name of the validation error in a history."""


class Run:
    """A run of an engine, which can pause and resume.

    The iterates do not depend on the pauses.  The outcome has the state of lowest objective, or of
    lowest validation error.  With ``tol=0`` and no held-out entries, a run of `max_iter` iterations
    returns the last state instead, as Algorithm 1 does.

    Attributes
    ----------
    state : RunState
        Where it stands.
    """

    def __init__(
        self,
        problem: Problem,
        engine: FitEngine[Any],
        state: RunState,
        policy: StopPolicy,
        held_out: HeldOut | None = None,
    ) -> None:
        self._problem, self._engine, self.state = problem, engine, state
        self._policy, self._held_out = policy, held_out
        self._began = 0.0
        if held_out is not None:
            state.history.setdefault(VALIDATION, [])
        if state.round is not None and state.round.model is not None:
            self._problem = with_learned(problem, state.round.model, state.round.penalty)
        self._gives_last_after: tuple[StopCode, ...] = ()
        if policy.tol == 0 and held_out is None:
            self._gives_last_after = (
                ("max_iter", "callback") if policy.last_when_stopped else ("max_iter",)
            )

    def advance(
        self,
        iterations: int,
        *,
        callback: Callable[[State], Any] | None = None,
        time_limit: float | None = None,
        interruption: Interruption | None = None,
        progress: bool | None = False,
        before_each: Callable[[], None] = nothing,
    ) -> Outcome:
        """Do at most `iterations` more iterations, and return the outcome so far."""
        state, policy = self.state, self._policy
        most = state.iteration + iterations
        called = None if callback is None else self._with_model(callback)
        rules = Stopping(most, time_limit, called)
        self._began = time.perf_counter() - state.seconds
        try:
            reason = loop(
                partial(self._step, rules),
                policy.max_iter or most,
                done=state.iteration,
                progress=progress,
                interruption=interruption,
                before_each=before_each,
            )
        except KeyboardInterrupt:
            if state.best is None or not is_interactive():
                raise
            signals = Interruption() if interruption is None else interruption
            reason = signals.reason(len(state.history["seconds"]))
        return self.outcome(reason)

    def _with_model(self, callback: Callable[[State], Any]) -> Callable[[State], Any]:
        """Return a callback whose states have the model, so that they can predict."""

        def called(state: State) -> Any:
            model = self._problem.units.model if state.model is None else state.model
            return callback(replace(state, model=model))

        return called

    def outcome(self, reason: StopReason) -> Outcome:
        """Return the outcome so far, with a stop reason."""
        now = self.state
        assert now.last is not None
        assert now.best is not None
        complete = min(map(len, now.history.values()))  # Ctrl-C may come between two numbers
        history = {name: numbers[:complete] for name, numbers in now.history.items()}
        if reason.code in self._gives_last_after:
            return Outcome(now.last, history, reason, now.last_score)
        return Outcome(now.best, history, reason, now.lowest)

    def _step(self, rules: Stopping) -> tuple[StopReason | None, str]:
        """Do one iteration, and return the reason to end the run with it, if any, and a text."""
        now = self.state
        with np.errstate(over="ignore", invalid="ignore"):  # an overflow is a stop reason
            state = self._next()
        text = f"error {state.relative_error:.3g}"
        if not state.is_finite:
            why = f"not finite: iteration {state.iteration} overflowed"
            if now.best is None:
                raise FloatingPointError(
                    f"{why}: bring X, weights= and alpha= nearer to 1, or raise epsilon."
                )
            return StopReason("not finite", why), text
        score = self._record(state)
        now.last = state
        if now.best is None or score < now.lowest:
            now.lowest, now.best = score, state
        now.last_score = score
        now.recent.append(now.lowest)
        since_best = None if self._held_out is None else state.iteration - now.best.iteration
        policy, ended = self._policy, rules.reason(state, state.iteration)
        return policy.solved(state) or ended or policy.no_progress(now.recent, since_best), text

    def _next(self) -> State:
        """Return the next state."""
        now, engine, problem = self.state, self._engine, self._problem
        if now.engine is None:
            assert now.start is not None
            now.engine = engine.init(problem, now.start)
            now.start = None
        now.engine = engine.step(problem, now.engine)
        now.iteration += 1
        iterate, reason = engine.iterate(problem, now.engine), engine.status(now.engine)
        now.seconds = time.perf_counter() - self._began
        model = None if now.round is None else problem.units.model
        state = state_of(problem, iterate, now.iteration, now.seconds, reason, model)
        if now.round is not None:
            state = self._learn(state, now.round)
        return self._pruned(state) if self._policy.target < math.inf else state

    def _learn(self, state: State, round_: Round) -> State:
        """Return the state, or at the end of a round that with parameters of higher likelihood."""
        if round_.best is None or state.objective < round_.best.objective:
            round_.best = state
        if state.iteration < round_.check and state.stop_reason is None:
            return state
        learned = learned_state(self._problem, state, round_.best)
        round_.length = max(round(GROWTH * round_.length), FIRST_ROUND)
        round_.check = state.iteration + round_.length
        if learned is None:
            return state
        assert learned.model is not None
        round_.best, round_.model, round_.penalty = learned, learned.model, learned.penalty
        self._problem = with_learned(self._problem, learned.model, learned.penalty)
        start = Start(learned.W, learned.H, True, learned.offsets)
        self.state.start = self._problem.units.scaled_start(start)
        self.state.engine = None
        return learned

    def _pruned(self, state: State) -> State:
        """Return the state with a stop reason if the run, at its rate, cannot reach the target."""
        policy, trend = self._policy, self.state.trend
        trend.add(state.objective)
        late = state.iteration >= 2 * TREND_WINDOW
        if not late or trend.reaches(policy.target, policy.max_iter - state.iteration):
            return state
        why = "behind: it would not reach the first start any more"
        return replace(state, stop_reason=StopReason("behind", why))

    def _record(self, state: State) -> float:
        """Add a state to the history and return its score."""
        for name in RECORDED:
            self.state.history[name].append(getattr(state, name))
        if self._held_out is None:
            return state.objective
        error = self._held_out.rmse(state.W_aug, state.H_aug, state.model)
        self.state.history[VALIDATION].append(error)
        return error
