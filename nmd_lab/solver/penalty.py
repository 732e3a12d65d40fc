"""Rules for the penalty ρ, the weight of the constraint T = WH.

A rule looks at the iteration that has just ended and gives the next ρ.  A large primal residual
‖T - WH‖ asks for a larger ρ, a large dual residual for a smaller one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

from nmd_lab._checks import check_number, check_word

Control = Callable[[float, float, float, float], float]
"""Gives the next ρ from this one, the primal and the dual residual, and the objective."""

PROGRESS = 1e-2
"""A period that lowers the objective by no more than this share of it is a standstill."""


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
    unit : float
        What ‖T - WH‖ is multiplied with before the two are compared.
    period : int, optional
        If given, ρ settles: after k periods of so many iterations the residuals may be 1 + k² times
        more unequal, and ρ grows after each period in which the objective stood still.
    """

    initial: float = 1.0
    factor: float = 3.0
    step: float = 2.0
    projected: bool = False
    unit: float = 1.0
    period: int | None = None

    def begin(self) -> Control:
        """Return the rule for one run."""
        iteration, lowest, earlier = 0, math.inf, math.inf

        def control(penalty: float, primal: float, dual: float, objective: float) -> float:
            nonlocal iteration, lowest, earlier
            factor = self.factor
            if self.period is not None:
                iteration, lowest = iteration + 1, min(lowest, objective)
                factor *= 1 + (iteration / self.period) ** 2
                if iteration % self.period == 0:
                    stands_still = earlier - lowest <= PROGRESS * lowest
                    earlier = lowest
                    if stands_still:
                        return penalty * self.step
            if self.unit * primal > factor * dual:
                return penalty * self.step
            if dual > factor * self.unit * primal:
                return penalty / self.step
            return penalty

        return control


BALANCED = PenaltyRule()
"""The two residuals within a factor of three: the rule for losses that are smooth."""

SETTLING = PenaltyRule(period=10)
"""The rule for losses with a kink (L1), for which the balance of the residuals stalls far from the
minimum.  It starts at the problem's natural penalty, which is also its unit."""

RULES = {
    "auto": BALANCED,
    "balanced": BALANCED,
    "paper": PenaltyRule(factor=10.0, projected=True),
}
"""The rules that can be chosen by name.  "auto" is `SETTLING` instead where the loss has a kink and
f is not even; "paper" is the paper's eq. (adap_rho)."""


def as_penalty_rule(penalty: Any) -> PenaltyRule:
    """Return the rule that a name, a number (a fixed ρ) or an object stands for.

    Raises
    ------
    ValueError
        If the name is unknown or the number is not positive and finite.
    """
    if isinstance(penalty, PenaltyRule):
        return penalty
    if not isinstance(penalty, bool) and isinstance(penalty, Real):
        return PenaltyRule(initial=check_number("penalty", penalty, above=0), factor=math.inf)
    check_word("penalty", penalty, sorted(RULES), " or a positive number")
    return RULES[str(penalty)]
