"""Noise of the linear model: x ~ N(v, 1/ρ)."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from .mixture import Predictive, mixture_quantile
from .noise import Array


class GaussianNoise(Predictive):
    """The distribution N(v, sd²) of an observation."""

    def mean_and_variance(self, v: Array) -> tuple[Array, Array]:
        """Return mean and variance in each draw."""
        return v, self.noise.sd**2

    def cdf(self, v: Array, x: Array) -> Array:
        """Return P(observation <= x) over all draws."""
        mean: Array = ndtr((x - v) / self.noise.sd).mean(axis=0)
        return mean

    def log_densities(self, v: Array, x: Array) -> Array:
        """Return the logarithm of the density of x in each draw."""
        sd = self.noise.sd
        logs: Array = -0.5 * ((x - v) / sd) ** 2 - np.log(sd * math.sqrt(2 * math.pi))
        return logs

    def quantile(self, v: Array, level: float) -> Array:
        """Return a quantile over all draws for each entry."""
        return mixture_quantile(v, self.noise.sd, level)

    def draw(self, v: Array, rng: np.random.Generator) -> Array:
        """Return a new observation of each entry from a single draw."""
        return np.asarray(v + self.noise.sd[0] * rng.standard_normal(v.shape))
