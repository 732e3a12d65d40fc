"""The specification of a fit, and a problem of it that is ready to be solved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from nmd_lab.model.kind import LimitModel
from nmd_lab.model.model import Model

from .held_out import HeldOut
from .initialization import Start
from .options import Options
from .problem import Problem
from .refinement.plan import RefinementPlan
from .run import FitState
from .starts import NamedStart


@dataclass(frozen=True, kw_only=True)
class Spec(Options):
    """Options of a fit of which none is "auto", with its model, its rank and what trials found.

    Attributes
    ----------
    model : Model
        Model, in the units of X.
    rank : int
        Number of components.
    limits : LimitModel
        What is known of entries with limits; sd = NaN if a pilot run is to estimate it.
    start : Start or None
        Factors of the trials from which the fit begins; None if it begins as `init` says.
    selection : dict or None
        What `Decomposition.selection` tells; None if nothing was chosen.
    spent : float
        Seconds of `time_limit` that the choice took.
    """

    model: Model
    rank: int
    limits: LimitModel
    start: Start | None = None
    selection: dict[str, Any] | None = None
    spent: float = 0.0

    @property
    def after_choice(self) -> Spec:
        """The specification with what the choice left of the time limit."""
        if self.time_limit is None:
            return self
        return replace(self, time_limit=max(self.time_limit - self.spent, 0.0))


class Prepared(NamedTuple):
    """A checked problem with all that `solve` needs.

    Attributes
    ----------
    problem : Problem
        Problem to solve.
    starts : iterator of NamedStart
        Starting points, each computed when it is requested.
    spec : Spec
        What the fit is to be.
    plan : RefinementPlan
        Refinements to run between the iterations of Algorithm 1.
    held_out : HeldOut or None
        Held-out entries for early stopping; None without validation.
    state : FitState
        Where the fit stands.
    save : callable
        Function that writes the state from time to time, if it is asked before each iteration.
    """

    problem: Problem
    starts: Iterator[NamedStart]
    spec: Spec
    plan: RefinementPlan
    held_out: HeldOut | None
    state: FitState
    save: Callable[[], None]
