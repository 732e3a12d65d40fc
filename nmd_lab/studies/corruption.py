"""Corruption of X before each fit of a study: noise, and known entries that are hidden.

Both draws depend on the seed and on their kind only.  So every method, rank and loss sees the same
missing entries and the same noise, and comparisons are paired.  Entries that are hidden at a small
share stay hidden at a larger one, and a study that grows keeps its draws.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from nmd_lab import datasets
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.split import first_of_cells

from .known_entries import BoolArray, KnownEntries

PATCHES_PER_SIDE = 4  # hidden patches are a quarter as long as the shorter side of a picture
OUTLIER_SIZE = 5.0  # standard deviations of X, far outside ordinary errors


class Corruption(NamedTuple):
    """One way to hide entries, or one kind of noise, at one level; for example ("random", 0.2)."""

    kind: str
    level: float

    def generator(self, seed: int) -> np.random.Generator:
        """Return a random number generator, which is the same for all levels."""
        digest = hashlib.sha256(self.kind.encode()).digest()[:8]
        return np.random.default_rng([seed, int.from_bytes(digest, "little")])


NOTHING_HIDDEN, NO_NOISE = Corruption("random", 0.0), Corruption("gaussian", 0.0)


def hidden_entries(data: KnownEntries, missing: Corruption, seed: int) -> BoolArray:
    """Return a mask of the known entries that is True where they are hidden."""
    if missing.level == 0:
        return np.zeros(data.entries.values.size, dtype=bool)
    hidden = HIDE[missing.kind](data, missing.level, missing.generator(seed))
    return hidden[first_of_cells(data.observations)] & data.exact


def noisy_values(data: KnownEntries, noise: Corruption, seed: int) -> FloatArray:
    """Return the known values with noise, in the precision of X."""
    values = data.entries.values
    if noise.level == 0:
        return values
    noisy = NOISE[noise.kind](values.astype(float), noise.level, noise.generator(seed))
    return np.where(data.exact, noisy.astype(values.dtype), values)  # a limit stays what it is


def refuse_for_classes(corruptions: Iterable[Corruption]) -> None:
    """Raise ValueError for what adds to values or orders them, which classes do not allow."""
    for kind, level in corruptions:
        if level and (kind in NOISE or kind == "by_value"):
            argument = "noise" if kind in NOISE else "missing"
            raise ValueError(
                f"{argument}={{{kind!r}: {level:g}}} is for numbers, and X has columns of "
                "booleans, levels or categories: leave it out, or these columns."
            )


def _by_value(data: KnownEntries, share: float, rng: np.random.Generator) -> BoolArray:
    """Hide entries with probabilities in proportion to the rank of their value."""
    values = data.entries.values
    weights = rankdata(values) / values.size
    return _single(data, share, rng.exponential(size=values.size) / weights)


def _lines(data: KnownEntries, axis: int, share: float, rng: np.random.Generator) -> BoolArray:
    """Hide whole rows (axis 0) or columns of X (axis 1)."""
    size, table = data.observations.shape[axis], data.table
    lines = np.arange(size) if axis == 0 or table is None else np.unique(table.first_of_cell)
    hidden = np.zeros(size, dtype=bool)
    hidden[lines] = _lowest(rng.random(size)[lines], share)
    return hidden[data.entries[axis]]


def _blocks(data: KnownEntries, share: float, rng: np.random.Generator) -> BoolArray:
    """Hide square patches of each picture; without a picture, X itself is one."""
    (rows, columns, _), (m, n), picture = data.entries, data.observations.shape, data.picture
    if picture is None:
        return _patches((m, n), share, rng)[rows, columns]
    pixels = np.arange(n) if picture.positions is None else picture.positions
    masks = [_patches(picture.shape, share, rng).ravel() for _ in range(m)]
    return np.stack(masks)[rows, pixels[columns]]


def _single(data: KnownEntries, share: float, draws: FloatArray) -> BoolArray:
    """Hide the entries with the lowest draws, the last ones of each row and column at the end."""
    rows, columns, _ = data.entries
    draws = draws[first_of_cells(data.observations)]
    largest = [pd.Series(draws).groupby(i).transform("max") for i in (rows, columns)]
    spared = (draws == largest[0]) | (draws == largest[1])
    return _lowest(np.where(spared, draws + draws.max() + 1, draws), share)


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


# Ways to hide entries; the level is the share of the known entries, rows, columns or pixels
HIDE: dict[str, Callable[[KnownEntries, float, np.random.Generator], BoolArray]] = {
    "random": lambda data, share, rng: _single(data, share, rng.random(data.entries.values.size)),
    "rows": lambda data, share, rng: _lines(data, 0, share, rng),
    "columns": lambda data, share, rng: _lines(data, 1, share, rng),
    "blocks": _blocks,
    "by_value": _by_value,
}

# Kinds of noise.  The level of "gaussian" is a standard deviation in the units of X, that of
# "salt_and_pepper" and "outliers" a share of the entries.  That of "poisson" is the number of
# counts for one unit of X, so a higher level means less noise.
NOISE: dict[str, Callable[..., FloatArray]] = {
    "gaussian": lambda values, level, rng: datasets.gaussian(values, level, random_state=rng),
    "salt_and_pepper": _salt_and_pepper,
    "poisson": lambda values, level, rng: datasets.poisson(values, level, random_state=rng),
    "outliers": _outliers,
}
