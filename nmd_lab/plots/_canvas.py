"""Helpers of all plots: axes, colours for light and dark styles, labels, a grid of pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab._runtime.checks import needs_library

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.image import AxesImage


class Palette:
    """Colours with a meaning.

    Attributes
    ----------
    negative, positive : str
        Blue and red of nearly equal lightness, distinct for colour-blind readers too.
    on_light, on_dark : (str, str)
        Ends of the diverging colour map (blue, red) on a light and on a dark background.
    hole : str
        Colour of a missing entry in a grey picture, visibly not a grey level.
    """

    negative: str = "#2f6fb2"
    positive: str = "#c8442d"
    on_light: tuple[str, str] = ("#0b3c74", "#8c1d10")
    on_dark: tuple[str, str] = ("#7fc3ff", "#ff9a80")
    hole: str = "#7f9bb8"


def pyplot() -> Any:
    """Return matplotlib.pyplot; raise ImportError with the remedy if matplotlib is missing."""
    with needs_library("Plots need matplotlib: pip install matplotlib."):
        import matplotlib.pyplot as plt
    return plt


def axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return `ax`, or the Axes of a new figure whose size is in inches."""
    plt = pyplot()  # first, so that a missing matplotlib is reported in any case
    return ax if ax is not None else plt.subplots(figsize=(width, height), layout="constrained")[1]


def is_dark(ax: Axes) -> bool:
    """Return whether the background of the axes is dark."""
    from matplotlib.colors import to_rgb

    return sum(to_rgb(ax.get_facecolor())) < 1.5


def diverging(ax: Axes) -> Colormap:
    """Return a colour map from blue to red whose middle is the background colour of the axes."""
    from matplotlib.colors import LinearSegmentedColormap

    low, high = Palette.on_dark if is_dark(ax) else Palette.on_light
    colors = [low, Palette.negative, ax.get_facecolor(), Palette.positive, high]
    return LinearSegmentedColormap.from_list("nmd_diverging", colors)


def gray_with_holes() -> Colormap:
    """Return a grey colour map with a blue for NaN."""
    from matplotlib import colormaps

    return colormaps["gray"].with_extremes(bad=Palette.hole)


def text_color() -> Any:
    """Return the text colour of the current matplotlib style."""
    return pyplot().rcParams["text.color"]


def quantity(array: xr.DataArray, default: str) -> str:
    """Return the label of an axis: the name of an array with its units."""
    name = str(array.attrs.get("long_name", array.name if array.name is not None else default))
    units = array.attrs.get("units")
    return f"{name} [{units}]" if units else name


def finished(ax: Axes) -> Axes:
    """Return axes with a light grid and without the frame above and to the right."""
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def panels_of(ax: Any, down: int, across: int, size: Any, count: int | None = None) -> NDArray[Any]:
    """Return so many Axes: those that are there, or those of a new figure of a size in inches."""
    plt, count = pyplot(), down * across if count is None else count
    if ax is None:
        ax = plt.subplots(down, across, figsize=size, layout="constrained", squeeze=False)[1]
        for empty in ax.ravel()[count:]:
            empty.set_visible(False)
        return np.asarray(ax.ravel()[:count], dtype=object)
    drawn = np.ravel(np.asarray(ax, dtype=object))
    if drawn.size != count:
        raise ValueError(f"ax has {drawn.size} Axes for {count} panels: give one for each.")
    return drawn


def hide_frame(ax: Axes) -> None:
    """Remove frame, tick marks and grid, but keep the tick labels."""
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.grid(False)


def color_limit(values: Any, percentile: float = 99.5) -> float:
    """Return the limit of a symmetric colour scale: a percentile of the absolute values."""
    finite = np.abs(np.asarray(values, dtype=float))
    finite = finite[np.isfinite(finite)]
    limit = float(np.percentile(finite, percentile)) if finite.size else 0.0
    return limit or float(finite.max(initial=0.0)) or 1.0


@dataclass(frozen=True)
class Mosaic:
    """Pictures of equal size in rows and columns.

    All lengths are in widths of one picture.
    """

    height: float
    gap: float = 0.08

    def size(self, rows: int, columns: int) -> tuple[float, float]:
        """Return width and height of a grid of pictures, with a gap after each of them."""
        return columns * (1 + self.gap), rows * (self.height + self.gap)

    def centre(self, row: int, column: int) -> tuple[float, float]:
        """Return x and y of the middle of a picture."""
        left, top = self.size(row, column)
        return left + 0.5, top + self.height / 2

    def draw(
        self, ax: Axes, row: int, column: int, picture: NDArray[Any], **style: Any
    ) -> AxesImage:
        """Draw one picture."""
        left, top = self.size(row, column)
        extent = left, left + 1, top + self.height, top
        return ax.imshow(picture, extent=extent, interpolation="none", **style)

    def finish(self, ax: Axes, rows: int, columns: int) -> None:
        """Fit the limits of the axes to the pictures, and remove the ticks."""
        right, bottom = (end - self.gap + 0.01 for end in self.size(rows, columns))
        ax.set(xticks=[], yticks=[], xlim=(-0.01, right), ylim=(bottom, -0.01), aspect="equal")
        hide_frame(ax)
