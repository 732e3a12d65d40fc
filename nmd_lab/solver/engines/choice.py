"""The engine that a plan asks for."""

from __future__ import annotations

from typing import Any

from nmd_lab.solver.refinement.plan import RefinementPlan

from .admm import Admm
from .constrained import Constrained
from .implicit_zeros import ImplicitZeros
from .protocol import FitEngine
from .refined import Refined


def engine_for(plan: RefinementPlan) -> FitEngine[Any]:
    """Return the engine of a plan."""
    if plan.engine == "constrained":
        return Constrained(exact=plan.fitted)
    if plan.engine == "implicit zeros":
        return ImplicitZeros(exact=plan.fitted, tol=plan.tol)
    return Refined(plan) if plan else Admm()
