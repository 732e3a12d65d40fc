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
from dataclasses import dataclass


@dataclass(frozen=True)
class PaceOptions:
    """Constants of the pace.

    Attributes
    ----------
    first : int
        Number of iterations before the first refinement.
    slack : float
        Largest ratio of the best objective to the forecast of Algorithm 1 alone.
    share : float
        Share of the work that refinements always have, from which a wrong forecast cannot keep
        them.
    horizon : float
        Largest work, over the iterations so far, with which a refinement may begin while none is
        ahead of Algorithm 1: a forecast that looks further ahead may be far from what comes.
    to_begin : int
        Number of evaluations for which there must be room when a refinement begins.
    nearly_exact : float
        Relative error at or below which refinements may run after each iteration, since they
        reach an exact fit much faster than Algorithm 1.
    catch_up : int
        Largest number of passes of refinements after an iteration.  Their number in all is at most
        that of the iterations.
    """

    first: int = 16
    slack: float = 1.1
    share: float = 0.02
    horizon: float = 0.25
    to_begin: int = 3
    nearly_exact: float = 0.02
    catch_up: int = 4


PACE = PaceOptions()


class Pace:
    """The account of the work of Algorithm 1 and of the refinements.

    Attributes
    ----------
    iterations, passes : int
        Iterations of Algorithm 1, and passes of refinements.
    spent : float
        Work of the refinements, in iterations of Algorithm 1.
    """

    def __init__(self) -> None:
        self.lowest: list[float] = []
        self.passes, self.spent = 0, 0.0

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
        """Return whether a refinement may do some more work.

        Parameters
        ----------
        cost : float
            The work, in iterations of Algorithm 1.
        best : float
            Lowest objective so far.
        limited : bool
            Whether refinements have to wait for a slow Algorithm 1.
        begins : bool
            Whether a refinement begins with this work.
        """
        if self.passes >= self.iterations:
            return False
        if not limited:
            return True
        if self.iterations < PACE.first:
            return False
        spent = self.spent + cost
        if spent <= PACE.share * self.iterations:
            return True
        if begins and best >= self.lowest[-1] and cost > PACE.horizon * self.iterations:
            return False
        return best <= PACE.slack * self.forecast(spent)

    def forecast(self, more: float) -> float:
        """Return the objective of Algorithm 1 after some more iterations at its recent rate.

        The rate is that of the second half of its iterations, for a constant relative decrease.
        """
        half, last = self.lowest[(self.iterations - 1) // 2], self.lowest[-1]
        if last <= 0:
            return last
        rate = math.log(half / last) / (self.iterations - 1 - (self.iterations - 1) // 2 or 1)
        return last * math.exp(-rate * more)
