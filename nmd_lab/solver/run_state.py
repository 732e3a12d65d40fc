"""Where a run stands, and what comes out of it."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from nmd_lab._runtime.progress import StopReason
from nmd_lab.model.model import Model

from .initialization import Start
from .state import State
from .stopping import UNFINISHED, Trend, window_for

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


@dataclass
class Round:
    """A round of iterations between two changes of learned parameters.

    Attributes
    ----------
    length : int
        Iterations of the round.
    check : int
        Number of the iteration after which new parameters are tried.
    best : State or None
        State of lowest objective.
    model : Model, optional
        Model with learned parameters; None before any are learned.
    penalty : float
        ρ with which the round begins.
    """

    length: int
    check: int
    best: State | None = None
    model: Model | None = None
    penalty: float = math.nan


@dataclass
class RunState:
    """Where a run stands: all that its next iteration depends on.

    Attributes
    ----------
    start : Start or None
        Where the engine begins; None once it has begun.
    engine : object or None
        State of the engine; None before it begins.
    iteration, seconds : int, float
        Iterations so far, and their time.
    history : dict of list of float
        Recorded numbers of all iterations.
    last, best : State or None
        Last state, and the state of lowest score.
    lowest, last_score : float
        Score of these.
    recent : deque of float
        Lowest scores after the last iterations.
    trend : Trend
        Progress, for the comparison with another start.
    round : Round or None
        Round of learning; None if nothing is learned.
    """

    start: Start | None
    recent: deque[float]
    round: Round | None = None
    engine: Any = None
    iteration: int = 0
    seconds: float = 0.0
    history: dict[str, list[float]] = field(default_factory=lambda: {n: [] for n in RECORDED})
    last: State | None = None
    best: State | None = None
    lowest: float = math.inf
    last_score: float = math.inf
    trend: Trend = field(default_factory=Trend)


@dataclass
class StartState:
    """Where a start stands: in its warm-up or in its run."""

    warm_up: RunState | None = None
    run: RunState | None = None


@dataclass
class FitState:
    """Where a fit stands.

    Attributes
    ----------
    rng : Generator
        Random numbers, as they were before the fit.
    decided : dict or None
        What the choice of settings has changed of the options; None before it is done.
    outcomes, summary : list of Outcome and of dict
        What came out of each start that has ended.
    start : StartState or None
        The start that is under way.
    """

    rng: np.random.Generator
    decided: dict[str, Any] | None = None
    outcomes: list[Outcome] = field(default_factory=list)
    summary: list[dict[str, Any]] = field(default_factory=list)
    start: StartState | None = None


def begin(
    start: Start,
    *,
    tol: float = 0.0,
    window: int | None = None,
    learns: bool = False,
    from_fit: bool = False,
    seconds: float = 0.0,
) -> RunState:
    """Return the state of a run before its first iteration.

    A run that learns parameters and begins at the factors of a fit learns after one iteration.
    """
    length = 1 if from_fit else FIRST_ROUND
    first = Round(length, length) if learns else None
    recent: deque[float] = deque(maxlen=(window or window_for(tol)) + 1)
    return RunState(start, recent, first, seconds=seconds)
