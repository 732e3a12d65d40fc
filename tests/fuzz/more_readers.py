"""Part `readers` in a second process, with other files."""

from __future__ import annotations

from . import readers
from .ledger import Ledger
from .quotas import Save

FIRST = 1_000_000
"""Index of the first file."""


def run(ledger: Ledger, seconds: float, seed: int, save: Save, hours: float) -> None:
    """Read damaged files; see `readers.run`."""
    readers.run(ledger, seconds, seed, save, hours, FIRST)
