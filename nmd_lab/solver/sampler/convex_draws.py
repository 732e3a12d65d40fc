"""Exact draws of T for a piecewise-linear f and any convex loss, by rejection.

On each piece the energy ρ/2 (t - v)² + β d(x, f(t)) is convex.  Going from its minimum m to one
side, it is at least E(m), and beyond a point r it is at least the chord through m and r.  The
density therefore lies below a constant up to r and below an exponential function beyond it.  One
such *side* is chosen by the area under this bound, a point is drawn there, and accepted with the
ratio of the density to the bound: about two thirds of the points are.  It needs no derivative of
the loss (compare the adaptive rejection sampling of W. R. Gilks, 1992).
"""

from __future__ import annotations

import math

from nmd_lab._runtime.compiler import compile_scalar
from nmd_lab.model._search import ScalarMap

from .segments import NEGLIGIBLE, add_weight
from .streams import uniform
from .truncated_normal import TRIES, draw_between, mass_between

LEAST, MOST = 0.5, 3.0  # rise of the energy from m to r that makes a good bound
STEPS = 60

NO_SIDE = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, math.inf, 0.0)
"""Choice before the first side: the start m of the side, its direction, its length, r, the rate of
the exponential part, slope and intercept of f, sign of the mirror image, lowest energy, total area.

A direction of zero stands for a flat piece: m and r are then its ends, and the length is zero."""


def compile_convex_draw(energy: ScalarMap, mode: ScalarMap, even: bool) -> ScalarMap:
    """Return the compiled draw of T, ``(t_old, v, x, rho, beta, pieces, pf, pd, stream) -> t``."""
    add_piece = _compile_piece(energy, mode)
    draw_point = _compile_point(energy)

    def draw(t_old, v, x, rho, beta, pieces, pf, pd, stream):  # type: ignore[no-untyped-def]
        t = v
        for _ in range(TRIES):
            side = NO_SIDE
            for piece in pieces:
                side = add_piece(side, 1.0, v, x, rho, beta, piece, pd, stream)
                if even:
                    side = add_piece(side, -1.0, -v, x, rho, beta, piece, pd, stream)
            t, accepted = draw_point(side, v, x, rho, beta, pd, stream)
            if accepted:
                break
        return t

    return compile_scalar(draw)


def compile_linear_energy(value: ScalarMap) -> ScalarMap:
    """Return the compiled energy on a linear piece."""

    def energy(t, v, x, rho, beta, slope, intercept, pd):  # type: ignore[no-untyped-def]
        return beta * value(x, slope * t + intercept, pd) + 0.5 * rho * (t - v) * (t - v)

    return compile_scalar(energy)


def compile_linear_mode(proximal: ScalarMap) -> ScalarMap:
    """Return the compiled minimiser of the energy on a linear piece that is not flat."""

    def mode(v, x, rho, beta, piece, pd):  # type: ignore[no-untyped-def]
        low, high, slope, intercept = piece
        y = proximal(slope * v + intercept, x, rho / (beta * slope * slope), pd)
        return min(max((y - intercept) / slope, low), high)

    return compile_scalar(mode)


def _compile_piece(energy: ScalarMap, mode: ScalarMap) -> ScalarMap:
    """Return a compiled function that offers a piece."""
    add_side = _compile_side(energy)

    def add_flat(side, sign, v, x, rho, beta, piece, pd, stream):  # type: ignore[no-untyped-def]
        low, high, slope, intercept = piece
        root = math.sqrt(rho)
        e = energy(min(max(v, low), high), v, x, rho, beta, slope, intercept, pd)
        if not low < high or e > side[8] + NEGLIGIBLE:
            return side
        mass = mass_between((low - v) * root, (high - v) * root, (high - low) * root) / root
        lowest, total, chosen = add_weight(side[8], side[9], e, mass, stream)
        if chosen:
            return low, 0.0, 0.0, high, 0.0, slope, intercept, sign, lowest, total
        return (*side[:8], lowest, total)

    offer_flat = compile_scalar(add_flat)

    def add_piece(side, sign, v, x, rho, beta, piece, pd, stream):  # type: ignore[no-untyped-def]
        low, high, slope, _ = piece
        if slope == 0.0:
            return offer_flat(side, sign, v, x, rho, beta, piece, pd, stream)
        m = mode(v, x, rho, beta, piece, pd)
        side = add_side(side, sign, m, -1.0, m - low, v, x, rho, beta, piece, pd, stream)
        return add_side(side, sign, m, 1.0, high - m, v, x, rho, beta, piece, pd, stream)

    return compile_scalar(add_piece)


def _compile_side(energy: ScalarMap) -> ScalarMap:
    """Return a compiled function that offers one side of the minimum on a piece."""

    def find_rise(m, lowest, way, length, v, x, rho, beta, slope, intercept, pd):  # type: ignore[no-untyped-def]
        r = min(length, 1.5 / math.sqrt(rho))  # at the end of an unlimited side, a rise above 1
        closer, farther, rise = 0.0, math.inf, 0.0
        for _ in range(STEPS):
            rise = energy(m + way * r, v, x, rho, beta, slope, intercept, pd) - lowest
            if rise > MOST:
                farther, r = r, r * min(max(math.sqrt(1.5 / rise), 0.1), 0.9)
                r = r if r > closer else 0.5 * (closer + farther)
            elif rise < LEAST and farther < math.inf:
                closer, r = r, 0.5 * (r + farther)
            else:
                break
        return r, rise

    rise_near = compile_scalar(find_rise)

    def add_side(side, sign, m, way, length, v, x, rho, beta, piece, pd, stream):  # type: ignore[no-untyped-def]
        _, _, slope, intercept = piece
        e = energy(m, v, x, rho, beta, slope, intercept, pd)
        if not length > 0.0 or not e <= side[8] + NEGLIGIBLE or e == math.inf:
            return side
        r, rise = rise_near(m, e, way, length, v, x, rho, beta, slope, intercept, pd)
        area, rate = r, 0.0
        if r < length and rise < math.inf:
            rate = rise / r
            area -= math.exp(-rise) * math.expm1(-rate * (length - r)) / rate
        lowest, total, chosen = add_weight(side[8], side[9], e, area, stream)
        if chosen:
            return m, way, length, r, rate, slope, intercept, sign, lowest, total
        return (*side[:8], lowest, total)

    return compile_scalar(add_side)


def _compile_point(energy: ScalarMap) -> ScalarMap:
    """Return a compiled function that draws under the bound, and says whether it accepts."""

    def draw_point(side, v, x, rho, beta, pd, stream):  # type: ignore[no-untyped-def]
        m, way, length, r, rate, slope, intercept, sign, _, _ = side
        v *= sign
        if way == 0.0:
            return sign * draw_between(v, 1.0 / math.sqrt(rho), m, r, stream), True
        distance, bound = r * uniform(stream), 0.0
        if rate > 0.0:
            share = -math.expm1(-rate * (length - r))
            beyond = math.exp(-rate * r) * share / rate
            if uniform(stream) * (r + beyond) > r:
                distance = r - math.log1p(-uniform(stream) * share) / rate
                bound = rate * distance
        t = m + way * distance
        rise = energy(t, v, x, rho, beta, slope, intercept, pd)
        rise -= energy(m, v, x, rho, beta, slope, intercept, pd)
        return sign * t, uniform(stream) <= math.exp(bound - rise)

    return compile_scalar(draw_point)
