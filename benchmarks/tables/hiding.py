"""Which known cells of a table are hidden: at random, by values, or in blocks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy import stats

from .data import codes, kind_of

Array = np.ndarray
Rule = Callable[[pd.DataFrame, np.random.Generator], Array]

HIDDEN = 0.2
"""Fraction of the known cells, about."""


def at_random(fraction: float) -> Rule:
    """Return the rule that hides each cell with one probability."""
    return lambda frame, rng: rng.random(frame.shape) < fraction


def ranks(column: pd.Series) -> Array:
    """Return the fraction of the known values below each one; a half where it is missing."""
    values = codes(column)
    found = np.full(values.size, 0.5)
    known = ~np.isnan(values)
    found[known] = (stats.rankdata(values[known]) - 0.5) / known.sum()
    return found


def given_another_column(frame: pd.DataFrame, rng: np.random.Generator) -> Array:
    """Hide cells where one column, which stays known, has large values (MAR)."""
    ordered = [name for name in frame if kind_of(frame[name]) in ("number", "level")]
    driver = min(ordered, key=lambda name: frame[name].isna().sum())
    p = np.repeat(2 * HIDDEN * ranks(frame[driver])[:, None], frame.shape[1], axis=1)
    p[:, frame.columns.get_loc(driver)] = 0
    return rng.random(frame.shape) < p


def large_values(frame: pd.DataFrame, rng: np.random.Generator) -> Array:
    """Hide numbers and levels the more often the larger they are (MNAR); other cells at random."""
    p = [
        2 * HIDDEN * ranks(frame[name])
        if kind_of(frame[name]) in ("number", "level") else np.full(len(frame), HIDDEN)
        for name in frame
    ]  # fmt: skip
    return rng.random(frame.shape) < np.stack(p, axis=1)


def blocks(frame: pd.DataFrame, rng: np.random.Generator) -> Array:
    """Hide one half of the columns of some rows, and the other half of as many others."""
    is_first = rng.permutation(frame.shape[1]) < frame.shape[1] / 2
    u = rng.random(len(frame))[:, None]
    return np.where(is_first, u < HIDDEN, u > 1 - HIDDEN)


PATTERNS: dict[str, Rule] = {
    "a fifth": at_random(HIDDEN),
    "a tenth": at_random(0.1),
    "a half": at_random(0.5),
    "given another column": given_another_column,
    "large values": large_values,
    "blocks": blocks,
}
"""All rules by name, that of the comparison first."""


def hide(frame: pd.DataFrame, seed: int, pattern: str = "a fifth") -> tuple[pd.DataFrame, Array]:
    """Return the table that a method sees, and which known cells were hidden."""
    rng = np.random.default_rng([34, seed])
    hidden = PATTERNS[pattern](frame, rng) & frame.notna().to_numpy()
    return frame.mask(hidden), hidden
