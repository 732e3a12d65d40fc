"""The expected value of f(T) for a normal variable T.

For a piecewise-linear f it is a sum over the pieces: with the standard normal distribution function
Φ and density φ, and a piece from a to b in units of the standard deviation σ around the mean μ,

    E [s T + c; a < T < b] = (s μ + c) (Φ(b) - Φ(a)) - s σ (φ(b) - φ(a)),

the mean of a rectified or doubly clipped normal variable.  For t² it is μ² + σ².  Any other f is
integrated by Gauss-Hermite quadrature.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from .nonlinearities import Nonlinearity, Piece, Square, as_nonlinearity

N_NODES = 40


def expected_value(
    nonlinearity: str | Nonlinearity, mean: ArrayLike, sd: ArrayLike
) -> NDArray[np.float64]:
    """Return E f(T) for T ~ N(mean, sd²).

    Parameters
    ----------
    nonlinearity : str or Nonlinearity
        Nonlinearity f, by name or as an object.
    mean : array_like
        Means of T.
    sd : array_like
        Standard deviations of T, >= 0; with 0 the result is f(mean).

    Returns
    -------
    ndarray
        Expected values in the units of X, of the broadcast shape of `mean` and `sd`, float64.  They
        are exact for a piecewise-linear f and for `Square`.  For another f, they are exact up to
        the error of Gauss-Hermite quadrature with 40 nodes.

    Raises
    ------
    ValueError
        If a standard deviation is negative or NaN.

    Notes
    -----
    The closed form is that of the censored regression model of J. Tobin, "Estimation of
    relationships for limited dependent variables", Econometrica 26, 1958.

    Examples
    --------
    >>> from nmd_lab.model.expectation import expected_value
    >>> expected_value("relu", [-1.0, 0.0, 1.0], 1.0).round(4)
    array([0.0833, 0.3989, 1.0833])
    """
    f = as_nonlinearity(nonlinearity)
    mu, sigma = np.broadcast_arrays(np.asarray(mean, float), np.asarray(sd, float))
    if not np.all(sigma >= 0):
        raise ValueError(f"sd={np.min(sigma):g} is not a standard deviation: give numbers >= 0.")
    pieces = f.pieces()
    if type(f) is Square:
        return np.asarray(np.square(mu) + np.square(sigma))
    if pieces is None:
        return _quadrature(f, mu, sigma)
    with np.errstate(over="ignore"):  # where sigma is tiny, the ends are infinitely far
        total = _piecewise(pieces, mu, sigma)
        if f.even:
            total += _piecewise(pieces, -mu, sigma)
    return total if np.all(sigma > 0) else np.where(sigma > 0, total, f(mu))


def _piecewise(
    pieces: tuple[Piece, ...], mu: NDArray[np.float64], sigma: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the sum over the pieces; any finite number where sigma = 0."""
    total, scale = np.zeros(mu.shape), np.where(sigma > 0, sigma, 1.0)
    for low, high, slope, intercept in pieces:
        if low == math.inf or high == -math.inf:  # a piece without a finite t
            continue
        a, b = (low - mu) / scale, (high - mu) / scale
        # The upper tail is computed as a lower one: there a difference of Φ would lose all digits.
        sign = np.where(a > 0, -1.0, 1.0)
        mass = np.abs(ndtr(sign * b) - ndtr(sign * a))
        level = slope * mu + intercept
        total += level * mass - slope * scale * (_density(b) - _density(a))
    return total


def _density(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard normal density; zero at infinity."""
    density: NDArray[np.float64] = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    return density


def _quadrature(
    f: Nonlinearity, mu: NDArray[np.float64], sigma: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the expected value by Gauss-Hermite quadrature, one node at a time to save memory."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(N_NODES)
    total = np.zeros(mu.shape)
    for node, weight in zip(nodes, weights / weights.sum(), strict=True):
        total += weight * f(mu + node * sigma)
    return total
