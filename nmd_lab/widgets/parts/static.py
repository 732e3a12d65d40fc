"""A picture of an explorer that needs no kernel, for saved notebooks and pages made of them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from .curves import COLORS, REMEMBERED, arrays_of
from .images import as_png

GRAY = "#8a8a8a"
WIDTH, HEIGHT = 360, 150  # size of the curves, in pixels


def static_html(explorer: Any) -> str:
    """Return the status line, the last picture and the curves of an explorer as HTML.

    The front end hides it where the explorer is alive.
    """
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
    for k, (curve, x, y) in enumerate(shown):
        left = x / max(last, 1) * (WIDTH - 10) + 5
        top = (high - y) / ((high - low) or 1.0) * (HEIGHT - 30) + 5
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(left, top, strict=True))
        color = GRAY if curve["key"].startswith(REMEMBERED) else COLORS[k % len(COLORS)]
        lines.append(f'<polyline points="{points}" fill="none" stroke="{color}"/>')
    said = ", ".join(f"{each['label']} {10 ** y[-1]:.4g}" for each, _, y in shown)
    text = escape(f"{panel['title']}: {said} at iteration {last:.0f}")
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{text}">{"".join(lines)}'
        f'<text x="5" y="{HEIGHT - 8}" font-size="11" fill="currentColor">{text}</text></svg>'
    )
