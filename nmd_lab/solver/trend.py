"""Whether a run could still reach an objective, by how fast it has fallen of late."""

from __future__ import annotations

import math
from collections import deque

WINDOW = 50
"""Iterations whose gain is taken to go on."""


class Trend:
    """The lowest objective so far, and how it has fallen over the last iterations."""

    def __init__(self) -> None:
        self.lowest: deque[float] = deque([math.inf], maxlen=WINDOW + 1)

    def add(self, objective: float) -> None:
        """Take note of another iteration."""
        self.lowest.append(min(self.lowest[-1], objective))

    @property
    def gain(self) -> float:
        """What an iteration gained on average; infinite before there are enough of them."""
        return (self.lowest[0] - self.lowest[-1]) / WINDOW

    def reaches(self, objective: float, iterations: int) -> bool:
        """Return whether so many more iterations would go below an objective at this pace."""
        return self.lowest[-1] - iterations * self.gain <= objective
