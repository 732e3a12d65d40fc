"""How the values of one row of a matrix make a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray


@dataclass(frozen=True)
class Picture:
    """Height and width of a picture, and the pixel of each value."""

    shape: tuple[int, int]
    positions: NDArray[np.intp] | None = None

    def __call__(self, row: NDArray[Any]) -> NDArray[Any]:
        """Return the values as an array (height, width); pixels without a value are NaN."""
        if self.positions is None:
            return np.reshape(row, self.shape)
        canvas = np.full(self.shape[0] * self.shape[1], np.nan)
        canvas[self.positions] = np.ravel(row)
        return canvas.reshape(self.shape)


def picture_of(array: xr.DataArray, shape: tuple[int, int] | None) -> Picture | None:
    """Return how the values of an array make a picture, or None if they do not make one."""
    if shape is not None:
        if len(shape) != 2 or shape[0] * shape[1] != array.size:
            raise ValueError(
                f"shape={shape} does not hold {array.size} columns: give (height, width)."
            )
        return Picture((int(shape[0]), int(shape[1])))
    if array.ndim == 2:
        height, width = array.shape
        pixels = np.arange(array.size).reshape(height, width)
        upward = _points_up(array.coords.get(array.dims[0]), str(array.dims[0]))
        return Picture((height, width), (pixels[::-1] if upward else pixels).ravel())
    return _picture_of_grid(array) if array.ndim == 1 else None


def _picture_of_grid(array: xr.DataArray) -> Picture | None:
    """Return the picture that two coordinates of a 1-D array make, or None without such a grid."""
    along = {n: c for n, c in array.coords.items() if c.dims == array.dims and n not in array.dims}
    names = ["y", "x"] if {"y", "x"} <= set(along) else list(along)
    if len(names) != 2:
        return None
    (rows, i), (columns, j) = (np.unique(along[n].values, return_inverse=True) for n in names)
    height, width = len(rows), len(columns)
    positions = i * width + j
    sparse = height * width > 2 * array.size  # coordinates of scattered points make no picture
    if sparse or len(np.unique(positions)) < array.size:
        return None
    if _points_up(along[names[0]], str(names[0])):
        positions = (height - 1 - i) * width + j
    return Picture((height, width), positions)


def _points_up(coordinate: xr.DataArray | None, name: str) -> bool:
    """Return whether the first row is the lowest, as with latitudes that increase."""
    if not name.lower().startswith("lat"):
        return False
    return coordinate is None or coordinate.values[0] <= coordinate.values[-1]
