"""Small pictures for the HTML of a result: a matrix as PNG, a curve and intervals as SVG."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT = 180, 96  # of a picture and of a curve, in pixels
THINNEST = 48  # least width and height of a picture that is shown, in pixels
LETTER, LINE = 6.2, 17  # width of a letter and height of a line, in pixels
MOST_LETTERS = 44  # of the label of an interval
PLOT = 200  # width of the plot of intervals, in pixels
FONT = 'font-size="11" fill="currentColor" stroke="none"'
CAPTION = "font-size: 0.85em; opacity: 0.75; color: inherit;"


class Interval(NamedTuple):
    """A number with an interval: `low` and `high` are NaN where it has none."""

    label: str
    value: float
    low: float
    high: float


def picture(values: NDArray[Any], caption: str) -> str:
    """Return a matrix as a grey picture, NaN clear; "" if all values are equal."""
    finite = values[np.isfinite(values)]
    if not finite.size or finite.min() == finite.max():
        return ""
    height, width = values.shape
    scale = min(WIDTH / width, HEIGHT / height)
    across, down = (max(round(scale * size), THINNEST) for size in (width, height))
    data = b64encode(_png(values)).decode()
    return _captioned(
        f'<img alt="{escape(caption)}" width="{across}" height="{down}" '
        f'style="image-rendering: pixelated;" src="data:image/png;base64,{data}"/>',
        caption,
    )


def curve(
    x: NDArray[Any], y: NDArray[Any], caption: str, marked: float = np.nan, *, dots: bool = False
) -> str:
    """Return y over x, with a ring at the marked x; "" for less than two points."""
    finite = np.isfinite(x) & np.isfinite(y)
    x, y = x[finite].astype(float), y[finite].astype(float)
    if x.size < 2:
        return ""
    margin = 6
    across = margin + (x - x[0]) / ((x[-1] - x[0]) or 1.0) * (WIDTH - 2 * margin)
    down = margin + (y.max() - y) / (np.ptp(y) or 1.0) * (HEIGHT - 2 * margin)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, down, strict=True))
    circles = [(a, b, 2) for a, b in zip(across, down, strict=True)] if dots else []
    circles += [(across[k], down[k], 5) for k in np.flatnonzero(x == marked)]
    drawn = f'<polyline points="{points}" stroke-width="1.5"/>' + "".join(
        f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{r}"/>' for a, b, r in circles
    )
    return _captioned(_svg(WIDTH, HEIGHT, drawn, caption), caption)


def intervals(rows: Sequence[Interval], caption: str) -> str:
    """Return numbers with their intervals, one below the other, and a line at 0."""
    labels = [
        label if len(label) <= MOST_LETTERS else f"{label[: MOST_LETTERS - 1]}…"
        for label in (row.label for row in rows)
    ]
    ends = np.array([row[1:] for row in rows] + [(0.0, 0.0, 0.0)])
    low, high = np.nanmin(ends), np.nanmax(ends)
    left = LETTER * max(map(len, labels)) + 10
    places = left + (ends - low) / ((high - low) or 1.0) * PLOT
    height = LINE * len(rows)
    drawn = [f'<path d="M{places[-1, 0]:.1f} 0V{height}" stroke-opacity="0.4"/>']
    for k, (label, (value, first, last)) in enumerate(zip(labels, places[:-1], strict=True)):
        y = LINE * (k + 0.5)
        drawn.append(f'<text x="0" y="{y + 4:.1f}" {FONT}>{escape(label)}</text>')
        drawn.append(f'<circle cx="{value:.1f}" cy="{y:.1f}" r="3" fill="currentColor"/>')
        if np.isfinite(first + last):
            drawn.append(f'<path d="M{first:.1f} {y:.1f}H{last:.1f}" stroke-width="1.5"/>')
    return _captioned(_svg(round(left + PLOT + 6), height, "".join(drawn), caption), caption)


def _captioned(content: str, caption: str) -> str:
    """Return a picture above its caption."""
    return f'<div>{content}<div style="{CAPTION}">{escape(caption)}</div></div>'


def _svg(width: int, height: int, content: str, name: str) -> str:
    """Return an SVG in the colour of the text."""
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(name)}" fill="none" stroke="currentColor">{content}</svg>'
    )


def _png(values: NDArray[Any]) -> bytes:
    """Return a PNG file of grey levels that are clear where a value is not finite."""
    shown = np.isfinite(values)
    low, high = values[shown].min(), values[shown].max()
    share = np.where(shown, values - low, 0) / (high - low)
    levels = np.stack([255 * share, 255 * shown], axis=-1).astype(np.uint8)
    height, width = values.shape
    lines = b"".join(b"\0" + line.tobytes() for line in levels)
    head = struct.pack(">IIBBBBB", width, height, 8, 4, 0, 0, 0)
    blocks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in blocks
    )
