"""Draws of T where the noise comes before f: x = f(T) exactly, with T ~ N(v, 1/rho).

A value x at which f is flat says only that T lies on that piece, as in the Tobit model.  Any other
value says that T is one of the points with f(T) = x.
"""

from __future__ import annotations

import math
from functools import cache

from nmd_lab._runtime.compiler import compile_scalar
from nmd_lab.model._search import ScalarMap
from nmd_lab.model.kind import Structure

from .segments import NOTHING, add_segment, add_weight, draw_chosen

SINGLE = 2.0**-23  # relative error of a value that was stored in single precision


@cache
def compile_latent_draw(structure: Structure) -> ScalarMap:
    """Return the compiled draw ``(v, x, rho, pieces, stream) -> t`` of T, given f(T) = x."""
    f, _, flat = structure
    if f.form == "square":
        return _compile_root_draw()
    if not flat:
        raise ValueError(
            f"nonlinearity={f.name!r} does not list its pieces, so that f(T) = x cannot be solved "
            "for T: choose noise='after'."
        )
    return _compile_inverse_draw(f.even)


def _distance(x, piece):  # type: ignore[no-untyped-def]
    low, high, slope, intercept = piece
    if slope == 0.0:
        away = abs(x - intercept)
    else:
        first, last = slope * low + intercept, slope * high + intercept
        away = max(max(min(first, last) - x, x - max(first, last)), 0.0)
    return away if away > SINGLE * abs(x) else 0.0


_distance_from = compile_scalar(_distance)


def _choose_point(choice, t, v, rho, width, stream):  # type: ignore[no-untyped-def]
    energy = 0.5 * rho * (t - v) * (t - v)
    lowest, total, chosen = add_weight(choice[4], choice[5], energy, width, stream)
    if chosen:
        return t, 0.0, t, t, lowest, total
    return choice[0], choice[1], choice[2], choice[3], lowest, total


_add_point = compile_scalar(_choose_point)


def _compile_inverse_draw(even: bool) -> ScalarMap:
    """Return the draw of T for a piecewise-linear f."""

    def add_interval(choice, low, high, v, rho, stream):  # type: ignore[no-untyped-def]
        off = min(max(v, low), high) - v
        return add_segment(
            choice, v, 1.0 / math.sqrt(rho), low, high, 0.5 * rho * off * off, stream
        )

    add_flat = compile_scalar(add_interval)

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
                choice = add_flat(choice, low, high, v, rho, stream)
                if even:
                    choice = add_flat(choice, -high, -low, v, rho, stream)
                continue
            t, width = low, 1.0
            if slope != 0.0:
                t, width = min(max((x - intercept) / slope, low), high), 1.0 / abs(slope)
            choice = _add_point(choice, t, v, rho, width, stream)
            if even:
                choice = _add_point(choice, -t, v, rho, width, stream)
        return draw_chosen(choice, stream)

    return compile_scalar(draw)


@cache
def _compile_root_draw() -> ScalarMap:
    """Return the draw of T for f(t) = t²: one of the two square roots."""

    def draw(v, x, rho, pieces, stream):  # type: ignore[no-untyped-def]
        t = math.sqrt(max(x, 0.0))
        choice = _add_point(NOTHING, t, v, rho, 1.0, stream)
        return draw_chosen(_add_point(choice, -t, v, rho, 1.0, stream), stream)

    return compile_scalar(draw)
