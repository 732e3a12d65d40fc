"""Charts as PNG files, drawn without pyplot so that any thread may draw them.

Text is dark on a transparent background.  In a dark theme the style sheet inverts the lightness of
the whole chart.
"""

from __future__ import annotations

import io
import threading
from dataclasses import dataclass
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


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

    dots_size: tuple[float, float] = (7.4, 3.1)
    """Width and height of a chart of dots."""

    horizontal_ticks: int = 4
    """Largest number of tick labels that stand upright on an axis without numbers."""


STYLE = ChartStyle()

DRAWING = threading.RLock()  # matplotlib shares its caches of fonts between figures


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
