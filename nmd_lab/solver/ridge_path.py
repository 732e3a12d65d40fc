"""The start `init="path"`: a few iterations with each of several ridges, from strong to weak.

Under a strong ridge hardly anything but the strongest directions is left.  The others grow again,
the stronger ones first, as the ridge becomes weaker.  A fit that ends early from there has strong
components that the ridge has hardly shrunk, and none of the weak ones, which are mostly noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .engines.protocol import FitEngine, iterates
from .initialization import Start
from .problem import Problem

STEP = 10**0.5  # largest ratio of a ridge to the next one
TRACE = 1e-14  # share of a start that is added after each ridge, above rounding errors
ITERATIONS = 6  # with each of them


def after_strong_ridges(
    problem: Problem,
    start: Start,
    after: Callable[[Problem, Start, int], Start],
    stopped: Callable[[], bool] = lambda: False,
) -> Start:
    """Return the factors that strong ridges leave of a start, in the units of the problem.

    The first ridge is the least one that removes all components, of which the first is the largest
    one.  Small components would become so small that rounding errors decide how they grow, so that
    a trace of the start is added to them.  `after` returns the factors after some iterations.
    """
    largest = float(np.linalg.norm(start.W[:, 0]) * np.linalg.norm(start.H[0]))
    steps = _steps(problem.natural_penalty * largest * _mean_weight(problem) / problem.alpha)
    W, H = TRACE * start.W, TRACE * start.H
    for ratio in steps:
        if stopped():
            break
        stronger = problem.described().changed(alpha=ratio * problem.alpha)
        start = after(stronger, start, ITERATIONS)
        start = start._replace(W=start.W + W, H=start.H + H)
    return start


def iterations_of(engine: FitEngine[Any]) -> Callable[[Problem, Start, int], Start]:
    """Return a function that returns the factors after some iterations of an engine."""

    def after(problem: Problem, start: Start, number: int) -> Start:
        found = iterates(engine, problem, start)
        *_, iterate = (next(found) for _ in range(number))
        columns = problem.offset_columns
        W, H, offsets = columns.split(iterate.W_aug, iterate.H_aug)
        return Start(W, H, from_factors=True, offsets=offsets)

    return after


def _mean_weight(problem: Problem) -> float:
    """Return the mean weight of the observed entries."""
    observations = problem.observations
    if observations.weights is None:
        return 1.0
    (total,) = observations.weighted_sums()
    return float(total) / observations.n_observed


def _steps(first: float) -> list[float]:
    """Return ratios of the ridges to the last one, which is not among them.

    Multiples of the data have as many, whatever their rounding.
    """
    count = math.ceil(math.log(max(first, 1.0)) / math.log(STEP) - 1e-6)
    return [float(first ** (1 - k / count)) for k in range(count)]
