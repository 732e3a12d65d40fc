"""The distribution of an observation for each kind of noise or column, and summaries."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from .mixture import Array, GaussianNoise, Predictive
from .predictive_noise import NoiseAfter, NoiseBefore


class OrdinalNoise(Predictive):
    """The distribution over levels."""

    @property
    def numbers(self) -> int:
        """Numbers for each draw and entry: one for each level."""
        return self.levels.size

    @property
    def levels(self) -> Array:
        """Values of the levels, from small to large."""
        return np.asarray(self.noise.levels, dtype=np.float64)

    def masses(self, v: Array) -> Array:
        """Return the probability of each level in each draw, as an array (K, draws, entries)."""
        assert self.noise.cuts is not None
        return level_masses(self.noise.cuts, v)

    def mean_and_variance(self, v: Array) -> tuple[Array, Array]:
        """Return mean and variance in each draw."""
        assert self.noise.cuts is not None
        mean, square = np.full(v.shape, self.levels[-1]), np.full(v.shape, self.levels[-1] ** 2)
        steps = zip(self.noise.cuts.T, self.levels[:-1], self.levels[1:], strict=True)
        for cut, level, above in steps:
            below = ndtr(cut[:, None] - v)  # the probability of this level and those below it
            mean -= (above - level) * below
            square -= (above**2 - level**2) * below
        return mean, np.maximum(square - mean**2, 0)

    def level_probabilities(self, v: Array) -> Array:
        """Return the probability of each level over all draws, as an array (entries, K)."""
        assert self.noise.cuts is not None
        return level_shares(self.noise.cuts, v)

    def cdf(self, v: Array, x: Array) -> Array:
        """Return P(observation <= x) over all draws."""
        shares = self.level_probabilities(v)
        total: Array = np.sum(shares * (self.levels <= x[:, None]), axis=1)
        return total

    def log_densities(self, v: Array, x: Array) -> Array:
        """Return the logarithm of the probability of the level x in each draw."""
        at = np.abs(x[:, None] - self.levels).argmin(axis=1)
        if not np.allclose(self.levels[at], x, rtol=1e-6):
            wrong = x[int(np.argmax(~np.isclose(self.levels[at], x, rtol=1e-6)))]
            raise ValueError(
                f"values holds {wrong:g}, which is no level: give some of {self.levels.tolist()}."
            )
        with np.errstate(divide="ignore"):
            logs: Array = np.log(self.masses(v)[at, :, np.arange(x.size)].T)
        return logs

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

    def draw(self, v: Array, rng: np.random.Generator) -> Array:
        """Return a new observation of each entry from a single draw."""
        assert self.noise.cuts is not None
        t = v + rng.standard_normal(v.shape)
        return self.levels[np.searchsorted(self.noise.cuts[0], t)]


def level_masses(cuts: Array, v: Array) -> Array:
    """Return the probability of each level (K, draws, entries), given cut points and v."""
    away = cuts.T[:, :, None] - v
    below, above = ndtr(away), ndtr(-away)
    between = np.where(away[:-1] > 0, above[:-1] - above[1:], below[1:] - below[:-1])
    return np.concatenate([below[:1], np.maximum(between, 0), above[-1:]])


def level_shares(cuts: Array, v: Array) -> Array:
    """Return the probability of each level over all draws (entries, K)."""
    below = [ndtr(cut[:, None] - v).mean(axis=0) for cut in cuts.T]
    ends = np.zeros((1, v.shape[1])), np.ones((1, v.shape[1]))
    return np.maximum(np.diff(np.vstack([ends[0], *below, ends[1]]), axis=0).T, 0)


KINDS: dict[str, type[Predictive]] = {
    "gaussian": GaussianNoise,
    "clipped": NoiseBefore,
    "before": NoiseBefore,
    "after": NoiseAfter,
    "ordinal": OrdinalNoise,
}
"""Classes of distributions by the kind of the noise."""


def numbers_of(predictives: list[Predictive]) -> int:
    """Return the most numbers that any distribution computes for a draw and an entry."""
    return max(predictive.numbers for predictive in predictives)


def mean_of(predictive: Predictive, v: Array) -> Array:
    """Return the mean of an observation over all draws, for v (draws, entries)."""
    mean: Array = predictive.mean(v).mean(axis=0)
    return mean


def std_of(predictive: Predictive, v: Array, noise: bool) -> Array:
    """Return the standard deviation of a new observation, or of its mean over the draws."""
    if not noise:
        return np.asarray(predictive.mean(v).std(axis=0))
    mean, variance = predictive.mean_and_variance(v)
    total: Array = np.sqrt(mean.var(axis=0) + np.broadcast_to(variance, v.shape).mean(axis=0))
    return total


def interval_of(predictive: Predictive, v: Array, level: float, noise: bool) -> Array:
    """Return the ends of an equal-tailed interval, as an array (entries, 2)."""
    tails = (1 - level) / 2, (1 + level) / 2
    if not noise:
        return np.asarray(np.quantile(predictive.mean(v), tails, axis=0).T)
    return np.stack([predictive.quantile(v, tail) for tail in tails], axis=1)
