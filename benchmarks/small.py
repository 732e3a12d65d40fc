"""Seconds and errors of `nmd.complete(X)` on small tables, compared with imputers of scikit-learn.

    python -m benchmarks.small [SEEDS]

A fifth of the cells is hidden at random.  One thread; the first fill of each table is not counted,
since it may compile.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is loaded

import sys
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from sklearn import datasets
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

import nmd_lab as nmd

SIZES = ((50, 5), (200, 10), (1000, 20))
HIDDEN = 0.2


def low_rank(m: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return a product of rank 3 with noise."""
    return rng.normal(size=(m, 3)) @ rng.normal(size=(3, n)) + 0.5 * rng.normal(size=(m, n))


def ratings(m: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return stars from 1 to 5, with offsets of rows and columns."""
    offsets = 0.5 * rng.normal(size=(m, 1)) + 0.5 * rng.normal(size=(1, n))
    return np.clip(np.round(3.3 + offsets + 0.4 * low_rank(m, n, rng)), 1, 5)


def skewed(m: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return positive numbers with a long tail."""
    return np.exp(0.5 * low_rank(m, n, rng))


def tables(seed: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the tables by name."""
    for make in (low_rank, ratings, skewed):
        for m, n in SIZES:
            yield f"{make.__name__} {m} x {n}", make(m, n, np.random.default_rng(seed))
    for load in (datasets.load_wine, datasets.load_diabetes, datasets.load_breast_cancer):
        X = load().data
        yield load.__name__.removeprefix("load_"), (X - X.mean(axis=0)) / X.std(axis=0)


def ours(X: np.ndarray) -> np.ndarray:
    """Return what the library fills in by default."""
    return np.asarray(nmd.complete(X, random_state=0).reconstruct())


METHODS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "complete": ours,
    "IterativeImputer": lambda X: IterativeImputer(random_state=0).fit_transform(X),
    "KNNImputer": lambda X: KNNImputer().fit_transform(X),
}


def measured(fill: Callable[[np.ndarray], np.ndarray], X: np.ndarray, seed: int) -> list[float]:
    """Return the seconds of the processor, and the error at the hidden cells."""
    hidden = np.random.default_rng(seed + 1000).random(X.shape) < HIDDEN
    given = np.where(hidden, np.nan, X)
    began = time.process_time()
    filled = fill(given)
    seconds = time.process_time() - began
    return [seconds, float(np.sqrt(np.mean((filled - X)[hidden] ** 2)))]


def main(seeds: int) -> None:
    """Print a table of means over seeds; errors with their standard deviation."""
    warnings.simplefilter("ignore")
    for fill in METHODS.values():
        measured(fill, low_rank(30, 6, np.random.default_rng(0)), 0)
    print(f"| {'data':20} |" + "".join(f" {name:>24} |" for name in METHODS))
    print("|---|" + "---:|" * len(METHODS))
    for number, (name, _) in enumerate(tables(0)):
        cells = []
        for fill in METHODS.values():
            runs = [measured(fill, list(tables(s))[number][1], s) for s in (0, *range(seeds))][1:]
            seconds, errors = np.mean(runs, axis=0)
            cells.append(f" {seconds:6.3f} s, {errors:.3f} ± {np.std(runs, axis=0)[1]:.3f} |")
        print(f"| {name:20} |" + "".join(f"{each:>26}" for each in cells), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
