"""Compiled loops over draws and entries: moments of f(T), and quantiles of mixtures."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._numba import compile_kernel, compile_scalar

Array = NDArray[np.float64]

MAX_STEPS = 100
"""Largest number of steps to a quantile; Newton's method needs about five."""

TOLERANCE = 1e-8
"""Error of a quantile, relative to the width of its bracket."""


def upper_tail(z: float) -> float:
    """Return the standard normal probability above z."""
    return 0.5 * math.erfc(z / math.sqrt(2.0))


def bell(z: float) -> float:
    """Return the standard normal density."""
    return math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


def normal(x: float, location: float, scale: float) -> tuple[float, float]:
    """Return distribution function and density of a normal distribution."""
    z = (x - location) / scale
    return _upper_tail(-z), _bell(z) / scale


def folded(x: float, location: float, scale: float) -> tuple[float, float]:
    """Return distribution function and density of the size of a normal number, for x >= 0."""
    above, below = (x - location) / scale, (-x - location) / scale
    return _upper_tail(-above) - _upper_tail(-below), (_bell(above) + _bell(below)) / scale


def laplace(x: float, location: float, scale: float) -> tuple[float, float]:
    """Return distribution function and density of a Laplace distribution."""
    z = (x - location) / scale
    half = 0.5 * math.exp(-abs(z))
    return (half if z < 0 else 1 - half), half / scale


_upper_tail, _bell = compile_scalar(upper_tail), compile_scalar(bell)


@cache
def _quantile_kernel(shape: Callable[..., tuple[float, float]]) -> Any:
    """Return the compiled search for quantiles of mixtures of one kind."""
    component = compile_scalar(shape)

    def quantiles(location, scale, level, low, high, start, out):  # type: ignore[no-untyped-def]
        n_components = scale.size
        for p in range(out.size):
            lower, upper, x = low[p], high[p], start[p]
            tolerance = TOLERANCE * (upper - lower)
            for _ in range(MAX_STEPS):
                below, density = 0.0, 0.0
                for c in range(n_components):
                    share, height = component(x, location[p, c], scale[c])
                    below += share
                    density += height
                gap = below / n_components - level
                if gap < 0:
                    lower = x
                else:
                    upper = x
                new = x - gap * n_components / density if density > 0 else math.inf
                if not lower <= new <= upper:
                    new = 0.5 * (lower + upper)
                change = abs(new - x)
                x = new
                if change <= tolerance:
                    break
            out[p] = x

    return compile_kernel(quantiles, f"mixture_quantiles_{shape.__name__}", cached=True)


def quantiles(
    shape: Callable[..., tuple[float, float]],
    location: Array,
    scale: Array,
    level: float,
    bracket: tuple[Array, Array],
    start: Array,
) -> Array:
    """Return a quantile of equally likely distributions, by Newton steps inside a bracket.

    Parameters
    ----------
    shape : callable
        `normal`, `folded` or `laplace`.
    location : ndarray (components, entries)
        Location of each component.
    scale : ndarray (components, 1)
        Scales > 0.
    level : float
        Probability below the quantile, in (0, 1).
    bracket : tuple of ndarray (entries,)
        Numbers below and above the quantiles.
    start : ndarray (entries,)
        First guesses.
    """
    low, high = bracket
    out = np.empty(location.shape[1])
    arrays = np.ascontiguousarray(location.T), np.ascontiguousarray(scale[:, 0])
    _quantile_kernel(shape)(*arrays, level, low, high, np.clip(start, low, high), out)
    return out


@cache
def _moments_kernel() -> Any:
    """Return the compiled loop for mean and variance of a piecewise-linear f of normal numbers."""

    def fill(v, sd, pieces, centre, mean, variance):  # type: ignore[no-untyped-def]
        for s in range(v.shape[0]):
            for p in range(v.shape[1]):
                first, second = 0.0, 0.0
                end, tail, height, moment = -math.inf, 1.0, 0.0, 0.0
                for piece in range(pieces.shape[0]):
                    low, high, slope, intercept = pieces[piece]
                    if low != end:
                        z = (low - v[s, p]) / sd[s]
                        tail, height = _upper_tail(z), _bell(z)
                        moment = z * height
                    mass, linear, square = tail, height, moment
                    tail, height, moment = 0.0, 0.0, 0.0
                    if high < math.inf:
                        z = (high - v[s, p]) / sd[s]
                        tail, height = _upper_tail(z), _bell(z)
                        moment = z * height
                    end = high
                    mass, linear = mass - tail, linear - height
                    square += mass - moment
                    level = slope * v[s, p] + intercept - centre[s, p]
                    rise = slope * sd[s]
                    first += rise * linear + level * mass
                    second += rise * rise * square + 2 * rise * level * linear
                    second += level * level * mass
                mean[s, p] = centre[s, p] + first
                variance[s, p] = max(second - first * first, 0.0)

    return compile_kernel(fill, "piecewise_moments", cached=True)


def piecewise_moments(v: Array, sd: Array, pieces: Array, centre: Array) -> tuple[Array, Array]:
    """Return mean and variance of f(T) for T ~ N(v, sd²) and a piecewise-linear f.

    Parameters
    ----------
    v : ndarray (draws, entries)
        Means of T.
    sd : ndarray (draws, 1)
        Standard deviations of T.
    pieces : ndarray (n_pieces, 4)
        Pieces of f on the whole line, from left to right.
    centre : ndarray (draws, entries)
        f(v), from which both moments are counted, so that large values keep their digits.
    """
    mean, variance = np.empty_like(v), np.empty_like(v)
    _moments_kernel()(v, np.ascontiguousarray(sd[:, 0]), pieces, centre, mean, variance)
    return mean, variance
