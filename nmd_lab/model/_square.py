"""Closed forms of the T-update of f(t) = t^2, for v >= 0 and one loss each."""

from __future__ import annotations

import math


def square_frobenius(v: float, x: float, rho: float) -> float:
    """Return the positive root of t^3 + (rho/2 - x) t - rho v/2.

    The cubic is convex for t > 0 and non-negative at the start.  So Newton's iterates decrease
    monotonically to the root.
    """
    linear, constant = 0.5 * rho - x, 0.5 * rho * v
    t = max(math.sqrt(max(x, 0.0)), v)
    for _ in range(80):
        slope = 3.0 * t * t + linear
        if slope <= 0.0:
            break
        step = (t * (t * t + linear) - constant) / slope
        t -= step
        if step <= 1e-15 * t:
            break
    return max(t, 0.0)


def square_l1(v: float, x: float, rho: float) -> float:
    """Return √x, clipped to the two t at which a slope of |x - t^2| balances the quadratic."""
    t = max(math.sqrt(max(x, 0.0)), rho * v / (rho + 2.0))
    return min(t, rho * v / (rho - 2.0)) if rho > 2.0 else t


def square_kl(v: float, x: float, rho: float) -> float:
    """Return the positive root of (rho + 2) t^2 - rho v t - 2 x."""
    b = rho * v
    return (b + math.sqrt(b * b + 8.0 * x * (rho + 2.0))) / (2.0 * (rho + 2.0))
