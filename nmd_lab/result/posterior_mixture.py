"""The interface of the distribution of an observation, and quantiles of mixtures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri

from .posterior_noise import Array, Noise, normal_density


class Shape(NamedTuple):
    """A continuous distribution of location 0 and scale 1, whose mixtures have quantiles.

    Attributes
    ----------
    cdf, density, quantile : callable
        Distribution function, density and quantile, for arrays.
    """

    cdf: Callable[[Array], Array]
    density: Callable[[Array], Array]
    quantile: Callable[[float], float]


NORMAL = Shape(ndtr, normal_density, lambda level: float(ndtri(level)))
"""The normal distribution."""


class Predictive(ABC):
    """The distribution of an observation given each draw; v (draws, entries) is WH plus offsets.

    Parameters
    ----------
    noise : Noise
        Numbers of the draws.
    """

    def __init__(self, noise: Noise) -> None:
        self.noise = noise

    @property
    def numbers(self) -> int:
        """Numbers that are computed for each draw and entry, so that memory can be bounded."""
        return 1

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
    def draw(self, v: Array, draw: int, rng: np.random.Generator) -> Array:
        """Return a new observation of each entry from one draw, for v (entries,)."""

    def log_density(self, v: Array, x: Array) -> Array:
        """Return the logarithm of the density, or probability, of x over all draws."""
        logs = self.log_densities(v, x)
        over_all: Array = logsumexp(logs, axis=0) - np.log(logs.shape[0])
        return over_all


def mixture_quantile(location: Array, scale: Array, level: float, shape: Shape = NORMAL) -> Array:
    """Return a quantile of equally likely distributions, by Newton steps inside a bracket.

    Parameters
    ----------
    location : ndarray (components, entries)
        Location of each component.
    scale : ndarray (components, 1)
        Scales > 0.
    level : float
        Probability below the quantile, in (0, 1).
    shape : Shape
        The distribution of location 0 and scale 1.

    Returns
    -------
    ndarray (entries,)
        Quantiles, with an error below 1e-9 of the distance between those of the components.
    """
    ends = location + shape.quantile(level) * scale  # the mixture's quantile lies between them

    def cdf_and_density(x: Array) -> tuple[Array, Array]:
        z = (x - location) / scale
        return shape.cdf(z).mean(axis=0), (shape.density(z) / scale).mean(axis=0)

    return root(cdf_and_density, level, ends.min(axis=0), ends.max(axis=0), ends.mean(axis=0))


def root(
    cdf_and_density: Callable[[Array], tuple[Array, Array]],
    level: float,
    low: Array,
    high: Array,
    start: Array,
) -> Array:
    """Return where a distribution function has a level, given brackets, by Newton's method."""
    x, tolerance = start, 1e-9 * (high - low)
    for _ in range(100):
        value, density = cdf_and_density(x)
        below = value < level
        low, high = np.where(below, x, low), np.where(below, high, x)
        with np.errstate(divide="ignore", invalid="ignore"):
            new = x - (value - level) / density
        new = np.where((new >= low) & (new <= high), new, 0.5 * (low + high))
        change, x = np.abs(new - x), new
        if np.all(change <= tolerance):
            break
    return x
