"""The loop of fits and of posteriors, the rules that end it, and the checkpoint of its state.

The loop does step after step until there is a reason to end.  It shows progress, asks for Ctrl-C,
and lets the state be written before each step.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from nmd_lab._runtime.progress import Interruption, StopReason, progress_bar
from nmd_lab.checkpoint import Checkpoint, Classes
from nmd_lab.data.observations import Observations

from .options import Asked
from .state import State

WINDOW_CHOSEN = 20  # the same, for a part of tol, from the factors of the choice
TREND_WINDOW = 50  # iterations from which the present rate of decrease is estimated

UNFINISHED = ("callback", "time_limit", "interrupted")
"""Codes of runs that the user or the time limit ended."""


def window_for(tol: float) -> int:
    """Return the number of iterations in which the objective must fall by more than `tol`.

    Refinements need up to 60 iterations to overtake, and an even f finds its signs in leaps.
    """
    return 200 if tol <= 1e-4 else 100


def exact_for(tol: float) -> float:
    """Return the relative residual at or below which a run ends."""
    return min(tol, 1e-10)


def reaches(lowest: Sequence[float], objective: float, iterations: int) -> bool:
    """Return whether so many more iterations, at the recent rate, would reach an objective.

    `lowest` has the lowest objective after each iteration; a few of them determine no rate.
    """
    if len(lowest) <= TREND_WINDOW:
        return True
    decrease = (lowest[-TREND_WINDOW - 1] - lowest[-1]) / TREND_WINDOW
    return lowest[-1] - iterations * decrease <= objective


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
    enough : StopReason or None
        Reason after the last iteration; None for that of `max_iter`.
    tol : float
        Tolerance of the rules of a fit; 0 for none of them.
    patience : int
        Iterations without a lower validation error that end a run.
    window : int or None
        Iterations over which the decrease is measured; None for the usual number.
    target : float
        Objective that the run must be able to reach.
    last_when_stopped : bool
        Whether a fit with ``tol=0`` returns its last state, too, if a callback ends it.
    """

    most: int
    time_limit: float | None = None
    callback: Callable[[Any], Any] | None = None
    enough: StopReason | None = None
    tol: float = 0.0
    patience: int = 10
    window: int | None = None
    target: float = math.inf
    last_when_stopped: bool = False

    def reason(self, shown: Any, iteration: int) -> StopReason | None:
        """Show an iteration to the callback, and return why any run ends with it, or None."""
        asked = self.callback is not None and self.callback(shown)
        if iteration >= self.most:
            text = f"max_iter: {self.most} iterations done"
            return self.enough or StopReason("max_iter", text)
        if asked:
            return StopReason("callback", f"callback: stopped after {iteration} iterations")
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
        return self._solved(state, lowest) or ended or self._no_progress(lowest, since_best)

    def _solved(self, state: State, lowest: Sequence[float]) -> StopReason | None:
        """Return why no further iteration would help, or None."""
        if self.tol <= 0:
            return None
        exact = exact_for(self.tol)
        if state.relative_residual <= exact:
            return StopReason("converged", f"converged: residuals at or below {exact:g}")
        late = state.iteration >= 2 * TREND_WINDOW
        if late and not reaches(lowest, self.target, self.most - state.iteration):
            return StopReason("behind", "behind: it would not reach the first start any more")
        return state.stop_reason

    def _no_progress(self, lowest: Sequence[float], since_best: int | None) -> StopReason | None:
        """Return why a run without recent progress ends, or None."""
        if since_best is not None:
            if since_best < self.patience:
                return None
            text = f"validation: no lower error for {self.patience} iterations"
            return StopReason("validation", text)
        window = self.window or window_for(self.tol)
        if self.tol <= 0 or len(lowest) <= window:
            return None
        share = min(1.0, window / window_for(self.tol))
        if lowest[-window - 1] - lowest[-1] > share * self.tol * abs(lowest[-1]):
            return None
        limit = f"{share * self.tol:g}" if share < 1 else f"tol={self.tol:g}"
        text = f"the objective fell by at most {limit} of itself in {window} iterations"
        return StopReason("converged", f"converged: {text}")


Step = Callable[[], tuple[StopReason | None, str]]
"""Function that does one step, and returns a reason to end with it, and a text to show."""


def nothing() -> None:
    """Do nothing before a step."""


def loop(
    step: Step,
    total: int,
    *,
    done: int = 0,
    unit: str = "it",
    progress: bool | None = False,
    interruption: Interruption | None = None,
    before_each: Callable[[], None] = nothing,
) -> StopReason:
    """Do steps, of which some are done, and return the reason to end."""
    with progress_bar(total, progress, done=done, unit=unit) as show:
        while True:
            before_each()
            reason, text = step()
            done += 1
            show(text)
            if interruption is not None:
                interruption.begin()
            if reason is None and interruption:
                reason = interruption.reason(done)
            if reason is not None:
                return reason


class HasRng(Protocol):
    """State of a run: random numbers as they were before it, among others."""

    rng: np.random.Generator


S = TypeVar("S", bound=HasRng)


def state_and_save(
    before: S,
    rng: np.random.Generator,
    asked: Asked,
    observations: Observations,
    kinds: Sequence[Any],
) -> tuple[S, np.random.Generator, Callable[[], None]]:
    """Return where a run stands, its random numbers, and a function that writes it to a file.

    `before` is the state of a new run, whose random numbers are `rng`; `kinds` have the
    nonlinearities and losses, which may be of classes of the user.
    """
    compute = asked.compute
    if compute.checkpoint is None:
        return before, rng, nothing
    files = observations.checkpoint_files(Path(compute.checkpoint))
    classes = Classes(
        (type(each) for kind in kinds for each in (kind.nonlinearity, kind.loss)),
        None if files is None else files.recipes,
    )
    checkpoint = Checkpoint(
        *(compute.checkpoint, compute.checkpoint_every, asked.call, observations.fingerprint()),
        *(classes, before, files),
    )
    state = checkpoint.state
    return state, rng if state is before else copy.deepcopy(state.rng), checkpoint.tick
