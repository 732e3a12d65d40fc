"""The interface of the distribution of an observation, and quantiles of mixtures."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtri

from .kernels import normal, quantiles
from .noise import Array, Noise

Component = Callable[..., tuple[float, float]]
"""Distribution function and density of a component of a mixture."""


class Predictive(ABC):
    """The distribution of an observation given each draw; v (draws, entries) is WH plus offsets."""

    def __init__(self, noise: Noise) -> None:
        self.noise = noise

    @property
    def numbers(self) -> int:
        """Numbers that are computed for each draw and entry, so that memory can be bounded."""
        return 1

    def at(self, rows: NDArray[np.integer], columns: NDArray[np.integer]) -> Self:
        """Return the distribution at entries of some rows and columns."""
        return type(self)(self.noise.at(rows))

    def of_draw(self, draw: int) -> Self:
        """Return the distribution given one draw alone."""
        return type(self)(self.noise.of_draw(draw))

    def mean(self, v: Array) -> Array:
        """Return the mean in each draw."""
        return self.mean_and_variance(v)[0]

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
    def draw(self, v: Array, rng: np.random.Generator) -> Array:
        """Return a new observation of each entry from a single draw, for v (entries,)."""

    def point(self, v: Array, point: str) -> Array:
        """Return the best guess for each entry: a number has the median if asked, or the mean."""
        mean: Array = self.quantile(v, 0.5) if point == "median" else self.mean(v).mean(axis=0)
        return mean

    def log_density(self, v: Array, x: Array) -> Array:
        """Return the logarithm of the density, or probability, of x over all draws."""
        logs = self.log_densities(v, x)
        over_all: Array = logsumexp(logs, axis=0) - np.log(logs.shape[0])
        return over_all


def mixture_quantile(
    location: Array, scale: Array, level: float, shape: Component = normal
) -> Array:
    """Return a quantile of equally likely normal or Laplace distributions for each entry."""
    tail = math.log1p(-abs(2 * level - 1))  # of the Laplace distribution
    standard = float(ndtri(level)) if shape is normal else math.copysign(tail, level - 0.5)
    ends = (
        location + standard * scale
    )  # the mixture's quantile lies between those of the components
    spread = np.sqrt(location.var(axis=0) + np.mean(scale**2, axis=0))
    bracket = ends.min(axis=0), ends.max(axis=0)
    return quantiles(
        shape, location, scale, level, bracket, location.mean(axis=0) + standard * spread
    )
