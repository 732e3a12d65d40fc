"""The HTML representation of a decomposition in a notebook.

All colours come from the page (``currentColor``), for light and dark themes.  No element has an id,
every text is escaped, and the same fit gives the same HTML.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import xarray as xr


@dataclass(frozen=True)
class HtmlStyle:
    """Sizes and styles of the representation.

    Attributes
    ----------
    width, height : int
        Size of the curve in pixels.
    margin : int
        Distance of the curve from the left, right and upper edge, in pixels.
    font_size : int
        Size of the text below the curve, in pixels.
    max_points : int
        Approximate largest number of points on the curve.
    table_style, cell_style, name_style : str
        CSS of a table, of its cells, and additionally of the cells with names.
    """

    width: int = 280
    height: int = 90
    margin: int = 14
    font_size: int = 11
    max_points: int = 140
    table_style: str = "border: none; margin: 0; color: inherit; font-size: inherit;"
    cell_style: str = (
        "text-align: left; padding: 0 1em 0 0; background: none; border: none; color: inherit;"
    )
    name_style: str = "color: inherit; opacity: 0.7;"


STYLE = HtmlStyle()


def to_html(
    formula: str, facts: dict[str, Any], history: xr.Dataset, parameters: dict[str, Any]
) -> str:
    """Return a summary of a fit as HTML.

    Parameters
    ----------
    formula : str
        Formula of the model.
    facts : dict
        Names and values of the table.
    history : Dataset
        History of the fit, for the curve of its relative error.
    parameters : dict
        Names and values of the table that is folded at first.
    """
    return (
        '<div style="color: inherit; font-size: 0.9em;">'
        f"<p><b>nmd_lab.Decomposition</b> {escape(formula)}</p>"
        '<div style="display: flex; flex-wrap: wrap; gap: 1.5em; align-items: center;">'
        f"{_table(facts)}{_error_curve(history)}</div>"
        f'<details><summary style="cursor: pointer;">Parameters</summary>'
        f"{_table(parameters)}</details></div>"
    )


def _table(facts: dict[str, Any]) -> str:
    """Return a table with one line for each name and value; nested dicts stay in one line."""
    rows = []
    for name, value in facts.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key} {item}" for key, item in value.items())
        rows.append(
            f'<tr style="background: none;">'
            f'<td style="{STYLE.cell_style} {STYLE.name_style}">{escape(str(name))}</td>'
            f'<td style="{STYLE.cell_style}">{escape(str(value))}</td></tr>'
        )
    return f'<table style="{STYLE.table_style}">{"".join(rows)}</table>'


def _error_curve(history: xr.Dataset) -> str:
    """Return the relative error over the iterations as a small SVG; "" if it has no two points."""
    errors = np.asarray(history["relative_error"].values, dtype=float)
    iterations = np.asarray(history["iteration"].values)
    drawn = np.flatnonzero(np.isfinite(errors) & (errors > 0))
    if drawn.size < 2:
        return ""
    drawn = np.union1d(drawn[:: math.ceil(drawn.size / STYLE.max_points)], drawn[-1:])
    x, y = iterations[drawn].astype(float), np.log10(errors[drawn])
    low, high = float(y.min()), float(y.max())
    span = max(high - low, 1e-12)
    width, height, margin = STYLE.width, STYLE.height, STYLE.margin
    across = margin + (x - x[0]) / (x[-1] - x[0]) * (width - 2 * margin)
    down = margin + (high - y) / span * (height - 3 * margin)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, down, strict=True))
    first, last = errors[drawn[0]], errors[drawn[-1]]
    name = f"relative error from {first:.3g} to {last:.3g} over {int(x[-1])} iterations"
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(name)}" fill="none" stroke="currentColor">'
        f'<polyline points="{points}" stroke-width="1.5"/>'
        f'<path d="M{margin} {height - 2 * margin + 4}H{width - margin}" stroke-opacity="0.4"/>'
        f'<text x="{margin}" y="{height - 6}" font-size="{STYLE.font_size}" fill="currentColor" '
        f'stroke="none">relative error {first:.3g} → {last:.3g} (log scale)</text></svg>'
    )
