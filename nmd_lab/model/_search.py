"""The T-update of any continuous f with any loss, by steps on a certificate or by a search."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nmd_lab._numba import compile_scalar

ScalarMap = Callable[..., Any]
"""A compiled function of scalars."""


@dataclass(frozen=True)
class SearchOptions:
    """Numbers that steer the search.

    Attributes
    ----------
    first_step : float
        First distance of a scanned point from v, relative to the radius of the bracket.
    growth : float
        Ratio of two steps near v.
    share : float
        Longest step, relative to the radius of the bracket.
    reach : float
        Longest step at the distance D from v, relative to D; steps of `step` are always allowed.
    step : float
        Longest step near v, in units of t.
    tolerance : float
        Width of the last bracket of a golden-section search, relative to 1 + |t|.
    n_golden : int
        Largest number of golden-section steps.
    first_radius : float
        Half of the first distance from v at which a t with finite loss is sought, relative to
        1 + |v|.
    last_radius : float
        Distance from v at which that search ends without success.
    most_points : int
        Largest number of scanned points on each side of v.
    """

    first_step: float = 1e-5
    growth: float = 1.6
    share: float = 1.0 / 48.0
    reach: float = 1.0 / 32.0
    step: float = 1.0 / 16.0
    tolerance: float = 1e-15
    n_golden: int = 90
    first_radius: float = 1e-6
    last_radius: float = 1e30
    most_points: int = 20_000


def compile_search(
    forward: ScalarMap,
    value: ScalarMap,
    descent: ScalarMap | None = None,
    options: SearchOptions | None = None,
) -> ScalarMap:
    """Return a compiled search for the minimiser of d(x, f(t)) + rho/2 (t - v)^2.

    Parameters
    ----------
    forward, value : callable
        Compiled f and d, with d >= min(0, d(x, x)).
    descent : callable, optional
        Compiled steps (`nmd_lab.model._descent`), whose result is taken unless it is NaN.
    options : SearchOptions, optional
        Numbers that steer the search.

    Returns
    -------
    callable
        ``(v, x, rho, curve, pf, pd) -> t``, with the curve of f for `descent`, and the parameters
        `pf` of f and `pd` of d.

    Notes
    -----
    The best objective so far bounds the distance of the minimiser from v.  The search scans both
    sides outwards from v, with short steps near v, until this distance is reached.  Each point
    that is lower than its neighbours is refined by a golden-section search, and a t with f(t) = x
    is found by bisection, since d may have a kink there.  A minimum narrower than a step, a 16th of
    a unit of t or a 32nd of the distance from v, can be missed.
    """
    search = _compile_search(forward, value, options or SearchOptions())
    if descent is None:

        def solution(v, x, rho, curve, pf, pd):  # type: ignore[no-untyped-def]
            return search(v, x, rho, pf, pd)

    else:

        def solution(v, x, rho, curve, pf, pd):  # type: ignore[no-untyped-def]
            t = descent(v, x, rho, curve, pd)
            return t if math.isfinite(t) else search(v, x, rho, pf, pd)

    return compile_scalar(solution)


def _compile_search(forward: ScalarMap, value: ScalarMap, options: SearchOptions) -> ScalarMap:
    """Return the compiled search from a point with a finite objective."""
    first_point = _compile_first_point(forward, value, options)
    scan = _compile_scan(forward, value, options)
    refine = _compile_refinement(forward, value, options)

    def search(v, x, rho, pf, pd):  # type: ignore[no-untyped-def]
        best, lowest = first_point(v, x, rho, pf, pd)
        if not lowest < math.inf:
            return v
        bottom = value(x, x, pd)
        bottom = bottom if bottom < 0.0 else 0.0
        for side in (-1.0, 1.0):
            best, lowest = scan(side, best, lowest, bottom, v, x, rho, pf, pd)
        width = max(abs(best - v) * 1e-3, 1e-9 * (1.0 + abs(best)))
        return refine(best - width, best + width, best, lowest, v, x, rho, pf, pd)[0]

    return compile_scalar(search)


def _compile_scan(forward: ScalarMap, value: ScalarMap, options: SearchOptions) -> ScalarMap:
    """Return the compiled scan of one side of v."""
    # Numba captures plain numbers, not the attributes of an object.
    first_step, growth, share = options.first_step, options.growth, options.share
    reach, step_of_t, most_points = options.reach, options.step, options.most_points
    objective = _compile_objective(forward, value)
    refine = _compile_refinement(forward, value, options)
    crossing = _compile_crossing(forward)

    def scan(side, best, lowest, bottom, v, x, rho, pf, pd):  # type: ignore[no-untyped-def]
        radius = math.sqrt(2.0 * (lowest - bottom) / rho)
        step = first_step * radius
        # Three points side by side and their objectives; the one at v begins.
        before, at_before = v - side * step, objective(v - side * step, v, x, rho, pf, pd)
        middle, at_middle = v, objective(v, v, x, rho, pf, pd)
        above = forward(v, pf) > x
        distance = 0.0
        for _ in range(most_points):
            radius = math.sqrt(2.0 * max(lowest - bottom, 0.0) / rho)
            longest = min(share * radius, max(step_of_t, reach * distance))
            distance += step
            step = min(growth * step, max(longest, step))
            t = v + side * distance
            now_above = forward(t, pf) > x
            n_points = 1
            if now_above != above:
                middle_t = crossing(middle, t, x, above, pf)
                n_points = 2 if middle_t != middle and middle_t != t else 1
            for k in range(n_points):
                after = middle_t if n_points == 2 and k == 0 else t
                at_after = objective(after, v, x, rho, pf, pd)
                if at_middle <= at_before and at_middle <= at_after:
                    deepest = 3.0 * at_middle - 2.0 * max(at_before, at_after)
                    if deepest < lowest or not deepest > -math.inf:
                        best, lowest = refine(before, after, best, lowest, v, x, rho, pf, pd)
                if at_after < lowest:
                    best, lowest = after, at_after
                before, at_before, middle, at_middle = middle, at_middle, after, at_after
            above = now_above
            if distance > radius:
                break
        return best, lowest

    return compile_scalar(scan)


def _compile_crossing(forward: ScalarMap) -> ScalarMap:
    """Return the compiled bisection for a t with f(t) = x between two points."""

    def crossing(a, b, x, above, pf):  # type: ignore[no-untyped-def]
        for _ in range(60):
            t = a + 0.5 * (b - a)
            if t in (a, b):
                break
            if (forward(t, pf) > x) == above:
                a = t
            else:
                b = t
        return b if abs(forward(b, pf) - x) < abs(forward(a, pf) - x) else a

    return compile_scalar(crossing)


def _compile_refinement(forward: ScalarMap, value: ScalarMap, options: SearchOptions) -> ScalarMap:
    """Return the compiled golden-section search between two points."""
    n_golden, tolerance = options.n_golden, options.tolerance
    golden = 0.5 * (math.sqrt(5.0) - 1.0)
    objective = _compile_objective(forward, value)

    def refine(a, b, best, lowest, v, x, rho, pf, pd):  # type: ignore[no-untyped-def]
        left, right = min(a, b), max(a, b)
        inner_left, inner_right = right - golden * (right - left), left + golden * (right - left)
        at_left = objective(inner_left, v, x, rho, pf, pd)
        at_right = objective(inner_right, v, x, rho, pf, pd)
        for _ in range(n_golden):
            if at_left < lowest:
                best, lowest = inner_left, at_left
            if at_right < lowest:
                best, lowest = inner_right, at_right
            if right - left <= tolerance * (1.0 + abs(left)):
                break
            if at_left < at_right or not at_right < math.inf:
                right, inner_right, at_right = inner_right, inner_left, at_left
                inner_left = right - golden * (right - left)
                at_left = objective(inner_left, v, x, rho, pf, pd)
            else:
                left, inner_left, at_left = inner_left, inner_right, at_right
                inner_right = left + golden * (right - left)
                at_right = objective(inner_right, v, x, rho, pf, pd)
        return best, lowest

    return compile_scalar(refine)


def _compile_objective(forward: ScalarMap, value: ScalarMap) -> ScalarMap:
    """Return the compiled objective of the T-update."""

    def objective(t, v, x, rho, pf, pd):  # type: ignore[no-untyped-def]
        attained = value(x, forward(t, pf), pd) + 0.5 * rho * (t - v) * (t - v)
        return attained if attained > -math.inf else math.inf  # NaN and -inf are no minimum

    return compile_scalar(objective)


def _compile_first_point(forward: ScalarMap, value: ScalarMap, options: SearchOptions) -> ScalarMap:
    """Return a compiled search for a t with finite objective near v."""
    objective = _compile_objective(forward, value)
    first_radius, last_radius = options.first_radius, options.last_radius

    def first_point(v, x, rho, pf, pd):  # type: ignore[no-untyped-def]
        best, lowest, reach = v, objective(v, v, x, rho, pf, pd), first_radius * (1.0 + abs(v))
        while not lowest < math.inf and reach < last_radius:  # f(v) outside the loss's domain
            reach *= 2.0
            for t in (v - reach, v + reach):
                if objective(t, v, x, rho, pf, pd) < lowest:
                    best, lowest = t, objective(t, v, x, rho, pf, pd)
        return best, lowest

    return compile_scalar(first_point)
