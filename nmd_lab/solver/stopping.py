"""The stopping rules of a run, and the reason that each of them gives."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nmd_lab._stop_reason import StopReason

from .admm import State


@dataclass(frozen=True)
class StoppingOptions:
    """Constants of the stopping rules.

    Attributes
    ----------
    standstill : int
        Number of iterations.  A run ends when its objective has changed in them by at most `tol`,
        relative to the objective.
    no_decrease : int
        Number of iterations without a new lowest objective after which a run ends.
    trend_window : int
        Number of iterations from which the present rate of decrease is estimated.
    """

    standstill: int = 200
    no_decrease: int = 1000
    trend_window: int = 50


STOPPING = StoppingOptions()

UNFINISHED = ("callback", "time_limit", "interrupted")
"""Codes of runs that the user or the time limit ended."""


class Trend:
    """The lowest objective of a run so far, and its recent rate of decrease."""

    def __init__(self) -> None:
        self.lowest: deque[float] = deque([math.inf], maxlen=STOPPING.trend_window + 1)

    def add(self, objective: float) -> None:
        """Record the objective of an iteration."""
        self.lowest.append(min(self.lowest[-1], objective))

    @property
    def decrease(self) -> float:
        """Mean decrease for each iteration; infinite until there are enough iterations."""
        return (self.lowest[0] - self.lowest[-1]) / STOPPING.trend_window

    def reaches(self, objective: float, iterations: int) -> bool:
        """Return whether more iterations at this rate would reach an objective."""
        return self.lowest[-1] - iterations * self.decrease <= objective


@dataclass(frozen=True)
class Stopping:
    """The stopping rules of a run.

    Parameters
    ----------
    max_iter : int
        Largest number of iterations.
    tol : float
        Tolerance.  A run ends when `State.relative_residual` is at most `tol`, when the relative
        change of the objective over many iterations is at most `tol`, or when the objective has
        not reached a new lowest value for many iterations (`StoppingOptions`).  0 switches these
        rules off.
    time_limit : float or None
        Time limit, in seconds.
    callback : callable or None
        Function of each state; a true value ends the run.
    patience : int or None
        Iterations without a lower validation error after which a run ends (early stopping); None
        if nothing is held out.
    """

    max_iter: int
    tol: float = 0.0
    time_limit: float | None = None
    callback: Callable[[State], Any] | None = None
    patience: int | None = None

    def reason(self, state: State, best: State, scores: deque[float]) -> StopReason | None:
        """Return why the run ends with this state, or None if it does not.

        Parameters
        ----------
        state, best : State
            Last state, and the state of lowest score so far.
        scores : deque of float
            Scores of the last iterations, at most ``STOPPING.standstill + 1``.
        """
        stop_requested = self.callback is not None and self.callback(state)
        n_iter = state.iteration
        if self.tol > 0 and state.relative_residual <= self.tol:
            return StopReason("converged", f"converged: residuals at or below tol={self.tol:g}")
        if self.tol > 0 and state.stop_reason is not None:
            return state.stop_reason
        if n_iter >= self.max_iter:
            return StopReason("max_iter", f"max_iter: {self.max_iter} iterations done")
        if stop_requested:
            return StopReason("callback", f"callback: stopped after {n_iter} iterations")
        if self.time_limit is not None and state.seconds >= self.time_limit:
            return StopReason("time_limit", f"time_limit: {self.time_limit:g} s passed")
        return self._no_progress(n_iter - best.iteration, scores)

    def _no_progress(self, since_best: int, scores: deque[float]) -> StopReason | None:
        """Return the reason to end a run without recent progress, or None."""
        if self.patience is not None:
            if since_best < self.patience:
                return None
            return StopReason(
                "validation", f"validation: no lower error for {self.patience} iterations"
            )
        if self.tol <= 0:
            return None
        if len(scores) > STOPPING.standstill:
            lowest, highest = min(scores), max(scores)
            if highest - lowest <= self.tol * abs(lowest):
                return StopReason(
                    "converged",
                    f"converged: the objective stood still for {STOPPING.standstill} iterations",
                )
        if since_best >= STOPPING.no_decrease:
            return StopReason(
                "converged",
                f"converged: no lower objective for {STOPPING.no_decrease} iterations",
            )
        return None
