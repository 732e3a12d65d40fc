"""When a run ends, and with which of its states."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .admm import State
from .held_out import Validation

RECORDED = (
    "objective",
    "relative_error",
    "primal_residual",
    "dual_residual",
    "penalty",
    "seconds",
)
"""The numbers of a state that a history keeps."""

STANDSTILL = 200
"""A run ends when the objective has changed by no more than `tol` of it for so many iterations."""

CYCLING = 1000
"""A run ends when the objective moves, but has not been lower for so many iterations."""

VALIDATION = "validation_rmse"
"""What a history keeps besides, if there is a validation."""


class Outcome(NamedTuple):
    """What a run ends with.

    Attributes
    ----------
    state : State
        The chosen iteration.
    history : dict of list of float
        The recorded numbers of all iterations.
    stop_reason : str
        Why the run ended.
    complete : bool
        Whether it ended by itself.
    score : float
        Objective, or validation error, of the chosen iteration.
    """

    state: State
    history: dict[str, list[float]]
    stop_reason: str
    complete: bool
    score: float


@dataclass(frozen=True)
class Stopping:
    """When a run ends, and what happens to its states on the way.

    Parameters
    ----------
    max_iter : int
        Most iterations.
    tol : float
        Ends the run when `State.stillness` is at most this, or when the objective has changed by
        no more than this share of it over the last `STANDSTILL` iterations, or has not been lower
        for `CYCLING` iterations; 0 never does.
    time_limit : float or None
        Seconds.
    callback : callable or None
        Called with each state; a true value ends the run.
    validation : Validation or None
        Held-out entries; the state with their lowest error is the one returned.
    patience : int
        Ends the run after so many iterations without a lower validation error.
    """

    max_iter: int
    tol: float = 0.0
    time_limit: float | None = None
    callback: Callable[[State], Any] | None = None
    validation: Validation | None = None
    patience: int = 10

    def verdict(self, state: State) -> tuple[bool, str]:
        """Return whether the run is complete with this state, and why it ends ("": it does not)."""
        stop = self.callback is not None and self.callback(state)
        if self.tol > 0 and state.stillness <= self.tol:
            return True, f"converged: residuals at or below tol={self.tol:g}"
        if self.tol > 0 and state.settled:
            return True, state.settled
        if state.iteration >= self.max_iter:
            return True, f"max_iter: {self.max_iter} iterations done"
        if stop:
            return False, f"callback: stopped after {state.iteration} iterations"
        if self.time_limit is not None and state.seconds >= self.time_limit:
            return False, f"time_limit: {self.time_limit:g} s passed"
        return False, ""

    def patience_is_over(self, state: State, best: State, recent: deque[float]) -> str:
        """Return why the run ends because too little has been gained of late, or ""."""
        if self.validation is not None:
            waited = state.iteration - best.iteration >= self.patience
            return f"validation: no lower error for {self.patience} iterations" if waited else ""
        if self.tol > 0 and len(recent) > STANDSTILL:
            lowest, highest = min(recent), max(recent)
            if highest - lowest <= self.tol * abs(lowest):
                return f"converged: the objective stood still for {STANDSTILL} iterations"
        if self.tol > 0 and state.iteration - best.iteration >= CYCLING:
            return f"converged: no lower objective for {CYCLING} iterations"
        return ""


def run(states: Iterator[State], stopping: Stopping) -> Outcome:
    """Follow the iteration until a rule ends it.

    What comes back is the state of lowest objective, or of lowest validation error; with ``tol=0``
    a run that does all its iterations gives the last one, as the plain algorithm does.

    Raises
    ------
    FloatingPointError
        If the first iterate already is not finite.
    KeyboardInterrupt
        If Ctrl-C comes before the first iterate.
    """
    watched = stopping.validation
    history: dict[str, list[float]] = {name: [] for name in RECORDED}
    if watched is not None:
        history[VALIDATION] = []
    best = last = None
    lowest = math.inf
    recent: deque[float] = deque(maxlen=STANDSTILL + 1)
    try:
        for state in _quietly(states):
            if not state.is_finite:
                why = f"not finite: iteration {state.iteration} overflowed"
                if best is None:
                    raise FloatingPointError(f"{why}: scale X down, or raise alpha or epsilon.")
                return Outcome(best, history, why, True, lowest)
            for name in RECORDED:
                history[name].append(getattr(state, name))
            score = state.objective
            if watched is not None:
                score = watched.rmse(state.left, state.right)
                history[VALIDATION].append(score)
            last = state
            if best is None or score < lowest:
                best, lowest = state, score
            complete, why = stopping.verdict(state)
            recent.append(score)
            if not why and (waited := stopping.patience_is_over(state, best, recent)):
                complete, why = True, waited
            if complete and stopping.tol == 0 and watched is None:
                return Outcome(state, history, why, complete, score)
            if why:
                return Outcome(best, history, why, complete, lowest)
    except KeyboardInterrupt:
        if last is None or best is None:
            raise
        why = f"interrupted: Ctrl-C after {last.iteration} iterations"
        return Outcome(best, history, why, False, lowest)
    raise AssertionError("the iteration never ends by itself")


def _quietly(states: Iterator[State]) -> Iterator[State]:
    """Pass states on without NumPy's warnings: an overflow ends the run, with its own sentence."""
    while True:
        with np.errstate(over="ignore", invalid="ignore"):
            state = next(states)
        yield state
