"""Ratings with a test part: the sets of the table, and their splits."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.selection.problems import Problem, ratings_90_10, ratings_u1
from nmd_lab import datasets

Array = np.ndarray
Ratings = sparse.csr_array

SHARE = 0.1
"""Fraction of the training ratings that chooses settings, and of the ratings that is a test."""
FOLDS = 10
ONCE = -1
"""In place of a run: the ratings that are in no test, where settings are chosen once."""


class Set(NamedTuple):
    """A set of ratings.

    Attributes
    ----------
    load : callable
        Returns the problem of a run, by its number.
    runs : int
        Number of runs.
    what : str
        What a run is: another seed, or another split.
    draws, tune : int
        Sweeps of a sampler that count, and those before.
    choose_once : bool
        Whether settings are chosen once, on the ratings that are in no test.
    """

    load: Callable[[int], Problem]
    runs: int
    what: str
    draws: int = 300
    tune: int = 100
    choose_once: bool = False


def fold(table: Any, run: int) -> Problem:
    """Return a problem whose test is one of ten random parts of the ratings.

    Parameters
    ----------
    table : DataFrame
        Columns user, item and rating.
    run : int
        Number of the part, 0 to 9; ONCE for the ratings that are in no test, without a test.
    """
    rows, columns = (np.unique(table[name], return_inverse=True)[1] for name in ("user", "item"))
    values = table["rating"].to_numpy(dtype=float)
    parts = np.random.default_rng(0).permutation(values.size) % FOLDS
    runs = SETS["MovieLens 1M, 90/10"].runs
    train, test = (parts >= runs, parts < 0) if run == ONCE else (parts != run, parts == run)
    shape = rows.max() + 1, columns.max() + 1
    X = sparse.csr_array((values[train], (rows[train], columns[train])), shape=shape)
    return Problem(X, rows[test], columns[test], values[test])


SETS = {
    "MovieLens 100K, u1": Set(lambda run: ratings_u1(), 3, "seeds"),
    "MovieLens 100K, 90/10": Set(
        lambda run: ratings_90_10(datasets.movielens_100k(), run), 5, "splits"
    ),
    "MovieLens small, 90/10": Set(
        lambda run: ratings_90_10(datasets.movielens_small(), run), 5, "splits"
    ),
    "MovieLens 1M, 90/10": Set(
        lambda run: fold(datasets.movielens_1m(), run), 3, "folds", 200, 50, choose_once=True
    ),
}
"""Sets by name."""

QUICK = {"MovieLens small, 90/10": SETS["MovieLens small, 90/10"]._replace(runs=1, draws=8, tune=4)}
"""Sets of a quick run."""

NEED_DATA = ("MovieLens 100K", "MovieLens 1M")
"""Beginnings of the names of sets that need NMD_LAB_DATA."""


def available(quick: bool = False) -> dict[str, Set]:
    """Return the sets that are there."""
    with_data = bool(os.environ.get("NMD_LAB_DATA"))
    sets = QUICK if quick else SETS
    return {name: each for name, each in sets.items() if with_data or not needs_data(name)}


def needs_data(name: str) -> bool:
    """Return whether a set needs NMD_LAB_DATA."""
    return name.startswith(NEED_DATA)


def hold_out(train: Ratings, seed: int) -> Problem:
    """Return a problem whose test is a random tenth of the training ratings."""
    X = train.tocoo()
    test = np.random.default_rng([1, seed]).random(X.data.size) < SHARE
    learn = sparse.csr_array((X.data[~test], (X.row[~test], X.col[~test])), shape=X.shape)
    return Problem(learn, X.row[test], X.col[test], X.data[test])
