"""A scalar search for the T-update of a nonlinearity that has neither pieces nor closed form."""

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
    n_grid : int
        Number of grid points on each side of v.
    n_golden : int
        Largest number of golden-section steps.
    tolerance : float
        Width of the last bracket, relative to 1 + |t|.
    first_radius : float
        Half of the first distance from v at which a t with finite loss is sought, relative to
        1 + |v|.
    last_radius : float
        Distance from v at which that search ends without success.
    """

    n_grid: int = 48
    n_golden: int = 90
    tolerance: float = 1e-15
    first_radius: float = 1e-6
    last_radius: float = 1e30


def compile_search(
    forward: ScalarMap, value: ScalarMap, options: SearchOptions | None = None
) -> ScalarMap:
    """Return a compiled search for the minimiser of d(x, f(t)) + rho/2 (t - v)^2.

    Parameters
    ----------
    forward, value : callable
        Compiled f and d.
    options : SearchOptions, optional
        Numbers that steer the search.

    Returns
    -------
    callable
        ``(v, x, rho, pieces, pf, pd) -> t``, with the parameters `pf` of f and `pd` of d; the
        pieces have no influence.

    Notes
    -----
    The best objective so far bounds the distance of the minimiser from v.  A grid, dense near v,
    covers all t within this distance, and a golden-section search refines the best grid cell.  A
    minimum narrower than a cell can be missed, so that an exact construction is better.
    """
    chosen = options or SearchOptions()
    # Numba captures plain numbers, not the attributes of an object.
    n_grid, n_golden, tolerance = chosen.n_grid, chosen.n_golden, chosen.tolerance
    golden = 0.5 * (math.sqrt(5.0) - 1.0)
    first_point = _compile_first_point(forward, value, chosen)
    objective = _compile_objective(forward, value)

    def solution(v, x, rho, pieces, pf, pd):  # type: ignore[no-untyped-def]
        best, lowest = first_point(v, x, rho, pf, pd)
        radius = math.sqrt(2.0 * max(lowest, 0.0) / rho)
        left, right = best, best
        previous = v - radius
        for k in range(-n_grid, n_grid + 1):
            t = v + radius * (k / n_grid) * abs(k / n_grid)
            if k > -n_grid and objective(t, v, x, rho, pf, pd) <= lowest:
                lowest, best, left = objective(t, v, x, rho, pf, pd), t, previous
                ahead = (k + 1) / n_grid
                right = v + radius * ahead * abs(ahead)
            previous = t
        for _ in range(n_golden):
            width = golden * (right - left)
            if width <= tolerance * (1.0 + abs(best)):
                break
            inner_left, inner_right = right - width, left + width
            value_left = objective(inner_left, v, x, rho, pf, pd)
            value_right = objective(inner_right, v, x, rho, pf, pd)
            if value_left < value_right:
                right = inner_right
            else:
                left = inner_left
            if min(value_left, value_right) < lowest:
                best = inner_left if value_left < value_right else inner_right
                lowest = min(value_left, value_right)
        return best

    return compile_scalar(solution)


def _compile_objective(forward: ScalarMap, value: ScalarMap) -> ScalarMap:
    """Return the compiled objective of the T-update."""

    def objective(t, v, x, rho, pf, pd):  # type: ignore[no-untyped-def]
        return value(x, forward(t, pf), pd) + 0.5 * rho * (t - v) * (t - v)

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
