"""Limited-memory quasi-Newton descent (L-BFGS) for two factors.

Steps are measured in the metric of alternating least squares: the starting inverse Hessian divides
the gradient of W by HHᵀ and that of H by WᵀW.  So the method does not mind how scale, or any
invertible matrix, is split between W and H, and its first step already is one of least squares.

Reference: Nocedal and Wright, Numerical Optimization, chapters 3 and 7.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from nmd_lab.data.base import FloatArray

MEMORY = 10
"""Pairs of steps and changes of the gradient that are kept."""

SUFFICIENT = 1e-4
"""Share of the decrease that the slope promises which a step has to give."""

TRIALS = 10
"""Most evaluations of one line search."""


class Point(NamedTuple):
    """A point at which the function has been evaluated.

    Attributes
    ----------
    x, gradient : ndarray
        Flat.
    value : float
        Of the function.
    accepted : bool
        Whether descent goes on from here; if not, the line search goes on.
    """

    x: FloatArray
    value: float
    gradient: FloatArray
    accepted: bool = True


Pairs = deque[tuple[FloatArray, FloatArray]]
"""The last steps, each with the change of the gradient that it made."""


def no_pairs() -> Pairs:
    """Return an empty memory."""
    return deque(maxlen=MEMORY)


Metric = Callable[[FloatArray], FloatArray]


def descend(
    evaluate: Callable[[FloatArray], tuple[float, FloatArray]],
    metric_at: Callable[[FloatArray], Metric],
    start: Point,
    pairs: Pairs | None = None,
) -> Iterator[Point]:
    """Go down from a point, until no step lowers the value any more.

    Parameters
    ----------
    evaluate : callable
        Gives value and gradient at x.
    metric_at : callable
        Gives, at x, the linear map that serves as starting inverse Hessian.
    start : Point
        Where from.
    pairs : Pairs, optional
        What is remembered from descent on a function much like this one; goes on to be filled.

    Yields
    ------
    Point
        Each evaluation.
    """
    here = start
    pairs = no_pairs() if pairs is None else pairs
    while True:
        direction = -_times_inverse_hessian(here.gradient, pairs, metric_at(here.x))
        slope = float(here.gradient @ direction)
        found = None
        if slope < 0:
            for point in _search(evaluate, here, direction, slope):
                yield point
                found = point if point.accepted else None
        if found is None:
            if not pairs:
                return
            pairs.clear()  # the memory misled: try once more without it
            continue
        step, change = found.x - here.x, found.gradient - here.gradient
        if step @ change > 1e-12 * np.linalg.norm(step) * np.linalg.norm(change):
            pairs.append((step, change))
        here = found


def _search(
    evaluate: Callable[[FloatArray], tuple[float, FloatArray]],
    here: Point,
    direction: FloatArray,
    slope: float,
) -> Iterator[Point]:
    """Yield points along a direction until one is good enough (Armijo, by parabolas)."""
    length = 1.0
    for _ in range(TRIALS):
        x = here.x + here.x.dtype.type(length) * direction
        value, gradient = evaluate(x)
        excess = value - here.value - length * slope  # above the tangent
        enough = value <= here.value + SUFFICIENT * length * slope
        yield Point(x, value, gradient, enough)
        if enough:
            return
        parabola = -slope * length * length / (2 * excess) if np.isfinite(excess) else 0.0
        length = min(max(parabola, 0.1 * length), 0.5 * length)


def _times_inverse_hessian(gradient: FloatArray, pairs: Pairs, metric: Metric) -> FloatArray:
    """Return the two-loop product of the approximate inverse Hessian with the gradient."""
    q = gradient.copy()
    weights = []
    for step, change in reversed(pairs):
        weight = float(step @ q) / float(step @ change)
        q -= q.dtype.type(weight) * change
        weights.append(weight)
    z = metric(q)
    if pairs:
        step, change = pairs[-1]
        size = float(change @ metric(change))
        z *= z.dtype.type(float(step @ change) / size if size > 0 else 1.0)
    for (step, change), weight in zip(pairs, reversed(weights), strict=True):
        back = float(change @ z) / float(step @ change)
        z += z.dtype.type(weight - back) * step
    return z
