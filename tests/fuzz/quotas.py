"""How many examples of each kind an hour of `make fuzz` must try."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping

CALLS = 20_000
FILES = 10_000

KILLS = {
    "kills: save": 100,
    "kills: study, 1 process": 50,
    "kills: study, 2 processes": 50,
    "kills: SIGINT": 200,
}
FITS = {"memory: fits": 300}

Save = Callable[[], Mapping[str, int]]
"""A function that saves the counts of a part, and returns those of all parts together."""


def calls_of(tried: Mapping[str, int]) -> int:
    """Return the number of calls of all kinds."""
    return sum(n for part, n in tried.items() if part.startswith("calls: "))


def wanted(part: str, hours: float = 1.0) -> float:
    """Return how many examples of a kind are wanted; infinitely many of one without a quota.

    Parameters
    ----------
    part : str
        Kind, as the table names it; "calls" stands for calls of all kinds together.
    hours : float, default 1
        Duration of the whole run.
    """
    quota: float = (KILLS | FITS | {"calls": CALLS}).get(part, math.inf)
    if part.startswith("readers: "):
        quota = FILES
    return quota if math.isinf(quota * hours) else math.ceil(quota * hours)


def with_sum_of_calls(tried: Counter[str]) -> Counter[str]:
    """Return the counts with one of all calls."""
    total = calls_of(tried)
    return tried + Counter({"calls": total}) if total else tried
