"""Charts of dots with error bars, as PNG files with the places of the dots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from ._charts import DRAWING, STYLE, new_figure, style_axes, to_png


class DotSeries(NamedTuple):
    """The dots of one colour in one panel of a `dot_chart`.

    Attributes
    ----------
    label : str
        Label of the colour in the legend.
    x : sequence of float
        Positions along x.
    means, spreads : sequence of float
        Heights of the dots and half the lengths of their error bars.
    """

    label: str
    x: Sequence[float]
    means: Sequence[float]
    spreads: Sequence[float]


DotPositions = dict[tuple[str, str], list[tuple[float, float]]]


def dot_chart(
    panels: Mapping[str, Sequence[DotSeries]],
    *,
    x: str,
    y: str,
    color: str,
    ticks: Sequence[tuple[float, str]],
    joined: bool,
) -> tuple[bytes, DotPositions]:
    """Draw dots with error bars, and return where they are in the image.

    Parameters
    ----------
    panels : mapping of str to sequence of DotSeries
        Series of each panel by its title, from left to right.
    x, y, color : str
        Titles of the axes and of the legend.
    ticks : sequence of (float, str)
        Positions and labels along x.
    joined : bool
        Whether a line joins the dots of a colour and a band shows their spreads.

    Returns
    -------
    image : bytes
        PNG file.
    positions : dict of (str, str) to list of (float, float)
        Positions of the dots by panel and label, in per cent of the image from the left and from
        the top.
    """
    figure = new_figure(STYLE.dots_size)
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    labels = list(dict.fromkeys(one.label for series in panels.values() for one in series))
    upright = joined or len(ticks) <= STYLE.horizontal_ticks
    rotation: Any = {} if upright else {"rotation": 20, "ha": "right"}
    for ax, (title, series) in zip(axes, panels.items(), strict=True):
        for one in series:
            _draw_series(ax, one, STYLE.colors[labels.index(one.label) % len(STYLE.colors)], joined)
        ax.set_title(title)
        ax.set_xlabel(x)
        style_axes(ax)
        ax.set_xticks([place for place, _ in ticks], [label for _, label in ticks], **rotation)
    axes[0].set_ylabel(y)
    with DRAWING:
        if any(labels):
            axes[-1].legend(
                title=color, frameon=False, fontsize=8.5, labelcolor=STYLE.text, loc="upper left",
                bbox_to_anchor=(1.0, 1.0),
            ).get_title().set(color=STYLE.text, fontsize=8.5)  # fmt: skip
        figure.set_layout_engine("constrained")
        image = to_png(figure)
        positions = {
            (title, one.label): _positions(figure, ax, one)
            for ax, (title, series) in zip(axes, panels.items(), strict=True)
            for one in series
        }
    return image, positions


def _draw_series(ax: Any, series: DotSeries, color: str, joined: bool) -> None:
    """Draw one colour, as a line with a band or as dots with error bars."""
    look: Any = {"color": color, "zorder": 3}
    means, spreads = np.asarray(series.means), np.asarray(series.spreads)
    if joined:
        ax.plot(series.x, means, "o-", markersize=5.5, label=series.label, **look)
        band = (means - spreads, means + spreads)
        ax.fill_between(series.x, *band, alpha=0.16, linewidth=0, **look)
    else:
        ax.errorbar(series.x, means, spreads, fmt="o", capsize=3, label=series.label, **look)


def _positions(figure: Figure, ax: Any, series: DotSeries) -> list[tuple[float, float]]:
    """Return where the dots of a drawn figure are, in per cent from the left and from the top."""
    width, height = figure.bbox.width, figure.bbox.height
    points = ax.transData.transform(np.column_stack([series.x, series.means]))
    return [(100 * float(a) / width, 100 - 100 * float(b) / height) for a, b in points]
