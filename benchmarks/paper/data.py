"""The data of the experiments, and what stands in for those that are not there.

The real sets are found through NMD_LAB_DATA; without it (or with ``source="stand-in"``)
scikit-learn's pictures and a generated image take their place, so that everything runs.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import data as sets
from nmd_lab import datasets

Array = NDArray[np.float64]

IN_PLACE_OF = {
    "mnist": "scikit-learn's digits (8 x 8 pixels) in place of MNIST",
    "cbcl": "patches of scikit-learn's two photographs (19 x 19 pixels) in place of CBCL",
    "mit_logo": "a generated block image of rank 4 in place of the MIT logo",
}
"""What a stand-in is."""

LABELS = {
    "mnist": ("MNIST", "digits (stand-in)"),
    "cbcl": ("CBCL", "photograph patches (stand-in)"),
    "mit_logo": ("MIT logo", "generated image (stand-in)"),
}
"""Short names of each set and of its stand-in, for the heads of columns."""

HOW_TO_GET = "set NMD_LAB_DATA to a folder that holds it; data/README.md has the source"


class Data(NamedTuple):
    """A matrix and where it comes from."""

    X: Array
    is_real: bool
    description: str


def source_of(name: str) -> str:
    """Return "real" if the data set is there, else "stand-in"."""
    folder = os.environ.get("NMD_LAB_DATA")
    return "real" if folder and (Path(folder) / name).is_dir() else "stand-in"


def label(name: str, source: str) -> str:
    """Return the short name of the data that an experiment used, real or not.

    Parameters
    ----------
    name : str
        Which set.
    source : {"real", "stand-in"}
        The real set or what stands in for it.
    """
    return LABELS[name][source != "real"]


def load(name: str, source: str, **options: int) -> Data:
    """Return a data set, read only: "mnist", "cbcl" or "mit_logo".

    Parameters
    ----------
    name : str
        Which one.
    source : {"real", "stand-in"}
        The real set or what stands in for it; see `source_of`.
    **options
        For "mnist" the `seed` of the 50 images of each digit.
    """
    real = source == "real"
    X = {"mnist": digits, "cbcl": faces, "mit_logo": logo}[name](real, **options)
    X.setflags(write=False)
    return Data(X, real, name if real else f"{IN_PLACE_OF[name]}: {HOW_TO_GET}")


@cache
def digits(real: bool, seed: int = 0) -> Array:
    """Return images of each of the ten digits, one a row, with ink from 0 to 1."""
    images = sets.mnist() if real else datasets.digits()
    rng = np.random.default_rng(seed)
    labels = images.digit.values
    chosen = [rng.choice(np.flatnonzero(labels == digit), 50, replace=False) for digit in range(10)]
    X = np.asarray(images.values[np.concatenate(chosen)], dtype=float)
    return X / X.max()


@cache
def faces(real: bool) -> Array:
    """Return images of 19 x 19 pixels, one a row, in (0, 1]."""
    X = np.asarray(sets.cbcl() if real else _patches(19), dtype=float)
    return X / X.max()


def _patches(size: int) -> Array:
    """Return squares cut out of both photographs, darkness without zeros, as CBCL's."""
    rows = []
    for name in datasets.PHOTOGRAPHS:
        photograph = 1 - datasets.photograph(name).values * (255 / 256)
        high, wide = (length // size for length in photograph.shape)
        squares = photograph[: high * size, : wide * size].reshape(high, size, wide, size)
        rows.append(squares.transpose(0, 2, 1, 3).reshape(-1, size * size))
    X: Array = np.random.default_rng(0).permutation(np.concatenate(rows))
    return X


@cache
def logo(real: bool) -> Array:
    """Return an image of rank 4 with the smallest value 0.5 and the largest 1."""
    X = sets.mit_logo() if real else _blocks()
    return 0.5 + 0.5 * (X - X.min()) / (X.max() - X.min())


def _blocks(m: int = 100, n: int = 160) -> Array:
    """Return bars of three heights on white: rank 4 with the background."""
    X = np.ones((m, n))
    for k, (top, bottom, level) in enumerate([(0.1, 0.9, 0.0), (0.3, 0.9, 0.4), (0.1, 0.5, 0.0)]):
        rows = slice(int(top * m), int(bottom * m))
        for left in (0.06, 0.53):
            start = int((left + 0.15 * k) * n)
            X[rows, start : start + n // 12] = level
    return X
