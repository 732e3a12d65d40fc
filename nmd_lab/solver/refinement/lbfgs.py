"""Limited-memory quasi-Newton descent (L-BFGS) with a preconditioner.

The preconditioner is the initial inverse Hessian.  For two factors it is that of alternating least
squares: the gradient of W is multiplied by (HHᵀ)⁻¹ and that of H by (WᵀW)⁻¹.  Then the descent is
the same for (W, H) and for (W G, G⁻¹ H) with any invertible G, and the first step is that of
alternating least squares.

Reference: Nocedal and Wright, Numerical Optimization, chapters 3 and 7.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from nmd_lab.data.base import FloatArray

MOST_PAIRS = 10  # pairs of a step and its change of the gradient that are kept
LARGE = 1 << 19  # size of a vector from which half as many are kept, to save memory
SUFFICIENT = 1e-4  # smallest decrease, relative to that by the slope (Armijo condition)
TRIALS = 10  # largest number of evaluations in a line search


class Point(NamedTuple):
    """A point at which the function has been evaluated.

    Attributes
    ----------
    x : ndarray (size,)
        Position.
    value : float
        Value of the function.
    gradient : ndarray (size,)
        Gradient of the function.
    accepted : bool
        Whether the point ends the line search.  The descent continues from it.
    """

    x: FloatArray
    value: float
    gradient: FloatArray
    accepted: bool = True


Pairs = deque[tuple[FloatArray, FloatArray]]
"""The last steps, each with the change of the gradient in it."""


def pairs_for(size: int) -> int:
    """Return the number of pairs that are kept for vectors of a size."""
    return MOST_PAIRS if size < LARGE else MOST_PAIRS // 2


def no_pairs(size: int) -> Pairs:
    """Return an empty memory for vectors of a size."""
    return deque(maxlen=pairs_for(size))


Preconditioner = Callable[[FloatArray], FloatArray]
"""Linear map from a gradient to a step."""


def descend(
    evaluate: Callable[[FloatArray], tuple[float, FloatArray]],
    preconditioner_at: Callable[[FloatArray], Preconditioner],
    start: Point,
    pairs: Pairs | None = None,
) -> Iterator[Point]:
    """Descend from a point, until no step lowers the value."""
    current = start
    pairs = no_pairs(start.x.size) if pairs is None else pairs
    while True:
        # no name for the preconditioner: the next one takes its memory
        direction = _times_inverse_hessian(current.gradient, pairs, preconditioner_at(current.x))
        np.negative(direction, out=direction)
        slope = float(current.gradient @ direction)
        accepted = None
        if slope < 0:
            for point in _search(evaluate, current, direction, slope):
                yield point
                accepted = point if point.accepted else None
        if accepted is None:
            if not pairs:
                return
            pairs.clear()  # they may be the cause: try once more without them
            continue
        step, change = accepted.x - current.x, accepted.gradient - current.gradient
        if step @ change > 1e-12 * np.linalg.norm(step) * np.linalg.norm(change):
            pairs.append((step, change))
        current = accepted


def _search(
    evaluate: Callable[[FloatArray], tuple[float, FloatArray]],
    start: Point,
    direction: FloatArray,
    slope: float,
) -> Iterator[Point]:
    """Yield points along a direction until one meets the Armijo condition.

    Each length minimises a parabola that fits the start and the last point, within bounds.
    """
    length = 1.0
    for _ in range(TRIALS):
        x = start.x + start.x.dtype.type(length) * direction
        value, gradient = evaluate(x)
        excess = value - start.value - length * slope  # above the tangent
        enough = value <= start.value + SUFFICIENT * length * slope
        yield Point(x, value, gradient, enough)
        if enough:
            return
        parabola = -slope * length * length / (2 * excess) if np.isfinite(excess) else 0.0
        length = min(max(parabola, 0.1 * length), 0.5 * length)


def _times_inverse_hessian(
    gradient: FloatArray, pairs: Pairs, precondition: Preconditioner
) -> FloatArray:
    """Return the two-loop product of the approximate inverse Hessian with the gradient."""
    q = gradient.copy()
    weights = []
    for step, change in reversed(pairs):
        weight = float(step @ q) / float(step @ change)
        q -= q.dtype.type(weight) * change
        weights.append(weight)
    z = precondition(q)
    if pairs:
        step, change = pairs[-1]
        size = float(change @ precondition(change))
        z *= z.dtype.type(float(step @ change) / size if size > 0 else 1.0)
    for (step, change), weight in zip(pairs, reversed(weights), strict=True):
        back = float(change @ z) / float(step @ change)
        z += z.dtype.type(weight - back) * step
    return z
