"""Draws of T in a range of rows, or of columns, for noise of every kind.

Where the noise is after f and only limits are known, x is drawn from its distribution given f(T),
truncated to the limits.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.compiler import compile_kernel, compile_scalar
from nmd_lab.data.entries import FloatArray
from nmd_lab.model.column_model import ColumnModel, Structure, make_column_model
from nmd_lab.model.loss import LAPLACE, NORMAL, POISSON, NoiseModel

from .random_numbers import LATENT, draw_between, new_stream, start_of, uniform
from .sampled_model import NoiseKind
from .t_draws import compile_latent_draw, compile_t_draw

WHOLE = 2.0**53  # from here on every number is whole


@compile_scalar
def draw_gaussian(y, beta, low, high, stream):  # type: ignore[no-untyped-def]
    """Return a draw of x, given f(T) = y, between two limits."""
    return draw_between(y, 1.0 / math.sqrt(beta), low, high, stream)


@compile_scalar
def _exponential(rate, width, stream):  # type: ignore[no-untyped-def]
    share = -math.expm1(-rate * width)
    return min(-math.log1p(-uniform(stream) * share) / rate, width)


@compile_scalar
def draw_laplace(y, beta, low, high, stream):  # type: ignore[no-untyped-def]
    """Return a draw of x, given f(T) = y, between two limits."""
    if not low < high:
        return low
    if y <= low:
        return low + _exponential(beta, high - low, stream)
    if y >= high:
        return high - _exponential(beta, high - low, stream)
    below, above = -math.expm1(-beta * (y - low)), -math.expm1(-beta * (high - y))
    if uniform(stream) * (below + above) < below:
        return y - _exponential(beta, y - low, stream)
    return y + _exponential(beta, high - y, stream)


@compile_scalar
def draw_poisson(y, beta, low, high, stream):  # type: ignore[no-untyped-def]
    """Return a draw of x, given f(T) = y, between two limits: a whole number, in units of X."""
    first, last = max(float(math.ceil(low)), 0.0) if low > 0.0 else 0.0, math.inf
    if high < WHOLE:
        last = float(math.floor(high))
    if not first <= last:  # no whole number lies between the limits
        return high if high < math.inf else low
    if y <= 0.0:
        return first
    mode = min(max(float(math.floor(y)), first), last)
    total, chosen = 1.0, mode
    for way in (-1.0, 1.0):
        weight, k = 1.0, mode
        while weight > 1e-17 * total and first <= k + way <= last:
            weight *= k / y if way < 0.0 else y / (k + 1.0)
            k += way
            total += weight
            if uniform(stream) * total <= weight:
                chosen = k
    return chosen


DRAWS_OF_X: dict[NoiseModel, Any] = {
    NORMAL: draw_gaussian,
    LAPLACE: draw_laplace,
    POISSON: draw_poisson,
}
"""Draws of x within limits, by the noise of the loss."""


LEVEL = make_column_model("identity", "frobenius")
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


class Batch(NamedTuple):
    """Stored entries whose T is drawn by the same compiled loop, row by row or column by column.

    Attributes
    ----------
    noise, column_model, model_indices : NoiseKind, ColumnModel, list of int
        Where the noise is, nonlinearity and loss, and positions of the column models.
    starts : ndarray of int (n_rows + 1,) or (n_columns + 1,)
        Position of the first entry of each row or column, and behind the last.
    entries : slice or ndarray of int (n_entries,)
        Positions of the entries among those by row.
    x, weights, limits, units : ndarray (n_entries,), ndarray, SampledLimits, tuple of ndarray
        X at the entries, and what is empty without it: weights, limits, centres and sizes.
    shift : int
        Number of rows and columns before, in streams of random numbers.
    """

    noise: NoiseKind
    column_model: ColumnModel
    model_indices: list[int]
    starts: NDArray[np.integer]
    entries: Any
    x: FloatArray
    weights: FloatArray
    limits: SampledLimits
    units: tuple[FloatArray, ...] = ()
    shift: int = 0


def latent_kernel(noise: NoiseKind, column_model: ColumnModel, types: str) -> Any:
    """Return the compiled loop that draws T, and x after f where only limits are known."""
    return _kernel(
        noise,
        column_model.structure,
        f"draw_T_{noise}_{column_model.name}_{types}",
        column_model.is_ours,
    )


@cache
def _kernel(noise: NoiseKind, structure: Structure, name: str, cached: bool) -> Any:
    f, d, _ = structure
    value, forward = compile_scalar(d.value), compile_scalar(f.forward)
    after, known = noise == "after", noise == "gaussian"
    draw: Any = compile_t_draw(structure) if after else _draw_between(noise, structure)
    draw_x = DRAWS_OF_X.get(d.noise_model, draw_gaussian)

    def draw_T(starts, first, last, x, weights, V, levels, model, limits, key, T, losses):  # type: ignore[no-untyped-def]
        (rho, beta, cuts), (pieces, pf, pd) = levels, model
        is_limited, low, high = limits
        seed, sweep, shift, keys = key
        for i in range(first, last):
            stream = new_stream(start_of(seed, sweep, LATENT, i + shift))
            at = i if rho.size > 1 else 0
            ends, total = cuts[at], 0.0
            for k in range(starts[i], starts[i + 1]):
                here = is_limited.size > 0 and is_limited[k]
                if known and not here:
                    continue
                if keys.size:
                    stream = new_stream(start_of(seed, sweep, LATENT, keys[k]))
                weight, v = weights[k] if weights.size else 1.0, V[k]
                if after:
                    outer = beta[at] * weight
                    if here:
                        x[k] = draw_x(forward(T[k], pf), outer, low[k], high[k], stream)
                    t = draw(T[k], v, x[k], rho[at], outer, pieces, pf, pd, stream)
                    total += weight * value(x[k], forward(t, pf), pd)
                else:
                    sd = 1.0 / math.sqrt(rho[at] * weight)
                    least, most = low[k] if here else x[k], high[k] if here else x[k]
                    t = draw(v, sd, least, most, pieces, ends, stream)
                T[k] = t
            losses[i] = total

    return compile_kernel(draw_T, name, cached=cached)


def _draw_between(noise: NoiseKind, structure: Structure) -> Any:
    """Return the compiled draw ``(v, sd, low, high, pieces, cuts, stream) -> t`` within limits."""
    latent = compile_latent_draw(structure) if noise == "before" else draw_between

    def draw(v, sd, low, high, pieces, cuts, stream):  # type: ignore[no-untyped-def]
        return draw_between(v, sd, low, high, stream)

    def draw_before(v, sd, low, high, pieces, cuts, stream):  # type: ignore[no-untyped-def]
        return latent(v, sd, low, high, pieces, stream)

    def draw_level(v, sd, low, high, pieces, cuts, stream):  # type: ignore[no-untyped-def]
        # cuts begins with minus infinity and ends with infinity
        return draw_between(v, sd, cuts[int(low)], cuts[int(high) + 1], stream)

    return compile_scalar({"before": draw_before, "ordinal": draw_level}.get(noise, draw))
