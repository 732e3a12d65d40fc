"""Charts as PNG files, drawn without pyplot so that any thread may draw them.

Text is dark on a transparent background.  In a dark theme the style sheet inverts the lightness of
the whole chart.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatterSciNotation, LogLocator, MaxNLocator, NullFormatter

from ._lowest_point import LowestPoint


@dataclass(frozen=True)
class ChartStyle:
    """Colours, sizes in inches and resolution of the charts."""

    colors: tuple[str, ...] = (
        "#1f6fb5", "#d1642c", "#2a8f6d", "#8a56b0", "#b8860b", "#c23b6b", "#4c6a85", "#5b8c1f",
    )  # fmt: skip
    """Colours of curves and dots, in the order in which they are used."""

    text: str = "#2b2b2b"
    """Colour of all text."""

    frame: str = "#9a9a9a"
    """Colour of axes and grid."""

    dpi: int = 120
    """Pixels per inch."""

    curves_size: tuple[float, float] = (7.4, 2.15)
    """Width and height of a chart of curves."""

    dots_size: tuple[float, float] = (7.4, 3.1)
    """Width and height of a chart of dots."""

    curve_points: int = 400
    """Number of points to which a curve of more than twice as many is thinned."""

    horizontal_ticks: int = 4
    """Largest number of tick labels that stand upright on an axis without numbers."""


STYLE = ChartStyle()

DRAWING = threading.RLock()  # matplotlib shares its caches of fonts between figures


class Panel(NamedTuple):
    """One pair of axes of a `CurveChart`.

    Attributes
    ----------
    title : str
        Title above the axes.
    labels : dict of str to str
        Label in the legend of each curve, by the curve's key.
    lowest : str or None, default None
        Key of the curve whose lowest point is marked.
    """

    title: str
    labels: Mapping[str, str]
    lowest: str | None = None


def new_figure(size: tuple[float, float]) -> Figure:
    """Return a transparent figure of a size in inches that belongs to no window."""
    figure = Figure(figsize=size, dpi=STYLE.dpi, facecolor="none")
    FigureCanvasAgg(figure)
    return figure


def style_axes(ax: Any) -> None:
    """Set the colours and text sizes of axes."""
    ax.set_facecolor("none")
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(STYLE.frame)
    ax.tick_params(colors=STYLE.text, labelsize=8.5, length=3, which="both")
    ax.grid(color=STYLE.frame, alpha=0.25, linewidth=0.7)
    for text in (ax.title, ax.xaxis.label, ax.yaxis.label):
        text.set(color=STYLE.text, fontsize=9.5)


def to_png(figure: Figure) -> bytes:
    """Return a figure as a PNG file."""
    buffer = io.BytesIO()
    with DRAWING:
        figure.canvas.print_png(buffer)  # type: ignore[attr-defined]
    return buffer.getvalue()


class CurveChart:
    """Curves over iterations, drawn again and again on the same axes.

    Parameters
    ----------
    panels : sequence of Panel
        Panels from left to right.
    """

    def __init__(self, panels: Sequence[Panel]) -> None:
        self.figure = new_figure(STYLE.curves_size)
        axes = np.ravel(self.figure.subplots(1, len(panels)))
        self.figure.subplots_adjust(left=0.075, right=0.985, top=0.87, bottom=0.21, wspace=0.22)
        self._panels = [
            (ax, self._empty_curves(ax, panel), self._mark(ax, panel))
            for ax, panel in zip(axes, panels, strict=True)
        ]

    def _empty_curves(self, ax: Any, panel: Panel) -> dict[str, Any]:
        """Prepare axes, and return a curve without points for each key."""
        ax.set(xlabel="iteration", yscale="log")
        ax.set_title(panel.title, loc="left", color=STYLE.text, fontsize=9.5)
        curves = {}
        for k, (key, label) in enumerate(panel.labels.items()):
            look: Any = {"linewidth": 2 if k == 0 else 1.3, "zorder": 5 - k}
            curves[key] = ax.plot([], [], color=STYLE.colors[k], label=label, **look)[0]
        style_axes(ax)
        ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        return curves

    @staticmethod
    def _mark(ax: Any, panel: Panel) -> LowestPoint:
        """Return the mark of the lowest point, in the colour of its curve."""
        number = 0 if panel.lowest is None else list(panel.labels).index(panel.lowest)
        return LowestPoint(ax, panel.lowest, STYLE.colors[number])

    def draw(self, data: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> bytes:
        """Return the chart as a PNG file.

        Parameters
        ----------
        data : mapping of str to (sequence of float, sequence of float)
            Iterations and numbers by the key of their curve.  A key without data leaves its curve
            empty; numbers that are not positive are left out.  Where iterations are left out, each
            point has a marker.
        """
        with DRAWING:
            for ax, curves, mark in self._panels:
                for key, curve in curves.items():
                    _set_points(curve, *data.get(key, ((), ())))
                mark.move(*data.get(mark.key or "", ((), ())))
                _fit_axes(ax, list(curves.values()), room_below=mark.is_shown)
                mark.keep_text_inside()
            return to_png(self.figure)


def _set_points(curve: Any, x: Sequence[float], y: Sequence[float]) -> None:
    """Give a curve its points, thinned out if there are very many."""
    iterations, numbers = np.asarray(x), np.asarray(y, dtype=float)
    has_gaps = len(iterations) < 2 or iterations[-1] - iterations[0] >= len(iterations)
    if len(numbers) > 2 * STYLE.curve_points:
        kept = np.linspace(0, len(numbers) - 1, STYLE.curve_points).astype(int)
        iterations, numbers = iterations[kept], numbers[kept]
    curve.set_data(iterations, np.where(numbers > 0, numbers, np.nan))
    curve.set_marker("o" if has_gaps else "")
    curve.set_markersize(4 if len(numbers) == 1 else 2.2)


def _fit_axes(ax: Any, curves: list[Any], *, room_below: bool) -> None:
    """Fit the limits, the ticks and the legend of axes to their curves.

    `room_below` leaves room for a text below the lowest point.
    """
    drawn = [curve for curve in curves if np.isfinite(curve.get_ydata()).any()]
    legend = ax.get_legend()
    if legend is not None:
        legend.remove()
    if not drawn:
        ax.set(xlim=(0, 1), ylim=(0.1, 1))
        return
    numbers = np.concatenate([curve.get_ydata() for curve in drawn])
    low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
    last = max(float(curve.get_xdata()[-1]) for curve in drawn)
    below = (high / low) ** (0.3 if room_below else 0.06) * (1.03 if room_below else 1.01)
    ax.set(xlim=(0, 1.02 * last), ylim=(low / below, high * 1.05))
    if high < 50 * low:
        steps = (1, 1.5, 2, 3, 5, 7) if high < 8 * low else (1, 2, 5)
        ax.yaxis.set_major_locator(LogLocator(subs=steps))
        ax.yaxis.set_major_formatter("{x:.3g}")
    else:
        ax.yaxis.set_major_locator(LogLocator(numticks=5))
        ax.yaxis.set_major_formatter(LogFormatterSciNotation())
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.legend(
        handles=drawn,
        frameon=False,
        fontsize=8.5,
        labelcolor=STYLE.text,
        loc="lower right",
        bbox_to_anchor=(1.0, 0.98),
        ncols=len(drawn),
        handlelength=1.4,
        borderaxespad=0.1,
    )
