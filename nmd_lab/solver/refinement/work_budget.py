"""How much work the refinements may do beside Algorithm 1.

Work that goes into refinements delays Algorithm 1.  As long as it converges fast, a delay costs
much and refinements have to wait; once it is slow, they may run; once they have found a lower
objective, they may run until Algorithm 1 would catch up.  So the best objective at any time is at
most a little above that of Algorithm 1 alone after the same time.

Whether a pass may run is decided by a forecast: the objective that Algorithm 1 alone would have by
then, if it went on at its recent rate.  The work is counted (`nmd_lab.solver.refinement.cost`), not
measured, so that a fit repeats bit for bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

FIRST = 16  # iterations before the first refinement: Algorithm 1 is fastest then
SLACK = 1.1  # largest ratio of the best objective to the forecast of Algorithm 1 alone
SHARE = 0.02  # share of the work that refinements always have, whatever a wrong forecast says
HORIZON = 0.25  # largest work to begin with, over the iterations so far: no forecast sees further


@dataclass
class WorkBudget:
    """The account of the work of Algorithm 1 and of the refinements.

    Attributes
    ----------
    lowest : list of float
        Lowest objective after each iteration of Algorithm 1.
    passes : int
        Passes of refinements.
    spent : float
        Work of the refinements, in iterations of Algorithm 1.
    """

    lowest: list[float] = field(default_factory=list)
    passes: int = 0
    spent: float = 0.0

    @property
    def iterations(self) -> int:
        """Number of iterations of Algorithm 1."""
        return len(self.lowest)

    def iterated(self, objective: float) -> None:
        """Record an iteration of Algorithm 1."""
        self.lowest.append(min(objective, self.lowest[-1]) if self.lowest else objective)

    def passed(self, cost: float) -> None:
        """Record a pass of a refinement."""
        self.passes, self.spent = self.passes + 1, self.spent + cost

    def allows(
        self, cost: float, best: float, *, limited: bool = True, begins: bool = False
    ) -> bool:
        """Return whether a refinement may do some more work."""
        if self.passes >= self.iterations:
            return False
        if not limited:
            return True
        if self.iterations < FIRST:
            return False
        spent = self.spent + cost
        if spent <= SHARE * self.iterations:
            return True
        if begins and best >= self.lowest[-1] and cost > HORIZON * self.iterations:
            return False
        return best <= SLACK * self.forecast(spent)

    def forecast(self, more: float) -> float:
        """Return the objective of Algorithm 1 after some more iterations at its recent rate.

        The rate is that of the second half of its iterations, for a constant relative decrease.
        """
        half, last = self.lowest[(self.iterations - 1) // 2], self.lowest[-1]
        if last <= 0:
            return last
        rate = math.log(half / last) / (self.iterations - 1 - (self.iterations - 1) // 2 or 1)
        return last * math.exp(-rate * more)
