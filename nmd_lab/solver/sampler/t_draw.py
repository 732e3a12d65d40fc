"""The draw of T where the noise comes after f: one compiled function for each pair.

The density of T is proportional to exp(-ρ/2 (t - v)² - β d(x, f(t))).  `compile_t_draw` takes the
first of three constructions that applies to the pair, as `compile_t_update` does for its minimum:

1. Normal segments, for a piecewise-linear f with Frobenius or L1 (`piece_draws`).
2. Rejection below chords, for a piecewise-linear f with another convex loss (`convex_draws`), and
   for Square with KL.
3. A grid and a Metropolis step, for everything else (`grid_draws`).
"""

from __future__ import annotations

import math
from functools import cache

from nmd_lab._runtime.compiler import compile_scalar
from nmd_lab.model._search import ScalarMap
from nmd_lab.model.kind import Structure
from nmd_lab.model.loss import Loss
from nmd_lab.model.noise import LAPLACE, NORMAL, POISSON
from nmd_lab.model.proximal import compile_t_update

from .convex_draws import compile_convex_draw, compile_linear_energy, compile_linear_mode
from .grid_draws import compile_grid_draw
from .latent_draw import compile_latent_draw
from .piece_draws import compile_frobenius_piece, compile_l1_piece, compile_piece_draw

__all__ = ["compile_latent_draw", "compile_t_draw"]

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
