"""Charts as PNG files, drawn without pyplot, so that any thread may draw.

Text is dark on nothing; in a dark theme the style sheet inverts the lightness of the whole chart.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatterSciNotation, LogLocator, MaxNLocator, NullFormatter

COLORS = ("#1f6fb5", "#d1642c", "#2a8f6d", "#8a56b0", "#b8860b", "#c23b6b", "#4c6a85", "#5b8c1f")
INK = "#2b2b2b"
DPI = 120
POINTS = 400
"""Of a curve, at most twice as many."""

_drawing = threading.RLock()  # matplotlib's caches of fonts are shared


class Panel(NamedTuple):
    """One pair of axes of a `Curves` chart.

    Attributes
    ----------
    title : str
        What it shows.
    lines : dict of str to str
        Keys of the numbers, and what they are called in the legend.
    """

    title: str
    lines: Mapping[str, str]


def new_figure(width: float, height: float) -> Figure:
    """Return a see-through figure of a size in inches that belongs to no window."""
    figure = Figure(figsize=(width, height), dpi=DPI, facecolor="none")
    FigureCanvasAgg(figure)
    return figure


def plain_axes(ax: Any) -> None:
    """Give axes their quiet look."""
    ax.set_facecolor("none")
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color("#9a9a9a")
    ax.tick_params(colors=INK, labelsize=8.5, length=3, which="both")
    ax.grid(color="#9a9a9a", alpha=0.25, linewidth=0.7)
    for text in (ax.title, ax.xaxis.label, ax.yaxis.label):
        text.set(color=INK, fontsize=9.5)


def to_png(figure: Figure) -> bytes:
    """Return a figure as a PNG file."""
    buffer = io.BytesIO()
    with _drawing:
        figure.canvas.print_png(buffer)  # type: ignore[attr-defined]
    return buffer.getvalue()


class Curves:
    """Curves over iterations, drawn again and again on the same axes.

    Parameters
    ----------
    panels : sequence of Panel
        Side by side.
    """

    def __init__(self, panels: Sequence[Panel]) -> None:
        self.figure = new_figure(7.4, 2.15)
        axes = np.ravel(self.figure.subplots(1, len(panels)))
        self.figure.subplots_adjust(left=0.075, right=0.985, top=0.87, bottom=0.21, wspace=0.22)
        self.panels: list[tuple[Any, Panel, dict[str, Any]]] = [
            (ax, panel, {}) for ax, panel in zip(axes, panels, strict=True)
        ]
        for ax, panel, lines in self.panels:
            ax.set(xlabel="iteration", yscale="log")
            ax.set_title(panel.title, loc="left", color=INK, fontsize=9.5)
            for k, (key, label) in enumerate(panel.lines.items()):
                style: Any = {"linewidth": 2 if k == 0 else 1.3, "zorder": 5 - k}
                lines[key] = ax.plot([], [], color=COLORS[k], label=label, **style)[0]
            plain_axes(ax)
            ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))

    def draw(self, curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> bytes:
        """Return the chart of (iterations, numbers) by key; those that are not there are empty."""
        with _drawing:
            for ax, _, lines in self.panels:
                for key, line in lines.items():
                    x, y = curves.get(key, ((), ()))
                    numbers = np.asarray(y, dtype=float)
                    if len(numbers) > 2 * POINTS:
                        shown = np.linspace(0, len(numbers) - 1, POINTS).astype(int)
                        x, numbers = np.asarray(x)[shown], numbers[shown]
                    line.set_data(x, np.where(numbers > 0, numbers, np.nan))
                    line.set_marker("o" if len(numbers) == 1 else "")
                    line.set_markersize(4)
                _fit_to_lines(ax, list(lines.values()))
            return to_png(self.figure)


def _fit_to_lines(ax: Any, lines: list[Any]) -> None:
    """Choose the limits, the ticks and the legend."""
    shown = [line for line in lines if np.isfinite(line.get_ydata()).any()]
    legend = ax.get_legend()
    if legend is not None:
        legend.remove()
    if not shown:
        ax.set(xlim=(0, 1), ylim=(0.1, 1))
        return
    numbers = np.concatenate([line.get_ydata() for line in shown])
    low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
    last = max(float(line.get_xdata()[-1]) for line in shown)
    ax.set(xlim=(0, 1.02 * last), ylim=(low / (high / low) ** 0.06 / 1.01, high * 1.05))
    if high < 50 * low:
        steps = (1, 1.5, 2, 3, 5, 7) if high < 8 * low else (1, 2, 5)
        ax.yaxis.set_major_locator(LogLocator(subs=steps))
        ax.yaxis.set_major_formatter("{x:.3g}")
    else:
        ax.yaxis.set_major_locator(LogLocator(numticks=5))
        ax.yaxis.set_major_formatter(LogFormatterSciNotation())
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.legend(
        handles=shown,
        frameon=False,
        fontsize=8.5,
        labelcolor=INK,
        loc="lower right",
        bbox_to_anchor=(1.0, 0.98),
        ncols=len(shown),
        handlelength=1.4,
        borderaxespad=0.1,
    )


class Dots(NamedTuple):
    """One colour of a `dots` chart.

    Attributes
    ----------
    label : str
        What the colour stands for.
    places, means, spreads : sequence of float
        Its points.
    """

    label: str
    places: Sequence[float]
    means: Sequence[float]
    spreads: Sequence[float]


def dots(
    panels: Mapping[str, Sequence[Dots]],
    *,
    x: str,
    y: str,
    color: str,
    ticks: Sequence[tuple[float, str]],
    joined: bool,
) -> tuple[bytes, dict[tuple[str, str], list[tuple[float, float]]]]:
    """Draw points with their spreads, and say where they are in the picture.

    Parameters
    ----------
    panels : mapping of str to sequence of Dots
        Side by side, with their titles.
    x, y, color : str
        What the axes and the colours are.
    ticks : sequence of (float, str)
        Along x.
    joined : bool
        Whether points of a colour are joined by a line and their spreads are a band.

    Returns
    -------
    bytes, dict
        The PNG file, and for each panel and colour the places of the points in per cent of the
        picture, from the left and from the top.
    """
    figure = new_figure(7.4, 3.1)
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    places: dict[tuple[str, str], list[tuple[float, float]]] = {}
    names = list(dict.fromkeys(line.label for lines in panels.values() for line in lines))
    for ax, (title, lines) in zip(axes, panels.items(), strict=True):
        for line in lines:
            style: Any = {"color": COLORS[names.index(line.label) % len(COLORS)], "zorder": 3}
            means, spreads = np.asarray(line.means), np.asarray(line.spreads)
            if joined:
                ax.plot(line.places, means, "o-", markersize=5.5, label=line.label, **style)
                band = (means - spreads, means + spreads)
                ax.fill_between(line.places, *band, alpha=0.16, linewidth=0, **style)
            else:
                ax.errorbar(
                    line.places, means, spreads, fmt="o", capsize=3, label=line.label, **style
                )
        ax.set_title(title)
        ax.set_xlabel(x)
        plain_axes(ax)
        slanted: Any = {"rotation": 20, "ha": "right"} if len(ticks) > 4 and not joined else {}
        ax.set_xticks([place for place, _ in ticks], [label for _, label in ticks], **slanted)
    axes[0].set_ylabel(y)
    with _drawing:
        if any(names):
            axes[-1].legend(
                title=color, frameon=False, fontsize=8.5, labelcolor=INK, loc="upper left",
                bbox_to_anchor=(1.0, 1.0),
            ).get_title().set(color=INK, fontsize=8.5)  # fmt: skip
        figure.set_layout_engine("constrained")
        picture = to_png(figure)
        whole = figure.bbox
        for ax, (title, lines) in zip(axes, panels.items(), strict=True):
            for line in lines:
                points = ax.transData.transform(np.column_stack([line.places, line.means]))
                places[title, line.label] = [
                    (100 * float(a) / whole.width, 100 - 100 * float(b) / whole.height)
                    for a, b in points
                ]
    return picture, places
