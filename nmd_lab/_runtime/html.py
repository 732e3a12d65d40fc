"""HTML of a result in a notebook: a number, small pictures, diagnostics, folded details.

All colours come from the page (``currentColor``), for light and dark themes.  No element has an id,
every text is escaped, and the same result gives the same HTML.
"""

from __future__ import annotations

import math
import textwrap
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.util import find_spec
from io import BytesIO
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LINE = "margin: 0.2em 0;"
NUMBER = "font-size: 1.7em; font-weight: 600;"
FAINT = "color: inherit; opacity: 0.75;"
MARK = "color: var(--jp-warn-color0, currentColor); margin-right: 0.4em;"
SHOWN = "display: flex; flex-wrap: wrap; gap: 0.6em 1.8em; align-items: flex-end; margin: 0.6em 0;"
"""CSS of a line, of the number in it, of what is less important, of marks, and of pictures."""

TABLE = "border: none; margin: 0; color: inherit; font-size: inherit;"
CELL = "text-align: left; padding: 0 1em 0 0; background: none; border: none; color: inherit;"
"""CSS of a table and of its cells."""


class Summary(NamedTuple):
    """A result in short, as a notebook shows it.

    Attributes
    ----------
    headline : dict
        One number `value`, the `text` after it, and its `rivals`, as texts.
    sentences : list of str
        Lines under the number; empty ones are left out.
    pictures : list of str
        Small pictures, as HTML.
    flags : list of str
        A sentence for each diagnostic that is not as it should be.
    details : dict of str
        Folded tables by their titles, as HTML.
    """

    headline: Mapping[str, Any]
    sentences: Sequence[str]
    pictures: Sequence[str] = ()
    flags: Sequence[str] = ()
    details: Mapping[str, str] = MappingProxyType({})

    def html(self) -> str:
        """Return the result as HTML."""
        texts = {name: escape(self.headline.get(name, "")) for name in ("value", "text", "rivals")}
        parts = [
            '<div style="color: inherit; font-size: 0.95em;">',
            f'<p style="{LINE}"><span style="{NUMBER}">{texts["value"]}</span> {texts["text"]} '
            f'<span style="{FAINT}">{texts["rivals"]}</span></p>',
        ]
        parts += [
            f'<p style="{LINE} {FAINT}">{escape(line)}</p>' for line in self.sentences if line
        ]
        if any(self.pictures):
            parts.append(f'<div style="{SHOWN}">{"".join(self.pictures)}</div>')
        parts += [
            f'<p style="{LINE}"><span style="{MARK}">⚠\ufe0e</span>{escape(flag)}</p>'
            for flag in self.flags
        ]
        parts += [
            f'<details><summary style="cursor: pointer;">{escape(title)}</summary>'
            f"{content}</details>"
            for title, content in self.details.items()
            if content
        ]
        return "".join([*parts, "</div>"])


def facts_table(facts: Mapping[str, Any]) -> str:
    """Return a table with one line for each name and value; nested dicts stay in one line."""
    rows = []
    for name, value in facts.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key} {item}" for key, item in value.items())
        rows.append(_row([_cell(str(name), FAINT), _cell(str(value))]))
    return f'<table style="{TABLE}">{"".join(rows)}</table>'


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table of texts with a head."""
    lines = [_row(_cell(name, FAINT) for name in head)]
    lines += [_row(_cell(text) for text in row) for row in rows]
    return f'<table style="{TABLE}">{"".join(lines)}</table>'


def _row(cells: Iterable[str]) -> str:
    """Return a line of a table."""
    return f'<tr style="background: none;">{"".join(cells)}</tr>'


def _cell(text: str, style: str = "") -> str:
    """Return a cell of a table."""
    return f'<td style="{CELL} {style}">{escape(text)}</td>'


WIDTH, HEIGHT = 180, 96  # of a picture and of a curve, in pixels
FONT = 'font-size="11" fill="currentColor" stroke="none"'
CAPTION = "font-size: 0.85em; opacity: 0.75; color: inherit;"


class Interval(NamedTuple):
    """A number with an interval: `low` and `high` are NaN where it has none."""

    label: str
    value: float
    low: float
    high: float


def picture(values: NDArray[Any], caption: str) -> str:
    """Return a matrix as a grey picture, NaN clear; "" if all are equal, or without Pillow."""
    shown = np.isfinite(values)
    low, high = values.min(where=shown, initial=np.inf), values.max(where=shown, initial=-np.inf)
    if low >= high or find_spec("PIL") is None:
        return ""
    share = np.where(shown, values - low, 0) / (high - low)
    levels = (255 * np.stack([share, shown], axis=-1)).astype(np.uint8)
    height, width = values.shape
    scale = min(WIDTH / width, HEIGHT / height)
    # Neither is too small to be seen.
    across, down = (max(round(scale * size), 48) for size in (width, height))
    return _captioned(image(levels, caption, across, down), caption)


def image(levels: NDArray[np.uint8], alt: str, width: int, height: int, kind: str = "png") -> str:
    """Return grey levels, also with how opaque they are, or colours, of a size on the page."""
    from PIL import Image

    file = BytesIO()
    Image.fromarray(levels).save(file, kind)
    size = f'style="width: {width}px; height: {height}px; image-rendering: pixelated;"'
    source = f"data:image/{kind};base64,{b64encode(file.getvalue()).decode()}"
    return f'<img alt="{escape(alt)}" {size} src="{source}"/>'


def curve(x: NDArray[Any], y: NDArray[Any], marked: float, caption: str) -> str:
    """Return finite y over ascending x with a dot each, and a ring at the marked x."""
    margin = 6  # in pixels, as all sizes here
    across = margin + (x - x[0]) / (x[-1] - x[0]) * (WIDTH - 2 * margin)
    down = margin + (y.max() - y) / (np.ptp(y) or 1.0) * (HEIGHT - 2 * margin)
    at = list(zip(across.tolist(), down.tolist(), strict=True))
    sizes = [2] * len(at) + [5]
    drawn = f'<polyline points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in at)}" stroke-width="1.5"/>'
    for (a, b), r in zip([*at, at[int(np.argmin(np.abs(x - marked)))]], sizes, strict=True):
        drawn += f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{r}"/>'
    return _captioned(_svg(WIDTH, HEIGHT, drawn, caption), caption)


def intervals(rows: Sequence[Interval], caption: str) -> str:
    """Return numbers with their intervals, one below the other, and a line at 0."""
    labels = [textwrap.shorten(row.label, 44, placeholder=" …") for row in rows]
    ends = np.array([(0.0, 0.0, 0.0), *(row[1:] for row in rows)])
    height = 17  # of a line, in pixels
    width = 200  # of the plot beside the labels, whose letters are 6.2 pixels wide
    left = 6.2 * max(map(len, labels)) + 10
    places = left + (ends - np.nanmin(ends)) / (np.nanmax(ends) - np.nanmin(ends) or 1.0) * width
    (zero, _, _), *places = places.tolist()
    drawn = f'<path d="M{zero:.1f} 0V{height * len(rows)}" stroke-opacity="0.4"/>'
    for k, (label, (value, first, last)) in enumerate(zip(labels, places, strict=True)):
        y = height * (k + 0.5)
        drawn += f'<text x="0" y="{y + 4:.1f}" {FONT}>{escape(label)}</text>'
        drawn += f'<circle cx="{value:.1f}" cy="{y:.1f}" r="3" fill="currentColor"/>'
        if math.isfinite(first + last):
            drawn += f'<path d="M{first:.1f} {y:.1f}H{last:.1f}" stroke-width="1.5"/>'
    return _captioned(_svg(round(left + width + 6), height * len(rows), drawn, caption), caption)


def _captioned(content: str, caption: str) -> str:
    """Return a picture above its caption."""
    return f'<div>{content}<div style="{CAPTION}">{escape(caption)}</div></div>'


def _svg(width: int, height: int, content: str, name: str) -> str:
    """Return an SVG in the colour of the text."""
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(name)}" fill="none" stroke="currentColor">{content}</svg>'
    )
