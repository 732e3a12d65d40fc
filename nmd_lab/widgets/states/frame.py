"""Which entries of a matrix an explorer shows as pictures, and how they are arranged."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.pictures import Picture

MOST_PIXELS = 640  # largest number of pixels along a side; of longer sides, each pixel is a mean

MOST_AVERAGED, FEW = 8_000_000, 3
"""Entries of a matrix up to which all count in the means, and how many a side of more do."""

MOST_ROWS = 20  # number of rows that are shown if each is a picture

Array = NDArray[Any]
Rows = NDArray[np.intp]

Block = Callable[[Rows, Rows], Array]
"""Function of rows and columns that returns the entries at their crossings."""


class Frame(NamedTuple):
    """Entries of a matrix as pictures."""

    rows: Rows
    columns: Rows  # the entries are those at the crossings
    n_pictures: int  # number and size of the pictures; 3 channels for colours
    height: int
    width: int
    channels: int
    step: int  # each pixel is the mean of so many rows and columns of the matrix
    picture: Picture | None  # layout of a row, if each is a picture

    def arranged(self, values: Array) -> bytes:
        """Return the values at the crossings, picture after picture, as float32."""
        if self.picture is not None:
            values = np.stack([self.picture(row) for row in values])
        return np.ascontiguousarray(values, dtype="<f4").tobytes()

    def means(self, shape: tuple[int, int], block: Block) -> Array:
        """Return the entries of a matrix, given blocks of it; means of those in one pixel."""
        if self.step == 1:
            return block(self.rows, self.columns)
        m, n = shape
        count = self.step if m * n <= MOST_AVERAGED else min(self.step, FEW)
        steps = np.unique(np.linspace(0, self.step - 1, count).astype(np.intp))
        total: Array = np.zeros((self.rows.size, self.columns.size))
        counts = np.zeros(total.shape, dtype=int)
        for down in steps:
            for right in steps:
                columns = self.columns + right * self.channels
                past = columns >= n
                columns[past] = n - self.channels + columns[past] % self.channels
                values = block(np.minimum(self.rows + down, m - 1), columns)
                total += np.nan_to_num(values)
                counts += ~np.isnan(values)
        with np.errstate(invalid="ignore"):
            means: Array = total / counts
        return means

    def entry(self, at: Mapping[str, Any]) -> dict[str, int]:
        """Return row and column of the matrix, and number of the pixel, at y, x of a picture."""
        y, x = int(at["y"]), int(at["x"])
        pixel = y * self.width + x
        if self.picture is None:
            row, column = self.rows[y], self.columns[x * self.channels]
        else:
            found = self.columns_at(np.array([pixel]))
            if not found.size:
                raise ValueError("no entry of the matrix is at this pixel.")
            row, column = self.rows[int(at["picture"])], found[0]
        return {"row": int(row), "column": int(column), "pixel": pixel}

    def columns_at(self, pixels: Rows) -> Rows:
        """Return the columns at pixels of a row that is a picture, where there are some."""
        assert self.picture is not None
        if self.picture.positions is None:
            return pixels
        columns = np.full(self.height * self.width, -1)
        columns[self.picture.positions] = np.arange(self.picture.positions.size)
        found: Rows = columns[pixels]
        return found[found >= 0]


def frame_of(
    shape: tuple[int, int], picture: Picture | None, channels: int = 1, rows: Rows | None = None
) -> Frame:
    """Return what is shown of a matrix."""
    m, n = shape
    if picture is not None:
        if rows is None or not rows.size:
            rows = np.unique(np.linspace(0, m - 1, min(MOST_ROWS, m)).astype(np.intp))
        return Frame(rows, np.arange(n), rows.size, *picture.shape, 1, 1, picture)
    step = max(1, math.ceil(max(m, n // channels) / MOST_PIXELS))
    every = np.arange(0, m, step)
    pixels = np.arange(0, n // channels, step)
    columns = (pixels[:, None] * channels + np.arange(channels)).ravel()
    return Frame(every, columns, 1, every.size, pixels.size, channels, step, None)


def guessed_shape(X: Array, most: float = 2.5, share: float = 0.75) -> tuple[int, int] | None:
    """Return the height and width of the pictures that rows seem to be, or None.

    Pixels one below the other are alike, more than those a column further left or right.
    """
    m, n = X.shape
    if n < 36 or m < 5:
        return None
    some = X[np.unique(np.linspace(0, m - 1, min(m, 200)).astype(int))]
    shuffled = np.random.default_rng(0).permutation(n)
    any_two = _difference(some, some[:, shuffled])
    best, shape = share, None
    for width in range(6, n // 6 + 1):
        height = n // width
        if n % width or max(height, width) > most * min(height, width):
            continue
        below = _difference(some[:, :-width], some[:, width:]) / (any_two or 1.0)
        beside = [
            _difference(some[:, :-lag], some[:, lag:]) / (any_two or 1.0)
            for lag in (width - 2, width + 2)
        ]
        if below < best and below < 0.97 * min(beside):
            best, shape = below, (height, width)
    return shape


def _difference(a: Array, b: Array) -> float:
    """Return the mean absolute difference of entries that are both there."""
    with np.errstate(all="ignore"):
        differences = np.abs(a - b)
    finite = differences[np.isfinite(differences)]
    return float(finite.mean()) if finite.size else 0.0
