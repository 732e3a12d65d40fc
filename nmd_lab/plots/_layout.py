"""How a row of numbers becomes a picture, and how pictures are laid out side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

GAP = 0.08
"""Space between neighbouring pictures, in widths of one."""


@dataclass(frozen=True)
class Picture:
    """Where the numbers of a row go in a picture.

    Parameters
    ----------
    shape : (int, int)
        Height and width.
    positions : ndarray of int or None
        The pixel of each number, counted line by line; None: in their own order.
    """

    shape: tuple[int, int]
    positions: NDArray[np.intp] | None = None

    def __call__(self, row: NDArray[Any]) -> NDArray[Any]:
        """Return the picture of a row; pixels without a number are NaN."""
        if self.positions is None:
            return np.reshape(row, self.shape)
        canvas = np.full(self.shape[0] * self.shape[1], np.nan)
        canvas[self.positions] = np.ravel(row)
        return canvas.reshape(self.shape)


def picture_of(array: xr.DataArray, shape: tuple[int, int] | None) -> Picture | None:
    """Return how the values of an array make a picture, or None if nothing says so.

    Parameters
    ----------
    array : DataArray
        One row of the data: all its dimensions are columns of the matrix.
    shape : (int, int) or None
        Height and width, if the user gives them.  Otherwise two dimensions make a picture, and so
        does one dimension along which two coordinates (`y` and `x`, or the levels of a stacked
        index) run over a grid.

    Raises
    ------
    ValueError
        If the given shape has another number of pixels.
    """
    if shape is not None:
        if len(shape) != 2 or shape[0] * shape[1] != array.size:
            raise ValueError(
                f"shape={shape} does not hold {array.size} columns: give (height, width)."
            )
        return Picture((int(shape[0]), int(shape[1])))
    if array.ndim == 2:
        height, width = array.shape
        lines = np.arange(array.size).reshape(height, width)
        upward = _points_up(array.coords.get(array.dims[0]), str(array.dims[0]))
        return Picture(lines.shape, (lines[::-1] if upward else lines).ravel())
    if array.ndim != 1:
        return None
    along = {n: c for n, c in array.coords.items() if c.dims == array.dims and n not in array.dims}
    names = ["y", "x"] if {"y", "x"} <= set(along) else list(along)
    if len(names) != 2:
        return None
    (rows, i), (columns, j) = (np.unique(along[n].values, return_inverse=True) for n in names)
    positions = i * len(columns) + j
    if len(rows) * len(columns) > 2 * array.size or len(np.unique(positions)) < array.size:
        return None
    if _points_up(along[names[0]], str(names[0])):
        positions = (len(rows) - 1 - i) * len(columns) + j
    return Picture((len(rows), len(columns)), positions)


def _points_up(coordinate: xr.DataArray | None, name: str) -> bool:
    """Return whether the first line belongs at the bottom, as with latitudes that increase."""
    if not name.lower().startswith("lat"):
        return False
    return coordinate is None or coordinate.values[0] <= coordinate.values[-1]


@dataclass(frozen=True)
class Mosaic:
    """Pictures of one shape in rows and columns, all on one Axes.

    One unit of the axes is the width of a picture and the gap beside it.
    """

    ax: Axes
    shape: tuple[int, int]

    @property
    def step(self) -> tuple[float, float]:
        """Distance between the centres of neighbouring pictures, down and across."""
        height, width = self.shape
        return height / width + GAP, 1 + GAP

    def centre(self, row: int, column: int) -> tuple[float, float]:
        """Return x and y of the middle of a picture."""
        down, across = self.step
        return column * across + 0.5, row * down + (down - GAP) / 2

    def draw(self, row: int, column: int, picture: NDArray[Any], **style: Any) -> AxesImage:
        """Draw one picture."""
        x, y = self.centre(row, column)
        half = (self.step[0] - GAP) / 2
        return self.ax.imshow(
            picture, extent=(x - 0.5, x + 0.5, y + half, y - half), interpolation="none", **style
        )

    def finish(self, rows: int, columns: int) -> None:
        """Fit the axes to the pictures."""
        down, across = self.step
        self.ax.set(xlim=(-0.01, columns * across - GAP + 0.01), xticks=[], yticks=[])
        self.ax.set_ylim(rows * down - GAP + 0.01, -0.01)
        self.ax.set_aspect("equal")
