"""The distribution over ordered levels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from .mixture import Array, Predictive, level_masses, level_shares


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

    @property
    def cuts(self) -> Array:
        """Cut points between the levels in each draw (draws, K - 1)."""
        assert self.noise.cuts is not None
        return self.noise.cuts

    def mean_and_variance(self, v: Array) -> tuple[Array, Array]:
        """Return mean and variance in each draw."""
        mean, square = np.full(v.shape, self.levels[-1]), np.full(v.shape, self.levels[-1] ** 2)
        steps = zip(self.cuts.T, self.levels[:-1], self.levels[1:], strict=True)
        for cut, level, above in steps:
            below = ndtr(cut[:, None] - v)  # the probability of this level and those below it
            mean -= (above - level) * below
            square -= (above**2 - level**2) * below
        return mean, np.maximum(square - mean**2, 0)

    def level_probabilities(self, v: Array) -> Array:
        """Return the probability of each level over all draws, as an array (entries, K)."""
        return self.noise.tempering.of(level_shares(self.cuts, v))

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
        return self.levels[np.searchsorted(self.cuts[0], t)]
