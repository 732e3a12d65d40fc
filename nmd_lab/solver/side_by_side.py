"""How many starts of a fit run at the same time."""

from __future__ import annotations

from .options import Options
from .problem import Problem

FEWEST_SIDE_BY_SIDE = 1 << 16  # entries; for fewer, the interpreter lock is the bottleneck
MOST_SIDE_BY_SIDE = 1 << 19  # entries; for more, the sweeps themselves use the threads


def side_by_side(problem: Problem, options: Options, starts: int) -> int:
    """Return how many of some starts after the first run at the same time; at least 1."""
    alone = options.callback is not None or options.time_limit is not None
    entries = problem.observations.n_stored
    alone |= problem.observations.elsewhere is not None
    suitable = FEWEST_SIDE_BY_SIDE <= entries <= MOST_SIDE_BY_SIDE
    return max(1, min(problem.threads, starts)) if suitable and not alone else 1
