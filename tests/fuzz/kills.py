"""Part `kills`: processes that save, that run studies and that fit, ended at random moments."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from . import interrupts, save_kills, study_kills
from .ledger import Ledger

ROUND: tuple[Callable[[Ledger, int], None], ...] = (
    *(save_kills.look,) * 4,
    *(lambda ledger, seed: interrupts.look(ledger, seed, "SIGINT"),) * 8,
    *(lambda ledger, seed: interrupts.look(ledger, seed, "SIGTERM"),) * 2,
    lambda ledger, seed: study_kills.look(ledger, seed, 1),
    lambda ledger, seed: study_kills.look(ledger, seed, 2),
)
"""What one round tries: 26 rounds are more than 100 kills of `save`, 50 of studies, 200 Ctrl-C."""


def run(ledger: Ledger, seconds: float, seed: int, save: Callable[[], Any]) -> None:
    """Kill until the time is over, or 30 rounds are done; see `calls.run`."""
    end = time.monotonic() + seconds
    for number in range(30):
        for place, attempt in enumerate(ROUND):
            if time.monotonic() >= end:
                return
            attempt(ledger, 1000 * seed + len(ROUND) * number + place)
            save()
