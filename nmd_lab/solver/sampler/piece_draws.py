"""Exact draws of T where f is piecewise linear: normal segments, and rejection below chords.

A *segment* is an interval with a normal density on it, known up to a common factor.  Its *energy*
is the negative logarithm of the density at its highest point in the interval.  Neighbours share
that point or the limit between them.  Energies are therefore compared without loss of digits, even
where they are very large.  One segment is chosen by its mass, in one pass and without storage.

With Frobenius or L1 the density exp(-ρ/2 (t - v)² - β d(x, s t + c)) on a piece f(t) = s t + c is
that of a normal variable, or of one on each side of s t + c = x.  These are the segments.

With any other convex loss the energy is convex on each piece.  Going from its minimum m to one
side, it is at least E(m), and beyond a point r it is at least the chord through m and r.  The
density therefore lies below a constant up to r and below an exponential function beyond it.  One
such *side* is chosen by the area under this bound, a point is drawn there, and accepted with the
ratio of the density to the bound: about two thirds of the points are.  It needs no derivative of
the loss (compare the adaptive rejection sampling of W. R. Gilks, 1992).
"""

from __future__ import annotations

import math

from nmd_lab._runtime.compiler import compile_scalar
from nmd_lab.model.curve_search import ScalarMap

from .streams import TRIES, draw_between, mass_between, uniform

NOTHING = (0.0, 0.0, 0.0, 0.0, math.inf, 0.0)
"""Choice before the first segment: mean, standard deviation, limits, lowest energy, total mass."""

NEGLIGIBLE = 100.0  # a segment with an energy higher by this has a share below 1e-40


def _add_weight(lowest, total, energy, mass, stream):  # type: ignore[no-untyped-def]
    if energy < lowest:
        total = total * math.exp(energy - lowest) if total > 0.0 else 0.0
        lowest, weight = energy, mass
    else:
        weight = mass * math.exp(lowest - energy) if energy < math.inf else 0.0
    total += weight
    return lowest, total, weight > 0.0 and uniform(stream) * total <= weight


add_weight = compile_scalar(_add_weight)
"""``add_weight(lowest, total, energy, mass, stream)``: the next two sums, and whether to choose it.

After the last candidate, the one that was chosen last has been chosen with probability
mass exp(-energy), divided by the sum of these over all candidates.
"""


def _add_candidate(choice, mean, sd, low, high, energy, mass, stream):  # type: ignore[no-untyped-def]
    lowest, total, chosen = add_weight(choice[4], choice[5], energy, mass, stream)
    if chosen:
        return mean, sd, low, high, lowest, total
    return (*choice[:4], lowest, total)


add_candidate = compile_scalar(_add_candidate)
"""``add_candidate(choice, mean, sd, low, high, energy, mass, stream)``: the choice after one."""


def _add_segment(choice, mean, sd, low, high, energy, stream):  # type: ignore[no-untyped-def]
    if not low < high or energy > choice[4] + NEGLIGIBLE:
        return choice
    mass = sd * mass_between((low - mean) / sd, (high - mean) / sd, (high - low) / sd)
    return add_candidate(choice, mean, sd, low, high, energy, mass, stream)


add_segment = compile_scalar(_add_segment)
"""``add_segment(choice, mean, sd, low, high, energy, stream)``: the choice after a segment."""


def _draw_chosen(choice, stream):  # type: ignore[no-untyped-def]
    return draw_between(choice[0], choice[1], choice[2], choice[3], stream)


draw_chosen = compile_scalar(_draw_chosen)
"""``draw_chosen(choice, stream)``: a draw from the segment that was chosen."""


def compile_linear_energy(value: ScalarMap) -> ScalarMap:
    """Return the compiled energy on a linear piece."""

    def energy(t, v, x, rho, beta, slope, intercept, pd):  # type: ignore[no-untyped-def]
        return beta * value(x, slope * t + intercept, pd) + 0.5 * rho * (t - v) * (t - v)

    return compile_scalar(energy)


def compile_segment(value: ScalarMap) -> ScalarMap:
    """Return a compiled function that offers one segment of a piece, or of its mirror image."""
    energy = compile_linear_energy(value)

    def offer(choice, sign, mean, sd, low, high, v, x, rho, beta, slope, intercept, pd, stream):  # type: ignore[no-untyped-def]
        e = energy(min(max(mean, low), high), v, x, rho, beta, slope, intercept, pd)
        if sign < 0.0:
            return add_segment(choice, -mean, sd, -high, -low, e, stream)
        return add_segment(choice, mean, sd, low, high, e, stream)

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
