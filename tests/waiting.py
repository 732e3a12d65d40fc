"""Nothing here depends on speed: a clock for tests, and limits that only end what hangs."""

import time
from collections.abc import Callable
from typing import Any

PATIENCE = 600.0
"""Seconds after which something hangs; a busy machine needs far less."""


class Clock:
    """A clock that moves on by one step each time it is read.

    Parameters
    ----------
    step : float
        Seconds.
    """

    def __init__(self, step: float = 0.01) -> None:
        self.step, self.now = step, 1000.0

    def __call__(self) -> float:
        """Read it."""
        self.now += self.step
        return self.now


def wait_for(condition: Callable[[], Any]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.005)
