"""What a study does to X before it is fitted: hide some known entries, and add noise to all.

Both are drawn from the study's seed and their own name alone.  So every method, rank and loss sees
the same holes and the same noise (comparisons are paired), what is hidden at a small share stays
hidden at a larger one, and a study that grows keeps the draws that it had.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from nmd_lab import datasets
from nmd_lab.data.pictures import Picture

from .known_entries import Known

PATCH = 4
"""A hidden patch has this fraction of the shorter side of its picture."""

OUTLIER_SIZE = 5.0
"""Standard deviation of outliers, in standard deviations of the data."""


class Corruption(NamedTuple):
    """One kind of holes or noise at one level, for example ("random", 0.2).

    Attributes
    ----------
    kind : str
        A key of `HIDE` or `NOISE`.
    level : float
        How much.
    picture : Picture or None
        For "blocks": where the columns are in the picture that each row is; None: X itself is one.
    """

    kind: str
    level: float
    picture: Picture | None = None

    def generator(self, seed: int) -> np.random.Generator:
        """Return the source of random numbers, the same for all levels."""
        word = hashlib.sha256(self.kind.encode()).digest()[:8]
        return np.random.default_rng([seed, int.from_bytes(word, "little")])


def hidden_entries(known: Known, missing: Corruption, seed: int) -> NDArray[np.bool_]:
    """Return which known entries are hidden.

    Parameters
    ----------
    known : Known
        The data.
    missing : Corruption
        How, and what share.
    seed : int
        Of the draw.
    """
    if missing.level == 0:
        return np.zeros(known.size, dtype=bool)
    return HIDE[missing.kind](known, missing.level, missing.generator(seed), missing.picture)


def noisy_values(known: Known, noise: Corruption, seed: int) -> NDArray[np.floating]:
    """Return the known values with noise, in their own precision."""
    if noise.level == 0:
        return known.values
    values = NOISE[noise.kind](known.values.astype(float), noise.level, noise.generator(seed))
    return values.astype(known.values.dtype)


def _random(known: Known, share: float, rng: Any, picture: Any) -> NDArray[np.bool_]:
    chance = rng.random(known.size)
    return _first(_sparing(known, chance), share)


def _by_value(known: Known, share: float, rng: Any, picture: Any) -> NDArray[np.bool_]:
    """Draw without replacement, with a chance in proportion to the rank of the value."""
    weights = rankdata(known.values) / known.size
    return _first(_sparing(known, rng.exponential(size=known.size) / weights), share)


def _sparing(known: Known, chance: NDArray[np.floating]) -> NDArray[np.floating]:
    """Put the last entry of each row and column behind all others, so that it is hidden last."""
    spared = np.zeros(known.size, dtype=bool)
    for lines, count in zip((known.rows, known.columns), known.shape, strict=True):
        last = np.zeros(count)
        np.maximum.at(last, lines, chance)
        spared |= chance == last[lines]
    return np.where(spared, chance + chance.max() + 1, chance)


def _first(chance: NDArray[np.floating], share: float) -> NDArray[np.bool_]:
    """Return which entries are the given share of lowest chance."""
    hidden = np.zeros(chance.size, dtype=bool)
    count = min(round(share * chance.size), chance.size - 1)
    hidden[np.argpartition(chance, count)[:count]] = True
    return hidden


def _rows(known: Known, share: float, rng: Any, picture: Any) -> NDArray[np.bool_]:
    return _lines(known.shape[0], share, rng)[known.rows]


def _columns(known: Known, share: float, rng: Any, picture: Any) -> NDArray[np.bool_]:
    return _lines(known.shape[1], share, rng)[known.columns]


def _lines(count: int, share: float, rng: Any) -> NDArray[np.bool_]:
    return _first(rng.random(count), share)


def _blocks(known: Known, share: float, rng: Any, picture: Any) -> NDArray[np.bool_]:
    m, n = known.shape
    if picture is None:
        holes = _patches((m, n), share, rng)
    else:
        columns = np.arange(n) if picture.positions is None else picture.positions
        holes = np.stack([_patches(picture.shape, share, rng).ravel()[columns] for _ in range(m)])
    return holes[known.rows, known.columns]


def _patches(shape: tuple[int, int], share: float, rng: Any) -> NDArray[np.bool_]:
    """Return square holes at random places of a picture, as many as the share needs."""
    side = max(1, min(shape) // PATCH)
    holes = np.zeros(shape, dtype=bool)
    # One seed for the picture, so that other pictures do not depend on how many holes it takes
    places = np.random.default_rng(rng.integers(2**63))
    while holes.sum() < share * holes.size:
        top, left = places.integers(0, [length - side + 1 for length in shape])
        holes[top : top + side, left : left + side] = True
    return holes


def _salt_and_pepper(
    values: NDArray[np.floating], share: float, rng: np.random.Generator
) -> NDArray[np.floating]:
    """Set entries to the extremes of the data."""
    low, high = float(values.min()), float(values.max())
    return datasets.salt_and_pepper(values, share, low=low, high=high, random_state=rng)


def _outliers(
    values: NDArray[np.floating], share: float, rng: np.random.Generator
) -> NDArray[np.floating]:
    """Add large Gaussian errors to a share of the entries."""
    chance, error = rng.random(values.size), rng.standard_normal(values.size)
    return values + np.where(chance < share, OUTLIER_SIZE * values.std() * error, 0.0)


HIDE: dict[str, Callable[..., NDArray[np.bool_]]] = {
    "random": _random,
    "rows": _rows,
    "columns": _columns,
    "blocks": _blocks,
    "by_value": _by_value,
}
"""Ways to hide entries; the level is the share of the known entries (rows, columns, pixels)."""

NOISE: dict[str, Callable[..., NDArray[np.floating]]] = {
    "gaussian": lambda values, level, rng: datasets.gaussian(values, level, random_state=rng),
    "salt_and_pepper": _salt_and_pepper,
    "poisson": lambda values, level, rng: datasets.poisson(values, level, random_state=rng),
    "outliers": _outliers,
}
"""Kinds of noise; the level is a standard deviation in the units of X (gaussian), a share of the
entries (salt_and_pepper, outliers) or the counts per unit of X (poisson: more is less noise)."""
