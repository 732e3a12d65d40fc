"""Draws of a normal variable between two limits, and the mass there, stable far in the tails.

Where the mean lies between the limits, or near wide ones, a normal or a uniform number is drawn
until it is accepted.  Elsewhere the distance from the nearer limit is drawn from an exponential
distribution and accepted by rejection (C. P. Robert, "Simulation of truncated normal variables",
Statistics and Computing 5, 1995), so that a draw at 40 standard deviations costs no more than one
at two.
"""

from __future__ import annotations

import math

from nmd_lab._runtime.compiler import compile_scalar

from .streams import normal, uniform

SQRT_HALF = math.sqrt(0.5)
SQRT_HALF_PI = math.sqrt(0.5 * math.pi)
ASYMPTOTIC = 12.0  # from here on, ten terms of the asymptotic series have an error below 2e-13
NARROW = 1e-4  # below this width, in standard deviations, the quadratic term has no influence
WIDE, NEAR = 2.5, 0.6  # standard deviations at which normal numbers are accepted often enough
TRIES = 10_000  # ends the loops if an argument is NaN; at least a quarter of all tries is accepted


def _mills(a):  # type: ignore[no-untyped-def]
    if a < ASYMPTOTIC:
        return SQRT_HALF_PI * math.exp(0.5 * a * a) * math.erfc(a * SQRT_HALF)
    inverse, series = 1.0 / (a * a), 1.0
    for k in range(10, 0, -1):
        series = 1.0 - (2 * k - 1) * inverse * series
    return series / a


mills_ratio = compile_scalar(_mills)
"""``mills_ratio(a)``: mass of a standard normal variable above a >= 0, over the density at a."""


def _mass(a, b, width):  # type: ignore[no-untyped-def]
    if a <= 0.0 <= b:
        return SQRT_HALF_PI * (math.erf(b * SQRT_HALF) - math.erf(a * SQRT_HALF))
    near, far = (a, b) if a > 0.0 else (-b, -a)
    if width < NARROW:
        fall = near * width
        return width * (1.0 - 0.5 * fall) if fall < 1e-8 else -math.expm1(-fall) / near
    fall = 0.5 * width * (near + far)
    above = mills_ratio(near)
    return above - math.exp(-fall) * mills_ratio(far) if fall < 50.0 else above


mass_between = compile_scalar(_mass)
"""``mass_between(a, b, b - a)``: integral of exp(-z²/2) from a to b, over its maximum there.

It neither overflows nor underflows, however far from zero a and b are.  The width is an argument,
because b - a loses digits where the limits are close to each other.
"""


def _tail_distance(a, width, stream):  # type: ignore[no-untyped-def]
    # The rate `a` is best for narrow intervals and far tails, the other one close to the mean.
    rate = a if width < 1.0 or a > 100.0 else 0.5 * (a + math.sqrt(a * a + 4.0))
    share, shift = -math.expm1(-rate * width), rate - a
    distance = 0.0
    for _ in range(TRIES):
        u = uniform(stream)
        distance = -math.log1p(-u * share) / rate if rate * width > 1e-10 else u * width
        off = distance - shift
        if uniform(stream) <= math.exp(-0.5 * off * off):
            break
    return distance


_draw_tail = compile_scalar(_tail_distance)


def _around_mean(v, sd, low, high, stream):  # type: ignore[no-untyped-def]
    t = v
    for _ in range(TRIES):
        t = low + (high - low) * uniform(stream)
        z = (t - v) / sd
        if uniform(stream) <= math.exp(-0.5 * z * z):
            break
    return t


_draw_around = compile_scalar(_around_mean)


def _between(v, sd, low, high, stream):  # type: ignore[no-untyped-def]
    wide = high - low >= WIDE * sd
    if not (sd > 0.0 and low < high):
        t = v
    elif wide and max(low - v, v - high) < NEAR * sd:
        t = v + sd * normal(stream)
        for _ in range(TRIES):
            if low <= t <= high:
                break
            t = v + sd * normal(stream)
    elif low > v:
        t = low + sd * _draw_tail((low - v) / sd, (high - low) / sd, stream)
    elif high < v:
        t = high - sd * _draw_tail((v - high) / sd, (high - low) / sd, stream)
    else:
        t = _draw_around(v, sd, low, high, stream)
    return min(max(t, low), high)


draw_between = compile_scalar(_between)
"""``draw_between(v, sd, low, high, stream)``: a draw of N(v, sd²) between two limits.

Either limit may be infinite.  With sd = 0, or with low = high, the result is v, clipped to the
limits.
"""
