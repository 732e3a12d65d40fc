"""The cut points of ordinal data of highest likelihood, given the modelled values.

Minus the log-likelihood is convex in the cut points, and each term depends on two neighbours.  So
Newton's steps need a matrix of three diagonals only.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solveh_banded

from nmd_lab._numba import compile_kernel

from ._normal import log_probability, slopes

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
    codes: NDArray[np.intp], y: NDArray[np.floating], weights: NDArray[np.floating], cuts: Array
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
