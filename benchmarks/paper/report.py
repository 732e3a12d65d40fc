"""How results become words, tables and figures of docs/paper.md."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import dedent, fill
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLORS = ("#0b5fa5", "#c8442d", "#3a8f4d", "#7d5ba6", "#d08a1d", "#4aa6b5", "#8c564b", "#777777")
"""Eight colours that stay apart for colour-blind eyes, used in this order."""


def mean_std(scores: Any, digits: int = 4) -> str:
    """Return "mean ± standard deviation" of the numbers there are, or a dash."""
    numbers = np.asarray(scores, dtype=float).ravel()
    numbers = numbers[~np.isnan(numbers)]
    if numbers.size == 0:
        return "–"
    spread = f" ± {numbers.std(ddof=1):.{digits}f}" if numbers.size > 1 else ""
    return f"{numbers.mean():.{digits}f}{spread}"


def general(number: float, digits: int = 2) -> str:
    """Return a number that may be tiny, as 1.2e-09."""
    return "–" if np.isnan(number) else f"{number:.{digits}g}"


def prose(text: str, **numbers: Any) -> str:
    """Return paragraphs or list items with their numbers filled in, wrapped anew."""
    filled = dedent(text).strip().format(**numbers)
    items = [" ".join(item.split()) for item in re.split(r"\n(?=- )", filled)]
    indents = ["  " if item.startswith("- ") else "" for item in items]
    return "\n".join(
        fill(item, 110, subsequent_indent=indent, break_on_hyphens=False)
        for item, indent in zip(items, indents, strict=True)
    )


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table whose first column is text and whose others are numbers."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" + "---:|" * (len(header) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def bold_if_least(text: str, value: Any, least: Any, digits: int = 4) -> str:
    """Return the text, in bold if its value is the least one as printed."""
    return f"**{text}**" if round(float(value), digits) <= round(float(least), digits) else text


def is_full(results: xr.Dataset) -> bool:
    """Return whether these are the paper's data.

    Only of these do the findings speak, and only beside these do the paper's numbers stand.
    """
    return results.attrs["source"] == "real"


def pyplot() -> Any:
    """Return matplotlib.pyplot in the style of the page."""
    import matplotlib.pyplot as plt
    from cycler import cycler

    plt.rcParams.update(
        {
            "axes.prop_cycle": cycler(color=COLORS),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "figure.dpi": 100,
            "font.size": 9,
            "legend.frameon": False,
            "axes.grid": True,
            "grid.alpha": 0.25,
        }
    )
    return plt


def save(figure: Figure, figures: Path, name: str, caption: str) -> str:
    """Write a figure into the folder and return the Markdown that shows it."""
    from PIL import Image  # comes with matplotlib

    figures.mkdir(parents=True, exist_ok=True)
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=110)
    pyplot().close(figure)
    # A palette makes a file three times smaller, and no one can tell.
    Image.open(drawn).convert("RGB").quantize(128).save(figures / f"{name}.png", optimize=True)
    return f"![{caption}]({figures.name}/{name}.png)\n\n*{caption}*"


def show_pictures(
    rows: Sequence[Sequence[np.ndarray]],
    row_names: Sequence[str],
    column_names: Sequence[str],
    *,
    size: float = 1.0,
    limits: tuple[float, float] = (0, 1),
    color_map: str = "gray",
) -> Figure:
    """Return a figure of images in rows and columns, all on one grey scale."""
    height, width = rows[0][0].shape
    figure, axes = pyplot().subplots(
        len(rows),
        len(rows[0]),
        squeeze=False,
        layout="constrained",
        figsize=(size * len(rows[0]) * width / height + 1.4, size * len(rows) + 0.35),
    )
    for i, row in enumerate(rows):
        for j, image in enumerate(row):
            ax = axes[i, j]
            ax.imshow(image, cmap=color_map, vmin=limits[0], vmax=limits[1])
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
            if i == 0:
                ax.set_title(column_names[j], fontsize=9)
        axes[i, 0].set_ylabel(row_names[i], rotation=0, ha="right", va="center", fontsize=9)
    return figure


def least_so_far(curves: xr.DataArray, dim: str = "iteration") -> xr.DataArray:
    """Return the lowest value up to each place; a run that ended keeps its last."""
    axis = curves.get_axis_num(dim)
    filled = np.where(np.isnan(curves.values), np.inf, curves.values)
    return curves.copy(data=np.minimum.accumulate(filled, axis=axis))
