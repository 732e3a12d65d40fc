"""Corruption of X before each fit of a study: noise, and known entries that are hidden.

Both draws depend on the seed and on their kind only.  So every method, rank and loss sees the same
missing entries and the same noise, and comparisons are paired.  Entries that are hidden at a small
share stay hidden at a larger one, and a study that grows keeps its draws.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from nmd_lab import datasets
from nmd_lab.data.pictures import Picture

from .known_entries import KnownEntries

PATCHES_PER_SIDE = 4  # hidden patches are a quarter as long as the shorter side of a picture
OUTLIER_SIZE = 5.0  # standard deviations of X, far outside ordinary errors

FloatArray = NDArray[np.floating]
BoolArray = NDArray[np.bool_]


class Corruption(NamedTuple):
    """One way to hide entries, or one kind of noise, at one level; for example ("random", 0.2)."""

    kind: str
    level: float
    picture: Picture | None = None

    def __str__(self) -> str:
        """Return kind and level."""
        return f"{self.kind} {self.level:g}"

    def generator(self, seed: int) -> np.random.Generator:
        """Return a random number generator, which is the same for all levels."""
        digest = hashlib.sha256(self.kind.encode()).digest()[:8]
        return np.random.default_rng([seed, int.from_bytes(digest, "little")])


def hidden_entries(data: KnownEntries, missing: Corruption, seed: int) -> BoolArray:
    """Return a mask of the known entries that is True where they are hidden."""
    if missing.level == 0:
        return np.zeros(data.size, dtype=bool)
    return HIDE[missing.kind](data, missing, missing.generator(seed))


def noisy_values(data: KnownEntries, noise: Corruption, seed: int) -> FloatArray:
    """Return the known values with noise, in the precision of X."""
    if noise.level == 0:
        return data.values
    values = NOISE[noise.kind](data.values.astype(float), noise.level, noise.generator(seed))
    return values.astype(data.values.dtype)


def _by_value(data: KnownEntries, missing: Corruption, rng: np.random.Generator) -> BoolArray:
    """Hide entries with probabilities in proportion to the rank of their value."""
    weights = rankdata(data.values) / data.size
    draws = rng.exponential(size=data.size) / weights
    return _lowest(_spare_rows_and_columns(data, draws), missing.level)


def _blocks(data: KnownEntries, missing: Corruption, rng: np.random.Generator) -> BoolArray:
    """Hide square patches of each picture; without a picture, X itself is one."""
    picture, pixels = missing.picture, np.arange(data.shape[1])
    if picture is None:
        return _patches(data.shape, missing.level, rng)[data.rows, data.columns]
    pixels = pixels if picture.positions is None else picture.positions
    masks = [_patches(picture.shape, missing.level, rng).ravel() for _ in range(data.shape[0])]
    return np.stack(masks)[data.rows, pixels[data.columns]]


def _spare_rows_and_columns(data: KnownEntries, draws: FloatArray) -> FloatArray:
    """Raise the largest draw of each row and column above all others, so that it is hidden last."""
    spared = np.zeros(data.size, dtype=bool)
    for indices, count in zip((data.rows, data.columns), data.shape, strict=True):
        largest = np.zeros(count)
        np.maximum.at(largest, indices, draws)
        spared |= draws == largest[indices]
    return np.where(spared, draws + draws.max() + 1, draws)


def _lowest(draws: FloatArray, share: float) -> BoolArray:
    """Return a mask of the lowest draws, whose number is the given share of all."""
    hidden = np.zeros(draws.size, dtype=bool)
    count = min(round(share * draws.size), draws.size - 1)
    hidden[np.argpartition(draws, count)[:count]] = True
    return hidden


def _patches(shape: tuple[int, int], share: float, rng: np.random.Generator) -> BoolArray:
    """Return a mask with square patches at random places, until the share is reached."""
    side = max(1, min(shape) // PATCHES_PER_SIDE)
    hidden = np.zeros(shape, dtype=bool)
    # One seed for each picture, so that others do not depend on its number of patches
    places = np.random.default_rng(rng.integers(2**63))
    while hidden.sum() < share * hidden.size:
        top, left = places.integers(0, [length - side + 1 for length in shape])
        hidden[top : top + side, left : left + side] = True
    return hidden


def _salt_and_pepper(values: FloatArray, share: float, rng: np.random.Generator) -> FloatArray:
    """Set a share of the entries to the smallest or largest value of the data."""
    low, high = float(values.min()), float(values.max())
    return datasets.salt_and_pepper(values, share, low=low, high=high, random_state=rng)


def _outliers(values: FloatArray, share: float, rng: np.random.Generator) -> FloatArray:
    """Add Gaussian errors to a share of the entries."""
    draws, errors = rng.random(values.size), rng.standard_normal(values.size)
    return values + np.where(draws < share, OUTLIER_SIZE * values.std() * errors, 0.0)


HIDE: dict[str, Callable[..., BoolArray]] = {
    "random": lambda data, missing, rng: _lowest(
        _spare_rows_and_columns(data, rng.random(data.size)), missing.level
    ),
    "rows": lambda X, missing, rng: _lowest(rng.random(X.shape[0]), missing.level)[X.rows],
    "columns": lambda X, missing, rng: _lowest(rng.random(X.shape[1]), missing.level)[X.columns],
    "blocks": _blocks,
    "by_value": _by_value,
}
"""Ways to hide entries; the level is the share of the known entries, rows, columns or pixels."""

NOISE: dict[str, Callable[..., FloatArray]] = {
    "gaussian": lambda values, level, rng: datasets.gaussian(values, level, random_state=rng),
    "salt_and_pepper": _salt_and_pepper,
    "poisson": lambda values, level, rng: datasets.poisson(values, level, random_state=rng),
    "outliers": _outliers,
}
"""Kinds of noise.

The level of "gaussian" is a standard deviation in the units of X.  That of "salt_and_pepper" and
"outliers" is a share of the entries.  That of "poisson" is the number of counts for one unit of X,
so a higher level means less noise.
"""
