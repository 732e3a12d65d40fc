"""What the T-update needs of a loss: d inside its domain, its proximal map, the steps it allows."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, cast

from nmd_lab._numba import compile_scalar

from ._descent import compile_descent, compile_proximal_descent
from ._search import ScalarMap, compile_search
from .loss import Loss


@cache
def compile_proximal(d: Any) -> ScalarMap:
    """Return the compiled proximal map ``(q, x, rho, p) -> y`` of a loss, its own or a search."""
    if d.proximal is not Loss.proximal:
        return compile_scalar(d.proximal)
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


def descent_of(d: type[Loss], value: ScalarMap) -> ScalarMap | None:
    """Return the steps that a loss allows; None if d is not convex or gives nothing but values."""
    if not d.convex:
        return None
    if d.derivatives is not Loss.derivatives:
        return cast(ScalarMap, compile_descent(value, compile_scalar(d.derivatives), d.domain))
    if d.proximal is not Loss.proximal:
        proximal = compile_scalar(d.proximal)
        return cast(ScalarMap, compile_proximal_descent(value, proximal, d.domain))
    return None
