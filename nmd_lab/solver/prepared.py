"""A problem that is ready to be solved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from .held_out import HeldOut
from .options import Options
from .problem import Problem
from .refinement.plan import RefinementPlan
from .run_state import FitState
from .selection.choice import Choice
from .starts import NamedStart
from .stopping import Ending


class Prepared(NamedTuple):
    """A checked problem with all that `solve` needs.

    Attributes
    ----------
    problem : Problem
        Problem to solve.
    starts : iterator of NamedStart
        Starting points, each computed when it is requested.
    options : Options
        Options of the fit.
    plan : RefinementPlan
        Refinements to run between the iterations of Algorithm 1.
    held_out : HeldOut or None
        Held-out entries for early stopping; None without validation.
    state : FitState
        Where the fit stands.
    save : callable
        Function that writes the state from time to time, if it is asked before each iteration.
    ending : Ending
        How starts end.
    choice : Choice or None
        What was chosen; None if all was given.
    """

    problem: Problem
    starts: Iterator[NamedStart]
    options: Options
    plan: RefinementPlan
    held_out: HeldOut | None
    state: FitState
    save: Callable[[], None]
    ending: Ending = Ending()
    choice: Choice | None = None
