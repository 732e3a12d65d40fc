"""Part `kills`: processes that save, that run studies and that fit, ended at random moments."""

from __future__ import annotations

import time
from collections.abc import Callable

from . import interrupts, save_kills, study_kills
from .ledger import Ledger

ROUND: dict[str, tuple[int, Callable[[Ledger, int], None]]] = {
    "kills: save": (2, save_kills.look),
    "kills: SIGINT": (4, interrupts.look),
    "kills: study, 1 process": (1, lambda ledger, seed: study_kills.look(ledger, seed, 1)),
    "kills: study, 2 processes": (1, lambda ledger, seed: study_kills.look(ledger, seed, 2)),
}
"""What one round tries, and how often."""


def run(ledger: Ledger, seconds: float, seed: int) -> None:
    """Kill until the time is over."""
    end, number = time.monotonic() + seconds, 100_000 * seed
    while True:
        for times, attempt in ROUND.values():
            for _ in range(times):
                if time.monotonic() >= end:
                    return
                attempt(ledger, number)
                number += 1
