"""Held-out entries in the test rows of a splitter of scikit-learn."""

from __future__ import annotations

import copy
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.observations import Observations

from .folds import MOST_FOLDS, WANTED, Fold, make_fold, n_held_out

PARTS = 5  # parts of the columns, of which each split holds out one in its test rows


class RowSplit(NamedTuple):
    """Masks (m,) of the rows that teach a fit, and of those in which entries are held out."""

    train: NDArray[np.bool_]
    test: NDArray[np.bool_]


def row_splits(
    splitter: Any, groups: NDArray[np.intp] | None, m: int, rng: np.random.Generator
) -> list[RowSplit]:
    """Return the splits of m rows; a splitter without a seed gets one."""
    name = repr(splitter)
    if getattr(splitter, "random_state", 0) is None:
        splitter = copy.copy(splitter)
        splitter.random_state = int(rng.integers(2**31))
    arguments = {} if groups is None else {"groups": groups}
    try:
        pairs = list(splitter.split(np.zeros((m, 1)), **arguments))
    except (TypeError, ValueError) as error:
        remedy = "give groups=" if groups is None and "groups" in str(error) else "give another one"
        raise ValueError(
            f"splitter={name} cannot split the {m} rows of X ({str(error).rstrip('.')}): {remedy}."
        ) from error
    return [RowSplit(*(np.isin(np.arange(m), rows) for rows in pair)) for pair in pairs]


def row_folds(
    splits: list[RowSplit], observations: Observations, rng: np.random.Generator
) -> list[Fold]:
    """Return folds in which a fifth of the columns is held out in the test rows, the largest first.

    Each split holds out another fifth, in all its test rows: what is known of these columns comes
    from the training rows alone.
    """
    n_parts = max(2, min(PARTS, observations.shape[1]))
    parts = _dealt_columns(observations, n_parts, rng)
    folds: list[Fold] = []
    for shift in range(max(1, min(n_parts, MOST_FOLDS // max(len(splits), 1)))):
        if n_held_out(folds) >= WANTED:
            break
        for number, split in enumerate(splits):
            fold = _fold(split, parts == (number + shift) % n_parts, observations)
            folds += [] if fold is None else [fold]
    return sorted(folds, key=lambda fold: -fold.rest.n_observed)


def _dealt_columns(
    observations: Observations, n_parts: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Return the part of each column; the indicators of a category are in the same one."""
    n, table = observations.shape[1], observations.labels.table
    parts: NDArray[np.intp] = rng.permutation(math.ceil(n / n_parts) * n_parts)[:n] % n_parts
    return parts if table is None else parts[table.first_of_cell]


def _fold(split: RowSplit, hidden: NDArray[np.bool_], observations: Observations) -> Fold | None:
    """Return the fold with some columns held out in the test rows; None if nothing can be.

    Neither rows that would keep no entry nor columns that no other row has are judged.
    """
    m, n = observations.shape
    rows, columns, _ = observations.entries()
    held = split.test[rows] & hidden[columns]
    rest = (split.train | split.test)[rows] & ~held
    known_rows, known_columns = np.zeros(m, bool), np.zeros(n, bool)
    known_rows[rows[rest]], known_columns[columns[rest]] = True, True
    held &= known_rows[rows] & known_columns[columns]
    if not held.any():
        return None
    return make_fold(observations.select(rest), observations.select(held))
