"""What a fit is to be, decided: a problem that is ready to be solved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from nmd_lab.data.observations import Observations
from nmd_lab.model.model import Model

from .held_out import HeldOut
from .initialization import Start
from .options import Options
from .problem import Problem
from .refinement.plan import RefinementPlan
from .run import FitState


class Decided(NamedTuple):
    """A checked problem with all that `solve` needs.

    Attributes
    ----------
    options : Options
        What was asked for, with the rank and what else was chosen in place of "auto".
    observations : Observations
        Data to fit, in the units of X.
    problem : Problem
        Problem to solve, with its model.
    starts : iterator of Start
        Starting points, each computed when it is requested.
    plan : RefinementPlan
        Refinements to run between the iterations of Algorithm 1.
    held_out : HeldOut or None
        Held-out entries for early stopping; None without validation.
    state : FitState
        Where the fit stands.
    save : callable
        Function that writes the state from time to time, if it is asked before each iteration.
    selection : dict or None
        What `Decomposition.selection` tells; None if nothing was chosen.
    spent : float
        Seconds of `time_limit` that the choice took.
    """

    options: Options
    observations: Observations
    problem: Problem
    starts: Iterator[Start]
    plan: RefinementPlan
    held_out: HeldOut | None
    state: FitState
    save: Callable[[], None]
    selection: dict[str, Any] | None = None
    spent: float = 0.0

    @property
    def model(self) -> Model:
        """Model, in the units of X."""
        return self.problem.units.model

    @property
    def after_choice(self) -> Options:
        """The options with what the choice left of the time limit."""
        limit = self.options.time_limit
        if limit is None:
            return self.options
        return replace(self.options, time_limit=max(limit - self.spent, 0.0))
