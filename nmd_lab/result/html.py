"""The HTML representation of a result in a notebook.

All colours come from the page (``currentColor``), for light and dark themes.  No element has an id,
every text is escaped, and the same fit gives the same HTML.
"""

from __future__ import annotations

import math
from html import escape
from typing import Any

import numpy as np
import xarray as xr

from .selection import TRIAL, VARIABLES, as_text, best_trials

WIDTH, HEIGHT = 280, 90  # of the curve, in pixels
MARGIN = 14  # of the curve on the left, on the right and above, in pixels
FONT_SIZE = 11  # of the text below the curve, in pixels
MOST_POINTS = 140  # on the curve, approximately
BEST = 8  # trials in the table of the best

TABLE = "border: none; margin: 0; color: inherit; font-size: inherit;"
CELL = "text-align: left; padding: 0 1em 0 0; background: none; border: none; color: inherit;"
NAME = "color: inherit; opacity: 0.7;"
"""CSS of a table, of its cells, and additionally of the cells with names."""

ALWAYS = ("rank", "alpha", "error", "spread")
"""Columns of the table of trials; others are left out if they are the same in all trials."""

DIGITS = {"spread": 2, "seconds": 2}
"""Numbers of digits in the table of trials, where they are not 4."""


def to_html(
    formula: str,
    facts: dict[str, Any],
    history: xr.Dataset,
    parameters: dict[str, Any],
    trials: xr.Dataset,
) -> str:
    """Return a summary of a fit as HTML."""
    beside = (
        '<div style="display: flex; flex-wrap: wrap; gap: 1.5em; align-items: center;">'
        f"{table(facts)}{_error_curve(history)}</div>"
    )
    return framed("Decomposition", formula, f"{beside}{_best_trials(trials)}", parameters)


def framed(kind: str, formula: str, content: str, parameters: dict[str, Any]) -> str:
    """Return HTML of a result: its formula, what to know first, and folded parameters."""
    return (
        '<div style="color: inherit; font-size: 0.9em;">'
        f"<p><b>nmd_lab.{kind}</b> {escape(formula)}</p>{content}"
        f"{folded('Parameters', table(parameters))}</div>"
    )


def folded(title: str, content: str) -> str:
    """Return HTML that is folded at first."""
    summary = f'<summary style="cursor: pointer;">{escape(title)}</summary>'
    return f"<details>{summary}{content}</details>"


def table(facts: dict[str, Any]) -> str:
    """Return a table with one line for each name and value; nested dicts stay in one line."""
    rows = []
    for name, value in facts.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key} {item}" for key, item in value.items())
        rows.append(
            f'<tr style="background: none;">'
            f'<td style="{CELL} {NAME}">{escape(str(name))}</td>'
            f'<td style="{CELL}">{escape(str(value))}</td></tr>'
        )
    return f'<table style="{TABLE}">{"".join(rows)}</table>'


def _best_trials(trials: xr.Dataset) -> str:
    """Return the best trials as a folded table, and the reason of the choice; "" without trials."""
    if not trials.sizes[TRIAL]:
        return ""
    names = [name for name in VARIABLES if name in ALWAYS or len(np.unique(trials[name])) > 1]
    best, chosen = best_trials(trials, BEST), trials.attrs["chosen"]
    rows = [_row([*names, ""], NAME)]
    for position in range(best.sizes[TRIAL]):
        row = best.isel({TRIAL: position})
        texts = [as_text(row[name].values, DIGITS.get(name, 4)) for name in names]
        rows.append(_row([*texts, "chosen" if int(row[TRIAL]) == chosen else ""]))
    notes = "".join(f'<p style="margin: 0;">{escape(note)}</p>' for note in _notes(trials.attrs))
    table = f'<table style="{TABLE}">{"".join(rows)}</table>{notes}'
    return folded(f"Trials: the best of {trials.sizes[TRIAL]}", table)


def _row(texts: list[str], style: str = "") -> str:
    """Return a line of a table."""
    style = f"{CELL} {style}".strip()
    cells = "".join(f'<td style="{style}">{escape(text)}</td>' for text in texts)
    return f'<tr style="background: none;">{cells}</tr>'


def _notes(about: dict[str, Any]) -> list[str]:
    """Return what the numbers of the trials are, and the reason of the choice."""
    held_out = f"{about.get('held_out_entries', 'the')} held-out entries"
    if (parts := about.get("held_out_parts", 1)) != 1:
        held_out += f" in {parts} parts"
    if drawn := about.get("held_out_drawn"):
        held_out += f" ({drawn})"
    notes = [about["sentence"]] if "sentence" in about else []
    notes += [
        f"error: {about.get('measure', 'error')} of {held_out}",
        "spread: standard error of the difference to the lowest error",
    ]
    return [*notes, f"chosen: {about['reason']}"] if "reason" in about else notes


def _error_curve(history: xr.Dataset) -> str:
    """Return the relative error over the iterations as a small SVG; "" if it has no two points."""
    errors = np.asarray(history["relative_error"].values, dtype=float)
    iterations = np.asarray(history["iteration"].values)
    drawn = np.flatnonzero(np.isfinite(errors) & (errors > 0))
    if drawn.size < 2:
        return ""
    drawn = np.union1d(drawn[:: math.ceil(drawn.size / MOST_POINTS)], drawn[-1:])
    x, y = iterations[drawn].astype(float), np.log10(errors[drawn])
    low, high = float(y.min()), float(y.max())
    span = max(high - low, 1e-12)
    width, height, margin = WIDTH, HEIGHT, MARGIN
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
        f'<text x="{margin}" y="{height - 6}" font-size="{FONT_SIZE}" fill="currentColor" '
        f'stroke="none">relative error {first:.3g} → {last:.3g} (log scale)</text></svg>'
    )
