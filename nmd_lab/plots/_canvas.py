"""What all plots share: axes to draw on, colours that suit light and dark, words for labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from nmd_lab.data.dense import observe_dense
from nmd_lab.result.decomposition import Decomposition

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

NEGATIVE, POSITIVE = "#2f6fb2", "#c8442d"
"""Blue and red of nearly equal lightness, distinct to colour-blind eyes as well."""

HOLE = "#7f9bb8"
"""What stands for a missing entry among grey levels: visibly no grey."""


def pyplot() -> Any:
    """Return matplotlib.pyplot, or say how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'nmd-lab[plot]'.") from error
    return plt


def axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the given Axes, or those of a new figure of a size in inches."""
    plt = pyplot()  # also where Axes are given: first say what is missing
    return ax if ax is not None else plt.subplots(figsize=(width, height), layout="constrained")[1]


def diverging(ax: Axes) -> Colormap:
    """Return a colour map from blue to red whose middle, zero, is the background of the axes."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgb

    # Light styles deepen towards the ends, dark ones brighten.
    dark = sum(to_rgb(ax.get_facecolor())) < 1.5
    ends = ("#7fc3ff", "#ff9a80") if dark else ("#0b3c74", "#8c1d10")
    colors = [ends[0], NEGATIVE, ax.get_facecolor(), POSITIVE, ends[1]]
    return LinearSegmentedColormap.from_list("nmd_diverging", colors)


def gray_with_holes() -> Colormap:
    """Return grey levels with a colour for NaN."""
    from matplotlib import colormaps

    return colormaps["gray"].with_extremes(bad=HOLE)


def text_color() -> Any:
    """Return the colour of text in the style in force."""
    return pyplot().rcParams["text.color"]


def quantity(array: xr.DataArray, default: str) -> str:
    """Return the name of an array's values with their units, for an axis."""
    name = str(array.attrs.get("long_name", array.name if array.name is not None else default))
    units = array.attrs.get("units")
    return f"{name} [{units}]" if units else name


def bare(ax: Axes) -> None:
    """Take off the frame and the ticks of axes that hold pictures."""
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.tick_params(length=0)
    ax.grid(False)


def matrix_of(fit: Decomposition, X: Any, mask: ArrayLike | None = None) -> NDArray[np.floating]:
    """Return X as the matrix that the fit is of, by label where both have them.

    Entries that are not observed are NaN.

    Raises
    ------
    ValueError
        If X has another shape or other labels.
    """
    stacked = isinstance(X, xr.DataArray) and X.ndim > 2
    observations = observe_dense(X, mask=mask, sample_dims=fit.labels.rows if stacked else None)
    values = observations.values
    if observations.weights is not None:
        values = np.where(observations.weights > 0, values, np.nan)
    return fit.labels.flatten(fit.labels.align(observations.labels.label(values)))


def spread(values: Any, share: float = 99.5) -> float:
    """Return a limit for symmetric colours that a few outliers do not blow up."""
    finite = np.abs(np.asarray(values, dtype=float))
    finite = finite[np.isfinite(finite)]
    limit = float(np.percentile(finite, share)) if finite.size else 0.0
    return limit or float(finite.max(initial=0.0)) or 1.0
