"""The distribution of an observation, a mixture over draws, and its quantiles."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize.elementwise import find_root
from scipy.special import logsumexp, ndtr, ndtri
from scipy.stats import norm

from nmd_lab.model.losses import Loss
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.model.ordinal import interval_mass

Array = NDArray[np.float64]

MIN_REPEATS = 5
"""Smallest count of a value that repeats."""

N_PRIOR_CELLS = 10
"""Number of cells by which both counts of a ratio are larger, so that few decide little."""


class RepeatedValues(NamedTuple):
    """Values that repeat in a column, such as 0 for no pool, which new numbers hold too.

    The predictive distribution of a number is smooth.  Around each value that repeats is an
    interval, up to the middle to the next observed value.  On each side it has as many other
    observed cells as there are of the value, at most a twentieth of all others and none beyond the
    middle to the next value that repeats.  A number in an interval becomes that of the observed
    cell there whose rank is that of the number among replicates.

    Numbers are weighed by a ratio of their interval: the count of its observed cells over the one
    that replicates of these cells expect (A. Gelman, X.-L. Meng and H. Stern, "Posterior predictive
    assessment of model fitness via realized discrepancies", Statistica Sinica 6, 733-807, 1996).

    Attributes
    ----------
    edges : ndarray (2 K,)
        Ends of the intervals around K values.
    observed : ndarray (cells,)
        Observed numbers in their order.
    starts : ndarray (2 K + 2,)
        Position of the first observed number of each interval, and the number of all.
    accepted : ndarray (2 K + 1,)
        Probability with which a number in the interval is accepted.
    replicates : ndarray (numbers,)
        Replicates in their order.
    """

    edges: Array
    observed: Array
    starts: NDArray[np.intp]
    accepted: Array
    replicates: Array

    @classmethod
    def of(cls, observed: Array, replicates: Array) -> RepeatedValues:
        """Return the intervals for observed numbers (cells,) and replicates of any number."""
        observed, size = np.sort(observed), observed.size
        values, first, counts = np.unique(observed, return_index=True, return_counts=True)
        at = np.flatnonzero(counts >= MIN_REPEATS)
        v, first, after = values[at], first[at], first[at] + counts[at]
        # An interval has at most one of 20 other cells of the column on each side of its value.
        near = np.minimum(counts[at], (size - counts[at]) // 20)
        middles = np.concatenate([[-np.inf], 0.5 * (observed[1:] + observed[:-1]), [np.inf]])
        low = middles[np.maximum(first - near, 0)]
        high = middles[np.minimum(after + near, size)]
        between = 0.5 * (v[1:] + v[:-1])
        low[1:], high[:-1] = np.maximum(low[1:], between), np.minimum(high[:-1], between)

        edges = np.column_stack([low, high]).ravel()
        replicates = np.sort(replicates, axis=None)
        starts, of_replicates = (
            np.concatenate([[0], np.searchsorted(each, edges, side="right"), [each.size]])
            for each in (observed, replicates)
        )
        expected = np.diff(of_replicates) * (size / replicates.size)
        ratios = (np.diff(starts) + N_PRIOR_CELLS) / (expected + N_PRIOR_CELLS)
        return cls(edges, observed, starts, ratios / ratios.max(), replicates)

    def near(self, x: Array, rng: np.random.Generator) -> Array:
        """Return numbers of which those in an interval are those of observed cells there."""
        of = np.searchsorted(self.edges, x)
        around = np.flatnonzero(of % 2)
        of, x = of[around], x.copy()
        ends = np.searchsorted(self.replicates, self.edges, side="right")[[of - 1, of]]
        low = np.searchsorted(self.replicates, x[around])
        high = np.searchsorted(self.replicates, x[around], side="right")
        rank = rng.integers(low, high, endpoint=True) - ends[0]
        first, last = self.starts[of], self.starts[of + 1]
        x[around] = self.observed[first + rank * (last - first) // (ends[1] - ends[0] + 1)]
        return x

    def draw(
        self,
        smooth: Callable[[NDArray[np.intp]], Array],
        size: int,
        rng: np.random.Generator,
    ) -> Array:
        """Return a new number of each cell; `smooth` draws some cells without repeated values."""
        found, total, again = np.empty(size), np.zeros(size), np.arange(size)
        for _ in range(30):  # if no draw of a cell is accepted, one is taken by its weight
            x = smooth(again)
            at = np.searchsorted(self.edges, x)
            weight = self.accepted[at]
            total[again] += weight
            is_accepted = rng.random(again.size) < weight
            is_taken = is_accepted | (rng.random(again.size) * total[again] < weight)
            found[again[is_taken]] = self.near(x[is_taken], rng)
            again = again[~is_accepted]
            if not again.size:
                break
        return found


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
class Predictive(ABC):
    """The distribution of an observation x given each draw: T ~ N(v, sd²), and x from f(T).

    v (draws, entries) is WH plus offsets.

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
    repeated: RepeatedValues | None

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

    @abstractmethod
    def mean_and_variance(self, v: Array) -> tuple[Array, Array]:
        """Return mean and variance in each draw; both broadcast to the shape of v."""

    @abstractmethod
    def cdf(self, v: Array, x: Array) -> Array:
        """Return P(observation <= x) over all draws, for x (entries,)."""

    @abstractmethod
    def log_densities(self, v: Array, x: Array) -> Array:
        """Return the logarithm of the density, or probability, of x (entries,) in each draw."""

    @abstractmethod
    def quantile(self, v: Array, level: float) -> Array:
        """Return a quantile over all draws for each entry."""

    @abstractmethod
    def _draw(self, v: Array, rng: np.random.Generator) -> Array:
        """Return a number of each entry from the smooth distribution of a single draw."""

    def draw(self, v: Array, rng: np.random.Generator) -> Array:
        """Return a new observation of each entry from a single draw, for v (entries,)."""
        if (repeated := self.repeated) is None:
            return self._draw(v, rng)
        return repeated.draw(lambda at: self._draw(v[at], rng), v.size, rng)

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
