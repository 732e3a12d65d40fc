"""Mean and variance of f(T) for a normal variable T.

For a piecewise-linear f they are sums over the pieces: with the standard normal distribution
function Φ and density φ, and a piece from a to b in units of the standard deviation σ around the
mean μ,

    E [s T + c; a < T < b] = (s μ + c) (Φ(b) - Φ(a)) - s σ (φ(b) - φ(a)),

the mean of a rectified or doubly clipped normal variable.  For t² they are μ² + σ² and
2 σ² (2 μ² + σ²).  Any other f is integrated by Gauss-Hermite quadrature.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nmd_lab._numba import compile_kernel, compile_scalar

from .nonlinearities import Nonlinearity, Piece, Square, as_nonlinearity

Array = NDArray[np.float64]

FAR = 9.0
"""Standard deviations beyond which there is less than the rounding of what lies within."""

N_NODES = 40
"""Nodes of the quadrature."""


def expected_value(
    nonlinearity: str | Nonlinearity, mean: ArrayLike, sd: ArrayLike
) -> NDArray[np.float64]:
    """Return E f(T) for T ~ N(mean, sd²)."""
    f = as_nonlinearity(nonlinearity)
    mu, sigma = np.broadcast_arrays(np.asarray(mean, float), np.asarray(sd, float))
    if not np.all(sigma >= 0):
        raise ValueError(f"sd={np.min(sigma):g} is not a standard deviation: give numbers >= 0.")
    positive = np.where(sigma > 0, sigma, 1.0).reshape(-1, 1)
    first = moments(f, mu.reshape(-1, 1).copy(), positive)[0].reshape(mu.shape)
    return np.where(sigma > 0, first, f(mu))


def all_pieces(nonlinearity: Nonlinearity) -> tuple[Piece, ...] | None:
    """Return the pieces of f on the whole line; None if f is not piecewise linear."""
    pieces = nonlinearity.pieces()
    if pieces is None:
        return None
    chosen = tuple(p for p in pieces if p.low <= p.high and p.low < math.inf and p.high > -math.inf)
    if not nonlinearity.even:
        return chosen
    return tuple(Piece(-p.high, -p.low, -p.slope, p.intercept) for p in chosen) + chosen


def moments(nonlinearity: Nonlinearity, v: Array, sd: Array) -> tuple[Array, Array]:
    """Return the mean and the variance of f(T) for T ~ N(v, sd²)."""
    if isinstance(nonlinearity, Square):
        return v**2 + sd**2, 2 * sd**2 * (2 * v**2 + sd**2)
    pieces = all_pieces(nonlinearity)
    if pieces is not None and len(pieces) == 1:
        return pieces[0].slope * v + pieces[0].intercept, pieces[0].slope ** 2 * sd**2 + 0 * v
    centre = np.asarray(nonlinearity(v), dtype=np.float64)
    if pieces is not None:
        return piecewise_moments(v, sd, np.array(pieces), centre)
    first, second = np.zeros_like(v), np.zeros_like(v)
    points, weights = np.polynomial.hermite_e.hermegauss(N_NODES)
    for point, weight in zip(points, weights / weights.sum(), strict=True):
        change = nonlinearity(v + point * sd) - centre
        first += weight * change
        second += weight * change**2
    return centre + first, np.maximum(second - first**2, 0)


@compile_scalar
def upper_tail(z: float) -> float:
    """Return the standard normal probability above z."""
    return 0.5 * math.erfc(z / math.sqrt(2.0))


@compile_scalar
def bell(z: float) -> float:
    """Return the standard normal density."""
    return math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


@cache
def _moments_kernel() -> Any:
    """Return the compiled loop for mean and variance of a piecewise-linear f of normal numbers."""

    def fill(v, sd, pieces, centre, mean, variance):  # type: ignore[no-untyped-def]
        for s in range(v.shape[0]):
            for p in range(v.shape[1]):
                first, second, width = 0.0, 0.0, sd[s, p if sd.shape[1] > 1 else 0]
                end, tail, height, moment = -math.inf, 1.0, 0.0, 0.0
                for piece in range(pieces.shape[0]):
                    low, high, slope, intercept = pieces[piece]
                    if low != end:
                        z = (low - v[s, p]) / width
                        tail, height = upper_tail(z), bell(z)
                        moment = z * height
                    mass, linear, square = tail, height, moment
                    end, z = high, (high - v[s, p]) / width
                    if z < -FAR:  # nothing lies on this piece
                        tail, height, moment = 1.0, 0.0, 0.0
                        continue
                    tail, height, moment = 0.0, 0.0, 0.0
                    if z < FAR:
                        tail, height = upper_tail(z), bell(z)
                        moment = z * height
                    if mass == 0.0:
                        continue
                    mass, linear = mass - tail, linear - height
                    square += mass - moment
                    level = slope * v[s, p] + intercept - centre[s, p]
                    rise = slope * width
                    first += rise * linear + level * mass
                    second += rise * rise * square + 2 * rise * level * linear
                    second += level * level * mass
                mean[s, p] = centre[s, p] + first
                variance[s, p] = max(second - first * first, 0.0)

    return compile_kernel(fill, "piecewise_moments", cached=True)


def piecewise_moments(v: Array, sd: Array, pieces: Array, centre: Array) -> tuple[Array, Array]:
    """Return mean and variance of f(T) for T ~ N(v, sd²) and a piecewise-linear f."""
    mean, variance = np.empty_like(v), np.empty_like(v)
    _moments_kernel()(v, np.ascontiguousarray(sd), pieces, centre, mean, variance)
    return mean, variance
