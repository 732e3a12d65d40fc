"""The T-update between v and the point at which f takes the best value.

f rises, and d(x, y) never falls on the way from its least value, which most losses have at y = x.
So the minimiser lies between v and the t at which f has that value.  Local minima are sought on a
grid that is dense towards both ends, where f or d can change fast, and then on one whose f(t) are
as dense.  Each is refined.
"""

from __future__ import annotations

import math

import numpy as np

from nmd_lab._numba import compile_scalar

from ._search import ScalarMap
from .loss import Loss
from .nonlinearity import Nonlinearity

STEPS_OF_HALF = 56
"""Number of grid points on each half of the bracket."""

FINEST = 1e-12
"""Distance of the first grid point from each end, as a share of the bracket."""

_HALF = np.concatenate([[0.0], np.geomspace(FINEST, 0.5, STEPS_OF_HALF)])
GRID: tuple[float, ...] = (*_HALF.tolist(), *(1.0 - _HALF[-2::-1]).tolist())
"""Grid points as shares of the bracket; those of the right half are counted from its end."""

GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


def is_bracketed(f: type[Nonlinearity], d: type[Loss]) -> bool:
    """Return whether the T-update of a pair is found in this way."""
    known = f.inverse is not Nonlinearity.inverse
    return known and (f.even or f.steep or not d.convex or d.domain[0] > -math.inf)


def compile_bracket_search(f: type[Nonlinearity], d: type[Loss]) -> ScalarMap:
    """Return the compiled T-update; for an even f it is that for v >= 0."""
    forward, value = compile_scalar(f.forward), compile_scalar(d.value)
    inverse, least_at = compile_scalar(f.inverse), compile_scalar(d.least_at)
    lowest_y = d.domain[0]
    n = len(GRID)

    def objective(t, v, x, rho, pf, pd):  # type: ignore[no-untyped-def]
        return value(x, forward(t, pf), pd) + 0.5 * rho * (t - v) * (t - v)

    cost = compile_scalar(objective)

    def refine(left, right, v, x, rho, pf, pd):  # type: ignore[no-untyped-def]
        width = GOLDEN * (right - left)
        a, b = right - width, left + width
        at_a, at_b = cost(a, v, x, rho, pf, pd), cost(b, v, x, rho, pf, pd)
        for _ in range(90):
            if at_a <= at_b:
                right, b, at_b = b, a, at_a
                a = right - GOLDEN * (right - left)
                at_a = cost(a, v, x, rho, pf, pd)
            else:
                left, a, at_a = a, b, at_b
                b = left + GOLDEN * (right - left)
                at_b = cost(b, v, x, rho, pf, pd)
            if right - left <= 1e-13 * (abs(left) + abs(right)):
                break
        return (a, at_a) if at_a <= at_b else (b, at_b)

    refined = compile_scalar(refine)

    def solution(v, x, rho, pieces, pf, pd):  # type: ignore[no-untyped-def]
        near = v if lowest_y == -math.inf else max(v, inverse(lowest_y, pf))
        best, lowest = near, cost(near, v, x, rho, pf, pd)
        reach = math.sqrt(2.0 * max(lowest, 0.0) / rho)  # farther away the quadratic is larger
        far = min(max(inverse(least_at(x, pd), pf), v - reach), v + reach)
        left, right, length = min(near, far), max(near, far), abs(far - near)
        at_far = cost(far, v, x, rho, pf, pd)
        if at_far < lowest:
            best, lowest = far, at_far
        bottom, top = forward(left, pf), forward(right, pf)
        for even_in_t in (True, False):
            before, middle = left, left
            at_before, at_middle = math.inf, cost(left, v, x, rho, pf, pd)
            for k in range(1, n + 1):
                after, at_after = right, math.inf
                if k < n:
                    from_right = 2 * k >= n
                    share = GRID[n - 1 - k if from_right else k]
                    if even_in_t:
                        after = right - share * length if from_right else left + share * length
                    else:
                        step = share * (top - bottom)
                        y = top - step if from_right else bottom + step
                        after = min(max(inverse(y, pf), left), right)
                    at_after = cost(after, v, x, rho, pf, pd)
                if at_middle <= at_before and at_middle <= at_after and at_middle < math.inf:
                    t, reached = refined(before, after, v, x, rho, pf, pd)
                    if reached < lowest:
                        best, lowest = t, reached
                before, at_before, middle, at_middle = middle, at_middle, after, at_after
        return best

    return compile_scalar(solution)
