"""Draws of T where the noise is after f, given v = WH with offsets and the noise levels.

The density of T is proportional to exp(-ρ/2 (t - v)² - β d(x, f(t))).  `compile_t_draw` takes the
first of three constructions that applies to the pair, as `compile_t_update` does for its minimum:

1. Normal segments, for a piecewise-linear f with Frobenius or L1 (`piece_draws`).
2. Rejection below chords, for a piecewise-linear f with another convex loss (`piece_draws`), and
   for Square with KL.
3. A grid and a Metropolis step, for everything else.

Between two points of the grid the energy ρ/2 (t - v)² + β d(x, f(t)) is replaced by its chord, so
that the density is piecewise exponential there and can be drawn from by inversion.  Cells are
halved until one more halving would move less than `tolerance` of the mass.  Such a draw is the
proposal of an independence sampler (W. K. Hastings, 1970): accepted or not against the old T, it
leaves the exact density invariant.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from nmd_lab._runtime.compiler import compile_scalar
from nmd_lab.model.curve_search import ScalarMap
from nmd_lab.model.kind import Structure
from nmd_lab.model.loss import LAPLACE, NORMAL, POISSON, Loss
from nmd_lab.model.proximal import compile_t_update

from .piece_draws import (
    HALF_LINE,
    compile_convex_draw,
    compile_linear_energy,
    compile_linear_mode,
    compile_piece_draw,
    offer_frobenius,
    offer_l1,
)
from .streams import TRIES, uniform


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
