"""A run from one start, which can pause after any iteration and resume."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from nmd_lab._interruption import Interruption, is_interactive
from nmd_lab._stop_reason import StopCode, StopReason
from nmd_lab.checkpoint.place import NOWHERE, Place

from .admm import State
from .held_out import HeldOut
from .stopping import UNFINISHED, Stopping, window_for

RECORDED = (
    "objective",
    "relative_error",
    "primal_residual",
    "dual_residual",
    "penalty",
    "seconds",
)
"""Numbers of a state that a history keeps."""

VALIDATION = "validation_rmse"
"""Name of the validation error in a history."""


class Ending(NamedTuple):
    """How a fit ends whose setting was chosen by held-out entries.

    Attributes
    ----------
    iterations : int or None
        Number of iterations after which the held-out error was lowest; None if the fit ends as any
        other.
    last : bool
        Whether the last state is returned, and not that of lowest objective.
    """

    iterations: int | None = None
    last: bool = False


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
    score : float
        Objective of the state, or its validation error if there are held-out entries.
    """

    state: State
    history: dict[str, list[float]]
    stop_reason: StopReason
    score: float

    @property
    def complete(self) -> bool:
        """Whether neither the user nor the time limit ended the run."""
        return self.stop_reason.code not in UNFINISHED


class Run:
    """A run over the states of an iteration, which can pause and resume.

    The iterates do not depend on the pauses.  The outcome has the state of lowest objective, or of
    lowest validation error.  With ``tol=0`` and no held-out entries, a run of `max_iter` iterations
    returns the last state instead, as Algorithm 1 does.

    Attributes
    ----------
    last, best : State or None
        Last state, and the state of lowest score; None before the first iteration.
    history : dict of list of float
        Recorded numbers of all iterations.
    """

    KEPT = ("history", "last", "best", "_lowest", "_recent", "_last_score")

    def __init__(
        self,
        states: Iterator[State],
        *,
        tol: float = 0.0,
        held_out: HeldOut | None = None,
        patience: int = 10,
        window: int | None = None,
        last: bool = False,
        last_when_stopped: bool = False,
        place: Place = NOWHERE,
    ) -> None:
        self._states, self._tol, self._held_out = states, tol, held_out
        self._patience = None if held_out is None else patience
        self._gives_last_after: tuple[StopCode, ...] = ()
        if last:
            self._gives_last_after = ("max_iter", "converged", "callback", "time_limit")
        elif tol == 0 and held_out is None:
            self._gives_last_after = (
                ("max_iter", "callback") if last_when_stopped else ("max_iter",)
            )
        self.history: dict[str, list[float]] = {name: [] for name in RECORDED}
        if held_out is not None:
            self.history[VALIDATION] = []
        self.last: State | None = None
        self.best: State | None = None
        self._lowest = math.inf
        self._recent: deque[float] = deque(maxlen=(window or window_for(tol)) + 1)
        self._last_score = math.inf
        self._paused_at: float | None = None
        self._paused_for = 0.0
        self._place = place
        if place.goes_on:
            vars(self).update(place.take())
            seconds = self.history["seconds"]
            self._paused_for = -seconds[-1] if seconds else 0.0  # the states count from 0 again
        place.mark(lambda: {name: getattr(self, name) for name in self.KEPT})

    @property
    def n_iter(self) -> int:
        """Number of iterations so far."""
        return 0 if self.last is None else self.last.iteration

    def advance(
        self,
        iterations: int,
        *,
        callback: Callable[[State], Any] | None = None,
        time_limit: float | None = None,
        interruption: Interruption | None = None,
    ) -> Outcome:
        """Do at most `iterations` more iterations, and return the outcome so far."""
        rules = Stopping(self.n_iter + iterations, self._tol, time_limit, callback, self._patience)
        if self._paused_at is not None:
            self._paused_for += time.perf_counter() - self._paused_at
        signals = Interruption() if interruption is None else interruption
        try:
            reason = None
            while reason is None:
                self._place.tick()
                reason = self._step(rules)
                if interruption is not None:
                    interruption.begin()
                if reason is None and signals:
                    reason = signals.reason(self.n_iter)
        except KeyboardInterrupt:
            if self.best is None or not is_interactive():
                raise
            reason = signals.reason(self.n_iter)
        self._paused_at = time.perf_counter()
        return self.outcome(reason)

    def outcome(self, reason: StopReason) -> Outcome:
        """Return the outcome so far, with a stop reason."""
        assert self.last is not None
        assert self.best is not None
        complete = min(map(len, self.history.values()))  # Ctrl-C may come between two numbers
        history = {name: numbers[:complete] for name, numbers in self.history.items()}
        if reason.code in self._gives_last_after:
            return Outcome(self.last, history, reason, self._last_score)
        return Outcome(self.best, history, reason, self._lowest)

    def _step(self, rules: Stopping) -> StopReason | None:
        """Do one iteration, and return the reason to end the run with it, or None."""
        with np.errstate(over="ignore", invalid="ignore"):  # an overflow is a stop reason
            state = next(self._states)
        if self._paused_for:
            state = replace(state, seconds=state.seconds - self._paused_for)
        if not state.is_finite:
            why = f"not finite: iteration {state.iteration} overflowed"
            if self.best is None:
                raise FloatingPointError(
                    f"{why}: bring X, weights= and alpha= nearer to 1, or raise epsilon."
                )
            return StopReason("not finite", why)
        score = self._record(state)
        self.last = state
        if self.best is None or score < self._lowest:
            self._lowest, self.best = score, state
        self._last_score = score
        self._recent.append(self._lowest)
        return rules.reason(state, self.best, self._recent)

    def _record(self, state: State) -> float:
        """Add a state to the history and return its score."""
        for name in RECORDED:
            self.history[name].append(getattr(state, name))
        if self._held_out is None:
            return state.objective
        error = self._held_out.rmse(state.W_aug, state.H_aug, state.pair)
        self.history[VALIDATION].append(error)
        return error
