"""Draws at entries of which only limits are known.

Where the noise is before f, or f is the identity, T has a normal distribution that is truncated to
all t at which f(t) lies within the limits.  Where the noise is after f, x is drawn from its
distribution given f(T), truncated to the limits; T is then drawn given x, as at any other entry.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.compiler import compile_kernel, compile_scalar
from nmd_lab.data.entries import EntryLimits, FloatArray
from nmd_lab.data.masks import AT_MOST
from nmd_lab.model.kind import Kind, Structure
from nmd_lab.model.noise import LAPLACE, NORMAL, POISSON, NoiseModel

from .noise import NoiseKind
from .piece_draws import NOTHING, add_segment, draw_chosen
from .streams import draw_between, new_stream, start_stream, uniform

WHOLE = 2.0**53


@dataclass(frozen=True)
class SampledLimits:
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

    def at(self, entries: NDArray[np.integer]) -> SampledLimits:
        """Return the limits of some entries."""
        return SampledLimits(self.limited[entries], self.low[entries], self.high[entries])


def sampled_limits(
    limits: EntryLimits,
    values: FloatArray,
    kind: Kind,
    noise: NoiseKind,
    *,
    smallest: float,
    weighted: bool,
) -> SampledLimits:
    """Return the limits of entries of a kind; those of ordered levels are positions of levels."""
    loss = kind.loss
    after = loss.noise_model
    if noise == "after" and (after not in NOISES or (not after.shape and weighted)):
        words = " with weights" if after in NOISES else ""
        raise ValueError(
            f"at_most= and at_least= do not go with loss={loss.name!r}{words} in sample(): "
            "use loss='frobenius', 'l1' or 'kl', or complete()."
        )
    x = np.asarray(values, dtype=np.float64).ravel()
    low, high = limits.ends(x, max(smallest, loss.domain[0]))
    if loss.classes == "ordered":
        low = np.where(limits.codes == AT_MOST, 0, np.searchsorted(loss.level_values, low))
        high = np.searchsorted(loss.level_values, high, side="right").astype(np.float64) - 1
    return SampledLimits(limits.codes != 0, low.astype(np.float64), high.astype(np.float64))


def limit_kernel(noise: NoiseKind, kind: Kind, types: str) -> Any:
    """Return the compiled loop over entries with limits, which overwrites T, or x after f."""
    name = f"draw_limits_{noise}_{kind.name}_{types}"
    return _kernel(noise, kind.structure, name, kind.is_ours)


@cache
def _kernel(noise: NoiseKind, structure: Structure, name: str, cached: bool) -> Any:
    after, ordinal = noise == "after", noise == "ordinal"
    draw_x = NOISES.get(structure[1].noise_model, draw_gaussian)
    forward = compile_scalar(structure[0].forward)
    draw_t = _within_all if noise != "before" else _compile_before(structure)

    def draw(  # type: ignore[no-untyped-def]
        starts,
        first,
        last,
        limited,
        low,
        high,
        weights,
        V,
        rho,
        beta,
        pieces,
        pf,
        cuts,
        seed,
        sweep,
        kind,
        shift,
        T,
        x,
    ):
        stream = new_stream()
        base = starts[first]
        for i in range(first, last):
            start_stream(stream, seed, sweep, kind, i + shift)
            at = i if rho.size > 1 else 0
            for k in range(starts[i], starts[i + 1]):
                if not limited[k]:
                    continue
                weight = weights[k] if weights.size else 1.0
                sd = 1.0 / math.sqrt(rho[at] * weight)
                if after:
                    y = forward(T[k], pf)
                    x[k] = draw_x(y, beta[at] * weight, low[k], high[k], stream)
                elif ordinal:
                    ends = cuts[at, int(low[k])], cuts[at, int(high[k]) + 1]
                    T[k] = draw_t(V[k - base], sd, ends[0], ends[1], pieces, stream)
                else:
                    T[k] = draw_t(V[k - base], sd, low[k], high[k], pieces, stream)

    return compile_kernel(draw, name, cached=cached)


def _draw_within_all(v, sd, low, high, pieces, stream):  # type: ignore[no-untyped-def]
    return draw_between(v, sd, low, high, stream)


_within_all = compile_scalar(_draw_within_all)


def _compile_before(structure: Structure) -> Any:
    """Return the draw of T ~ N(v, sd²) among all t at which f(t) lies within the limits."""
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
            choice = _add_interval(choice, v, sd, first, last, stream)
            if even:
                choice = _add_interval(choice, v, sd, -last, -first, stream)
        return draw_chosen(choice, stream)

    return compile_scalar(draw)


def _interval(choice, v, sd, low, high, stream):  # type: ignore[no-untyped-def]
    off = (min(max(v, low), high) - v) / sd
    return add_segment(choice, v, sd, low, high, 0.5 * off * off, stream)


_add_interval = compile_scalar(_interval)


def _draw_within_roots(v, sd, low, high, pieces, stream):  # type: ignore[no-untyped-def]
    first, last = math.sqrt(max(low, 0.0)), math.sqrt(max(high, 0.0))
    choice = _add_interval(NOTHING, v, sd, first, last, stream)
    return draw_chosen(_add_interval(choice, v, sd, -last, -first, stream), stream)


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
    if high < WHOLE:  # from here on every number is whole
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

NOISES: dict[NoiseModel, Any] = {
    NORMAL: draw_gaussian,
    LAPLACE: draw_laplace,
    POISSON: draw_poisson,  # x is a whole number, in units of X
}
"""Draws of the noise after f."""
