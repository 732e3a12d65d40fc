"""The draw of T at the stored entries, given v = WH with offsets and the noise levels.

Where the noise is before f, f(T) or its limits are known exactly (`latent_draws`).

Where the noise is after f, the density of T is proportional to exp(-ρ/2 (t - v)² - β d(x, f(t))).
`compile_t_draw` takes the first of three constructions that applies to the pair, as
`compile_t_update` does for its minimum:

1. Normal segments, for a piecewise-linear f with Frobenius or L1 (`piece_draws`).
2. Rejection below chords, for a piecewise-linear f with another convex loss (`piece_draws`), and
   for Square with KL.
3. A grid and a Metropolis step, for everything else (`grid_draws`).
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.compiler import compile_kernel, compile_scalar
from nmd_lab.model._search import ScalarMap
from nmd_lab.model.base import LAPLACE, NORMAL, POISSON
from nmd_lab.model.kind import Kind, Structure, make_kind
from nmd_lab.model.loss import Loss
from nmd_lab.model.proximal import compile_t_update

from .grid_draws import compile_grid_draw
from .latent_draws import DRAWS_OF_X, compile_draw_within, compile_latent_draw, draw_gaussian
from .noise import NoiseKind
from .piece_draws import (
    compile_convex_draw,
    compile_frobenius_piece,
    compile_l1_piece,
    compile_linear_energy,
    compile_linear_mode,
    compile_piece_draw,
)
from .streams import LATENT, LIMITS, draw_between, new_stream, start_stream

LEVEL = make_kind("identity", "frobenius")
"""Stands for a kind of ordered levels in compiled code, to which their number does not matter."""


class SampledLimits(NamedTuple):
    """The limits of the stored entries.

    Attributes
    ----------
    limited : ndarray of bool (n_entries,)
        Whether only limits are known of an entry.
    low, high : ndarray (n_entries,)
        Limits; -inf or inf where there is none.
    """

    limited: NDArray[np.bool_]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def at(self, entries: Any) -> SampledLimits:
        """Return the limits of some entries."""
        return SampledLimits(*(each[entries] for each in self))


NO_LIMITS = SampledLimits(np.empty(0, bool), np.empty(0), np.empty(0))


class Segments(NamedTuple):
    """Stored entries whose T is drawn by the same compiled loop, row by row or column by column.

    Attributes
    ----------
    noise, kind : NoiseKind, Kind
        Where the noise is, and nonlinearity and loss.
    kinds : list of int
        Positions of the kinds.
    starts : ndarray of int (n_rows + 1,) or (n_columns + 1,)
        Position of the first entry of each row or column, and behind the last.
    entries : slice or ndarray of int (n_entries,)
        Positions of the entries among those by row.
    shift : int
        Number of rows and columns before, in streams of random numbers.
    """

    noise: NoiseKind
    kind: Kind
    kinds: list[int]
    starts: NDArray[np.integer]
    entries: Any
    shift: int = 0


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


def latent_kernel(noise: NoiseKind, kind: Kind, types: str, *, limited: bool) -> Any:
    """Return the compiled loop that draws T, and x after f where only limits are known."""
    name = f"draw_T_{noise}_{kind.name}_{'limits_' if limited else ''}{types}"
    return _kernel(noise, kind.structure, name, kind.is_ours, limited)


@cache
def _kernel(noise: NoiseKind, structure: Structure, name: str, cached: bool, limited: bool) -> Any:
    f, d, _ = structure
    value, forward = compile_scalar(d.value), compile_scalar(f.forward)
    draw, draw_within = _entry_draw(noise, structure), _draw_within(noise, structure)
    draw_x = DRAWS_OF_X.get(d.noise_model, draw_gaussian)
    after, before, known = noise == "after", noise != "after", noise == "gaussian"

    def draw_T(starts, first, last, x, weights, V, levels, model, limits, key, T, losses):  # type: ignore[no-untyped-def]
        rho, beta, cuts = levels
        pieces, pf, pd = model
        is_limited, low, high = limits
        seed, sweep, shift = key
        stream, of_limits = new_stream(), new_stream()
        base = starts[first]
        for i in range(first, last):
            start_stream(stream, seed, sweep, LATENT, i + shift)
            if limited:
                start_stream(of_limits, seed, sweep, LIMITS, i + shift)
            at = i if rho.size > 1 else 0
            ends, total = cuts[at], 0.0
            for k in range(starts[i], starts[i + 1]):
                if known and not is_limited[k]:
                    continue
                weight, v = weights[k] if weights.size else 1.0, V[k - base]
                inner = rho[at] if after else rho[at] * weight
                outer = beta[at] * weight
                if after and limited and is_limited[k]:
                    x[k] = draw_x(forward(T[k], pf), outer, low[k], high[k], of_limits)
                t = draw(T[k], v, x[k], inner, outer, pieces, pf, pd, ends, stream)
                if before and limited and is_limited[k]:
                    sd = 1.0 / math.sqrt(inner)
                    t = draw_within(v, sd, low[k], high[k], pieces, ends, of_limits)
                T[k] = t
                if after:
                    total += weight * value(x[k], forward(t, pf), pd)
            losses[i] = total

    return compile_kernel(draw_T, name, cached=cached)


def _draw_within(noise: NoiseKind, structure: Structure) -> Any:
    """Return the compiled draw of T within limits, with the same arguments for every kind."""
    if noise == "before":
        before = compile_draw_within(structure)

        def draw_before(v, sd, low, high, pieces, cuts, stream):  # type: ignore[no-untyped-def]
            return before(v, sd, low, high, pieces, stream)

        return compile_scalar(draw_before)
    if noise == "ordinal":
        return _within_levels

    def draw(v, sd, low, high, pieces, cuts, stream):  # type: ignore[no-untyped-def]
        return draw_between(v, sd, low, high, stream)

    return compile_scalar(draw)


def _levels(v, sd, low, high, pieces, cuts, stream):  # type: ignore[no-untyped-def]
    # cuts begins with minus infinity and ends with infinity
    return draw_between(v, sd, cuts[int(low)], cuts[int(high) + 1], stream)


_within_levels = compile_scalar(_levels)


def _entry_draw(noise: NoiseKind, structure: Structure) -> Any:
    """Return the compiled draw of one entry, with the same arguments for every kind."""
    if noise == "after":
        after = compile_t_draw(structure)

        def draw_after(t, v, x, rho, beta, pieces, pf, pd, cuts, stream):  # type: ignore[no-untyped-def]
            return after(t, v, x, rho, beta, pieces, pf, pd, stream)

        return compile_scalar(draw_after)
    if noise == "before":
        before = compile_latent_draw(structure)

        def draw_before(t, v, x, rho, beta, pieces, pf, pd, cuts, stream):  # type: ignore[no-untyped-def]
            return before(v, x, rho, pieces, stream)

        return compile_scalar(draw_before)
    if noise == "ordinal":

        def draw_level(t, v, x, rho, beta, pieces, pf, pd, cuts, stream):  # type: ignore[no-untyped-def]
            return _within_levels(v, 1.0 / math.sqrt(rho), x, x, pieces, cuts, stream)

        return compile_scalar(draw_level)

    def keep(t, v, x, rho, beta, pieces, pf, pd, cuts, stream):  # type: ignore[no-untyped-def]
        return t

    return compile_scalar(keep)
