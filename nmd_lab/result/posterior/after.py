"""Noise after f: T ~ N(v, 1/ρ), and x is f(T) with the noise that the loss says."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln, ndtr, pdtr, xlogy

from nmd_lab.model.censored import all_pieces, moments
from nmd_lab.model.losses import KL, L1, Frobenius
from nmd_lab.model.nonlinearities import Piece

from .kernels import laplace, normal
from .mixture import Component, Predictive, mixture_quantile
from .noise import Array, interval_mass, normal_density, points_of


class NoiseAfter(Predictive):
    """The distribution of f(T) plus noise: normal (Frobenius), Laplace (L1) or Poisson (KL)."""

    @property
    def numbers(self) -> int:
        """Numbers for each draw and entry: one for each point of the noise before f."""
        return int(points_of(self.noise.sd.shape[0]).shape[0])

    def mean_and_variance(self, v: Array) -> tuple[Array, Array]:
        """Return mean and variance in each draw."""
        mean, variance = moments(self.noise.nonlinearity, v, self.noise.sd)
        return mean, variance + self._noise_variance(mean)

    def mean(self, v: Array) -> Array:
        """Return the mean in each draw, which a loss of the user has too."""
        return moments(self.noise.nonlinearity, v, self.noise.sd)[0]

    def cdf(self, v: Array, x: Array) -> Array:
        """Return P(observation <= x) over all draws."""
        if self._is(KL):
            shares = pdtr(np.maximum(np.floor(x), 0), self._counts(v)).mean(axis=0)
            return np.where(x < 0, 0, shares)
        z = (x - self._points(v)) / self._scale(v)
        half = 0.5 * np.exp(-np.abs(z))
        share = ndtr(z) if self._shape is normal else np.where(z < 0, half, 1 - half)
        return np.asarray(share.mean(axis=0))

    def log_densities(self, v: Array, x: Array) -> Array:
        """Return the logarithm of the density of x in each draw, or of each draw and point."""
        pieces = all_pieces(self.noise.nonlinearity)
        if self._is(Frobenius) and pieces is not None:
            density = sum(self._piece_density(piece, v, x) for piece in pieces)
            with np.errstate(divide="ignore"):
                return np.log(density)
        if self._is(KL):
            counts = self._counts(v)
            logs: Array = np.where(x < 0, -np.inf, xlogy(x, counts) - counts - gammaln(x + 1))
            return logs
        scale = self._scale(v)
        z = (x - self._points(v)) / scale
        if self._shape is normal:
            return np.asarray(-0.5 * z**2 - np.log(scale * math.sqrt(2 * math.pi)))
        return np.asarray(-np.abs(z) - np.log(2 * scale))

    def quantile(self, v: Array, level: float) -> Array:
        """Return a quantile over all draws for each entry."""
        if not self._is(KL):
            return mixture_quantile(self._points(v), self._scale(v), level, self._shape)
        counts = self._counts(v)
        largest = counts.max(axis=0)
        low, high = np.full(v.shape[1], -1.0), np.ceil(largest + 10 * np.sqrt(largest) + 30)
        while np.any(high - low > 1):
            middle = np.maximum(np.floor(0.5 * (low + high)), 0)  # no count is below 0
            below = pdtr(middle, counts).mean(axis=0) < level
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(high)

    def draw(self, v: Array, rng: np.random.Generator) -> Array:
        """Return a new observation of each entry from a single draw."""
        t = v + self.noise.sd[0] * rng.standard_normal(v.shape)
        centre = np.asarray(self.noise.nonlinearity(t), dtype=np.float64)
        if self._is(KL):
            return rng.poisson(np.maximum(centre, 0)).astype(np.float64)
        width = self._width[0]
        if self._is(Frobenius):
            return np.asarray(centre + width * rng.standard_normal(v.shape))
        return rng.laplace(centre, width)

    def _is(self, loss: type) -> bool:
        """Return whether the loss is of a class."""
        return isinstance(self.noise.loss, loss)

    @property
    def _shape(self) -> Component:
        """The distribution of the noise; raises ValueError for a loss of the user."""
        if self._is(Frobenius):
            return normal
        if self._is(L1):
            return laplace
        raise ValueError(
            f"loss={self.noise.loss!r} says no distribution of new observations: use noise=False."
        )

    @property
    def _width(self) -> Array:
        """Scale of the noise in each draw, (draws, 1) or (draws, entries)."""
        shape = self._shape  # first, for its error
        assert self.noise.beta is not None
        return 1 / np.sqrt(self.noise.beta) if shape is normal else 1 / self.noise.beta

    def _scale(self, v: Array) -> Array:
        """Return the scale of the noise at each draw and point."""
        return np.tile(self._width, (points_of(v.shape[0]).shape[0], 1))

    def _noise_variance(self, mean: Array) -> Array:
        """Return the variance of the noise after f in each draw."""
        if self._is(KL):
            return np.maximum(mean, 0)
        variance: Array = self._width**2 * (1 if self._is(Frobenius) else 2)
        return variance

    def _points(self, v: Array) -> Array:
        """Return equally likely values of f(T), as an array (points times draws, entries)."""
        t = v + points_of(v.shape[0]) * self.noise.sd
        return np.asarray(self.noise.nonlinearity(t.reshape(-1, v.shape[1])))

    def _counts(self, v: Array) -> Array:
        """Return the means of the Poisson distributions at each draw and point."""
        return np.maximum(self._points(v), np.finfo(np.float64).tiny)

    def _piece_density(self, piece: Piece, v: Array, x: Array) -> Array:
        """Return what T on a piece adds to the density of x with normal noise: a closed form."""
        sd, width, slope = self.noise.sd, self._width, piece.slope
        total = np.hypot(slope * sd, width)
        gap = x - (slope * v + piece.intercept)
        gain = slope * sd**2 / total**2
        centre, spread = v + gain * gap, sd * width / total
        mass = interval_mass((piece.low - centre) / spread, (piece.high - centre) / spread)
        density: Array = mass * normal_density(gap / total) / total
        return density
