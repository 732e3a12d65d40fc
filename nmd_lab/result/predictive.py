"""The distribution of an observation, a mixture over draws, for each kind of noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize.elementwise import find_root
from scipy.special import gammaln, logsumexp, ndtr, ndtri, pdtr, xlogy
from scipy.stats import norm, truncnorm

from nmd_lab.model.column_model import all_pieces, moments
from nmd_lab.model.loss import NORMAL, POISSON, NoiseModel
from nmd_lab.model.losses import Loss
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.model.nonlinearity import Piece
from nmd_lab.model.ordinal import interval_mass

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

MIN_MASS = 1e-12
"""Least probability between the ends of a column in a draw."""

LIMIT_TOL = 1e-6
"""Relative distance at which a value counts as a limit; data may be in float32."""


QUANTILE_TOL = 1e-8
"""Error of a quantile, relative to the width of its bracket."""


def mixture_quantile(
    location: Array, scale: Array, level: Array | float, standard: Any = norm
) -> Array:
    """Return a quantile of equally likely distributions of one shape for each entry."""
    scales, levels = (np.broadcast_to(each, location.shape) for each in (scale, level))
    cdf, ppf = (ndtr, ndtri) if standard is norm else (standard.cdf, standard.ppf)
    # The mixture's quantile lies between those of the components.
    least, most = (location + (ppf(level) + step) * scales for step in (-1, 1))
    low, entries = least.min(axis=0), np.arange(location.shape[1])
    width = most.max(axis=0) - low

    def gap(share: Array, at: NDArray[np.intp]) -> Any:
        x = low[at] + share * width[at]
        return cdf((x - location[:, at]) / scales[:, at]).mean(axis=0) - levels[0, at]

    ends = np.zeros(low.size), np.ones(low.size)
    share = find_root(gap, ends, args=(entries,), tolerances={"xatol": QUANTILE_TOL}).x
    return np.asarray(low + share * width)


class Tempering(NamedTuple):
    """How probabilities are calibrated: a temperature, and the frequencies that a high one leaves.

    They are those of the classes (K,), or of the second of two levels; None leaves equal ones.
    """

    temperature: float = 1.0
    frequencies: Array | None = None

    def of(self, shares: Array) -> Array:
        """Return calibrated probabilities (entries, K)."""
        if self.temperature == 1:
            return shares
        each: Array | float = 1.0
        if (found := self.frequencies) is not None:
            each = found if found.size == shares.shape[1] else np.append(1 - found, found)
        powers = each * (shares / each) ** (1 / self.temperature)
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def is_increasing(f: Nonlinearity) -> bool:
    """Return whether f is known to be non-decreasing, an even one for t >= 0."""
    pieces = f.pieces()
    return f.form == "square" or (pieces is not None and all(p.slope >= 0 for p in pieces))


def points_of(n_draws: int) -> Array:
    """Return standard normal points (set, draws, 1), equally likely in each draw.

    They are the same at each call.  With few draws each gets 16 points.  With many, each gets
    fewer, which are shifted from draw to draw, so that all together fill the distribution.
    """
    size = min(16, max(math.ceil(1024 / n_draws), 1))  # 1024 for all draws together are enough
    shifts = (0.5 + np.arange(n_draws) * 0.6180339887498949) % 1
    shares = (np.arange(size)[:, None] + np.clip(shifts, 1e-3, 1 - 1e-3)) / size
    return np.asarray(ndtri(shares)[:, :, None])


def level_masses(cuts: Array, v: Array) -> Array:
    """Return the probability of each level (K, draws, entries), given cut points and v."""
    ends = np.pad(cuts, ((0, 0), (1, 1)), constant_values=(-np.inf, np.inf)).T[:, :, None] - v
    return interval_mass(ends[:-1], ends[1:])


@dataclass(frozen=True, eq=False)
class Predictive:
    """The distribution of an observation x given each draw: T ~ N(v, sd²), and x = f(T).

    v (draws, entries) is WH plus offsets.  Other kinds of noise change how x comes from T.

    Attributes
    ----------
    nonlinearity : Nonlinearity
        Nonlinearity f.
    loss : Loss
        Loss d, which defines the noise after f.
    sd : ndarray (draws, 1)
        Standard deviation of T, 1/√ρ.
    beta : ndarray (draws, 1) or None
        Precision β of the noise after f.
    cuts : ndarray (draws, K - 1) or None
        Cut points of ordinal data.
    levels : ndarray (K,) or None
        Values of the levels of ordinal data, from small to large.
    tempering : Tempering
        Temperature of their probabilities.
    repeated : RepeatedValues or None
        Values that repeat in the column, which new observations hold.
    """

    nonlinearity: Nonlinearity
    loss: Loss
    sd: Array
    beta: Any
    cuts: Any
    levels: Any
    tempering: Tempering
    repeated: Any

    def of_draw(self, draw: int) -> Self:
        """Return the distribution given one draw alone."""
        beta, cuts = (None if a is None else a[[draw]] for a in (self.beta, self.cuts))
        return replace(self, sd=self.sd[[draw]], beta=beta, cuts=cuts)

    def mean(self, v: Array) -> Array:
        """Return the mean in each draw."""
        return self.mean_and_variance(v)[0]

    def _points(self, v: Array) -> Array:
        """Return equally likely values of f(T), as an array (points times draws, entries)."""
        t = v + points_of(v.shape[0]) * self.sd
        return np.asarray(self.nonlinearity(t.reshape(-1, v.shape[1])))

    def mean_and_variance(self, v: Array) -> tuple[Array, Array]:
        """Return mean and variance in each draw."""
        return moments(self.nonlinearity, v, self.sd)

    def cdf(self, v: Array, x: Array) -> Array:
        """Return P(observation <= x) over all draws."""
        f, sd = self.nonlinearity, self.sd
        pieces = all_pieces(f)
        if f.form == "square":
            size = np.sqrt(np.maximum(x, 0))
            mass = np.where(x < 0, 0, interval_mass((-size - v) / sd, (size - v) / sd))
            return np.asarray(mass.mean(axis=0))
        if pieces is None:
            return np.asarray((self._points(v) <= x).mean(axis=0))
        total = np.zeros_like(v)
        for piece in pieces:
            low, high = _below(piece, x)
            total += interval_mass((low - v) / sd, (high - v) / sd)
        return np.asarray(total.mean(axis=0))

    def log_densities(self, v: Array, x: Array) -> Array:
        """Return the logarithm of the density on slopes, and of the probability at limits."""
        f, sd = self.nonlinearity, self.sd
        pieces = all_pieces(f)
        if f.form == "monotone" and pieces and pieces[0].slope == 0:  # beyond an end is at the end
            x = np.clip(x, pieces[0].intercept, pieces[-1].intercept)
        with np.errstate(divide="ignore"):
            if f.form == "square":
                size = np.sqrt(np.maximum(x, 0))
                both = (norm.logpdf((t - v) / sd) for t in (-size, size))
                return np.where(x < 0, -np.inf, np.logaddexp(*both) - np.log(2 * size * sd))
            if pieces is None:
                raise ValueError(
                    f"nonlinearity={f!r} has no pieces, so its noise has no density: use "
                    "predict_interval or probability."
                )
            limit = is_limit(pieces, x)
            return reduce(np.logaddexp, (_log_density(p, v, sd, x, limit) for p in pieces))

    def quantile(self, v: Array, level: Any) -> Array:
        """Return a quantile over all draws for each entry."""
        f, sd = self.nonlinearity, self.sd
        if not is_increasing(f):
            return np.asarray(np.quantile(self._points(v), level, axis=0, method="inverted_cdf"))
        if f.even:  # |T| is distributed as T and -T together are above their median 0
            v, sd, level = np.vstack([v, -v]), np.vstack([sd, sd]), 0.5 + 0.5 * level
        return np.asarray(f(mixture_quantile(v, sd, level)))

    def _draw(self, v: Array, rng: np.random.Generator) -> Array:
        """Return a number of each entry from the smooth distribution of a single draw."""
        t = v + self.sd[0] * rng.standard_normal(v.shape)
        return np.asarray(self.nonlinearity(t))

    def draw(self, v: Array, rng: np.random.Generator) -> Array:
        """Return a new observation of each entry from a single draw, for v (entries,)."""
        if (repeated := self.repeated) is None:
            return self._draw(v, rng)
        return np.asarray(repeated.draw(lambda at: self._draw(v[at], rng), v.size, rng))

    def point(self, v: Array, point: str) -> Array:
        """Return the best guess for each entry: a number has the median if asked, or the mean."""
        return np.asarray(self.quantile(v, 0.5) if point == "median" else self.expected(v))

    def expected(self, v: Array) -> Array:
        """Return the mean over all draws."""
        return np.asarray(self.mean(v).mean(axis=0))

    def variance(self, v: Array) -> Array:
        """Return the variance over all draws."""
        mean, variance = self.mean_and_variance(v)
        return np.asarray(mean.var(axis=0) + np.broadcast_to(variance, v.shape).mean(axis=0))

    def log_density(self, v: Array, x: Array) -> Array:
        """Return the logarithm of the density, or probability, of x over all draws."""
        logs = self.log_densities(v, x)
        return np.asarray(logsumexp(logs, axis=0) - np.log(logs.shape[0]))


class NoiseWithin(Predictive):
    """The distribution of f(T) where a learned f is not constant: its ends are no values."""

    def _masses(self, v: Array) -> tuple[Array, Array]:
        """Return the probability of T below the lower end, and between the ends, in each draw."""
        low, high = ((end - v) / self.sd for end in self.nonlinearity.ends)
        return ndtr(low), np.maximum(interval_mass(low, high), MIN_MASS)

    def mean_and_variance(self, v: Array) -> tuple[Array, Array]:
        """Return mean and variance in each draw."""
        mean, variance = super().mean_and_variance(v)
        f, (below, inside) = self.nonlinearity, self._masses(v)
        if not np.isfinite(f.ends).any():
            return mean, variance
        low, high = f(np.array(f.ends))
        above = np.maximum(1 - below - inside, 0)
        first, second = (
            (all_of - low**k * below - high**k * above) / inside
            for k, all_of in ((1, mean), (2, variance + mean**2))
        )
        mean = np.clip(first, low, high)
        return mean, np.clip(second - mean**2, 0, (high - mean) * (mean - low))

    def cdf(self, v: Array, x: Array) -> Array:
        """Return P(observation <= x) over all draws."""
        below, inside = (each.mean(axis=0) for each in self._masses(v))
        return np.asarray(np.clip((super().cdf(v, x) - below) / inside, 0, 1))

    def quantile(self, v: Array, level: Any) -> Array:
        """Return a quantile over all draws for each entry."""
        below, inside = (each.mean(axis=0) for each in self._masses(v))
        return super().quantile(v, np.clip(below + level * inside, MIN_MASS, 1 - MIN_MASS))

    def _draw(self, v: Array, rng: np.random.Generator) -> Array:
        """Return a number of each entry from the smooth distribution of a single draw."""
        (low, high), sd = self.nonlinearity.ends, self.sd[0]
        ends = (low - v) / sd, (high - v) / sd
        t = truncnorm.rvs(*ends, v, sd, size=v.shape, random_state=rng)
        return np.asarray(self.nonlinearity(t))


def is_limit(pieces: tuple[Piece, ...], x: Array) -> Flags:
    """Return where x is the value of a flat piece."""
    limits = np.array([p.intercept for p in pieces if p.slope == 0])
    return np.asarray(np.isclose(x[:, None], limits, rtol=LIMIT_TOL, atol=0).any(axis=1))


def _below(piece: Piece, x: Array) -> tuple[Array, Array]:
    """Return the ends of the part of a piece on which f <= x; an empty one has no length."""
    low, high = np.full_like(x, piece.low), np.full_like(x, piece.high)
    if piece.slope == 0:
        return np.where(piece.intercept <= x, low, high), high
    at = (x - piece.intercept) / piece.slope
    if piece.slope > 0:
        return low, np.minimum(high, at)
    return np.maximum(low, at), high


def _log_density(piece: Piece, v: Array, sd: Array, x: Array, limit: Flags) -> Array:
    """Return the log-density of x by a piece, or its log-probability if x is a limit."""
    if piece.slope == 0:
        is_here = np.isclose(x, piece.intercept, rtol=LIMIT_TOL, atol=0)
        mass = interval_mass((piece.low - v) / sd, (piece.high - v) / sd)
        return np.log(np.where(is_here, mass, 0))
    t = (x - piece.intercept) / piece.slope
    inside = (piece.low <= t) & (t <= piece.high) & ~limit
    logs = norm.logpdf((t - v) / sd) - np.log(sd * abs(piece.slope))
    return np.where(inside, logs, -np.inf)


class NoiseAfter(Predictive):
    """The distribution of f(T) plus noise: that of the loss, such as normal for Frobenius."""

    def mean_and_variance(self, v: Array) -> tuple[Array, Array]:
        """Return mean and variance in each draw."""
        mean, variance = moments(self.nonlinearity, v, self.sd)
        if self._is(POISSON):
            return mean, variance + np.maximum(mean, 0)
        return mean, variance + self._width**2 * self._model.standard.var()

    def mean(self, v: Array) -> Array:
        """Return the mean in each draw, which a loss of the user has too."""
        return moments(self.nonlinearity, v, self.sd)[0]

    def cdf(self, v: Array, x: Array) -> Array:
        """Return P(observation <= x) over all draws."""
        if self._is(POISSON):
            shares = pdtr(np.maximum(np.floor(x), 0), self._counts(v)).mean(axis=0)
            return np.where(x < 0, 0, shares)
        shares = self._model.standard.cdf((x - self._points(v)) / self._scale(v))
        return np.asarray(shares.mean(axis=0))

    def log_densities(self, v: Array, x: Array) -> Array:
        """Return the logarithm of the density of x in each draw, or of each draw and point."""
        pieces = all_pieces(self.nonlinearity)
        if self._is(NORMAL) and pieces is not None:
            with np.errstate(divide="ignore"):
                return reduce(np.logaddexp, (self._of_piece(piece, v, x) for piece in pieces))
        if self._is(POISSON):
            counts = self._counts(v)
            of_counts = xlogy(x, counts) - counts - gammaln(x + 1)
            return np.where(x < 0, -np.inf, of_counts)
        scale = self._scale(v)
        logs = self._model.standard.logpdf((x - self._points(v)) / scale) - np.log(scale)
        return np.asarray(logs)

    def quantile(self, v: Array, level: float) -> Array:
        """Return a quantile over all draws for each entry."""
        if not self._is(POISSON):
            return mixture_quantile(self._points(v), self._scale(v), level, self._model.standard)
        counts = self._counts(v)
        largest = counts.max(axis=0)
        low, high = np.full(v.shape[1], -1.0), np.ceil(largest + 10 * np.sqrt(largest) + 30)
        while np.any(high - low > 1):
            middle = np.maximum(np.floor(0.5 * (low + high)), 0)  # no count is below 0
            below = pdtr(middle, counts).mean(axis=0) < level
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(high)

    def _draw(self, v: Array, rng: np.random.Generator) -> Array:
        """Return a number of each entry from the smooth distribution of a single draw."""
        centre = super()._draw(v, rng)
        if self._is(POISSON):
            return rng.poisson(np.maximum(centre, 0)).astype(np.float64)
        noise = self._model.standard.rvs(size=v.shape, random_state=rng)
        return np.asarray(centre + self._width[0] * noise)

    def _is(self, noise: NoiseModel) -> bool:
        """Return whether the loss stands for a noise."""
        return self.loss.noise_model == noise

    @property
    def _model(self) -> NoiseModel:
        """The noise of the loss, whose distribution is known."""
        model = self.loss.noise_model
        if model.standard is None:
            raise ValueError(
                f"loss={self.loss!r} has no distribution of new observations: use "
                "noise=False, or give its noise_model a standard distribution."
            )
        return model

    @property
    def _width(self) -> Array:
        """Scale of the noise in each draw, (draws, 1) or (draws, entries)."""
        return np.asarray(self.beta ** (-1 / self._model.power))

    def _scale(self, v: Array) -> Array:
        """Return the scale of the noise at each draw and point."""
        return np.tile(self._width, (points_of(v.shape[0]).shape[0], 1))

    def _counts(self, v: Array) -> Array:
        """Return the means of the Poisson distributions at each draw and point."""
        return np.maximum(self._points(v), np.finfo(np.float64).tiny)

    def _of_piece(self, piece: Piece, v: Array, x: Array) -> Array:
        """Return the log-density of x by T on a piece, with normal noise: a closed form."""
        sd, width, slope = self.sd, self._width, piece.slope
        total = np.hypot(slope * sd, width)
        gap = x - (slope * v + piece.intercept)
        gain = slope * sd**2 / total**2
        centre, spread = v + gain * gap, sd * width / total
        mass = interval_mass((piece.low - centre) / spread, (piece.high - centre) / spread)
        return np.asarray(np.log(mass) + norm.logpdf(gap / total) - np.log(total))


class OrdinalNoise(Predictive):
    """The distribution over levels."""

    def mean_and_variance(self, v: Array) -> tuple[Array, Array]:
        """Return mean and variance in each draw."""
        masses = level_masses(self.cuts, v)
        mean, square = (np.tensordot(self.levels**power, masses, 1) for power in (1, 2))
        return mean, np.maximum(square - mean**2, 0)

    def level_probabilities(self, v: Array) -> Array:
        """Return the probability of each level over all draws, as an array (entries, K)."""
        below = [ndtr(cut[:, None] - v).mean(axis=0) for cut in self.cuts.T]
        ends = np.zeros(v.shape[1]), np.ones(v.shape[1])
        return self.tempering.of(np.diff([ends[0], *below, ends[1]], axis=0).T)

    def expected(self, v: Array) -> Array:
        """Return the mean over all draws."""
        return np.asarray(self.level_probabilities(v) @ self.levels)

    def variance(self, v: Array) -> Array:
        """Return the variance over all draws."""
        shares = self.level_probabilities(v)
        away = self.levels - (shares @ self.levels)[:, None]
        return np.asarray(np.sum(shares * away**2, axis=1))

    def log_density(self, v: Array, x: Array) -> Array:
        """Return the logarithm of the probability of the level x over all draws."""
        with np.errstate(divide="ignore"):
            return np.log(self.level_probabilities(v)[np.arange(x.size), self._codes(x)])

    def cdf(self, v: Array, x: Array) -> Array:
        """Return P(observation <= x) over all draws."""
        shares = self.level_probabilities(v)
        return np.asarray(np.sum(shares * (self.levels <= x[:, None]), axis=1))

    def log_densities(self, v: Array, x: Array) -> Array:
        """Return the logarithm of the probability of the level x in each draw."""
        with np.errstate(divide="ignore"):
            logs: Array = np.log(level_masses(self.cuts, v)[self._codes(x), :, np.arange(x.size)].T)
        return logs

    def _codes(self, x: Array) -> NDArray[np.intp]:
        """Return the positions of levels."""
        at: NDArray[np.intp] = np.abs(x[:, None] - self.levels).argmin(axis=1)
        far = np.abs(self.levels[at] - x) > 1e-6 * np.ptp(self.levels)
        if far.any():
            levels = self.levels.tolist()
            raise ValueError(
                f"values holds {x[far][0]:g}, which is no level: give some of {levels}."
            )
        return at

    def quantile(self, v: Array, level: float) -> Array:
        """Return the smallest level whose probability with those below reaches `level`."""
        reached = np.cumsum(self.level_probabilities(v), axis=1) >= level
        reached[:, -1] = True
        return np.asarray(self.levels[reached.argmax(axis=1)])

    def point(self, v: Array, point: str) -> Array:
        """Return the best guess for each entry: the median unless another is asked for."""
        if point == "mode":
            return np.asarray(self.levels[self.level_probabilities(v).argmax(axis=1)])
        return super().point(v, "mean" if point == "mean" else "median")

    def _draw(self, v: Array, rng: np.random.Generator) -> Array:
        """Return a number of each entry from the smooth distribution of a single draw."""
        t = v + rng.standard_normal(v.shape)
        return np.asarray(self.levels[np.searchsorted(self.cuts[0], t)])


KINDS: dict[str, type[Predictive]] = {
    "gaussian": Predictive,
    "clipped": NoiseWithin,
    "before": Predictive,
    "after": NoiseAfter,
    "ordinal": OrdinalNoise,
}
"""Classes of distributions by the kind of the noise."""
