"""Exact draws where f(T) is known, or limits of it: T for noise before f, and x for noise after f.

Where the noise is before f, x = f(T) exactly and T ~ N(v, sd²).  A value x at which f is flat says
only that T lies on that piece, as in the Tobit model.  Any other value says that T is one of the
points with f(T) = x.  Where only limits are known, T is truncated to all t at which f(t) lies
within them.

Where the noise is after f and only limits are known, x is drawn from its distribution given f(T),
truncated to the limits.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from nmd_lab._runtime.compiler import compile_scalar
from nmd_lab.model._search import ScalarMap
from nmd_lab.model.base import LAPLACE, NORMAL, POISSON, NoiseModel
from nmd_lab.model.kind import Structure

from .piece_draws import NOTHING, add_candidate, add_segment, draw_chosen
from .streams import draw_between, uniform

SINGLE = 2.0**-23  # relative error of a value that was stored in single precision
WHOLE = 2.0**53  # from here on every number is whole


def _interval(choice, v, sd, low, high, even, stream):  # type: ignore[no-untyped-def]
    for first, last in ((low, high), (-high, -low)):
        off = (min(max(v, first), last) - v) / sd
        choice = add_segment(choice, v, sd, first, last, 0.5 * off * off, stream)
        if not even:
            break
    return choice


_add_interval = compile_scalar(_interval)


def _points(choice, t, v, rho, width, even, stream):  # type: ignore[no-untyped-def]
    for point in (t, -t):
        energy = 0.5 * rho * (point - v) * (point - v)
        choice = add_candidate(choice, point, 0.0, point, point, energy, width, stream)
        if not even:
            break
    return choice


_add_point = compile_scalar(_points)


def _distance(x, piece):  # type: ignore[no-untyped-def]
    low, high, slope, intercept = piece
    if slope == 0.0:
        away = abs(x - intercept)
    else:
        first, last = slope * low + intercept, slope * high + intercept
        away = max(max(min(first, last) - x, x - max(first, last)), 0.0)
    return away if away > SINGLE * abs(x) else 0.0


_distance_from = compile_scalar(_distance)


@cache
def compile_latent_draw(structure: Structure) -> ScalarMap:
    """Return the compiled draw ``(v, x, rho, pieces, stream) -> t`` of T, given f(T) = x."""
    f, _, is_linear = structure
    if f.form == "square":
        return compile_scalar(_draw_root)
    if not is_linear:
        raise ValueError(
            f"nonlinearity={f.name!r} does not list its pieces, so that f(T) = x cannot be solved "
            "for T: choose noise='after'."
        )
    even = f.even

    def draw(v, x, rho, pieces, stream):  # type: ignore[no-untyped-def]
        nearest, flat = math.inf, False
        for piece in pieces:
            away, level = _distance_from(x, piece), piece[2] == 0.0 and piece[0] < piece[1]
            if away < nearest or (away == nearest and level):
                nearest, flat = away, level
        choice = NOTHING
        for piece in pieces:
            low, high, slope, intercept = piece
            level = slope == 0.0 and low < high
            if _distance_from(x, piece) > nearest or level != flat:
                continue
            if flat:
                choice = _add_interval(choice, v, 1.0 / math.sqrt(rho), low, high, even, stream)
                continue
            t, width = low, 1.0
            if slope != 0.0:
                t, width = min(max((x - intercept) / slope, low), high), 1.0 / abs(slope)
            choice = _add_point(choice, t, v, rho, width, even, stream)
        return draw_chosen(choice, stream)

    return compile_scalar(draw)


def _draw_root(v, x, rho, pieces, stream):  # type: ignore[no-untyped-def]
    choice = _add_point(NOTHING, math.sqrt(max(x, 0.0)), v, rho, 1.0, True, stream)
    return draw_chosen(choice, stream)


@cache
def compile_draw_within(structure: Structure) -> ScalarMap:
    """Return the draw ``(v, sd, low, high, pieces, stream)`` of T, given limits of f(T)."""
    if structure[0].form == "square":
        return compile_scalar(_draw_within_roots)
    even = structure[0].even

    def draw(v, sd, low, high, pieces, stream):  # type: ignore[no-untyped-def]
        choice = NOTHING
        for piece in pieces:
            first, last, slope, intercept = piece
            if slope == 0.0:
                if not low <= intercept <= high:
                    continue
            else:
                ends = (low - intercept) / slope, (high - intercept) / slope
                first, last = max(first, min(ends)), min(last, max(ends))
            choice = _add_interval(choice, v, sd, first, last, even, stream)
        return draw_chosen(choice, stream)

    return compile_scalar(draw)


def _draw_within_roots(v, sd, low, high, pieces, stream):  # type: ignore[no-untyped-def]
    first, last = math.sqrt(max(low, 0.0)), math.sqrt(max(high, 0.0))
    return draw_chosen(_add_interval(NOTHING, v, sd, first, last, True, stream), stream)


def _gaussian(y, beta, low, high, stream):  # type: ignore[no-untyped-def]
    return draw_between(y, 1.0 / math.sqrt(beta), low, high, stream)


def _exponential(rate, width, stream):  # type: ignore[no-untyped-def]
    share = -math.expm1(-rate * width)
    return min(-math.log1p(-uniform(stream) * share) / rate, width)


_draw_exponential = compile_scalar(_exponential)


def _laplace(y, beta, low, high, stream):  # type: ignore[no-untyped-def]
    if not low < high:
        return low
    if y <= low:
        return low + _draw_exponential(beta, high - low, stream)
    if y >= high:
        return high - _draw_exponential(beta, high - low, stream)
    below, above = -math.expm1(-beta * (y - low)), -math.expm1(-beta * (high - y))
    if uniform(stream) * (below + above) < below:
        return y - _draw_exponential(beta, y - low, stream)
    return y + _draw_exponential(beta, high - y, stream)


def _poisson(y, beta, low, high, stream):  # type: ignore[no-untyped-def]
    first, last = max(float(math.ceil(low)), 0.0) if low > 0.0 else 0.0, math.inf
    if high < WHOLE:
        last = float(math.floor(high))
    if not first <= last:  # no whole number lies between the limits
        return high if high < math.inf else low
    if y <= 0.0:
        return first
    mode = min(max(float(math.floor(y)), first), last)
    total, chosen = 1.0, mode
    weight, k = 1.0, mode
    while k > first and weight > 1e-17 * total:
        weight *= k / y
        k -= 1.0
        total += weight
        if uniform(stream) * total <= weight:
            chosen = k
    weight, k = 1.0, mode
    while k < last and weight > 1e-17 * total:
        k += 1.0
        weight *= y / k
        total += weight
        if uniform(stream) * total <= weight:
            chosen = k
    return chosen


draw_gaussian, draw_laplace, draw_poisson = map(compile_scalar, (_gaussian, _laplace, _poisson))
"""``draw(y, beta, low, high, stream)``: a draw of x, given f(T) = y, between two limits."""

DRAWS_OF_X: dict[NoiseModel, Any] = {
    NORMAL: draw_gaussian,
    LAPLACE: draw_laplace,
    POISSON: draw_poisson,  # x is a whole number, in units of X
}
"""Draws of x within limits, by the noise of the loss."""
