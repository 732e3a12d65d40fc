"""Closed forms of the T-update of clipped functions with the Kullback-Leibler divergence.

The comparison of pieces would take a logarithm for each of them.  Here a piece wins by the signs of
a few differences, or by one logarithm.
"""

from __future__ import annotations

import math

from ._logarithm import excess_over_log


def relu_kl(v: float, x: float, rho: float) -> float:
    """Return the T-update of ReLU.

    For x > 0 the flat piece has an infinite divergence.  For x = 0 the divergence is max(0, t).
    """
    b = 1.0 - rho * v
    root = math.sqrt(b * b + 4.0 * rho * x)
    positive = 2.0 * x / (b + root) if b > 0.0 else (root - b) / (2.0 * rho)
    return positive if x > 0.0 else min(v, max(-b / rho, 0.0))


def minmax_kl(
    v: float, x: float, rho: float, bounds: tuple[float, float], pd: tuple[float, ...]
) -> float:
    """Return the T-update of MinMax with bounds a and b, b >= 0.

    A flat piece can win only where v lies beyond its bound e, as t = v.  It does so if
    d(x, e) - d(x, t) <= ρ/2 (t - v)² for the best t between the bounds.
    """
    low, high = max(bounds[0], 0.0), bounds[1]
    b = 1.0 - rho * v
    root = math.sqrt(b * b + 4.0 * rho * x)
    t = 2.0 * x / (b + root) if b > 0.0 else (root - b) / (2.0 * rho)
    t = min(max(t, low), high)
    bound = high if v > high else low
    ratio = t / max(bound, 1e-300)
    log = ratio - 1.0 - excess_over_log(ratio - 1.0, ratio)
    gain = x * log + bound - t if x > 0.0 else bound - t
    gain = math.inf if bound == 0.0 and x > 0.0 else gain
    beyond = v > high or (v < bounds[0] and bounds[0] >= 0.0)
    return v if beyond and gain <= 0.5 * rho * (t - v) * (t - v) else t
