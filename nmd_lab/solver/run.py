"""The loop: a run of an engine from one start, which can pause after any iteration and continue.

It alone has the clock, the numbers of iterations, the best factors so far, the rules that end a
run, and the rounds of learning.  An engine has none of these.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from nmd_lab._runtime.progress import Interruption, StopReason, is_interactive
from nmd_lab.model.model import Model

from .engines import FitEngine
from .held_out import HeldOut
from .initialization import Start
from .loop import UNFINISHED, Stopping, loop, nothing
from .problem import Problem
from .state import State, learned_state, state_of, with_learned

FIRST_ROUND = 10  # iterations before the first learning

RECORDED = (
    "objective",
    "relative_error",
    "primal_residual",
    "dual_residual",
    "penalty",
    "seconds",
)
"""Numbers of a state that a history has."""

VALIDATION = "validation_rmse"
"""Name of the validation error in a history."""


class Outcome(NamedTuple):
    """The result of a run so far.

    Attributes
    ----------
    state : State
        Returned state: that of lowest score, or the last one (see `Run`).
    history : dict of list of float
        Recorded numbers of all iterations.
    stop_reason : StopReason
        Why the run ended or paused.
    kind : str
        Kind of its start.
    """

    state: State
    history: dict[str, list[float]]
    stop_reason: StopReason
    kind: str = ""

    @property
    def n_iter(self) -> int:
        """Number of iterations."""
        return len(self.history["seconds"])

    @property
    def seconds(self) -> float:
        """Time of the iterations and of what came before them."""
        return self.history["seconds"][-1]

    @property
    def score(self) -> float:
        """Objective of the state, or its validation error if there are held-out entries."""
        errors = self.history.get(VALIDATION)
        return self.state.objective if errors is None else errors[self.state.iteration - 1]

    @property
    def complete(self) -> bool:
        """Whether neither the user nor the time limit ended the run."""
        return self.stop_reason.code not in UNFINISHED

    def row(self) -> dict[str, Any]:
        """Return the entry of `Decomposition.starts`."""
        return {
            "kind": self.kind,
            "objective": self.state.objective,
            "relative_error": self.state.relative_error,
            "n_iter": self.n_iter,
            "seconds": self.seconds,
            "stop_reason": self.stop_reason,
        }


@dataclass
class RunState:
    """Where a run stands: all that its next iteration depends on.

    Attributes
    ----------
    start : Start or None
        Where the engine begins; None once it has begun.
    engine : object or None
        State of the engine; None before it begins.
    seconds : float
        Time so far.
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
        State of lowest objective in the round.
    model, penalty : Model or None, float
        Model with learned parameters, None before any are learned, and ρ with which the round
        began.
    warm_up : RunState or None
        Run that improves the start, while it is under way.
    """

    start: Start | None = None
    engine: Any = None
    seconds: float = 0.0
    history: dict[str, list[float]] = field(default_factory=lambda: {n: [] for n in RECORDED})
    last: State | None = None
    best: State | None = None
    lowest: list[float] = field(default_factory=list)
    round_length: int = 0
    round_end: int = 0
    round_best: State | None = None
    model: Model | None = None
    penalty: float = math.nan
    warm_up: RunState | None = None

    @property
    def n_iter(self) -> int:
        """Number of iterations so far."""
        return len(self.lowest)


@dataclass
class FitState:
    """Where a fit stands.

    Attributes
    ----------
    rng : Generator
        Random numbers, as they were before the fit.
    decided : list of dict or None
        What the choice changed of the options, and of what is known; None before it is done.
    outcomes : list of Outcome or None
        What came out of each start that has ended; None without an iteration.
    run : RunState or None
        The run that is under way.
    """

    rng: np.random.Generator
    decided: list[dict[str, Any]] | None = None
    outcomes: list[Outcome | None] = field(default_factory=list)
    run: RunState | None = None


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
        rules: Stopping,
        held_out: HeldOut | None = None,
    ) -> None:
        self._problem, self._engine, self.state = problem, engine, state
        self._rules, self._held_out = rules, held_out
        self._began = 0.0
        if held_out is not None:
            state.history.setdefault(VALIDATION, [])
        if state.model is not None:
            self._problem = with_learned(problem, state.model, state.penalty)

    def advance(
        self,
        iterations: int | None = None,
        *,
        callback: Callable[[State], Any] | None = None,
        interruption: Interruption | None = None,
        progress: bool | None = False,
        before_each: Callable[[], None] = nothing,
    ) -> Outcome:
        """Do some more iterations at most, or all that the rules allow, and return the outcome."""
        state, rules = self.state, self._rules
        if iterations is not None:
            rules = replace(rules, most=state.n_iter + iterations)
        if callback is not None:
            rules = replace(rules, callback=partial(self._shown, callback))
        self._began = time.perf_counter() - state.seconds
        try:
            reason = loop(
                partial(self._step, rules),
                rules.most,
                done=state.n_iter,
                progress=progress,
                interruption=interruption,
                before_each=before_each,
            )
        except KeyboardInterrupt:
            if state.best is None or not is_interactive():
                raise
            signals = Interruption() if interruption is None else interruption
            reason = signals.reason(len(state.history["seconds"]))
        return self._outcome(reason)

    def _shown(self, callback: Callable[[State], Any], state: State) -> Any:
        """Show a state to a callback, with the model, so that it can predict."""
        model = self._problem.units.model if state.model is None else state.model
        return callback(replace(state, model=model))

    def _outcome(self, reason: StopReason) -> Outcome:
        """Return the outcome so far, with a stop reason."""
        now, rules = self.state, self._rules
        complete = min(map(len, now.history.values()))  # Ctrl-C may come between two numbers
        history = {name: numbers[:complete] for name, numbers in now.history.items()}
        ends = ("max_iter", "callback") if rules.last_when_stopped else ("max_iter",)
        plain = rules.tol == 0 and self._held_out is None
        state = now.last if plain and reason.code in ends else now.best
        assert state is not None
        return Outcome(state, history, reason)

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
        if now.best is None or score < now.lowest[-1]:
            now.best = state
            now.lowest.append(score)
        else:
            now.lowest.append(now.lowest[-1])
        since_best = None if self._held_out is None else state.iteration - now.best.iteration
        return rules.reason_of_fit(state, now.lowest, since_best), text

    def _next(self) -> State:
        """Return the next state."""
        now, engine, problem = self.state, self._engine, self._problem
        if now.engine is None:
            assert now.start is not None
            now.engine = engine.init(problem, now.start)
            now.start = None
        now.engine = engine.step(problem, now.engine)
        iterate, reason = engine.iterate(problem, now.engine), engine.status(now.engine)
        now.seconds = time.perf_counter() - self._began
        model = problem.units.model if now.round_length else None
        state = state_of(problem, iterate, now.n_iter + 1, now.seconds, reason, model)
        return self._learn(state) if now.round_length else state

    def _learn(self, state: State) -> State:
        """Return the state, or at the end of a round that with parameters of higher likelihood."""
        now = self.state
        if now.round_best is None or state.objective < now.round_best.objective:
            now.round_best = state
        if state.iteration < now.round_end and state.stop_reason is None:
            return state
        learned = learned_state(self._problem, state, now.round_best)
        now.round_length = max(2 * now.round_length, FIRST_ROUND)
        now.round_end = state.iteration + now.round_length
        if learned is None:
            return state
        assert learned.model is not None
        now.round_best, now.model, now.penalty = learned, learned.model, learned.penalty
        self._problem = with_learned(self._problem, learned.model, learned.penalty)
        start = Start(learned.W, learned.H, True, learned.offsets)
        now.start, now.engine = self._problem.units.scaled_start(start), None
        return learned

    def _record(self, state: State) -> float:
        """Add a state to the history and return its score."""
        for name in RECORDED:
            self.state.history[name].append(getattr(state, name))
        if self._held_out is None:
            return state.objective
        error = self._held_out.rmse(state.W_aug, state.H_aug, state.model)
        self.state.history[VALIDATION].append(error)
        return error
