"""The rules that end a run, and the reason that each of them gives."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nmd_lab._runtime.progress import StopReason

from .state import State

# Refinements need up to 60 iterations to overtake, and an even f finds its signs in leaps.
WINDOW = 100  # iterations in which the objective must fall by more than tol, relative to itself
WINDOW_STRICT = 200  # the same for a strict tol
WINDOW_CHOSEN = 20  # the same, for a part of tol, from the factors of the choice
STRICT = 1e-4  # largest strict tol
EXACT = 1e-10  # relative residual at or below which a run ends as solved exactly, or tol
TREND_WINDOW = 50  # iterations from which the present rate of decrease is estimated


UNFINISHED = ("callback", "time_limit", "interrupted")
"""Codes of runs that the user or the time limit ended."""


def window_for(tol: float) -> int:
    """Return the number of iterations in which the objective must fall by more than `tol`."""
    return WINDOW_STRICT if tol <= STRICT else WINDOW


def exact_for(tol: float) -> float:
    """Return the relative residual at or below which a run ends."""
    return min(tol, EXACT)


@dataclass(frozen=True)
class Stopping:
    """The rules that end any run: enough iterations, a callback, a time limit.

    Attributes
    ----------
    most : int
        Number of the last iteration.
    time_limit : float or None
        Seconds after which the run ends.
    callback : callable or None
        Function of what is shown of an iteration; a true value ends the run.
    enough : StopReason or None
        Reason after the last iteration; None for that of `max_iter`.
    """

    most: int
    time_limit: float | None = None
    callback: Callable[[Any], Any] | None = None
    enough: StopReason | None = None

    def reason(self, shown: Any, iteration: int) -> StopReason | None:
        """Show an iteration to the callback, and return why the run ends with it, or None."""
        asked = self.callback is not None and self.callback(shown)
        if iteration >= self.most:
            text = f"max_iter: {self.most} iterations done"
            return self.enough or StopReason("max_iter", text)
        if asked:
            return StopReason("callback", f"callback: stopped after {iteration} iterations")
        if self.time_limit is not None and shown.seconds >= self.time_limit:
            return StopReason("time_limit", f"time_limit: {self.time_limit:g} s passed")
        return None


@dataclass
class Trend:
    """The lowest objective of a run so far, and its recent rate of decrease."""

    lowest: deque[float] = field(default_factory=lambda: deque([math.inf], maxlen=TREND_WINDOW + 1))

    def add(self, objective: float) -> None:
        """Record the objective of an iteration."""
        self.lowest.append(min(self.lowest[-1], objective))

    @property
    def decrease(self) -> float:
        """Mean decrease for each iteration; infinite until there are enough iterations."""
        return (self.lowest[0] - self.lowest[-1]) / TREND_WINDOW

    def reaches(self, objective: float, iterations: int) -> bool:
        """Return whether more iterations at this rate would reach an objective."""
        return self.lowest[-1] - iterations * self.decrease <= objective


@dataclass(frozen=True)
class StopPolicy:
    """How the run of a fit ends by itself, and what it returns.

    Attributes
    ----------
    tol : float
        Tolerance of the stopping rules.
    patience : int
        Iterations without a lower validation error that end a run.
    window : int or None
        Iterations over which the decrease is measured; None for the usual number.
    last_when_stopped : bool
        Whether it is with ``tol=0``, if a callback ends the run.
    target : float
        Objective that the run must be able to reach.
    max_iter : int
        Iterations within which it must.
    """

    tol: float = 0.0
    patience: int = 10
    window: int | None = None
    last_when_stopped: bool = False
    target: float = math.inf
    max_iter: int = 0

    def solved(self, state: State) -> StopReason | None:
        """Return why no further iteration would help, or None."""
        if self.tol <= 0:
            return None
        exact = exact_for(self.tol)
        if state.relative_residual <= exact:
            return StopReason("converged", f"converged: residuals at or below {exact:g}")
        return state.stop_reason

    def no_progress(self, lowest: deque[float], since_best: int | None) -> StopReason | None:
        """Return why a run without recent progress ends, or None.

        With held-out entries, `since_best` iterations had no lower validation error.
        """
        if since_best is not None:
            if since_best < self.patience:
                return None
            text = f"validation: no lower error for {self.patience} iterations"
            return StopReason("validation", text)
        if self.tol <= 0 or len(lowest) < (lowest.maxlen or 0):
            return None
        window = len(lowest) - 1
        share = min(1.0, window / window_for(self.tol))
        if lowest[0] - lowest[-1] > share * self.tol * abs(lowest[-1]):
            return None
        limit = f"{share * self.tol:g}" if share < 1 else f"tol={self.tol:g}"
        text = f"the objective fell by at most {limit} of itself in {window} iterations"
        return StopReason("converged", f"converged: {text}")
