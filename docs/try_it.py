"""The explorers of the page docs/explore.md, each saved as a file that needs no kernel.

    python docs/try_it.py

writes ``try_digits.html`` and ``try_picture.html`` into ``out``, and ``make docs`` into the site.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import numpy as np

import nmd_lab as nmd

DIGITS = 600
RANK = 12
MISSING = 0.6
"""Fraction of the pixels of the clipped image that are missing."""
STEP = 2
"""Every other pixel of the image is taken."""


def digits() -> Any:
    """Return an explorer of handwritten digits, with the first digits of the data set."""
    explorer = nmd.widgets.explore(
        nmd.datasets.digits(DIGITS), nonlinearity="relu", rank=RANK, alpha=1.0
    )
    explorer.start()
    explorer.join()
    return explorer


def interference() -> Any:
    """Return four plane waves as a sensor with a smallest and a largest value records them."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:180, :240] / 180
    field = np.zeros(x.shape, complex)
    for angle, phase, number in zip(
        *rng.uniform(0, 2 * np.pi, (2, 4)), rng.uniform(1.5, 3.5, 4), strict=True
    ):
        field += np.exp(1j * (2 * np.pi * number * (np.cos(angle) * x + np.sin(angle) * y) + phase))
    light = 0.5 + 0.6 * (np.abs(field) ** 2 / 4 - 1)
    return np.clip(light + 0.02 * rng.normal(size=light.shape), 0, 1)


def clipped_picture() -> Any:
    """Return an explorer of a generated image with missing pixels, with draws of its model."""
    picture = interference()[::STEP, ::STEP]
    missing = np.random.default_rng(1).random(picture.shape) < MISSING
    explorer = nmd.widgets.explore(
        np.where(missing, np.nan, picture), nonlinearity="minmax", low=0, high=1
    )
    explorer.start()
    explorer.join()
    explorer.how_sure()
    explorer.join()
    return explorer


def write(folder: Path) -> None:
    """Save both explorers."""
    folder.mkdir(exist_ok=True)
    for name, explorer in {"digits": digits(), "picture": clipped_picture()}.items():
        path = folder / f"try_{name}.html"
        path.unlink(missing_ok=True)
        explorer.save(path)
        explorer.close()


if __name__ == "__main__":
    write(Path("out"))
