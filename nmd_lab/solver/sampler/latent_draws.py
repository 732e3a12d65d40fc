"""Exact draws where f(T) is known, or limits of it: T for noise before f, and x for noise after f.

Where the noise is before f, x = f(T) exactly and T ~ N(v, sd²).  A value x at which f is flat says
only that T lies on that piece, as in the Tobit model.  Any other value says that T is one of the
points with f(T) = x.  Where only limits are known, T is truncated to all t at which f(t) lies
within them.

Where the noise is after f and only limits are known, x is drawn from its distribution given f(T),
truncated to the limits.

`latent_kernel` draws T in a range of rows, or of columns, for noise of every kind.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.compiler import compile_kernel, compile_scalar
from nmd_lab.data.entries import FloatArray
from nmd_lab.model.curve_search import ScalarMap
from nmd_lab.model.kind import Kind, Structure, make_kind
from nmd_lab.model.loss import LAPLACE, NORMAL, POISSON, NoiseModel

from .piece_draws import NOTHING, add_candidate, add_segment, draw_chosen
from .sampled_model import NoiseKind
from .streams import LATENT, LIMITS, draw_between, new_stream, start_stream, uniform
from .t_draws import compile_t_draw

SINGLE = 2.0**-23  # relative error of a value that was stored in single precision
WHOLE = 2.0**53  # from here on every number is whole


def _interval(choice, v, sd, low, high, even, stream):  # type: ignore[no-untyped-def]
    for first, last in ((low, high), (-high, -low)):
        off = (min(max(v, first), last) - v) / sd
        choice = add_segment(choice, v, sd, first, last, 0.5 * off * off, stream)
        if not even:
            break
    return choice


_add_interval = compile_scalar(_interval)


def _points(choice, t, v, rho, width, even, stream):  # type: ignore[no-untyped-def]
    for point in (t, -t):
        energy = 0.5 * rho * (point - v) * (point - v)
        choice = add_candidate(choice, point, 0.0, point, point, energy, width, stream)
        if not even:
            break
    return choice


_add_point = compile_scalar(_points)


def _distance(x, piece):  # type: ignore[no-untyped-def]
    low, high, slope, intercept = piece
    if slope == 0.0:
        away = abs(x - intercept)
    else:
        first, last = slope * low + intercept, slope * high + intercept
        away = max(max(min(first, last) - x, x - max(first, last)), 0.0)
    return away if away > SINGLE * abs(x) else 0.0


_distance_from = compile_scalar(_distance)


@cache
def compile_latent_draw(structure: Structure) -> ScalarMap:
    """Return the compiled draw ``(v, x, rho, pieces, stream) -> t`` of T, given f(T) = x."""
    f, _, is_linear = structure
    if f.form == "square":
        return compile_scalar(_draw_root)
    if not is_linear:
        raise ValueError(
            f"nonlinearity={f.name!r} does not list its pieces, so that f(T) = x cannot be solved "
            "for T: choose noise='after'."
        )
    even = f.even

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
                choice = _add_interval(choice, v, 1.0 / math.sqrt(rho), low, high, even, stream)
                continue
            t, width = low, 1.0
            if slope != 0.0:
                t, width = min(max((x - intercept) / slope, low), high), 1.0 / abs(slope)
            choice = _add_point(choice, t, v, rho, width, even, stream)
        return draw_chosen(choice, stream)

    return compile_scalar(draw)


def _draw_root(v, x, rho, pieces, stream):  # type: ignore[no-untyped-def]
    choice = _add_point(NOTHING, math.sqrt(max(x, 0.0)), v, rho, 1.0, True, stream)
    return draw_chosen(choice, stream)


@cache
def compile_draw_within(structure: Structure) -> ScalarMap:
    """Return the draw ``(v, sd, low, high, pieces, stream)`` of T, given limits of f(T)."""
    if structure[0].form == "square":
        return compile_scalar(_draw_within_roots)
    even = structure[0].even

    def draw(v, sd, low, high, pieces, stream):  # type: ignore[no-untyped-def]
        choice = NOTHING
        for piece in pieces:
            first, last, slope, intercept = piece
            if slope == 0.0:
                if not low <= intercept <= high:
                    continue
            else:
                ends = (low - intercept) / slope, (high - intercept) / slope
                first, last = max(first, min(ends)), min(last, max(ends))
            choice = _add_interval(choice, v, sd, first, last, even, stream)
        return draw_chosen(choice, stream)

    return compile_scalar(draw)


def _draw_within_roots(v, sd, low, high, pieces, stream):  # type: ignore[no-untyped-def]
    first, last = math.sqrt(max(low, 0.0)), math.sqrt(max(high, 0.0))
    return draw_chosen(_add_interval(NOTHING, v, sd, first, last, True, stream), stream)


def _gaussian(y, beta, low, high, stream):  # type: ignore[no-untyped-def]
    return draw_between(y, 1.0 / math.sqrt(beta), low, high, stream)


def _exponential(rate, width, stream):  # type: ignore[no-untyped-def]
    share = -math.expm1(-rate * width)
    return min(-math.log1p(-uniform(stream) * share) / rate, width)


_draw_exponential = compile_scalar(_exponential)


def _laplace(y, beta, low, high, stream):  # type: ignore[no-untyped-def]
    if not low < high:
        return low
    if y <= low:
        return low + _draw_exponential(beta, high - low, stream)
    if y >= high:
        return high - _draw_exponential(beta, high - low, stream)
    below, above = -math.expm1(-beta * (y - low)), -math.expm1(-beta * (high - y))
    if uniform(stream) * (below + above) < below:
        return y - _draw_exponential(beta, y - low, stream)
    return y + _draw_exponential(beta, high - y, stream)


def _poisson(y, beta, low, high, stream):  # type: ignore[no-untyped-def]
    first, last = max(float(math.ceil(low)), 0.0) if low > 0.0 else 0.0, math.inf
    if high < WHOLE:
        last = float(math.floor(high))
    if not first <= last:  # no whole number lies between the limits
        return high if high < math.inf else low
    if y <= 0.0:
        return first
    mode = min(max(float(math.floor(y)), first), last)
    total, chosen = 1.0, mode
    weight, k = 1.0, mode
    while k > first and weight > 1e-17 * total:
        weight *= k / y
        k -= 1.0
        total += weight
        if uniform(stream) * total <= weight:
            chosen = k
    weight, k = 1.0, mode
    while k < last and weight > 1e-17 * total:
        k += 1.0
        weight *= y / k
        total += weight
        if uniform(stream) * total <= weight:
            chosen = k
    return chosen


draw_gaussian, draw_laplace, draw_poisson = map(compile_scalar, (_gaussian, _laplace, _poisson))
"""``draw(y, beta, low, high, stream)``: a draw of x, given f(T) = y, between two limits."""

DRAWS_OF_X: dict[NoiseModel, Any] = {
    NORMAL: draw_gaussian,
    LAPLACE: draw_laplace,
    POISSON: draw_poisson,  # x is a whole number, in units of X
}
"""Draws of x within limits, by the noise of the loss."""


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
    noise, kind, kinds : NoiseKind, Kind, list of int
        Where the noise is, nonlinearity and loss, and positions of the kinds.
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
    kind: Kind
    kinds: list[int]
    starts: NDArray[np.integer]
    entries: Any
    x: FloatArray
    weights: FloatArray
    limits: SampledLimits
    units: tuple[FloatArray, ...] = ()
    shift: int = 0


def latent_kernel(noise: NoiseKind, kind: Kind, types: str, *, limited: bool) -> Any:
    """Return the compiled loop that draws T, and x after f where only limits are known."""
    name = f"draw_T_{noise}_{kind.name}_{'limits_' if limited else ''}{types}"
    return _kernel(noise, kind.structure, name, kind.is_ours, limited)


@cache
def _kernel(noise: NoiseKind, structure: Structure, name: str, cached: bool, limited: bool) -> Any:
    f, d, _ = structure
    value, forward = compile_scalar(d.value), compile_scalar(f.forward)
    draw, draw_within = _entry_draws(noise, structure)
    draw_x = DRAWS_OF_X.get(d.noise_model, draw_gaussian)
    after, before, known = noise == "after", noise != "after", noise == "gaussian"

    def draw_T(starts, first, last, x, weights, V, levels, model, limits, key, T, losses):  # type: ignore[no-untyped-def]
        (rho, beta, cuts), (pieces, pf, pd) = levels, model
        is_limited, low, high = limits
        seed, sweep, shift, keys = key
        stream, of_limits = new_stream(), new_stream()
        for i in range(first, last):
            start_stream(stream, seed, sweep, np.int64(LATENT), i + shift)
            if limited:
                start_stream(of_limits, seed, sweep, np.int64(LIMITS), i + shift)
            at = i if rho.size > 1 else 0
            ends, total = cuts[at], 0.0
            for k in range(starts[i], starts[i + 1]):
                if known and not is_limited[k]:
                    continue
                if keys.size:
                    start_stream(stream, seed, sweep, np.int64(LATENT), keys[k])
                weight, v = weights[k] if weights.size else 1.0, V[k - starts[first]]
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


def _entry_draws(noise: NoiseKind, structure: Structure) -> tuple[Any, Any]:
    """Return the compiled draws of an entry and of one within limits, with the same arguments."""

    def keep(t, v, x, rho, beta, pieces, pf, pd, cuts, stream):  # type: ignore[no-untyped-def]
        return t

    def within(v, sd, low, high, pieces, cuts, stream):  # type: ignore[no-untyped-def]
        return draw_between(v, sd, low, high, stream)

    draw, draw_within = keep, within
    if noise == "after":
        after = compile_t_draw(structure)

        def draw_after(t, v, x, rho, beta, pieces, pf, pd, cuts, stream):  # type: ignore[no-untyped-def]
            return after(t, v, x, rho, beta, pieces, pf, pd, stream)

        draw = draw_after
    elif noise == "before":
        before, within_before = compile_latent_draw(structure), compile_draw_within(structure)

        def draw_before(t, v, x, rho, beta, pieces, pf, pd, cuts, stream):  # type: ignore[no-untyped-def]
            return before(v, x, rho, pieces, stream)

        def between(v, sd, low, high, pieces, cuts, stream):  # type: ignore[no-untyped-def]
            return within_before(v, sd, low, high, pieces, stream)

        draw, draw_within = draw_before, between
    elif noise == "ordinal":
        between_cuts = compile_scalar(_between_cuts)

        def draw_level(t, v, x, rho, beta, pieces, pf, pd, cuts, stream):  # type: ignore[no-untyped-def]
            return between_cuts(v, 1.0 / math.sqrt(rho), x, x, pieces, cuts, stream)

        draw, draw_within = draw_level, _between_cuts
    return compile_scalar(draw), compile_scalar(draw_within)


def _between_cuts(v, sd, low, high, pieces, cuts, stream):  # type: ignore[no-untyped-def]
    # cuts begins with minus infinity and ends with infinity
    return draw_between(v, sd, cuts[int(low)], cuts[int(high) + 1], stream)
