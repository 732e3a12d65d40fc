"""Helpers of all plots: axes, colours for light and dark styles, labels, the data as a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from nmd_lab.result.decomposition import Decomposition

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap


@dataclass(frozen=True)
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


PALETTE = Palette()


def pyplot() -> Any:
    """Return matplotlib.pyplot; raise ImportError with the remedy if matplotlib is missing."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'nmd-lab[plot]'.") from error
    return plt


def axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return `ax`, or the Axes of a new figure whose size is in inches."""
    plt = pyplot()  # first, so that a missing matplotlib is reported in any case
    return ax if ax is not None else plt.subplots(figsize=(width, height), layout="constrained")[1]


def diverging(ax: Axes) -> Colormap:
    """Return a colour map from blue to red whose middle is the background colour of the axes."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgb

    background = ax.get_facecolor()
    dark = sum(to_rgb(background)) < 1.5
    low, high = PALETTE.on_dark if dark else PALETTE.on_light
    colors = [low, PALETTE.negative, background, PALETTE.positive, high]
    return LinearSegmentedColormap.from_list("nmd_diverging", colors)


def gray_with_holes() -> Colormap:
    """Return a grey colour map with a blue for NaN."""
    from matplotlib import colormaps

    return colormaps["gray"].with_extremes(bad=PALETTE.hole)


def text_color() -> Any:
    """Return the text colour of the current matplotlib style."""
    return pyplot().rcParams["text.color"]


def quantity(array: xr.DataArray, default: str) -> str:
    """Return the label of an axis: the name of an array with its units."""
    name = str(array.attrs.get("long_name", array.name if array.name is not None else default))
    units = array.attrs.get("units")
    return f"{name} [{units}]" if units else name


def hide_frame(ax: Axes) -> None:
    """Remove frame, tick marks and grid, but keep the tick labels."""
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.tick_params(length=0)
    ax.grid(False)


def matrix_of(fit: Decomposition, X: Any, mask: ArrayLike | None = None) -> NDArray[np.floating]:
    """Return X as a matrix in the row and column order of the fit, NaN where it is not observed.

    X is aligned by label if X and the fit both have labels.

    Raises
    ------
    ValueError
        If X has another shape or other labels than the data of the fit.
    """
    return fit.labels.flatten(fit.aligned(X, mask=mask))


def color_limit(values: Any, percentile: float = 99.5) -> float:
    """Return the limit of a symmetric colour scale: a percentile of the absolute values."""
    finite = np.abs(np.asarray(values, dtype=float))
    finite = finite[np.isfinite(finite)]
    limit = float(np.percentile(finite, percentile)) if finite.size else 0.0
    return limit or float(finite.max(initial=0.0)) or 1.0
