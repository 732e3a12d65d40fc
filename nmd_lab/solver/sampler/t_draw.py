"""Draws of T, given WH and the noise levels: noise before f, after f, and the loop over entries.

Draws of T where the noise comes before f: x = f(T) exactly, with T ~ N(v, 1/rho).

A value x at which f is flat says only that T lies on that piece, as in the Tobit model.  Any other
value says that T is one of the points with f(T) = x.

The draw of T where the noise comes after f: one compiled function for each pair.

The density of T is proportional to exp(-ρ/2 (t - v)² - β d(x, f(t))).  `compile_t_draw` takes the
first of three constructions that applies to the pair, as `compile_t_update` does for its minimum:

1. Normal segments, for a piecewise-linear f with Frobenius or L1 (`piece_draws`).
2. Rejection below chords, for a piecewise-linear f with another convex loss (`piece_draws`), and
   for Square with KL.
3. A grid and a Metropolis step, for everything else (`grid_draws`).

The draw of T at every stored entry, given WH and the noise levels.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from nmd_lab._runtime.compiler import compile_kernel, compile_scalar
from nmd_lab.model._search import ScalarMap
from nmd_lab.model.kind import Kind, Structure
from nmd_lab.model.loss import Loss
from nmd_lab.model.noise import LAPLACE, NORMAL, POISSON
from nmd_lab.model.proximal import compile_t_update

from .grid_draws import compile_grid_draw
from .noise import NoiseKind
from .piece_draws import (
    NOTHING,
    add_segment,
    add_weight,
    compile_convex_draw,
    compile_frobenius_piece,
    compile_l1_piece,
    compile_linear_energy,
    compile_linear_mode,
    compile_piece_draw,
    draw_chosen,
)
from .streams import draw_between, new_stream, start_stream

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


HALF_LINE = ((0.0, math.inf, 1.0, 0.0),)


@cache
def compile_t_draw(structure: Structure) -> ScalarMap:
    """Return the compiled draw ``(t_old, v, x, rho, beta, *kind.arguments, stream) -> t`` of T."""
    f, d, flat = structure
    value = compile_scalar(d.value)
    if flat and d.noise_model is NORMAL:
        return compile_piece_draw(compile_frobenius_piece(value), f.even)
    if flat and d.noise_model is LAPLACE:
        return compile_piece_draw(compile_l1_piece(value), f.even)
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
        root = math.sqrt(rho * v * rho * v + 8.0 * beta * x * (rho + 2.0 * beta))
        if v < 0.0:  # the usual form of the positive root would cancel here
            return 4.0 * beta * x / (root - rho * v)
        return (rho * v + root) / (2.0 * (rho + 2.0 * beta))

    halves = compile_convex_draw(compile_scalar(energy), compile_scalar(mode), True)

    def draw(t_old, v, x, rho, beta, pieces, pf, pd, stream):  # type: ignore[no-untyped-def]
        return halves(t_old, v, x, rho, beta, HALF_LINE, pf, pd, stream)

    return compile_scalar(draw)


def latent_kernel(noise: NoiseKind, kind: Kind, types: str) -> Any:
    """Return the compiled loop that draws T."""
    name = f"draw_T_{noise}_{kind.name}_{types}"
    return _kernel(noise, kind.structure, name, kind.is_ours)


@cache
def _kernel(kind: NoiseKind, structure: Structure, name: str, cached: bool) -> Any:
    draw = _entry_draw(kind, structure)
    value, forward = compile_scalar(structure[1].value), compile_scalar(structure[0].forward)
    after = kind == "after"

    def draw_T(  # type: ignore[no-untyped-def]
        starts,
        first,
        last,
        x,
        weights,
        V,
        rho,
        beta,
        pieces,
        pf,
        pd,
        cuts,
        seed,
        sweep,
        kind,
        shift,
        T,
        misfit,
    ):
        stream = new_stream()
        base = starts[first]
        for i in range(first, last):
            start_stream(stream, seed, sweep, kind, i + shift)
            at = i if rho.size > 1 else 0
            ends, total = cuts[at], 0.0
            for k in range(starts[i], starts[i + 1]):
                weight = weights[k] if weights.size else 1.0
                inner = rho[at] if after else rho[at] * weight
                outer = beta[at] * weight
                t = draw(T[k], V[k - base], x[k], inner, outer, pieces, pf, pd, ends, stream)
                T[k] = t
                if after:
                    total += weight * value(x[k], forward(t, pf), pd)
            misfit[i] = total

    return compile_kernel(draw_T, name, cached=cached)


def _entry_draw(kind: NoiseKind, structure: Structure) -> Any:
    """Return the compiled draw of one entry, with the same arguments for every kind."""
    if kind == "after":
        after = compile_t_draw(structure)

        def draw_after(t, v, x, rho, beta, pieces, pf, pd, cuts, stream):  # type: ignore[no-untyped-def]
            return after(t, v, x, rho, beta, pieces, pf, pd, stream)

        return compile_scalar(draw_after)
    if kind == "before":
        before = compile_latent_draw(structure)

        def draw_before(t, v, x, rho, beta, pieces, pf, pd, cuts, stream):  # type: ignore[no-untyped-def]
            return before(v, x, rho, pieces, stream)

        return compile_scalar(draw_before)

    def draw_level(t, v, x, rho, beta, pieces, pf, pd, cuts, stream):  # type: ignore[no-untyped-def]
        level = int(x)  # cuts begins with minus infinity and ends with infinity
        return draw_between(v, 1.0 / math.sqrt(rho), cuts[level], cuts[level + 1], stream)

    return compile_scalar(draw_level)
