"""The T-update of a smooth f where the objective has several minima: outwards in short stretches.

The objective is g(t) = d(x, f(t)) + rho/2 (t - v)^2, with d convex in y.  A stretch of the line
around a point c is left out if a lower bound of g shows that no t in it is better than the best so
far: with S the largest |f'|, d(x, f(t)) >= d(x, f(c)) - |d'| S |t - c|.  It is left out, too, if g'
has one sign in it.  Otherwise, if g is certainly convex in it, its one minimum is found by Newton
steps within a bracket.  Otherwise half of it is looked at first.  The march ends where
rho/2 (t - v)^2 alone is too large.  `nmd_lab.model._curve` has the bounds of f' and f''.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nmd_lab._numba import compile_scalar

from ._curve import BLOCK, bounds_at, cell_of, curve_at

ScalarMap = Any

MOST_STRETCHES = 2000

SHORTEST = 1 / 64
"""Width of a stretch beside a gap of the table, in its units, that is not made shorter."""

NARROWEST = 1e-9
"""Smallest width of a stretch, relative to 1 + |t|, at which its middle stands for all of it."""

ROUNDING = 1e-13
"""Share of the objective that is no gain."""


def compile_march(value: ScalarMap, slopes: ScalarMap, domain: tuple[float, float]) -> ScalarMap:
    """Return the compiled march ``(v, x, rho, curve, pd) -> t``; NaN where the table has a gap.

    Parameters
    ----------
    value : callable
        Compiled d(x, y), convex in y.
    slopes : callable
        Compiled ``(x, y, p)`` with the first and second derivative of d in y.
    domain : tuple of float
        Smallest and largest y with a finite d.
    """
    one_side = _compile_side(value, slopes, domain)

    def march(v, x, rho, curve, pd):  # type: ignore[no-untyped-def]
        y = curve_at(v, curve)[0]
        lowest = value(x, y, pd)
        if not abs(lowest) < math.inf:
            return np.nan
        bottom = min(value(x, x, pd), 0.0)
        best, lowest = one_side(1.0, v, lowest, bottom, v, x, rho, curve, pd)
        if best == best:
            best, lowest = one_side(-1.0, best, lowest, bottom, v, x, rho, curve, pd)
        return best

    return compile_scalar(march)


def _compile_side(value: ScalarMap, slopes: ScalarMap, domain: tuple[float, float]) -> ScalarMap:
    """Return the compiled march on one side of v; it returns the best t and its objective."""
    lowest_within = _compile_newton(value, slopes)
    smallest, largest_y = domain

    def one_side(side, best, lowest, bottom, v, x, rho, curve, pd):  # type: ignore[no-untyped-def]
        per_scale = curve[4]
        distance = 0.0
        width = 0.0625 / per_scale
        for _ in range(MOST_STRETCHES):
            if 0.5 * rho * distance * distance + bottom >= lowest:
                return best, lowest
            near, far = v + side * distance, v + side * (distance + width)
            first, last = cell_of(min(near, far), per_scale), cell_of(max(near, far), per_scale)
            if first < 0 or last < 0:
                return np.nan, lowest
            least, largest, steepest = bounds_at(first // BLOCK, curve)
            for k in range(first // BLOCK + 1, last // BLOCK + 1):
                more = bounds_at(k, curve)
                least, largest = min(least, more[0]), max(largest, more[1])
                steepest = max(steepest, more[2])
            if not steepest < math.inf:  # a gap in the table
                if width * per_scale < SHORTEST:
                    return np.nan, lowest
                width *= 0.5
                continue
            middle, half = v + side * (distance + 0.5 * width), 0.5 * width
            y, slope, _, _ = curve_at(middle, curve)
            d, reach = value(x, y, pd), steepest * half
            pull, _ = slopes(x, y, pd)
            if not abs(d) < math.inf:
                if width <= NARROWEST * (1.0 + abs(middle)):
                    return np.nan, lowest
                width *= 0.5
                continue
            allowed = lowest - ROUNDING * abs(lowest)
            bound = d - abs(pull) * reach + 0.5 * rho * distance * distance
            handled = bound >= allowed
            if not handled:
                low, _ = slopes(x, max(y - reach, smallest), pd)  # d' rises with y
                high, _ = slopes(x, min(y + reach, largest_y), pd)
                bend = 0.0
                if high > 0.0:
                    bend = min(bend, high * least)
                if low < 0.0:
                    bend = min(bend, low * largest)
                turn = max(-least, largest) * half
                flat, steep = slope - turn, slope + turn
                a, b, c, e = low * flat, low * steep, high * flat, high * steep
                fall = min(min(a, b), min(c, e)) + rho * (min(near, far) - v)
                rise = max(max(a, b), max(c, e)) + rho * (max(near, far) - v)
                inside = y - reach >= smallest and y + reach <= largest_y  # minima may be at an end
                if inside and (fall > 0.0 or rise < 0.0):
                    handled = True
                elif inside and rho + bend > 0.0:
                    handled = True
                    moved = middle - v
                    here = d + 0.5 * rho * moved * moved
                    if here - abs(pull * slope + rho * moved) * half < allowed:
                        left, right = min(near, far), max(near, far)
                        t = lowest_within(left, right, v, x, rho, curve, pd)
                        y = curve_at(t, curve)[0]
                        attained = value(x, y, pd) + 0.5 * rho * (t - v) * (t - v)
                        if attained < lowest:
                            best, lowest = t, attained
                elif width <= NARROWEST * (1.0 + abs(middle)):
                    return np.nan, lowest
            if handled:
                distance += width
                width *= 2.0
            else:
                width *= 0.5
        return np.nan, lowest

    return compile_scalar(one_side)


def _compile_newton(value: ScalarMap, slopes: ScalarMap) -> ScalarMap:
    """Return the compiled search for the minimum of g on an interval where it is convex."""

    def lowest_within(left, right, v, x, rho, curve, pd):  # type: ignore[no-untyped-def]
        t = 0.5 * (left + right)
        for _ in range(80):
            y, slope, bend, _ = curve_at(t, curve)
            first, second = slopes(x, y, pd)
            gradient = first * slope + rho * (t - v)
            if gradient > 0.0:
                right = t
            else:
                left = t
            curvature = second * slope * slope + first * bend + rho
            step = -gradient / curvature if curvature > 0.0 else 0.0
            other = t + step
            if not left <= other <= right or step == 0.0:
                other = 0.5 * (left + right)
            moved, t = other - t, other
            if abs(moved) <= 1e-9 * (1e-3 + abs(t - v)) or right - left <= 1e-15 * abs(t):
                break
        return t

    return compile_scalar(lowest_within)
