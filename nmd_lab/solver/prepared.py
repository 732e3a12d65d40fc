"""A problem that is ready to be solved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from .held_out import HeldOut
from .problem import Problem
from .refinement.plan import RefinementPlan
from .run_state import FitState
from .spec import Spec
from .starts import NamedStart


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
