"""The T-update of a smooth f by Newton steps, with a certificate that they find the minimum.

The objective g(t) = d(x, f(t)) + rho/2 (t - v)^2 has the second derivative

    g'' = d'' f'^2 + d' f'' + rho    (d', d'' with respect to y = f(t)).

Let d be convex in y.  A minimiser t* has d(x, f(t*)) <= d(x, f(v)).  On the way from v to t*, no
value of f lies beyond the y where d is least, or that point would be a better t.  So all of them
lie on one side of this y, with |d'| <= |d'(f(v))|, and within the distance
sqrt(2 (d(x, f(v)) - least d) / rho) of v.  If rho exceeds |d'(f(v))| times the largest bend of f
in the harmful direction there, g is convex where t* can be, and the point where g' = 0 is t*.
`nmd_lab.model._curve` has the bounds of f'' for this test.  Where it fails, the caller searches.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nmd_lab._numba import compile_scalar

from ._curve import BLOCK, bounds_at, cell_of, curve_at

ScalarMap = Any

MARGIN = 0.9
"""Share of rho that the harmful bend may reach."""

MOST_STEPS = 12

NEGLIGIBLE = 1e-5
"""Square of the last step in the norm of g'', relative to rho (t - v)^2.  The error after it is of
the third order in this step."""


def compile_descent(value: ScalarMap, slopes: ScalarMap, domain: tuple[float, float]) -> ScalarMap:
    """Return compiled Newton steps ``(v, x, rho, curve, pd) -> t``; NaN without a certificate.

    Parameters
    ----------
    value : callable
        Compiled d(x, y), convex in y.
    slopes : callable
        Compiled ``(x, y, p)`` with the first and second derivative of d in y.
    domain : tuple of float
        Smallest and largest y with a finite d.
    """
    accept = _compile_acceptance(domain)

    def descend(v, x, rho, curve, pd):  # type: ignore[no-untyped-def]
        y, slope, bend, third = curve_at(v, curve)
        first, second = slopes(x, y, pd)
        drop = value(x, y, pd) - min(value(x, x, pd), 0.0)
        if not is_convex(v, rho, first, first, drop, curve):
            return np.nan
        t = v
        for _ in range(MOST_STEPS):
            gradient = first * slope + rho * (t - v)
            curvature = second * slope * slope + first * bend + rho
            # Halley's step; the derivative of d'' is left out.
            higher = 3.0 * second * slope * bend + first * third
            square = curvature * curvature
            damped = max(square - 0.5 * gradient * higher, 0.25 * square)
            step = -gradient * curvature / damped
            t += step
            moved = t - v
            if step * step * curvature <= NEGLIGIBLE * rho * moved * moved:
                return accept(t, rho * moved * moved, drop, curve)
            y, slope, bend, third = curve_at(t, curve)
            first, second = slopes(x, y, pd)
        return np.nan

    return compile_scalar(descend)


def compile_proximal_descent(
    value: ScalarMap, proximal: ScalarMap, domain: tuple[float, float]
) -> ScalarMap:
    """Return the same for a loss that has a proximal map but no derivatives.

    Each step solves d(x, f + f' s) + rho/2 (t + s - v)^2 + d' f''/2 s^2 for s by the proximal map;
    its d' is that of the step before.  So a kink of d is no obstacle.
    """
    accept = _compile_acceptance(domain)

    def descend(v, x, rho, curve, pd):  # type: ignore[no-untyped-def]
        y, slope, bend, _ = curve_at(v, curve)
        here = value(x, y, pd)
        shift = 1e-3 * abs(x - y) + 1e-9 * (abs(y) + 1e-3)
        rise = (value(x, y + shift, pd) - here) / shift
        fall = (here - value(x, y - shift, pd)) / shift
        drop = here - min(value(x, x, pd), 0.0)
        if not is_convex(v, rho, fall, rise, drop, curve):
            return np.nan
        t, pull, most = v, 0.5 * (fall + rise), max(abs(fall), abs(rise))
        for _ in range(2 * MOST_STEPS):
            stiff = max(rho + pull * bend, 0.05 * rho)
            ahead = rho * (v - t) / stiff
            if slope * slope < 1e-100 * stiff:
                return np.nan
            target = proximal(y + slope * ahead, x, stiff / (slope * slope), pd)
            step = (target - y) / slope
            if not abs(target - y) > 1e-7 * abs(y):
                if t == v and not (rise - fall) * (rise - fall) < 1e-4 * rise * rise:
                    return np.nan
                if t == v:
                    step = ahead - pull * slope / stiff
            else:
                pull = min(max(stiff * (ahead - step) / slope, -most), most)
            t += step
            moved = t - v
            if step * step * (stiff + slope * slope) <= 1e-10 * rho * moved * moved:
                return accept(t, rho * moved * moved, drop, curve)
            y, slope, bend, _ = curve_at(t, curve)
        return np.nan

    return compile_scalar(descend)


def _compile_acceptance(domain: tuple[float, float]) -> ScalarMap:
    """Return a compiled function for t, or NaN if t is where no minimiser can be."""
    low, high = domain
    bounded = low > -math.inf or high < math.inf

    def accept(t, square, drop, curve):  # type: ignore[no-untyped-def]
        if not square <= 2.02 * drop:
            return np.nan
        if bounded:
            y = curve_at(t, curve)[0]
            if not low <= y <= high:
                return np.nan
        return t

    return compile_scalar(accept)


@compile_scalar
def is_convex(v, rho, fall, rise, drop, curve):  # type: ignore[no-untyped-def]
    """Return whether g is certainly convex wherever its minimiser can be.

    `fall` and `rise` bound d' at f(v), and `drop` is d(x, f(v)) above its least value.
    """
    least, largest, left, right = curve[2], curve[3], curve[5], curve[6]
    steepest = max(abs(fall), abs(rise))
    use_least, use_largest = rise > 0.0, fall < 0.0
    room = min(v - left, right - v)
    if room > 0.0 and 2.02 * drop <= rho * room * room:
        harm = max(-least if use_least else 0.0, largest if use_largest else 0.0)
        if steepest * harm <= MARGIN * rho:
            return True
    return is_convex_nearby(v, rho, steepest, use_least, use_largest, drop, curve)


@compile_scalar
def is_convex_nearby(v, rho, steepest, use_least, use_largest, drop, curve):  # type: ignore[no-untyped-def]
    """Return the same with the bounds of f'' near v alone."""
    per_scale = curve[4]
    radius = math.sqrt(2.02 * drop / rho)
    for _ in range(3):
        left = cell_of(v - radius, per_scale)
        right = cell_of(v + radius, per_scale)
        if left < 0 or right < 0:
            return False
        harm, slope = 0.0, 0.0
        for k in range(left // BLOCK, 1 + right // BLOCK):
            least, largest, steepest_f = bounds_at(k, curve)
            if use_least:
                harm = max(harm, -least)
            if use_largest:
                harm = max(harm, largest)
            slope = max(slope, steepest_f)
        if steepest * harm <= MARGIN * rho:
            return True
        nearer = 1.01 * steepest * slope / rho
        if not nearer < 0.7 * radius:
            return False
        radius = nearer
    return False
