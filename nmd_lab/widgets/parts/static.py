"""A picture of an explorer that needs no kernel, for saved notebooks and pages made of them."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from .charts import arrays_of

# Colours of holes, and of the largest positive and negative number
MISSING, POSITIVE, NEGATIVE = (127, 155, 184), (213, 94, 0), (0, 114, 178)
WIDTH, HEIGHT = 360, 150  # size of the curves, in pixels


def static_html(explorer: Any) -> str:
    """Return the status line, the last picture and the curves of an explorer as HTML."""
    parts = [f"<p>{escape(explorer.status['message'])}</p>"]
    if explorer.pictures is not None:
        parts.append(_picture(explorer.pictures, explorer.modelled))
    if explorer.curves is not None:
        curves = arrays_of(explorer.curves)
        parts += [_chart(panel, curves) for panel in explorer.curves["panels"]]
    return f'<div class="nmd-static" data-explorer="{explorer.static_id}">{"".join(parts)}</div>'


def _picture(shown: Mapping[str, Any], modelled: bytes | None) -> str:
    """Return the reconstruction, or the data if there is none yet, as an image."""
    values = modelled or shown["seen"] or shown["original"]
    if not values:
        return ""
    name = "reconstruction" if modelled else "data"
    data = base64.b64encode(as_png(shown, np.frombuffer(values, dtype="<f4"))).decode()
    return (
        f'<img alt="{name}: {shown["count"]} pictures of {shown["height"]} x {shown["width"]}" '
        f'style="width:300px;image-rendering:pixelated" src="data:image/png;base64,{data}">'
    )


def _chart(panel: Mapping[str, Any], curves: Mapping[str, Any]) -> str:
    """Return the curves of a panel on a logarithmic axis as SVG."""
    shown = [(each, *curves[each["key"]]) for each in panel["curves"] if each["key"] in curves]
    shown = [(each, x[y > 0], np.log10(y[y > 0])) for each, x, y in shown if np.any(y > 0)]
    if not shown:
        return ""
    last = max(x[-1] for _, x, _ in shown)
    low, high = (f(np.concatenate([y for *_, y in shown])) for f in (np.min, np.max))
    lines = []
    for curve, x, y in shown:
        left = x / max(last, 1) * (WIDTH - 10) + 5
        top = (high - y) / ((high - low) or 1.0) * (HEIGHT - 30) + 5
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(left, top, strict=True))
        lines.append(f'<polyline points="{points}" fill="none" stroke="{curve["color"]}"/>')
    said = ", ".join(f"{each['label']} {10 ** y[-1]:.4g}" for each, _, y in shown)
    text = escape(f"{panel['title']}: {said} at iteration {last:.0f}")
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{text}">{"".join(lines)}'
        f'<text x="5" y="{HEIGHT - 8}" font-size="11" fill="currentColor">{text}</text></svg>'
    )


def as_png(shown: Mapping[str, Any], values: NDArray[Any]) -> bytes:
    """Return pictures side by side in rows as a PNG file."""
    size = (shown["count"], shown["height"], shown["width"], shown["channels"])
    pictures, low, high = values.reshape(size), shown["low"], shown["high"]
    if shown["scale"] == "signed":  # orange is positive, blue negative, and white zero or a hole
        strength = np.clip(np.nan_to_num(pictures) / (max(-low, high) or 1.0), -1, 1)
        color = np.where(strength > 0, POSITIVE, NEGATIVE)
        pixels = (255 + np.abs(strength) * (color - 255)).astype(np.uint8)
    else:
        share = np.clip((np.nan_to_num(pictures) - low) / ((high - low) or 1.0), 0, 1)
        pixels = np.broadcast_to((255 * share).astype(np.uint8), (*size[:3], 3)).copy()
        pixels[np.isnan(pictures).any(axis=-1)] = MISSING
    buffer = io.BytesIO()
    Image.fromarray(_mosaic(pixels), "RGB").save(buffer, format="png", optimize=True)
    return buffer.getvalue()


def _mosaic(pictures: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return pictures of one size side by side, with white gaps."""
    count, height = pictures.shape[:2]
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    more = ((0, rows * columns - count), (0, 1), (0, 1), (0, 0))
    tiles = np.pad(pictures, more, constant_values=255).reshape(rows, columns, height + 1, -1, 3)
    return tiles.swapaxes(1, 2).reshape(rows * (height + 1), -1, 3)[:-1, :-1]
