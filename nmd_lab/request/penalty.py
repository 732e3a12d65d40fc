"""Rules for the penalty ρ, the weight of the constraint T = WH.

After each iteration a rule returns the next ρ: a larger one if the primal residual ‖T - WH‖ is
large, a smaller one if the dual residual is large.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Literal

from nmd_lab._runtime.checks import check_number, check_word
from nmd_lab.model.model import Model


def compare_residuals(primal: float, dual: float, ratio: float) -> int:
    """Return 1 if ρ should grow, -1 if it should shrink and 0 if it should stay."""
    if primal > ratio * dual:
        return 1
    if dual > ratio * primal:
        return -1
    return 0


def relaxed_ratio(ratio: float, iteration: int, period: int) -> float:
    """Return the allowed ratio of the residuals; it grows, so that ρ changes less and less."""
    return ratio * (1.0 + (iteration / period) ** 2)


@dataclass(frozen=True)
class PenaltyRule:
    """Double or halve ρ when one residual exceeds the other by more than a factor.

    Parameters
    ----------
    initial : float, default 1
        ρ of the first iteration.
    factor : float, default 3
        Largest allowed ratio of the residuals; infinity keeps ρ fixed.
    step : float, default 2
        Factor by which ρ grows or shrinks.
    projected : bool, default False
        Whether the dual residual is ρ‖Wᵀ(T - T_previous)‖, as printed in the paper.  If not, it is
        ρ‖T - T_previous‖, which does not depend on how scale is split between W and H.
    unit : float, default 1
        Factor of ‖T - WH‖ in the comparison.
    period : int, optional
        Number of iterations of a period.  After k periods the allowed ratio of the residuals is
        1 + k² times `factor`, so that ρ changes less and less often.  After a period without
        progress, ρ grows by `step`.  By default there are no periods and the ratio is constant.

    Attributes
    ----------
    progress : float
        Largest relative decrease of the objective in a period that counts as no progress.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> digits = nmd.datasets.digits(100)
    >>> solver = nmd.ADMM(rho=nmd.PenaltyRule(initial=0.5, factor=10.0))
    >>> fit = nmd.decompose(digits, 8, "relu", solver=solver, max_iter=5, random_state=0)
    >>> float(fit.history.penalty[0])
    0.5
    """

    progress: ClassVar[float] = 1e-2

    initial: float = 1.0
    factor: float = 3.0
    step: float = 2.0
    projected: bool = False
    unit: float = 1.0
    period: int | None = None

    def begin(self) -> PenaltyControl:
        """Return what applies the rule to one run."""
        return PenaltyControl(self)


@dataclass
class PenaltyControl:
    """A rule in one run: a function of ρ, both residuals and the objective that returns the next ρ.

    Attributes
    ----------
    rule : PenaltyRule
        The rule.
    iteration : int
        Number of iterations so far, for a rule with periods.
    lowest, earlier : float
        Lowest objective so far, and that at the end of the last period.
    """

    rule: PenaltyRule
    iteration: int = 0
    lowest: float = math.inf
    earlier: float = math.inf

    def __call__(self, penalty: float, primal: float, dual: float, objective: float) -> float:
        """Return the next ρ."""
        rule, ratio = self.rule, self.rule.factor
        if rule.period is not None:
            self.iteration, self.lowest = self.iteration + 1, min(self.lowest, objective)
            ratio = relaxed_ratio(ratio, self.iteration, rule.period)
            if self.iteration % rule.period == 0:
                no_progress = self.earlier - self.lowest <= rule.progress * self.lowest
                self.earlier = self.lowest
                if no_progress:
                    return penalty * rule.step
        direction = compare_residuals(rule.unit * primal, dual, ratio)
        return float(penalty * rule.step**direction)


BALANCED = PenaltyRule()
"""The rule for smooth losses: it keeps the two residuals within a factor of three."""

RELAXING = PenaltyRule(period=10)
"""The rule for losses with a kink (L1), and for all but squares with an even f.  For these,
`BALANCED` can stall far from the minimum.
`automatic_rule` sets `initial` and `unit` to the natural penalty of the problem."""

RuleName = Literal["auto", "balanced", "paper"]

RULES = {"auto": BALANCED, "balanced": BALANCED, "paper": PenaltyRule(factor=10.0, projected=True)}
"""Rules that can be chosen by name.

`automatic_rule` replaces "auto" by `RELAXING` if the loss has a kink, or if f is even and the loss
is not a square.  "paper" is the rule of the paper's equation (adap_rho).
"""


def as_penalty_rule(penalty: Any) -> PenaltyRule:
    """Return the rule for a name, a number (a fixed ρ) or a `PenaltyRule`."""
    if isinstance(penalty, PenaltyRule):
        return penalty
    if not isinstance(penalty, bool) and isinstance(penalty, Real):
        return PenaltyRule(initial=check_number("rho", penalty, above=0), factor=math.inf)
    check_word("rho", penalty, sorted(RULES), " or a positive number")
    return RULES[str(penalty)]


EVEN_SHARE = 0.1  # ρ for an even f, in natural ones: a larger ρ holds T on its side of zero


def automatic_rule(model: Model, natural: float) -> PenaltyRule:
    """Return the rule for a model whose ρ has a unit, given the natural penalty of the data."""
    unit = natural * (EVEN_SHARE if model.even else 1.0)
    # From a small ρ, `BALANCED` may stay there with an even f and a loss other than a square.
    settles = not model.smooth or (model.even and model.degrees[1] != 2)
    return replace(RELAXING if settles else BALANCED, initial=unit, unit=unit)
