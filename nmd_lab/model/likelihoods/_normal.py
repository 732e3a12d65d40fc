"""Logarithm of the normal probability of an interval, and its derivatives, far into the tails."""

from __future__ import annotations

import math

from nmd_lab._numba import compile_scalar

LOG_ROOT = 0.5 * math.log(2.0 * math.pi)
DENSITY = math.exp(-LOG_ROOT)  # of a standard normal variable at 0
LIKELY = 1e-2  # probability from which a difference of distribution functions is exact enough
NARROW = 1e-2
FAR = 30.0


@compile_scalar
def mills_ratio(z: float) -> float:
    """Return the probability above z >= 0 over the density at z, for a standard normal variable."""
    if z > FAR:  # the density would underflow
        s = 1.0 / (z * z)
        return (1.0 - s * (1.0 - 3.0 * s * (1.0 - 5.0 * s * (1.0 - 7.0 * s)))) / z
    return 0.5 * math.erfc(z / math.sqrt(2.0)) * math.exp(0.5 * z * z + LOG_ROOT)


@compile_scalar
def log_probability(a: float, b: float) -> float:
    """Return log(Φ(b) - Φ(a)) for a < b; either may be infinite."""
    if a + b < 0.0:  # by symmetry, the interval is on the right or holds zero
        a, b = -b, -a
    if a <= 0.0:
        if a == -math.inf and b == math.inf:
            return 0.0
        if a < -1.0:  # near one
            return math.log1p(
                -0.5 * (math.erfc(b / math.sqrt(2.0)) + math.erfc(-a / math.sqrt(2.0)))
            )
        return math.log(0.5 * (math.erf(b / math.sqrt(2.0)) - math.erf(a / math.sqrt(2.0))))
    width, middle = b - a, 0.5 * (a + b)
    if width * max(1.0, middle) < NARROW:
        curved = width * width * (middle * middle - 1.0) / 24.0
        return math.log(width) - 0.5 * middle * middle - LOG_ROOT + math.log1p(curved)
    ratio = mills_ratio(a)
    if b < math.inf:
        ratio -= mills_ratio(b) * math.exp(-width * middle)
    return math.log(ratio) - 0.5 * a * a - LOG_ROOT


@compile_scalar
def slopes(a: float, b: float) -> tuple[float, float, float]:
    """Return density at a and at b over Φ(b) - Φ(a), and their difference b minus a."""
    p = 0.5 * (math.erf(b / math.sqrt(2.0)) - math.erf(a / math.sqrt(2.0)))
    if p > LIKELY:
        at_a, at_b = DENSITY * math.exp(-0.5 * a * a) / p, DENSITY * math.exp(-0.5 * b * b) / p
        return at_a, at_b, at_b - at_a
    log_p = log_probability(a, b)
    at_a = math.exp(-0.5 * a * a - LOG_ROOT - log_p) if a > -math.inf else 0.0
    at_b = math.exp(-0.5 * b * b - LOG_ROOT - log_p) if b < math.inf else 0.0
    if (b - a) * max(1.0, abs(a + b)) < NARROW:  # the difference would cancel
        return at_a, at_b, -0.5 * (a + b)
    return at_a, at_b, at_b - at_a
