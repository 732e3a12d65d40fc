"""Draws of T where the noise is after f, given v = WH with offsets and the noise levels.

The density of T is proportional to exp(-ρ/2 (t - v)² - β d(x, f(t))).  `compile_t_draw` takes the
first of three constructions that applies to the pair, as `compile_t_update` does for its minimum:

1. Normal segments, for a piecewise-linear f with Frobenius or L1.
2. Rejection below chords, for a piecewise-linear f with another convex loss, and
   for Square with KL.
3. A grid and a Metropolis step, for everything else.

Between two points of the grid the energy ρ/2 (t - v)² + β d(x, f(t)) is replaced by its chord, so
that the density is piecewise exponential there and can be drawn from by inversion.  Cells are
halved until one more halving would move less than `tolerance` of the mass.  Such a draw is the
proposal of an independence sampler (W. K. Hastings, 1970): accepted or not against the old T, it
leaves the exact density invariant.

A *segment* is an interval with a normal density on it, known up to a common factor.  Its *energy*
is the negative logarithm of the density at its highest point in the interval.  Neighbours share
that point or the limit between them.  Energies are therefore compared without loss of digits, even
where they are very large.  One segment is chosen by its mass, in one pass and without storage.

With Frobenius or L1 the density exp(-ρ/2 (t - v)² - β d(x, s t + c)) on a piece f(t) = s t + c is
that of a normal variable, or of one on each side of s t + c = x.  These are the segments.  Where
the noise is before f, T ~ N(v, sd²) within the limits of f(T).  A value x at which f is flat says
only that T lies on that piece, as in the Tobit model.  Any other value says that T is one of the
points with f(T) = x, which are segments without a width.

With any other convex loss the energy is convex on each piece.  Going from its minimum m to one
side, it is at least E(m), and beyond a point r it is at least the chord through m and r.  The
density therefore lies below a constant up to r and below an exponential function beyond it.  One
such *side* is chosen by the area under this bound, a point is drawn there, and accepted with the
ratio of the density to the bound: about two thirds of the points are.  It needs no derivative of
the loss (compare the adaptive rejection sampling of W. R. Gilks, 1992).

An even f has each of its pieces twice, the second time mirrored at t = 0.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from nmd_lab._runtime.compiler import compile_scalar
from nmd_lab.model.column_model import Structure
from nmd_lab.model.curve_search import ScalarMap
from nmd_lab.model.loss import LAPLACE, NORMAL, POISSON, Loss
from nmd_lab.model.proximal import compile_t_update

from .random_numbers import TRIES, draw_between, mass_between, uniform

NOTHING = (0.0, 0.0, 0.0, 0.0, math.inf, 0.0)
"""Choice before the first segment: mean, standard deviation, limits, lowest energy, total mass."""

NEGLIGIBLE = 100.0  # a segment with an energy higher by this has a share below 1e-40
SINGLE = 2.0**-23  # relative error of a value that was stored in single precision

HALF_LINE = ((0.0, math.inf, 1.0, 0.0),)
"""The pieces of Modulus, which are those of the root of Square."""


@compile_scalar
def mirrored(piece):  # type: ignore[no-untyped-def]
    """Return a piece of t as that of -t."""
    low, high, slope, intercept = piece
    return -high, -low, -slope, intercept


@compile_scalar
def add_weight(lowest, total, energy, mass, stream):  # type: ignore[no-untyped-def]
    """Return the next two sums, and whether to choose a candidate.

    After the last candidate, the one that was chosen last has been chosen with probability
    mass exp(-energy), divided by the sum of these over all candidates.
    """
    if energy < lowest:
        total = total * math.exp(energy - lowest) if total > 0.0 else 0.0
        lowest, weight = energy, mass
    else:
        weight = mass * math.exp(lowest - energy) if energy < math.inf else 0.0
    total += weight
    return lowest, total, weight > 0.0 and uniform(stream) * total <= weight


@compile_scalar
def add_candidate(choice, mean, sd, low, high, energy, mass, stream):  # type: ignore[no-untyped-def]
    """Return the choice after a segment of known mass."""
    lowest, total, chosen = add_weight(choice[4], choice[5], energy, mass, stream)
    if chosen:
        return mean, sd, low, high, lowest, total
    return (*choice[:4], lowest, total)


@compile_scalar
def add_segment(choice, mean, sd, low, high, energy, stream):  # type: ignore[no-untyped-def]
    """Return the choice after a segment."""
    if not low < high or energy > choice[4] + NEGLIGIBLE:
        return choice
    mass = sd * mass_between((low - mean) / sd, (high - mean) / sd, (high - low) / sd)
    return add_candidate(choice, mean, sd, low, high, energy, mass, stream)


@compile_scalar
def offer_frobenius(choice, v, x, rho, beta, piece, stream):  # type: ignore[no-untyped-def]
    """Return the choice after a piece with the loss (x - y)²/2."""
    low, high, slope, intercept = piece
    precision = rho + beta * slope * slope
    mean = (rho * v + beta * slope * (x - intercept)) / precision
    t = min(max(mean, low), high)
    off = x - (slope * t + intercept)
    energy = beta * (0.5 * off * off) + 0.5 * rho * (t - v) * (t - v)
    return add_segment(choice, mean, 1.0 / math.sqrt(precision), low, high, energy, stream)


@compile_scalar
def offer_l1(choice, v, x, rho, beta, piece, stream):  # type: ignore[no-untyped-def]
    """Return the choice after the two parts of a piece with the loss |x - y|."""
    low, high, slope, intercept = piece
    kink, shift = high, 0.0
    if slope != 0.0:
        kink = min(max((x - intercept) / slope, low), high)
        shift = beta * abs(slope) / rho
    for mean, first, last in ((v + shift, low, kink), (v - shift, kink, high)):
        t = min(max(mean, first), last)
        energy = beta * abs(x - (slope * t + intercept)) + 0.5 * rho * (t - v) * (t - v)
        choice = add_segment(choice, mean, 1.0 / math.sqrt(rho), first, last, energy, stream)
    return choice


def compile_piece_draw(offer: ScalarMap, even: bool) -> ScalarMap:
    """Return the compiled draw of T, ``(t_old, v, x, rho, beta, pieces, pf, pd, stream) -> t``."""

    def draw(t_old, v, x, rho, beta, pieces, pf, pd, stream):  # type: ignore[no-untyped-def]
        choice = NOTHING
        for piece in pieces:
            choice = offer(choice, v, x, rho, beta, piece, stream)
            if even:
                choice = offer(choice, v, x, rho, beta, mirrored(piece), stream)
        return draw_between(*choice[:4], stream)

    return compile_scalar(draw)


@compile_scalar
def _is_level(piece):  # type: ignore[no-untyped-def]
    return piece[2] == 0.0 and piece[0] < piece[1]


@compile_scalar
def _distance(x, piece):  # type: ignore[no-untyped-def]
    low, high, slope, intercept = piece
    first = last = intercept
    if slope != 0.0:
        first, last = slope * low + intercept, slope * high + intercept
    away = max(max(min(first, last) - x, x - max(first, last)), 0.0)
    return away if away > SINGLE * abs(x) else 0.0


@compile_scalar
def _offer_latent(choice, v, sd, low, high, piece, stream):  # type: ignore[no-untyped-def]
    first, last, slope, intercept = piece
    if low == high and not _is_level(piece):
        t, width = first, 1.0
        if slope != 0.0:
            t, width = min(max((low - intercept) / slope, first), last), 1.0 / abs(slope)
        off = (t - v) / sd
        return add_candidate(choice, t, 0.0, t, t, 0.5 * off * off, width, stream)
    if slope != 0.0:
        ends = (low - intercept) / slope, (high - intercept) / slope
        first, last = max(first, min(ends)), min(last, max(ends))
    elif low < high and not low <= intercept <= high:
        return choice
    off = (min(max(v, first), last) - v) / sd
    return add_segment(choice, v, sd, first, last, 0.5 * off * off, stream)


@cache
def compile_latent_draw(structure: Structure) -> ScalarMap:
    """Return the draw ``(v, sd, low, high, pieces, stream) -> t`` of T, given limits of f(T).

    Where they are the same, they are its value, or the one that is nearest to what f takes.
    """
    f, _, is_linear = structure
    even = f.even

    def draw(v, sd, low, high, pieces, stream):  # type: ignore[no-untyped-def]
        nearest, flat = math.inf, False
        for piece in pieces:
            away, level = _distance(low, piece), _is_level(piece)
            if away < nearest or (away == nearest and level):
                nearest, flat = away, level
        choice = NOTHING
        for piece in pieces:
            if low == high and (_distance(low, piece) > nearest or _is_level(piece) != flat):
                continue
            choice = _offer_latent(choice, v, sd, low, high, piece, stream)
            if even:
                choice = _offer_latent(choice, v, sd, low, high, mirrored(piece), stream)
        return draw_between(*choice[:4], stream)

    inner = compile_scalar(draw)
    if is_linear:
        return inner
    if f.form != "square":
        raise ValueError(
            f"nonlinearity={f.name!r} does not list its pieces, so that f(T) = x cannot be solved "
            "for T: choose noise='after'."
        )

    def draw_root(v, sd, low, high, pieces, stream):  # type: ignore[no-untyped-def]
        first, last = math.sqrt(max(low, 0.0)), math.sqrt(max(high, 0.0))
        return inner(v, sd, first, last, HALF_LINE, stream)

    return compile_scalar(draw_root)


LEAST, MOST = 0.5, 3.0  # rise of the energy from m to r that makes a good bound
STEPS = 60

NO_SIDE = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, math.inf, 0.0)
"""Choice before the first side: the start m of the side, its direction, its length, r, the rate of
the exponential part, slope and intercept of f, lowest energy, total area.

A direction of zero stands for a flat piece: m and r are then its ends, and the length is zero."""


def compile_linear_energy(value: ScalarMap) -> ScalarMap:
    """Return the compiled energy on a linear piece."""

    def energy(t, v, x, rho, beta, slope, intercept, pd):  # type: ignore[no-untyped-def]
        return beta * value(x, slope * t + intercept, pd) + 0.5 * rho * (t - v) * (t - v)

    return compile_scalar(energy)


def compile_linear_mode(proximal: ScalarMap) -> ScalarMap:
    """Return the compiled minimiser of the energy on a linear piece."""

    def mode(v, x, rho, beta, piece, pd):  # type: ignore[no-untyped-def]
        low, high, slope, intercept = piece
        t = v
        if slope != 0.0:
            y = proximal(slope * v + intercept, x, rho / (beta * slope * slope), pd)
            t = (y - intercept) / slope
        return min(max(t, low), high)

    return compile_scalar(mode)


def compile_convex_draw(energy: ScalarMap, mode: ScalarMap, even: bool) -> ScalarMap:
    """Return the compiled draw of T, ``(t_old, v, x, rho, beta, pieces, pf, pd, stream) -> t``."""
    add_side, draw_point = _compile_side(energy), _compile_point(energy)

    def flat(side, m, v, x, rho, beta, piece, pd, stream):  # type: ignore[no-untyped-def]
        low, high, slope, intercept = piece
        e, root = energy(m, v, x, rho, beta, slope, intercept, pd), math.sqrt(rho)
        if not low < high or e > side[7] + NEGLIGIBLE:
            return side
        mass = mass_between((low - v) * root, (high - v) * root, (high - low) * root) / root
        least, total, chosen = add_weight(side[7], side[8], e, mass, stream)
        if chosen:
            return low, 0.0, 0.0, high, 0.0, slope, intercept, least, total
        return (*side[:7], least, total)

    add_flat = compile_scalar(flat)

    def add_sides(side, v, x, rho, beta, piece, pd, stream):  # type: ignore[no-untyped-def]
        m = mode(v, x, rho, beta, piece, pd)
        if piece[2] == 0.0:
            return add_flat(side, m, v, x, rho, beta, piece, pd, stream)
        for way, length in ((-1.0, m - piece[0]), (1.0, piece[1] - m)):
            side = add_side(side, m, way, length, v, x, rho, beta, piece, pd, stream)
        return side

    add_piece = compile_scalar(add_sides)

    def draw(t_old, v, x, rho, beta, pieces, pf, pd, stream):  # type: ignore[no-untyped-def]
        t = v
        for _ in range(TRIES):
            side = NO_SIDE
            for piece in pieces:
                side = add_piece(side, v, x, rho, beta, piece, pd, stream)
                if even:
                    side = add_piece(side, v, x, rho, beta, mirrored(piece), pd, stream)
            t, accepted = draw_point(side, v, x, rho, beta, pd, stream)
            if accepted:
                break
        return t

    return compile_scalar(draw)


def _compile_side(energy: ScalarMap) -> ScalarMap:
    """Return a compiled function that offers one side of the minimum on a piece."""

    def add_side(side, m, way, length, v, x, rho, beta, piece, pd, stream):  # type: ignore[no-untyped-def]
        _, _, slope, intercept = piece
        lowest = energy(m, v, x, rho, beta, slope, intercept, pd)
        if not length > 0.0 or not lowest <= side[7] + NEGLIGIBLE or lowest == math.inf:
            return side
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
        area, rate = r, 0.0
        if r < length and rise < math.inf:
            rate = rise / r
            area -= math.exp(-rise) * math.expm1(-rate * (length - r)) / rate
        least, total, chosen = add_weight(side[7], side[8], lowest, area, stream)
        if chosen:
            return m, way, length, r, rate, slope, intercept, least, total
        return (*side[:7], least, total)

    return compile_scalar(add_side)


def _compile_point(energy: ScalarMap) -> ScalarMap:
    """Return a compiled function that draws under the bound, and says whether it accepts."""

    def draw_point(side, v, x, rho, beta, pd, stream):  # type: ignore[no-untyped-def]
        m, way, length, r, rate, slope, intercept, _, _ = side
        if way == 0.0:
            return draw_between(v, 1.0 / math.sqrt(rho), m, r, stream), True
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
        return t, uniform(stream) <= math.exp(bound - rise)

    return compile_scalar(draw_point)


@cache
def compile_t_draw(structure: Structure) -> ScalarMap:
    """Return the compiled draw ``(t_old, v, x, rho, beta, *kind.arguments, stream) -> t`` of T."""
    f, d, flat = structure
    value = compile_scalar(d.value)
    if flat and d.noise_model in (NORMAL, LAPLACE):
        offer = offer_frobenius if d.noise_model is NORMAL else offer_l1
        return compile_piece_draw(offer, f.even)
    if flat and d.convex and d.proximal is not Loss.proximal:
        energy, mode = compile_linear_energy(value), compile_linear_mode(compile_scalar(d.proximal))
        return compile_convex_draw(energy, mode, f.even)
    if f.form == "square" and d.noise_model is POISSON:
        return _square_kl_draw(value)
    return compile_grid_draw(compile_t_update(structure), compile_scalar(f.forward), value, f.even)


def _square_kl_draw(value: ScalarMap) -> ScalarMap:
    """Return the draw for Square + KL, whose energy is convex on each half of the line."""

    def energy(t, v, x, rho, beta, slope, intercept, pd):  # type: ignore[no-untyped-def]
        return beta * value(x, t * t, pd) + 0.5 * rho * (t - v) * (t - v)

    def mode(v, x, rho, beta, piece, pd):  # type: ignore[no-untyped-def]
        sign = piece[2]
        v *= sign
        root = math.sqrt(rho * v * rho * v + 8.0 * beta * x * (rho + 2.0 * beta))
        if v < 0.0:  # the usual form of the positive root would cancel here
            return sign * (4.0 * beta * x / (root - rho * v))
        return sign * ((rho * v + root) / (2.0 * (rho + 2.0 * beta)))

    halves = compile_convex_draw(compile_scalar(energy), compile_scalar(mode), True)

    def draw(t_old, v, x, rho, beta, pieces, pf, pd, stream):  # type: ignore[no-untyped-def]
        return halves(t_old, v, x, rho, beta, HALF_LINE, pf, pd, stream)

    return compile_scalar(draw)


DEPTH = 40.0  # rise of the energy above its minimum at which the grid ends
CAP = 600.0  # rise of the energy that stands for any larger one, and for infinity
STEEP = 50.0  # rise within a cell from which on all of its mass counts as uncertain
TOLERANCE = 3e-4  # largest share of the mass that one more halving of a cell may move
N_POINTS = 1000  # largest number of points
N_COARSE = 12  # points on each side of v, before the first halving
N_PASSES = 24  # largest number of halvings of one cell


def compile_grid_draw(
    solve: ScalarMap,
    forward: ScalarMap,
    value: ScalarMap,
    even: bool,
) -> ScalarMap:
    """Return the compiled draw of T, ``(t_old, v, x, rho, beta, pieces, pf, pd, stream) -> t``."""

    def energy_at(t, v, x, rho, beta, pf, pd):  # type: ignore[no-untyped-def]
        return beta * value(x, forward(t, pf), pd) + 0.5 * rho * (t - v) * (t - v)

    energy = compile_scalar(energy_at)
    make_grid = _compile_grid(energy, even)

    def draw(t_old, v, x, rho, beta, pieces, pf, pd, stream):  # type: ignore[no-untyped-def]
        best = solve(v, x, rho / beta, pieces, pf, pd)
        lowest = energy(best, v, x, rho, beta, pf, pd)
        if not lowest < math.inf:
            return best
        points, energies, masses = make_grid(best, lowest, v, x, rho, beta, pf, pd)
        t, log_weight = best, -math.inf
        for _ in range(TRIES):  # an infinite energy only occurs in a cell that holds an edge
            t, below = _draw_point(points, energies, masses, stream)
            log_weight = below - (energy(t, v, x, rho, beta, pf, pd) - lowest)
            if log_weight > -math.inf:
                break
        if math.isnan(t_old):
            return t
        old = _chord(t_old, v, rho, points, energies)
        old -= energy(t_old, v, x, rho, beta, pf, pd) - lowest
        return t if math.log(uniform(stream)) <= log_weight - old else t_old

    return compile_scalar(draw)


def _compile_grid(energy: ScalarMap, even: bool) -> ScalarMap:
    """Return a compiled function for points, their energies and the masses of the cells."""

    def spread_points(points, n, centre, near, far, lowest, v, x, rho, beta, pf, pd):  # type: ignore[no-untyped-def]
        # From the distance at which the energy rises by a few units, outwards in powers of two.
        width, base = 1.0 / math.sqrt(rho), energy(centre, v, x, rho, beta, pf, pd)
        for _ in range(60):
            above = energy(centre + width, v, x, rho, beta, pf, pd)
            below = energy(centre - width, v, x, rho, beta, pf, pd)
            if min(above, below) <= base + 2.0:
                break
            width *= 0.5
        points[n] = centre
        n += 1
        for _ in range(60):
            for t in (centre - width, centre + width):
                if near < t < far:
                    points[n] = t
                    n += 1
            width *= 2.0
        return n

    spread = compile_scalar(spread_points)

    def first_points(points, best, lowest, v, x, rho, beta, pf, pd):  # type: ignore[no-untyped-def]
        radius = math.sqrt(2.0 * (max(lowest, 0.0) + DEPTH) / rho)
        near, far = min(v - radius, best), max(v + radius, best)
        n = spread(points, 0, best, near, far, lowest, v, x, rho, beta, pf, pd)
        if even and near < -best < far:
            n = spread(points, n, -best, near, far, lowest, v, x, rho, beta, pf, pd)
        for k in range(-N_COARSE, N_COARSE + 1):
            t = v + radius * (k / N_COARSE) * abs(k / N_COARSE)
            points[n] = min(max(t, near), far)
            n += 1
        return n

    first = compile_scalar(first_points)

    def make_grid(best, lowest, v, x, rho, beta, pf, pd):  # type: ignore[no-untyped-def]
        points = np.empty(N_POINTS)
        n = first(points, best, lowest, v, x, rho, beta, pf, pd)
        points = np.sort(points[:n])
        energies, masses, is_open = np.empty(n), np.zeros(n), np.ones(n, np.bool_)
        for k in range(n):
            energies[k] = min(energy(points[k], v, x, rho, beta, pf, pd) - lowest, CAP)
            if k > 0:
                masses[k - 1] = _cell_mass(points[k] - points[k - 1], energies[k - 1], energies[k])
        total = masses.sum()
        for _ in range(N_PASSES):
            if 2 * n > N_POINTS:
                break
            old, old_energies, old_masses, old_open = points, energies, masses, is_open
            points, energies, masses = np.empty(2 * n), np.empty(2 * n), np.empty(2 * n)
            is_open, n = np.zeros(2 * n, np.bool_), 0
            for k in range(old.size):
                points[n], energies[n], masses[n] = old[k], old_energies[k], old_masses[k]
                n += 1
                if k + 1 == old.size or not old_open[k]:
                    continue
                t, width = 0.5 * (old[k] + old[k + 1]), 0.5 * (old[k + 1] - old[k])
                e = min(energy(t, v, x, rho, beta, pf, pd) - lowest, CAP)
                left = _cell_mass(width, old_energies[k], e)
                right = _cell_mass(width, e, old_energies[k + 1])
                moved = left + right - old_masses[k]
                if abs(old_energies[k + 1] - old_energies[k]) > STEEP:  # perhaps an edge inside
                    moved = width * math.exp(-min(old_energies[k], old_energies[k + 1]))
                if abs(moved) > TOLERANCE * total:
                    masses[n - 1], points[n], energies[n], masses[n] = left, t, e, right
                    is_open[n - 1] = is_open[n] = True
                    total += left + right - old_masses[k]
                    n += 1
            points, energies = points[:n], energies[:n]
            masses, is_open = masses[:n], is_open[:n]
            if n == old.size:
                break
        return points, energies, masses

    return compile_scalar(make_grid)


@compile_scalar
def _cell_mass(width, first, last):  # type: ignore[no-untyped-def]
    fall = abs(last - first)
    highest = width * math.exp(-min(first, last))
    if fall < 1e-2:
        return highest * (1.0 - fall * (0.5 - fall * (1.0 / 6.0 - fall / 24.0)))
    return highest * -math.expm1(-fall) / fall


@compile_scalar
def _draw_point(points, energies, masses, stream):  # type: ignore[no-untyped-def]
    wanted, cell = uniform(stream) * masses.sum(), points.size - 2
    for k in range(points.size - 1):
        wanted -= masses[k]
        if wanted <= 0.0:
            cell = k
            break
    rise, u = energies[cell + 1] - energies[cell], uniform(stream)
    share = -math.log1p(u * math.expm1(-rise)) / rise if abs(rise) > 1e-10 else u
    t = points[cell] + share * (points[cell + 1] - points[cell])
    return t, energies[cell] + share * rise


@compile_scalar
def _chord(t, v, rho, points, energies):  # type: ignore[no-untyped-def]
    last = points.size - 1
    # Beyond the grid the proposal falls exponentially; its mass there is too small to be drawn.
    if t <= points[0]:
        return energies[0] + 0.5 * rho * (v - points[0]) * (points[0] - t)
    if t >= points[last]:
        return energies[last] + 0.5 * rho * (points[last] - v) * (t - points[last])
    k = np.searchsorted(points, t) - 1
    share = (t - points[k]) / (points[k + 1] - points[k])
    return energies[k] + share * (energies[k + 1] - energies[k])
