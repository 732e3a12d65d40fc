"""The compiled proximal map of a loss, and what the search for a smooth f needs of a loss."""

from __future__ import annotations

import math
from functools import cache

from nmd_lab._numba import compile_scalar

from ._descent import compile_descent, compile_proximal_descent
from ._march import compile_march
from ._search import ScalarMap, compile_search
from .loss import Loss


@cache
def compile_proximal(d: type[Loss]) -> ScalarMap:
    """Return the compiled proximal map ``(q, x, rho, p) -> y`` of a loss, its own or a search."""
    low, high = d.domain
    if d.convex and d.has_proximal_map():
        return compile_scalar(d.proximal)
    if d.has_proximal_map():
        within = compile_scalar(d.proximal_within)

        def proximal_in_domain(q, x, rho, p):  # type: ignore[no-untyped-def]
            return within(q, x, rho, low, high, p)

        return compile_scalar(proximal_in_domain)
    value = value_inside(compile_scalar(d.value), d.domain)
    search = compile_search(compile_scalar(_identity), value)

    def proximal(q, x, rho, p):  # type: ignore[no-untyped-def]
        return search(q, x, rho, (), (), p)

    return compile_scalar(proximal)


def value_inside(value: ScalarMap, domain: tuple[float, float]) -> ScalarMap:
    """Return compiled d, infinite outside the domain of the loss."""
    low, high = domain
    if low == -math.inf and high == math.inf:
        return value

    def inside(x, y, p):  # type: ignore[no-untyped-def]
        return value(x, y, p) if low <= y <= high else math.inf

    return compile_scalar(inside)


def _identity(t: float, p: tuple[float, ...]) -> float:
    """Return t."""
    return t


def _first_finite(descent: ScalarMap, march: ScalarMap) -> ScalarMap:
    """Return the descent that marches where it has no certificate."""

    def steps(v, x, rho, curve, pd):  # type: ignore[no-untyped-def]
        t = descent(v, x, rho, curve, pd)
        return t if math.isfinite(t) else march(v, x, rho, curve, pd)

    both: ScalarMap = compile_scalar(steps)
    return both


def descent_of(d: type[Loss], value: ScalarMap) -> ScalarMap | None:
    """Return the steps that a loss allows; None if d is not convex or gives nothing but values."""
    if not d.convex:
        return None
    if d.derivatives is not Loss.derivatives:
        derivatives = compile_scalar(d.derivatives)
        descent = compile_descent(value, derivatives, d.domain)
        steps: ScalarMap = _first_finite(descent, compile_march(value, derivatives, d.domain))
        return steps
    if d.proximal is not Loss.proximal:
        steps = compile_proximal_descent(value, compile_scalar(d.proximal), d.domain)
        return steps
    return None
