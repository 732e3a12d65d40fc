"""The cut points of ordinal data of highest likelihood, given the modelled values.

Minus the log-likelihood is convex in the cut points, and each term depends on two neighbours.  So
Newton's steps need a matrix of three diagonals only.  The logarithm of the normal probability of an
interval is exact far into the tails.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solveh_banded
from scipy.special import ndtr

from nmd_lab._runtime.compiler import compile_kernel, compile_scalar

from .base import FloatArray

Array = NDArray[np.float64]

STEPS = 25
"""Largest number of Newton's steps."""

DECREASE = 1e-10
"""Expected relative decrease at which the steps end."""

GAP = 1e-7
"""Distance of the cut points around a level that X does not have."""


@cache
def _derivatives_kernel() -> Any:
    """Return the compiled sum of minus the log-likelihood and its derivatives."""

    def derivatives(codes, y, weights, cuts, gradient, bands):  # type: ignore[no-untyped-def]
        total = 0.0
        for i in range(codes.size):
            k, w = codes[i], weights[i]
            a = cuts[k - 1] - y[i] if k > 0 else -math.inf
            b = cuts[k] - y[i] if k < cuts.size else math.inf
            total -= w * log_probability(a, b)
            at_a, at_b, _ = slopes(a, b)
            if k > 0:
                gradient[k - 1] += w * at_a
                bands[1, k - 1] += w * at_a * (at_a - a)
            if k < cuts.size:
                gradient[k] -= w * at_b
                bands[1, k] += w * at_b * (at_b + b)
            if 0 < k < cuts.size:
                bands[0, k] -= w * at_a * at_b
        return total

    return compile_kernel(derivatives, "cut_point_derivatives", cached=True)


def best_cut_points(
    codes: NDArray[np.intp], y: FloatArray, weights: FloatArray, cuts: Array
) -> Array:
    """Return ascending cut points of highest likelihood."""
    present = np.unique(codes)
    if present.size < 2:
        return cuts
    among_present = np.searchsorted(present, codes).astype(np.intp)
    inputs = np.ascontiguousarray(y, np.float64), np.ascontiguousarray(weights, np.float64)
    found = _newton(among_present, *inputs, np.array([cuts[k] for k in present[:-1]]))
    result = np.array(cuts, dtype=np.float64)
    for at, first, last in zip(found, present[:-1], present[1:], strict=True):
        result[first:last] = at + GAP * np.arange(last - first)
    for k in range(present[0] - 1, -1, -1):
        result[k] = min(result[k], result[k + 1] - 1.0)
    for k in range(present[-1], cuts.size):
        result[k] = max(result[k], result[k - 1] + 1.0)
    return result


def _newton(codes: NDArray[np.intp], y: Array, weights: Array, cuts: Array) -> Array:
    """Return the minimiser by Newton's steps, each as long as the objective falls."""

    def derivatives(at: Array) -> tuple[float, Array, Array]:
        gradient, bands = np.zeros(at.size), np.zeros((2, at.size))
        total = _derivatives_kernel()(codes, y, weights, at, gradient, bands)
        return float(total), gradient, bands

    value, gradient, bands = derivatives(cuts)
    for _ in range(STEPS):
        bands[1] += 1e-12 * (1.0 + np.abs(bands[1]))
        single = cuts.size == 1
        step = -(gradient / bands[1] if single else np.asarray(solveh_banded(bands, gradient)))
        expected = -float(gradient @ step)
        if not expected > DECREASE * (1.0 + abs(value)):
            break
        for _ in range(40):
            new = cuts + step
            if np.all(np.diff(new) > GAP):
                new_value, new_gradient, new_bands = derivatives(new)
                if new_value <= value - 1e-4 * expected:
                    break
            step, expected = 0.5 * step, 0.5 * expected
        else:
            break
        cuts, value, gradient, bands = new, new_value, new_gradient, new_bands
    return cuts


LOG_ROOT = 0.5 * math.log(2.0 * math.pi)
DENSITY = math.exp(-LOG_ROOT)  # of a standard normal variable at 0
LIKELY = 1e-2  # probability from which a difference of distribution functions is exact enough
NARROW = 1e-2
SQRT_HALF = math.sqrt(0.5)
SQRT_HALF_PI = math.sqrt(0.5 * math.pi)
ASYMPTOTIC = 12.0  # from here on, ten terms of the asymptotic series have an error below 2e-13


@compile_scalar
def mills_ratio(z: float) -> float:
    """Return the probability above z >= 0 over the density at z, for a standard normal variable."""
    if z < ASYMPTOTIC:
        return SQRT_HALF_PI * math.exp(0.5 * z * z) * math.erfc(z * SQRT_HALF)
    inverse, series = 1.0 / (z * z), 1.0
    for k in range(10, 0, -1):
        series = 1.0 - (2 * k - 1) * inverse * series
    return series / z


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


def interval_mass(a: Array, b: Array) -> Array:
    """Return the standard normal probability between a and b, exact in both tails; 0 if a > b."""
    upper = a > 0  # there the difference of small numbers keeps its digits
    low, high = np.where(upper, -b, a), np.where(upper, -a, b)
    return np.asarray(np.maximum(ndtr(high) - ndtr(low), 0))


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
