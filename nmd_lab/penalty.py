"""Rules for the penalty ρ, the weight of the constraint T = WH.

A rule looks at the residuals of the iteration that has just ended and gives the next ρ.  A large
primal residual ‖T - WH‖ asks for a larger ρ, a large dual residual for a smaller one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any


@dataclass(frozen=True)
class PenaltyRule:
    """Double or halve ρ when one residual exceeds the other by more than a factor.

    Parameters
    ----------
    initial : float
        ρ of the first iteration.
    factor : float
        How unequal the residuals may be; infinity keeps ρ fixed.
    step : float
        What ρ is multiplied with or divided by.
    projected : bool
        Whether the dual residual is ρ‖Wᵀ(T - T_previous)‖, as printed in the paper, or
        ρ‖T - T_previous‖, which does not depend on how scale is split between W and H.
    """

    initial: float = 1.0
    factor: float = 3.0
    step: float = 2.0
    projected: bool = False

    def __call__(self, penalty: float, primal: float, dual: float) -> float:
        """Return the next ρ from this one and the residuals of the iteration."""
        if primal > self.factor * dual:
            return penalty * self.step
        if dual > self.factor * primal:
            return penalty / self.step
        return penalty


BALANCED = PenaltyRule()
"""Ours, and the default."""

RULES = {
    "balanced": BALANCED,
    "paper": PenaltyRule(factor=10.0, projected=True),
}
"""The rules that can be chosen by name: ours, and the paper's eq. (adap_rho)."""


def as_penalty_rule(penalty: Any) -> PenaltyRule:
    """Return the rule that a name, a number (a fixed ρ) or an object stands for.

    Raises
    ------
    ValueError
        If the name is unknown or the number is not positive and finite.
    """
    if isinstance(penalty, PenaltyRule):
        return penalty
    if isinstance(penalty, str) and penalty in RULES:
        return RULES[penalty]
    if not isinstance(penalty, str | bool) and isinstance(penalty, Real):
        if 0 < float(penalty) < math.inf:
            return PenaltyRule(initial=float(penalty), factor=math.inf)
        raise ValueError(f"penalty={penalty} is not a positive number: give a fixed ρ > 0.")
    raise ValueError(
        f"penalty={penalty!r} is unknown: choose one of {sorted(RULES)} or a positive number."
    )
