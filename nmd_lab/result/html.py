"""A decomposition as a few lines of HTML, for notebooks.

Colours are the page's own (``currentColor``), so that light and dark themes both suit; nothing has
an id, every text is escaped, and the same fit gives the same HTML.
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .decomposition import Decomposition

WIDTH, HEIGHT, MARGIN = 280, 90, 14
MOST_POINTS = 140
"""Longer histories are thinned to about this many points, the last one included."""

FAINT = "color: inherit; opacity: 0.7;"
TABLE = "border: none; margin: 0; color: inherit; font-size: inherit;"
CELL = "text-align: left; padding: 0 1em 0 0; background: none; border: none; color: inherit;"


def to_html(fit: Decomposition) -> str:
    """Return what a fit is, how well it fits, why it ended, and how it converged."""
    m, n = fit.shape
    facts = {
        "W": _sizes(fit.W),
        "H": _sizes(fit.H),
        "relative error": f"{fit.relative_error:.4g} ({fit.loss.name})",
        "observed": f"{fit.parameters.get('n_observed', m * n)} of {m * n} entries",
        "iterations": f"{fit.n_iter} in {float(fit.history['seconds'][-1]):.2f} s",
        "ended": fit.stop_reason,
    }
    return (
        '<div style="color: inherit; font-size: 0.9em;">'
        f"<p><b>nmd_lab.Decomposition</b> "
        f"X ≈ {escape(repr(fit.nonlinearity))}(W H)</p>"
        '<div style="display: flex; flex-wrap: wrap; gap: 1.5em; align-items: center;">'
        f"{_table(facts)}{_picture(fit)}</div>"
        f'<details><summary style="cursor: pointer;">Parameters</summary>'
        f"{_table(fit.parameters)}</details></div>"
    )


def _sizes(array: Any) -> str:
    return f"({', '.join(f'{d}: {size}' for d, size in array.sizes.items())}) {array.dtype}"


def _table(facts: dict[str, Any]) -> str:
    """Return names and values, one line each; a nested dict becomes one line of its own items."""
    rows = []
    for name, value in facts.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key} {item}" for key, item in value.items())
        rows.append(
            f'<tr style="background: none;"><td style="{CELL} {FAINT}">{escape(str(name))}</td>'
            f'<td style="{CELL}">{escape(str(value))}</td></tr>'
        )
    return f'<table style="{TABLE}">{"".join(rows)}</table>'


def _picture(fit: Decomposition) -> str:
    """Return the relative error over the iterations as a small SVG."""
    errors = np.asarray(fit.history["relative_error"].values, dtype=float)
    iterations = np.asarray(fit.history["iteration"].values)
    drawn = np.flatnonzero(np.isfinite(errors) & (errors > 0))
    if drawn.size < 2:
        return ""
    drawn = np.union1d(drawn[:: math.ceil(drawn.size / MOST_POINTS)], drawn[-1:])
    x, y = iterations[drawn].astype(float), np.log10(errors[drawn])
    low, high = float(y.min()), float(y.max())
    span = max(high - low, 1e-12)
    across = MARGIN + (x - x[0]) / (x[-1] - x[0]) * (WIDTH - 2 * MARGIN)
    down = MARGIN + (high - y) / span * (HEIGHT - 3 * MARGIN)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, down, strict=True))
    first, last = errors[drawn[0]], errors[drawn[-1]]
    name = f"relative error from {first:.3g} to {last:.3g} over {int(x[-1])} iterations"
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(name)}" fill="none" stroke="currentColor">'
        f'<polyline points="{points}" stroke-width="1.5"/>'
        f'<path d="M{MARGIN} {HEIGHT - 2 * MARGIN + 4}H{WIDTH - MARGIN}" stroke-opacity="0.4"/>'
        f'<text x="{MARGIN}" y="{HEIGHT - 6}" font-size="11" fill="currentColor" stroke="none">'
        f"relative error {first:.3g} → {last:.3g} (log scale)</text></svg>"
    )
