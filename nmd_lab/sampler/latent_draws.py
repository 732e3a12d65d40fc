"""Draws of T for noise of every kind, and of the cut points of ordered levels.

Where the noise is after f and only limits are known, x is drawn from its distribution given f(T),
truncated to the limits.

**Normal segments.**  A segment is an interval with a normal density on it, known up to a common
factor.  Its *energy* is the negative logarithm of the density at its highest point in the interval.
Neighbours share that point or the limit between them.  Energies are therefore compared without loss
of digits, even where they are very large.  One segment is chosen by its mass, in one pass and
without storage.  An even f has each of its pieces twice, the second time mirrored at t = 0.

Where the noise is after f, the density of T is proportional to exp(-ρ/2 (t - v)² - β d(x, f(t))).
With Frobenius or L1, and on a piece f(t) = s t + c, it is that of a normal variable, or of one on
each side of s t + c = x.  Where the noise is before f, T ~ N(v, sd²) within the limits of f(T).  A
value x at which f is flat says only that T lies on that piece, as in the Tobit model.  Any other
value says that T is one of the points with f(T) = x, which are segments without a width.

**Slices**, for every other f or loss with the noise after f.  Under the old t, a level of the
energy is drawn, and the new t is drawn from where the energy is below this level (R. M. Neal,
"Slice sampling", Annals of Statistics 31, 2003).  It lies there within √(2 level / ρ) of v, since
no loss is below that of f(t) = x.  From this interval on, each point that is refused ends it on its
side of the old t.  For an even f, the sign of the old t is drawn before.

**Cut points** are drawn with T integrated out.  One after the other takes a random-walk Metropolis
step.  A move of all together would rarely be accepted.  The first one stays where it is, because
offsets can shift T.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from nmd_lab._runtime.compiler import cached_kernel, compile_inner, compile_kernel, compile_scalar
from nmd_lab.data.entries import FloatArray
from nmd_lab.model.column_model import Structure, make_column_model
from nmd_lab.model.curve_search import ScalarMap
from nmd_lab.model.loss import LAPLACE, NORMAL, POISSON, NoiseModel
from nmd_lab.model.ordinal import log_probability, mass_between

from .random_numbers import LATENT, TRIES, draw_between, new_stream, start_of, uniform
from .sampled_model import NoiseKind

NO_SEGMENT = (0.0, 0.0, 0.0, 0.0, math.inf, 0.0)
"""Choice before the first segment: low, high, mean, standard deviation, lowest energy, mass."""

FLOAT32_RTOL = 2.0**-23
"""Relative error of a value that was stored in single precision."""

HALF_LINE = ((0.0, math.inf, 1.0, 0.0),)
"""The pieces of Modulus, which are those of the root of Square."""


@compile_scalar
def mirrored(piece):  # type: ignore[no-untyped-def]
    """Return a piece of t as that of -t."""
    low, high, slope, intercept = piece
    return -high, -low, -slope, intercept


@compile_scalar
def add_mass(choice, segment, energy, mass, stream):  # type: ignore[no-untyped-def]
    """Return the choice after a segment.

    In the end each has been chosen with probability mass exp(-energy), divided by the sum of these.
    """
    lowest, total = choice[4], choice[5]
    if energy < lowest:
        total *= math.exp(energy - lowest)
        lowest = energy
    weight = mass * math.exp(lowest - energy)
    total += weight
    if weight > 0.0 and uniform(stream) * total <= weight:
        return (*segment, lowest, total)
    return (*choice[:4], lowest, total)


@compile_scalar
def add_segment(choice, low, high, mean, sd, energy, stream):  # type: ignore[no-untyped-def]
    """Return the choice after the part of a normal density between two limits."""
    if not (low < high and energy < choice[4] + 100.0):  # the share of others is below 1e-40
        return choice
    mass = sd * mass_between((low - mean) / sd, (high - mean) / sd, (high - low) / sd)
    return add_mass(choice, (low, high, mean, sd), energy, mass, stream)


@compile_scalar
def add_frobenius(choice, inputs, piece, stream):  # type: ignore[no-untyped-def]
    """Return the choice after a piece with the loss (x - y)²/2."""
    v, x, rho, beta = inputs
    low, high, slope, intercept = piece
    precision = rho + beta * slope * slope
    mean = (rho * v + beta * slope * (x - intercept)) / precision
    t = min(max(mean, low), high)
    off = x - (slope * t + intercept)
    energy = beta * (0.5 * off * off) + 0.5 * rho * (t - v) * (t - v)
    return add_segment(choice, low, high, mean, 1.0 / math.sqrt(precision), energy, stream)


@compile_scalar
def add_l1(choice, inputs, piece, stream):  # type: ignore[no-untyped-def]
    """Return the choice after the two parts of a piece with the loss |x - y|."""
    v, x, rho, beta = inputs
    low, high, slope, intercept = piece
    kink, shift = high, 0.0
    if slope != 0.0:
        kink = min(max((x - intercept) / slope, low), high)
        shift = beta * abs(slope) / rho
    for first, last, mean in ((low, kink, v + shift), (kink, high, v - shift)):
        t = min(max(mean, first), last)
        energy = beta * abs(x - (slope * t + intercept)) + 0.5 * rho * (t - v) * (t - v)
        choice = add_segment(choice, first, last, mean, 1.0 / math.sqrt(rho), energy, stream)
    return choice


@compile_scalar
def _is_level(piece, low, high):  # type: ignore[no-untyped-def]
    """Return whether f is constant on a piece, at a value within the limits."""
    above, below = low - FLOAT32_RTOL * abs(low), high + FLOAT32_RTOL * abs(high)
    return piece[2] == 0.0 and piece[0] < piece[1] and above <= piece[3] <= below


@compile_scalar
def add_latent(choice, inputs, piece, stream):  # type: ignore[no-untyped-def]
    """Return the choice after the part of a piece that has f(T) within the limits."""
    v, sd, low, high, on_level = inputs
    first, last, slope, intercept = piece
    if slope == 0.0:
        if not _is_level(piece, low, high):
            return choice
    elif on_level:
        return choice
    else:
        ends = (low - intercept) / slope, (high - intercept) / slope
        if low == high:
            t = min(max(ends[0], first), last)
            if abs(t - ends[0]) * abs(slope) > FLOAT32_RTOL * abs(low):
                return choice
            off = (t - v) / sd
            return add_mass(choice, (t, t, t, 0.0), 0.5 * off * off, 1.0 / abs(slope), stream)
        first, last = max(first, min(ends)), min(last, max(ends))
    off = (min(max(v, first), last) - v) / sd
    return add_segment(choice, first, last, v, sd, 0.5 * off * off, stream)


def compile_segments(add_piece: ScalarMap, even: bool) -> ScalarMap:
    """Return the compiled draw ``(inputs, pieces, stream) -> t`` from the segments of pieces."""

    def draw(inputs, pieces, stream):  # type: ignore[no-untyped-def]
        choice = NO_SEGMENT
        for piece in pieces:
            choice = add_piece(choice, inputs, piece, stream)
            if even:
                choice = add_piece(choice, inputs, mirrored(piece), stream)
        low, high, mean, sd, _, _ = choice
        return draw_between(mean, sd, low, high, stream)

    return compile_scalar(draw)


@cache
def compile_latent_draw(structure: Structure) -> ScalarMap:
    """Return the draw ``(v, sd, low, high, pieces, stream) -> t`` of T, given limits of f(T).

    Where they are the same, they are its value.  What f does not take counts as the nearest value.
    """
    f, _, is_linear = structure
    if not is_linear and f.form != "square":
        raise ValueError(
            f"nonlinearity={f.name!r} does not list its pieces, so that f(T) = x cannot be solved "
            "for T: choose noise='after'."
        )
    segments = compile_segments(add_latent, f.even)

    def draw(v, sd, low, high, pieces, stream):  # type: ignore[no-untyped-def]
        smallest, largest = math.inf, -math.inf
        for first, last, slope, intercept in pieces:
            for t in (first, last):
                y = slope * t + intercept if slope != 0.0 else intercept
                smallest, largest = min(smallest, y), max(largest, y)
        low, high = min(max(low, smallest), largest), min(max(high, smallest), largest)
        on_level = False
        for piece in pieces:
            on_level |= low == high and _is_level(piece, low, high)
        return segments((v, sd, low, high, on_level), pieces, stream)

    inner = compile_scalar(draw)

    def draw_root(v, sd, low, high, pieces, stream):  # type: ignore[no-untyped-def]
        first, last = math.sqrt(max(low, 0.0)), math.sqrt(max(high, 0.0))
        return inner(v, sd, first, last, HALF_LINE, stream)

    return inner if is_linear else compile_scalar(draw_root)


@cache
def compile_t_draw(structure: Structure) -> ScalarMap:
    """Return the compiled draw ``(t_old, v, x, rho, beta, *kind.arguments, stream) -> t`` of T."""
    f, d, flat = structure
    if not (flat and d.noise_model in (NORMAL, LAPLACE)):
        return compile_slice_draw(compile_scalar(f.forward), compile_scalar(d.value), f.even)
    segments = compile_segments(add_frobenius if d.noise_model is NORMAL else add_l1, f.even)

    def draw(t_old, v, x, rho, beta, pieces, pf, pd, stream):  # type: ignore[no-untyped-def]
        return segments((v, x, rho, beta), pieces, stream)

    return compile_scalar(draw)


def compile_slice_draw(forward: ScalarMap, value: ScalarMap, even: bool) -> ScalarMap:
    """Return the compiled step ``(t_old, v, x, rho, beta, pieces, pf, pd, stream) -> t``.

    It leaves the density of T as it is.
    """

    def energy_at(t, v, x, rho, beta, pf, pd):  # type: ignore[no-untyped-def]
        return beta * value(x, forward(t, pf), pd) + 0.5 * rho * (t - v) * (t - v)

    energy = compile_scalar(energy_at)

    def draw(t_old, v, x, rho, beta, pieces, pf, pd, stream):  # type: ignore[no-untyped-def]
        t = t_old
        if even:
            odds = math.exp(-2.0 * rho * v * abs(t))
            t = math.copysign(t, 1.0 if uniform(stream) * (1.0 + odds) <= 1.0 else -1.0)
        level = energy(t, v, x, rho, beta, pf, pd) - math.log(uniform(stream))
        if not level < math.inf:
            return v
        radius = math.sqrt(2.0 * (level - beta * min(value(x, x, pd), 0.0)) / rho)
        low, high = v - radius, v + radius
        for _ in range(TRIES):
            new = low + (high - low) * uniform(stream)
            if energy(new, v, x, rho, beta, pf, pd) <= level:
                return new
            low, high = (new, high) if new < t else (low, new)
        return t

    return compile_scalar(draw)


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
    left, right = min(y, high), max(y, low)  # where the density falls from, on either side
    below, above = -math.expm1(-beta * (left - low)), -math.expm1(-beta * (high - right))
    if uniform(stream) * (max(below, 0.0) + max(above, 0.0)) < below:
        return left - _exponential(beta, left - low, stream)
    return right + _exponential(beta, high - right, stream)


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


class Batch(NamedTuple):
    """Stored entries whose T is drawn by the same compiled loop, row by row or column by column.

    Attributes
    ----------
    kernel : callable
        The compiled loop, that of `latent_kernel`.
    arguments : tuple
        Numbers of f and of the loss, as `ColumnModel.arguments` has them.
    model_indices : list of int
        Positions of the column models.
    at : slice or ndarray of int (n_entries,)
        Positions of the entries among those by row.
    starts : ndarray of int (n_rows + 1,) or (n_columns + 1,)
        Position of the first entry of each row or column, and behind the last.
    known : tuple of ndarray (n_entries,)
        Weights, empty if every one is 1, and the smallest and the largest value that each entry may
        have, the same if its value is known.
    key : tuple of int and ndarray
        What streams of random numbers depend on: the number of rows and columns before, and the
        keys of new entries.
    """

    kernel: Any
    arguments: tuple[Any, ...]
    model_indices: list[int]
    at: Any
    starts: NDArray[np.integer]
    known: tuple[FloatArray, FloatArray, FloatArray]
    key: tuple[int, NDArray[np.int64]]


@compile_scalar
def _draw_within(v, sd, low, high, pieces, stream):  # type: ignore[no-untyped-def]
    """Return a draw of T between two limits of its own."""
    return draw_between(v, sd, low, high, stream)


@cache
def latent_kernel(noise: NoiseKind, structure: Structure) -> Any:
    """Return the compiled loop that draws T, and x after f where only limits are known."""
    f, d, _ = structure
    value, forward = compile_scalar(d.value), compile_scalar(f.forward)
    after, known = noise == "after", noise == "gaussian"
    ordinal = noise == "ordinal"
    draw: Any = compile_t_draw(structure) if after else _draw_within
    if noise == "before":
        draw = compile_latent_draw(structure)
    draw_x = DRAWS_OF_X.get(d.noise_model, draw_gaussian)

    def draw_T(entries, levels, model, key, x, V, T, losses, first, last):  # type: ignore[no-untyped-def]
        starts, weights, low, high = entries
        (rho, beta, centre, size, cuts), (pieces, pf, pd) = levels, model
        seed, sweep, shift, keys = key
        for i in range(first, last):
            stream = new_stream(start_of(seed, sweep, LATENT, i + shift))
            at = i if rho.size > 1 else 0
            ends, total = cuts[at], 0.0
            for k in range(starts[i], starts[i + 1]):
                is_known = low[k] == high[k]
                if known and is_known:
                    continue
                if keys.size:
                    stream = new_stream(start_of(seed, sweep, LATENT, keys[k]))
                weight = weights[k] if weights.size else 1.0
                v, t = centre[at] + size[at] * V[k], centre[at] + size[at] * T[k]
                if after:
                    outer = beta[at] * weight
                    if not is_known:
                        x[k] = draw_x(forward(t, pf), outer, low[k], high[k], stream)
                    t = draw(t, v, x[k], rho[at], outer, pieces, pf, pd, stream)
                    total += weight * value(x[k], forward(t, pf), pd)
                else:
                    least, most = low[k], high[k]
                    if ordinal:  # ends begins with minus infinity and ends with infinity
                        least, most = ends[int(least)], ends[int(most) + 1]
                    t = draw(v, 1.0 / math.sqrt(rho[at] * weight), least, most, pieces, stream)
                T[k] = (t - centre[at]) / size[at]
            losses[i] = total

    return compile_kernel(draw_T, f"draw_T_{noise}_{structure.name}", cached=structure.is_ours)


Doubles = NDArray[np.float64]


class Levels:
    """The entries of each level, and of intervals of levels.

    Parameters
    ----------
    low, high : ndarray (n_entries,)
        Positions of the lowest and of the highest level that each entry may have.
    number : int
        Number of levels.
    weights : ndarray (n_entries,), optional
        Weights of the entries.

    Attributes
    ----------
    counts : ndarray of int (number,)
        Number of entries of each level.
    """

    def __init__(
        self, low: FloatArray, high: FloatArray, number: int, weights: FloatArray | None = None
    ) -> None:
        self._low, self._high = low.astype(np.intp), high.astype(np.intp)
        self.counts = np.bincount(self._low[low == high], minlength=number)
        self._roots = np.empty(0) if weights is None else np.sqrt(weights.astype(np.float64))

    def first_of(self, level: int, number: int) -> NDArray[np.intp]:
        """Return the positions of the first entries of a level, at most so many."""
        return np.flatnonzero((self._low == level) & (self._high == level))[:number]

    def draw(
        self, v: FloatArray, ends: Doubles, steps: Doubles, rng: np.random.Generator, *, tune: bool
    ) -> float:
        """Do one step for each cut point, in place, given WH with offsets at the entries.

        Return the log-likelihood of all levels.  `ends` are minus infinity, the cut points and
        infinity, and `steps` the widths of their steps.
        """
        cuts = range(self.counts.size - 2)
        numbers = np.array([(rng.standard_normal(), math.log(rng.random())) for _ in cuts])
        entries = v.astype(np.float64), self._roots, self._low, self._high
        kernel = cached_kernel(_draw_cuts, "draw_cut_points")
        return float(kernel(*entries, numbers, ends, steps, tune))


def first_cuts(
    kinds: Sequence[Levels | None], spread: float = math.sqrt(2)
) -> tuple[Doubles, Doubles]:
    """Return the ends of the levels of each kind in a row, and the widths of their steps.

    There is infinity behind the last level.  WH explains nothing yet, and the spread of T is that
    of WH and of the noise.
    """
    counts = [np.empty(0, np.int64) if each is None else each.counts for each in kinds]
    most = max(each.size for each in counts)
    ends, steps = np.full((len(counts), most + 1), np.inf), np.ones((len(counts), most))
    for row, widths, each in zip(ends, steps, counts, strict=True):
        if each.size:
            below = np.cumsum(each)[:-1] + 0.5 * np.arange(1, each.size)
            cuts = ndtri(below / (each.sum() + 0.5 * each.size))
            row[0], row[1 : each.size] = -np.inf, spread * cuts
            widths[:] = 3.0 / math.sqrt(each.sum() / each.size + 1)
    return ends, steps


def middles(ends: Doubles) -> Doubles:
    """Return a number for each level: the middle of its cut points, near them at the ends."""
    inner = ends[np.isfinite(ends)]
    ends = np.concatenate([inner[:1] - 1, inner, inner[-1:] + 1])
    return np.asarray(0.5 * (ends[1:] + ends[:-1]))


@compile_inner
def _log_likelihood(k, v, roots, low, high, ends):  # type: ignore[no-untyped-def]
    """Return the log-likelihood of an entry between two cut points."""
    root = roots[k] if roots.size else 1.0
    return log_probability(root * (ends[low[k]] - v[k]), root * (ends[high[k] + 1] - v[k]))


def _draw_cuts(v, roots, low, high, numbers, ends, steps, tune):  # type: ignore[no-untyped-def]
    """Do one step for each cut point, in place, and return the log-likelihood of all levels."""
    n = v.size
    present, new = np.empty(n), np.empty(n)
    for k in range(n):
        present[k] = _log_likelihood(k, v, roots, low, high, ends)
    for cut in range(2, numbers.shape[0] + 2):
        before, (move, threshold) = ends[cut], numbers[cut - 2]
        ends[cut] += steps[cut - 1] * move
        accepted = ends[cut - 1] < ends[cut] < ends[cut + 1]
        if accepted:
            change = 0.0
            for k in range(n):
                new[k] = present[k]
                if low[k] == cut or high[k] + 1 == cut:
                    new[k] = _log_likelihood(k, v, roots, low, high, ends)
                    change += new[k] - present[k]
            accepted = threshold < change
        if accepted:
            present, new = new, present
        else:
            ends[cut] = before
        if tune:  # to the share of accepted steps at which a walk in one dimension mixes best
            steps[cut - 1] *= math.exp(0.2 * (accepted - 0.44))
    return present.sum()
