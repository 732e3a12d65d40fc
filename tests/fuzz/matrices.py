"""Matrices of all kinds: plain values, and which of them are observed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def _low_rank(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return np.maximum(rng.normal(size=(shape[0], 2)) @ rng.normal(size=(2, shape[1])), 0)


def _outlier(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    values = rng.random(shape)
    values.flat[rng.integers(values.size)] = 1e6
    return values


VALUES: dict[str, Callable[[np.random.Generator, tuple[int, int]], Array]] = {
    "nonnegative": lambda rng, shape: rng.random(shape),
    "normal": lambda rng, shape: rng.normal(size=shape),
    "low rank": _low_rank,
    "integers": lambda rng, shape: rng.integers(0, 6, shape).astype(float),
    "booleans": lambda rng, shape: rng.integers(0, 2, shape).astype(float),
    "sparse": lambda rng, shape: rng.random(shape) * (rng.random(shape) < 0.2),
    "constant": lambda rng, shape: np.full(shape, 3.0),
    "zeros": lambda rng, shape: np.zeros(shape),
    "one row counts": lambda rng, shape: np.outer(np.arange(shape[0]) == 0, np.ones(shape[1])),
    "outlier": _outlier,
    "tiny": lambda rng, shape: 1e-12 * rng.random(shape),
    "huge": lambda rng, shape: 1e8 * rng.random(shape),
    "minute": lambda rng, shape: 1e-100 * rng.random(shape),
    "any size": lambda rng, shape: 10.0 ** rng.uniform(-100, 100) * rng.random(shape),
    "any size, signed": lambda rng, shape: 10.0 ** rng.uniform(-100, 100) * rng.normal(size=shape),
    "any float32 size": lambda rng, shape: 10.0 ** rng.uniform(-30, 30) * rng.random(shape),
    "ratings": lambda rng, shape: rng.integers(1, 11, shape) / 2,
    "enormous": lambda rng, shape: 1e100 * rng.random(shape),
}
"""Kinds of values by name."""

DTYPES = ("float64", "float32", "float16", "int64", "int8", "uint8", "bool", ">f8", "longdouble")


def matrix(kind: str, shape: tuple[int, int], dtype: str, seed: int) -> Array:
    """Return the values of a matrix; those that do not fit a type are clipped to it."""
    values = VALUES[kind](np.random.default_rng([seed, 1]), shape)
    target = np.dtype(dtype)
    if target.kind in "iu":
        bounds = np.iinfo(target)
        values = np.clip(np.round(values), max(bounds.min, -(2**53)), min(bounds.max, 2**53))
    elif target.kind == "f" and target.itemsize < 8:
        largest = float(np.finfo(target).max)
        values = np.clip(values, -largest, largest)
    return values.astype(target)


def observed(shape: tuple[int, int], missing: float, empty: bool, seed: int) -> Array:
    """Return a mask with at least one True; with `empty`, one row or column is all False."""
    rng = np.random.default_rng([seed, 2])
    seen = rng.random(shape) >= missing
    if empty:
        line, axis = rng.integers(max(shape)), int(rng.integers(2))
        np.moveaxis(seen, axis, 0)[line % shape[axis]] = False
    if not seen.any():
        seen.flat[rng.integers(seen.size)] = True
    return seen
