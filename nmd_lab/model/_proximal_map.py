"""The compiled proximal map of a loss: its own, or golden sections where it has none."""

from __future__ import annotations

import math
from functools import cache

from nmd_lab._numba import compile_scalar

from ._search import ScalarMap, compile_golden, value_inside
from .loss import Loss


@cache
def compile_proximal(d: type[Loss]) -> ScalarMap:
    """Return the compiled proximal map ``(q, x, rho, p) -> y`` of a loss."""
    low, high = d.domain
    if d.convex and d.has_proximal_map():
        return compile_scalar(d.proximal)
    if d.has_proximal_map():
        within = compile_scalar(d.proximal_within)

        def proximal_in_domain(q, x, rho, p):  # type: ignore[no-untyped-def]
            return within(q, x, rho, low, high, p)

        return compile_scalar(proximal_in_domain)
    value, least_at = value_inside(d), compile_scalar(d.least_at)

    def objective(y, q, x, rho, curve, pf, p):  # type: ignore[no-untyped-def]
        return value(x, y, p) + 0.5 * rho * (y - q) * (y - q)

    cost = compile_scalar(objective)
    golden = compile_golden(cost)

    def proximal(q, x, rho, p):  # type: ignore[no-untyped-def]
        start = min(max(q, low), high)  # the minimiser lies between it and where d is least
        at_start = cost(start, q, x, rho, (), (), p)
        reach = math.sqrt(2.0 * max(at_start - min(value(x, x, p), 0.0), 0.0) / rho)
        end = min(max(least_at(x, p), max(q - reach, low)), min(q + reach, high))
        at_end = cost(end, q, x, rho, (), (), p)
        y, at_y = (start, at_start) if at_start < at_end else (end, at_end)
        return golden(start, y, end, at_y, q, x, rho, (), (), p)[0]

    return compile_scalar(proximal)
