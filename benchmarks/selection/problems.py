"""Data with some entries kept for the test: the real sets."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.data import cbcl
from nmd_lab import datasets

Array = np.ndarray


class Problem(NamedTuple):
    """Data with holes, and the values at some of the holes.

    Attributes
    ----------
    X : ndarray (m, n) with NaN, or csr_array (m, n)
        What is given to `complete`.
    rows, columns : ndarray (n_test,)
        Positions of the test entries.
    values : ndarray (n_test,)
        Their values.
    """

    X: Any
    rows: Array
    columns: Array
    values: Array

    def rmse(self, prediction: Array) -> float:
        """Return the root mean squared error of predictions of the test entries."""
        return float(np.sqrt(np.mean((prediction - self.values) ** 2)))

    def observed(self) -> tuple[Array, Array, Array]:
        """Return rows, columns and values of the observed entries."""
        if sparse.issparse(self.X):
            X = self.X.tocoo()
            return X.row, X.col, X.data
        rows, columns = np.nonzero(~np.isnan(self.X))
        return rows, columns, self.X[rows, columns]


def hide(X: Array, hidden: Array) -> Problem:
    """Return a problem whose test entries are the hidden ones."""
    rows, columns = np.nonzero(hidden)
    return Problem(np.where(hidden, np.nan, X), rows, columns, X[hidden])


def hide_share(X: Array, share: float, seed: int = 0) -> Problem:
    """Return a problem with a fraction of the entries hidden at random."""
    return hide(X, np.random.default_rng(seed).random(X.shape) < share)


def ratings_90_10(table: Any, seed: int = 0) -> Problem:
    """Return ratings of which a random tenth is the test."""
    rows, columns = (np.unique(table[name], return_inverse=True)[1] for name in ("user", "item"))
    values = table["rating"].to_numpy(dtype=float)
    shape = rows.max() + 1, columns.max() + 1
    test = np.random.default_rng(seed).random(values.size) < 0.1
    X = sparse.csr_array((values[~test], (rows[~test], columns[~test])), shape=shape)
    return Problem(X, rows[test], columns[test], values[test])


def ratings_u1() -> Problem:
    """Return MovieLens 100K with the split u1 that comes with it."""
    folder = Path(os.environ["NMD_LAB_DATA"]) / "movielens-100k"
    base, test = (np.loadtxt(folder / f"u1.{part}", dtype=int) for part in ("base", "test"))
    X = sparse.csr_array((base[:, 2] * 1.0, (base[:, 0] - 1, base[:, 1] - 1)), shape=(943, 1682))
    return Problem(X, test[:, 0] - 1, test[:, 1] - 1, test[:, 2] * 1.0)


def digits() -> Array:
    """Return the digits of scikit-learn (1797, 64) with values 0, ..., 16."""
    return datasets.digits().values * 16


def moving_block(seed: int = 0) -> Problem:
    """Return the digits with 3 x 3 pixels hidden, elsewhere in each image."""
    X = digits()
    hidden = np.zeros((len(X), 8, 8), dtype=bool)
    corners = np.random.default_rng(seed).integers(0, 6, (len(X), 2))
    for image, (y, x) in zip(hidden, corners.tolist(), strict=True):
        image[y : y + 3, x : x + 3] = True
    return hide(X, hidden.reshape(X.shape))


def fixed_block(seed: int = 0) -> Problem:
    """Return the digits with the middle 4 x 4 pixels hidden in half of the images."""
    X = digits()
    hidden = np.zeros((len(X), 8, 8), dtype=bool)
    hidden[np.random.default_rng(seed).random(len(X)) < 0.5, 2:6, 2:6] = True
    return hide(X, hidden.reshape(X.shape))


def photograph(name: str) -> Problem:
    """Return a grey photograph (427, 640) with 60 % of the pixels hidden."""
    return hide_share(datasets.photograph(name).values, 0.6)


PICTURES = ("identity", "relu", "minmax")
LEVELS = ("identity", "minmax")

SETS: dict[str, tuple[Callable[[], Problem], tuple[str, ...]]] = {
    "MovieLens 100K, u1": (ratings_u1, LEVELS),
    "MovieLens 100K, 90/10": (lambda: ratings_90_10(datasets.movielens_100k()), LEVELS),
    "MovieLens small, 90/10": (lambda: ratings_90_10(datasets.movielens_small()), LEVELS),
    "digits, 30 %": (lambda: hide_share(digits(), 0.3), PICTURES),
    "digits, 60 %": (lambda: hide_share(digits(), 0.6), PICTURES),
    "digits, 90 %": (lambda: hide_share(digits(), 0.9), PICTURES),
    "digits, moving block": (moving_block, PICTURES),
    "digits, fixed block": (fixed_block, PICTURES),
    "china, 60 %": (lambda: photograph("china"), LEVELS),
    "flower, 60 %": (lambda: photograph("flower"), LEVELS),
    "CBCL, 80 %": (lambda: hide_share(cbcl(), 0.8), LEVELS),
}
"""Sets by name, with the nonlinearities of the grid."""

NEED_DATA = ("MovieLens 100K", "CBCL")
"""Beginnings of the names of sets that need NMD_LAB_DATA."""

QUICK = ("digits, 90 %", "digits, fixed block", "MovieLens small, 90/10")
"""Sets of a quick run."""


def available(quick: bool = False) -> list[str]:
    """Return the names of the sets that are there."""
    with_data = bool(os.environ.get("NMD_LAB_DATA"))
    return [name for name in (QUICK if quick else SETS) if with_data or not needs_data(name)]


def needs_data(name: str) -> bool:
    """Return whether a set needs NMD_LAB_DATA."""
    return name.startswith(NEED_DATA)


def load(name: str) -> Problem:
    """Return a set by its name."""
    return SETS[name][0]()
