"""Times of several pieces of work, taken in turn, and their ratios."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np


class Ratio(NamedTuple):
    """A ratio of times: the median over the rounds, and the quartiles."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f}–{self.high:.2f})"


def seconds(work: Callable[[], Any]) -> float:
    """Return how long a piece of work takes, in seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def in_turn(works: Sequence[Callable[[], Any]], rounds: int, warm_up: int = 3) -> np.ndarray:
    """Return the seconds of each piece of work (rounds, works), taken one after the other."""
    times = np.array([[seconds(work) for work in works] for _ in range(warm_up + rounds)])
    return times[warm_up:]


def ratio(times: np.ndarray, of: int, to: int = 0) -> Ratio:
    """Return the ratio of two columns of `in_turn`, round by round."""
    low, median, high = np.quantile(times[:, of] / times[:, to], [0.25, 0.5, 0.75])
    return Ratio(float(median), float(low), float(high))


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
