"""Exact draws of T for a piecewise-linear f with the losses Frobenius and L1.

On a piece f(t) = s t + c the density exp(-ρ/2 (t - v)² - β d(x, s t + c)) is that of a normal
variable (Frobenius), or of one on each side of s t + c = x (L1).  A segment is chosen by its mass,
and T is drawn inside it.
"""

from __future__ import annotations

import math

from nmd_lab._runtime.compiler import compile_scalar
from nmd_lab.model._search import ScalarMap

from .segments import NOTHING, add_segment, draw_chosen


def compile_segment(value: ScalarMap) -> ScalarMap:
    """Return a compiled function that offers one segment of a piece, or of its mirror image."""

    def offer(choice, sign, mean, sd, low, high, v, x, rho, beta, slope, intercept, pd, stream):  # type: ignore[no-untyped-def]
        t = min(max(mean, low), high)
        energy = beta * value(x, slope * t + intercept, pd) + 0.5 * rho * (t - v) * (t - v)
        if sign < 0.0:
            return add_segment(choice, -mean, sd, -high, -low, energy, stream)
        return add_segment(choice, mean, sd, low, high, energy, stream)

    return compile_scalar(offer)


def compile_frobenius_piece(value: ScalarMap) -> ScalarMap:
    """Return a compiled function that offers a piece with the loss (x - y)²/2."""
    offer = compile_segment(value)

    def offer_piece(choice, sign, v, x, rho, beta, piece, pd, stream):  # type: ignore[no-untyped-def]
        low, high, slope, intercept = piece
        precision = rho + beta * slope * slope
        mean = (rho * v + beta * slope * (x - intercept)) / precision
        sd = 1.0 / math.sqrt(precision)
        return offer(
            choice, sign, mean, sd, low, high, v, x, rho, beta, slope, intercept, pd, stream
        )

    return compile_scalar(offer_piece)


def compile_l1_piece(value: ScalarMap) -> ScalarMap:
    """Return a compiled function that offers the two parts of a piece with the loss |x - y|."""
    offer = compile_segment(value)

    def offer_piece(choice, sign, v, x, rho, beta, piece, pd, stream):  # type: ignore[no-untyped-def]
        low, high, slope, intercept = piece
        sd = 1.0 / math.sqrt(rho)
        kink, shift = high, 0.0
        if slope != 0.0:
            kink = min(max((x - intercept) / slope, low), high)
            shift = beta * abs(slope) / rho
        choice = offer(
            choice, sign, v + shift, sd, low, kink, v, x, rho, beta, slope, intercept, pd, stream
        )
        return offer(
            choice, sign, v - shift, sd, kink, high, v, x, rho, beta, slope, intercept, pd, stream
        )

    return compile_scalar(offer_piece)


def compile_piece_draw(offer_piece: ScalarMap, even: bool) -> ScalarMap:
    """Return the compiled draw of T, ``(t_old, v, x, rho, beta, pieces, pf, pd, stream) -> t``."""

    def draw(t_old, v, x, rho, beta, pieces, pf, pd, stream):  # type: ignore[no-untyped-def]
        choice = NOTHING
        for piece in pieces:
            choice = offer_piece(choice, 1.0, v, x, rho, beta, piece, pd, stream)
            if even:
                choice = offer_piece(choice, -1.0, -v, x, rho, beta, piece, pd, stream)
        return draw_chosen(choice, stream)

    return compile_scalar(draw)
