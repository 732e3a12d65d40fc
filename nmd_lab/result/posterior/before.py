"""Noise before f: x = f(T) with T ~ N(v, 1/ρ); flat values of f are limits."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from nmd_lab.model.censored import all_pieces, moments
from nmd_lab.model.nonlinearities import Piece, Square

from .kernels import folded, quantiles
from .mixture import Predictive, mixture_quantile
from .noise import (
    Array,
    interval_mass,
    is_increasing,
    normal_density,
    points_of,
)

CLOSE = 1e-6
"""Relative distance at which a value counts as a limit; data may be in float32."""


class NoiseBefore(Predictive):
    """The distribution of f(T)."""

    @property
    def numbers(self) -> int:
        """Numbers for each draw and entry: one for each point of the noise, if they are used."""
        f = self.noise.nonlinearity
        has_form = f.pieces() is not None or isinstance(f, Square)
        return 1 if has_form else int(points_of(self.noise.sd.shape[0]).shape[0])

    def mean_and_variance(self, v: Array) -> tuple[Array, Array]:
        """Return mean and variance in each draw."""
        return moments(self.noise.nonlinearity, v, self.noise.sd)

    def cdf(self, v: Array, x: Array) -> Array:
        """Return P(observation <= x) over all draws."""
        f, sd = self.noise.nonlinearity, self.noise.sd
        pieces = all_pieces(f)
        if isinstance(f, Square):
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
        f, sd = self.noise.nonlinearity, self.noise.sd
        pieces = all_pieces(f)
        total = np.zeros_like(v)
        with np.errstate(divide="ignore", invalid="ignore"):
            if isinstance(f, Square):
                size = np.sqrt(np.maximum(x, 0))
                for t in (-size, size):
                    total += normal_density((t - v) / sd) / sd
                return np.log(np.where(x < 0, 0, total / (2 * size)))
            if pieces is None:
                raise ValueError(
                    f"nonlinearity={f!r} has no pieces, so its noise has no density: use "
                    "predict_interval or probability."
                )
            for piece in pieces:
                total += _density(piece, v, sd, x, is_limit(pieces, x))
            return np.log(total)

    def quantile(self, v: Array, level: float) -> Array:
        """Return a quantile over all draws for each entry."""
        f, sd = self.noise.nonlinearity, self.noise.sd
        if is_increasing(f):
            return np.asarray(f(mixture_quantile(v, sd, level)))
        if f.even and is_increasing_on_the_right(f):
            return np.asarray(f(_folded_quantile(v, sd, level)))
        return np.asarray(np.quantile(self._points(v), level, axis=0, method="inverted_cdf"))

    def draw(self, v: Array, rng: np.random.Generator) -> Array:
        """Return a new observation of each entry from a single draw."""
        t = v + self.noise.sd[0] * rng.standard_normal(v.shape)
        return np.asarray(self.noise.nonlinearity(t))

    def _points(self, v: Array) -> Array:
        """Return equally likely values of f(T), as an array (components, entries)."""
        t = v + points_of(v.shape[0]) * self.noise.sd
        return np.asarray(self.noise.nonlinearity(t.reshape(-1, v.shape[1])))


def is_limit(pieces: tuple[Piece, ...], x: Array) -> Array:
    """Return 1 where x is the value of a flat piece, and 0 elsewhere."""
    limits = [p.intercept for p in pieces if p.slope == 0]
    close = [np.isclose(x, limit, rtol=CLOSE, atol=0) for limit in limits]
    return np.any(close, axis=0).astype(np.float64) if close else np.zeros_like(x)


def is_increasing_on_the_right(f: object) -> bool:
    """Return whether an even f is known to be non-decreasing for t >= 0."""
    if isinstance(f, Square):
        return True
    pieces = getattr(f, "pieces", lambda: None)()
    return pieces is not None and all(piece.slope >= 0 for piece in pieces)


def _below(piece: Piece, x: Array) -> tuple[Array, Array]:
    """Return the ends of the part of a piece on which f <= x; an empty one has no length."""
    low, high = np.full_like(x, piece.low), np.full_like(x, piece.high)
    if piece.slope == 0:
        return np.where(piece.intercept <= x, low, high), high
    at = (x - piece.intercept) / piece.slope
    if piece.slope > 0:
        return low, np.minimum(high, at)
    return np.maximum(low, at), high


def _density(piece: Piece, v: Array, sd: Array, x: Array, limit: Array) -> Array:
    """Return what a piece adds to the density of x, or to its probability if x is a limit."""
    if piece.slope == 0:
        is_here = np.isclose(x, piece.intercept, rtol=CLOSE, atol=0)
        mass = interval_mass((piece.low - v) / sd, (piece.high - v) / sd)
        return np.where(is_here, mass, 0)
    t = (x - piece.intercept) / piece.slope
    inside = (piece.low <= t) & (t <= piece.high) & (limit == 0)
    return np.where(inside, normal_density((t - v) / sd) / (sd * abs(piece.slope)), 0)


def _folded_quantile(v: Array, sd: Array, level: float) -> Array:
    """Return a quantile of |T| over all draws."""
    high = (np.abs(v) + float(ndtri(0.5 + level / 2)) * sd).max(axis=0)
    bracket = np.zeros_like(high), high
    return quantiles(folded, v, sd, level, bracket, math.sqrt(level) * high)
