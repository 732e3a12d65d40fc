"""A few entries of a model as a small picture, without the m x n matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab._runtime.html import picture
from nmd_lab.data.labels import COMPONENT, Picture, picture_of

from .draws import CHAIN, DRAW
from .mixture import Predictive
from .predictive import mean_of, std_of

HEIGHT, WIDTH = 80, 120  # largest size of the picture, in pixels
SMALL, MANY, FEW = 16, (8, 24), (3, 3)  # width of small pictures; how many across, and in all

Array = NDArray[Any]
Positions = NDArray[np.intp]
Block = Callable[[Positions, Positions], Array]
"""Function of rows and columns that returns entries of the model at their crossings."""


def small_picture(m: int, columns: xr.DataArray, block: Block, *, by_column: bool = False) -> Array:
    """Return some rows as pictures, side by side, or else some entries of the matrix.

    `columns` is an array with the labels of the columns, and m the number of rows.  If `by_column`,
    each column has grey levels of its own.
    """
    n, channels = columns.size, _channels(columns)
    picture = picture_of(columns, None) if channels == 1 else None
    if picture is not None:
        return _of_rows(m, picture, block)
    rows, pixels = _spread(m, 2 * HEIGHT), _spread(n // channels, 2 * WIDTH)
    at = (pixels[:, None] * channels + np.arange(channels)).ravel()
    values = block(rows, at).reshape(rows.size, pixels.size, channels).mean(axis=2)
    if by_column:
        low = values.min(axis=0)
        values = (values - low) / np.maximum(values.max(axis=0) - low, np.finfo(float).tiny)
    return _means(values, -(-rows.size // HEIGHT), -(-pixels.size // WIDTH))


def _of_rows(m: int, picture: Picture, block: Block) -> Array:
    """Return some rows as pictures, side by side, with gaps of NaN."""
    across, most = MANY if picture.shape[1] <= SMALL else FEW
    rows = _spread(m, most)
    across = min(across, rows.size)
    sizes = zip(picture.shape, (-(-rows.size // across), across), (HEIGHT, WIDTH), strict=True)
    picture, columns = _coarse(picture, max(1, *(a * b // (2 * c) for a, b, c in sizes)))
    tiles = [
        np.pad(picture(row).astype(float), ((0, 1), (0, 1)), constant_values=np.nan)
        for row in block(rows, columns)
    ]
    tiles += [np.full_like(tiles[0], np.nan)] * (-len(tiles) % across)
    lines = [np.hstack(tiles[k : k + across]) for k in range(0, len(tiles), across)]
    canvas = np.vstack(lines)[:-1, :-1]
    step = math.ceil(max(canvas.shape[0] / HEIGHT, canvas.shape[1] / WIDTH))
    return _means(canvas, step, step)


def _coarse(picture: Picture, step: int) -> tuple[Picture, Positions]:
    """Return every so many pixels of a picture along both sides, and the columns that they are."""
    height, width = picture.shape
    assert picture.positions is not None
    y, x = np.divmod(picture.positions, width)
    columns = np.flatnonzero((y % step == 0) & (x % step == 0))
    size = -(-height // step), -(-width // step)
    return Picture(size, y[columns] // step * size[1] + x[columns] // step), columns


def _channels(columns: xr.DataArray) -> int:
    """Return the number of colours, if the columns are pixels with colours."""
    dims = columns.dims
    return columns.shape[1] if len(dims) == 2 and "channel" in str(dims[1]) else 1


def _spread(size: int, most: int) -> Positions:
    """Return at most so many positions, evenly spaced."""
    return np.unique(np.linspace(0, size - 1, min(size, most)).astype(np.intp))


def _means(values: Array, down: int, across: int) -> Array:
    """Return means of blocks, without those at the end that are not whole."""
    height, width = values.shape[0] // down, values.shape[1] // across
    blocks = values[: height * down, : width * across].reshape(height, down, width, across)
    finite = np.isfinite(blocks)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sum(blocks, axis=(1, 3), where=finite) / finite.sum(axis=(1, 3)))


FEW_DRAWS = 24
"""Draws of which the pictures are made."""

NUMBERS, FEWEST = 1 << 21, 6
"""Numbers of W and H in the draws that a representation reads, and least number of draws."""


def few_draws(posterior: Any, most: int) -> Any:
    """Return a posterior of about so many of the draws, evenly spaced; of fewer large ones."""
    sizes = posterior.draws.sizes
    most = min(most, max(NUMBERS // (sum(posterior._shape) * posterior.rank), FEWEST))
    step = -(-sizes[DRAW] // max(most // sizes[CHAIN], 1))
    draws = posterior.draws.isel({CHAIN: slice(most), DRAW: slice(None, None, step)})
    return replace(posterior, draws=draws)


def thumbnails(posterior: Any) -> list[str]:
    """Return pictures of the mean and the standard deviation of f(WH), from some of the draws."""
    few = few_draws(posterior, FEW_DRAWS)

    def drawn(name: str, summary: Callable[[Predictive, Array], Array]) -> str:
        def block(i: Positions, j: Positions) -> Array:
            rows, columns = (each.ravel() for each in np.meshgrid(i, j, indexing="ij"))
            values = summary(
                few._fitted.predictive.at(rows, columns), few._fitted.linear_block(i, j)
            )
            return values.reshape(i.size, j.size)

        columns = few.draws["H"].isel({CHAIN: 0, DRAW: 0, COMPONENT: 0}, drop=True)
        each = few._kinds is not None
        return picture(small_picture(few._shape[0], columns, block, by_column=each), name)

    return [
        drawn("mean", mean_of),
        drawn("standard deviation", lambda p, v: std_of(p, v, noise=False)),
    ]
