"""Limited-memory quasi-Newton descent (L-BFGS) with a preconditioner.

The preconditioner is the initial inverse Hessian.  For two factors it is that of alternating least
squares: the gradient of W is multiplied by (HHᵀ)⁻¹ and that of H by (WᵀW)⁻¹.  Then the descent is
the same for (W, H) and for (W G, G⁻¹ H) with any invertible G, and the first step is that of
alternating least squares.

Reference: Nocedal and Wright, Numerical Optimization, chapters 3 and 7.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nmd_lab.data.entries import FloatArray

MAX_PAIRS = 10  # pairs of a step and its change of the gradient that are kept
MAX_TRIALS = 10  # largest number of evaluations in a line search


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
    return MAX_PAIRS if size < 1 << 19 else MAX_PAIRS // 2  # to save memory


MAX_KEPT_NUMBERS = 1 << 22  # numbers that a refinement may always keep, 32 MiB of doubles


def memory_allows(numbers: int, stored: int) -> bool:
    """Return whether a refinement may keep an array, given its size and that of the data."""
    return numbers <= max(4 * stored, MAX_KEPT_NUMBERS)


Preconditioner = Callable[[FloatArray], FloatArray]
"""Linear map from a gradient to a step."""


@dataclass
class Line:
    """A line search: the next point is at `length` along `direction`."""

    direction: FloatArray
    slope: float
    length: float = 1.0
    trials: int = 0


@dataclass
class Descent:
    """Where a descent stands: its point, a line search from there, and how that has ended."""

    current: Point
    line: Line | None = None
    accepted: Point | None = None


def descend(
    descent: Descent,
    evaluate: Callable[[FloatArray], tuple[float, FloatArray]],
    preconditioner_at: Callable[[FloatArray], Preconditioner],
    pairs: Pairs,
) -> Point | None:
    """Evaluate one more point, and return it; None if no step lowers the value."""
    if descent.accepted is not None:
        _remember(descent.current, descent.accepted, pairs)
        descent.current, descent.line, descent.accepted = descent.accepted, None, None
    while True:
        if descent.line is None:
            start = descent.current
            # no name for the preconditioner: the next one takes its memory
            direction = _times_inverse_hessian(start.gradient, pairs, preconditioner_at(start.x))
            np.negative(direction, out=direction)
            descent.line = Line(direction, float(start.gradient @ direction))
        if descent.line.slope < 0 and descent.line.trials < MAX_TRIALS:
            return _try(descent, descent.line, evaluate)
        descent.line = None
        if not pairs:
            return None
        pairs.clear()  # they may be the cause: try once more without them


def _remember(before: Point, after: Point, pairs: Pairs) -> None:
    """Add a step and its change of the gradient to the memory, if the slope has grown along it."""
    step, change = after.x - before.x, after.gradient - before.gradient
    if step @ change > 1e-12 * np.linalg.norm(step) * np.linalg.norm(change):
        pairs.append((step, change))


def _try(
    descent: Descent, line: Line, evaluate: Callable[[FloatArray], tuple[float, FloatArray]]
) -> Point:
    """Return the next point of a line search.

    It is accepted if it meets the Armijo condition.  If not, the next length minimises a parabola
    that fits the start and this point, within bounds.
    """
    start, length, slope = descent.current, line.length, line.slope
    x = start.x + start.x.dtype.type(length) * line.direction
    value, gradient = evaluate(x)
    excess = value - start.value - length * slope  # above the tangent
    enough = value <= start.value + 1e-4 * length * slope
    point = Point(x, value, gradient, enough)
    if enough:
        descent.accepted = point
    else:
        parabola = -slope * length * length / (2 * excess) if np.isfinite(excess) else 0.0
        line.length = min(max(parabola, 0.1 * length), 0.5 * length)
        line.trials += 1
    return point


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
