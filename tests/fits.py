"""Small fits and posteriors that many tests look at, made once in a process.

A test that changes one takes a deep copy.
"""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from helpers import people, with_holes

import nmd_lab as nmd


def small(rng: np.random.Generator) -> np.ndarray:
    """Return a 20 x 15 nonnegative matrix with zeros, near rank 3 under ReLU."""
    low_rank = rng.normal(size=(20, 3)) @ rng.normal(size=(3, 15))
    return np.maximum(low_rank + 0.1 * rng.normal(size=low_rank.shape), 0)


@cache
def plain() -> nmd.Decomposition:
    """Return ten iterations with a ridge on `small`."""
    X = small(np.random.default_rng(20240229))
    return nmd.decompose(X, 3, alpha=0.5, max_iter=10, tol=0, random_state=5)


@cache
def of_digits(count: int = 60, rank: int = 5) -> nmd.Decomposition:
    """Return twenty iterations on handwritten digits."""
    return nmd.decompose(nmd.datasets.digits(count), rank, random_state=0, max_iter=20)


@cache
def study() -> nmd.Study:
    """Return a study of two ranks of handwritten digits with two seeds."""
    made = nmd.Study(nmd.datasets.digits(40), rank=[1, 3], n_splits=2, max_iter=5, alpha=0)
    made.run(progress=False)
    return made


@cache
def of_people() -> tuple[pd.DataFrame, pd.DataFrame, Any]:
    """Return a table of every kind, the same with holes, and its posterior."""
    full = people(160)
    frame = with_holes(full)
    return full, frame, nmd.sample(frame, 3, draws=150, tune=100, random_state=0)
