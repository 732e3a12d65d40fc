"""The over-relaxation weight of Wen, Yin and Zhang (2012), as in LMaFit."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass
class Relaxation:
    """A weight ω >= 1 of the residual in a step, which grows while the steps are slow.

    Parameters
    ----------
    increment : float
        Smallest increase of ω after a slow step.
    largest : float, default infinity
        Upper bound of ω.
    slow : float, default 0.7
        Ratio of the residual norms after and before a step, above which the step is slow.
    growth : float, default 0.25
        Smallest increase of ω after a slow step, as a fraction of ω - 1.
    omega : float, default 1
        The weight ω; 1 is no over-relaxation.
    """

    increment: float
    largest: float = math.inf
    slow: float = 0.7
    growth: float = 0.25
    omega: float = 1.0

    def increase(self) -> None:
        """Increase ω after a slow step."""
        self.increment = max(self.increment, self.growth * (self.omega - 1))
        self.omega = min(self.omega + self.increment, self.largest)
