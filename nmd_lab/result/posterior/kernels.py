"""Compiled search for quantiles of mixtures over draws."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._numba import compile_kernel, compile_scalar
from nmd_lab.model.censored import bell, upper_tail

Array = NDArray[np.float64]

MAX_STEPS = 100
"""Largest number of steps to a quantile; Newton's method needs about five."""

TOLERANCE = 1e-8
"""Error of a quantile, relative to the width of its bracket."""


def normal(x: float, location: float, scale: float) -> tuple[float, float]:
    """Return distribution function and density of a normal distribution."""
    z = (x - location) / scale
    return upper_tail(-z), bell(z) / scale


def folded(x: float, location: float, scale: float) -> tuple[float, float]:
    """Return distribution function and density of the size of a normal number, for x >= 0."""
    above, below = (x - location) / scale, (-x - location) / scale
    return upper_tail(-above) - upper_tail(-below), (bell(above) + bell(below)) / scale


def laplace(x: float, location: float, scale: float) -> tuple[float, float]:
    """Return distribution function and density of a Laplace distribution."""
    z = (x - location) / scale
    half = 0.5 * math.exp(-abs(z))
    return (half if z < 0 else 1 - half), half / scale


@cache
def _quantile_kernel(shape: Callable[..., tuple[float, float]]) -> Any:
    """Return the compiled search for quantiles of mixtures of one kind."""
    component = compile_scalar(shape)

    def quantiles(location, scale, level, low, high, start, out):  # type: ignore[no-untyped-def]
        n_components = scale.shape[1]
        for p in range(out.size):
            lower, upper, x = low[p], high[p], start[p]
            tolerance = TOLERANCE * (upper - lower)
            of_entry = scale[p if scale.shape[0] > 1 else 0]
            for _ in range(MAX_STEPS):
                below, density = 0.0, 0.0
                for c in range(n_components):
                    share, height = component(x, location[p, c], of_entry[c])
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
    """Return a quantile of equally likely distributions, by Newton steps inside a bracket."""
    low, high = bracket
    out = np.empty(location.shape[1])
    arrays = np.ascontiguousarray(location.T), np.ascontiguousarray(scale.T)
    _quantile_kernel(shape)(*arrays, level, low, high, np.clip(start, low, high), out)
    return out
