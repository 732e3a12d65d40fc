"""The over-relaxation weight of Wen, Yin and Zhang (2012), as in LMaFit."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass
class Relaxation:
    """A weight ω >= 1 of the residual in a step, which grows while the steps are slow."""

    increment: float
    largest: float = math.inf
    slow: float = 0.7
    growth: float = 0.25
    omega: float = 1.0

    def increase(self) -> None:
        """Increase ω after a slow step."""
        self.increment = max(self.increment, self.growth * (self.omega - 1))
        self.omega = min(self.omega + self.increment, self.largest)
