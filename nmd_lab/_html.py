"""The HTML frame of a result in a notebook: a number, small pictures, worries, folded details.

All colours come from the page (``currentColor``), for light and dark themes.  No element has an id,
every text is escaped, and the same result gives the same HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

LINE = "margin: 0.2em 0;"
NUMBER = "font-size: 1.7em; font-weight: 600;"
FAINT = "color: inherit; opacity: 0.75;"
MARK = "color: var(--jp-warn-color0, currentColor); margin-right: 0.4em;"
BESIDE = "display: flex; flex-wrap: wrap; gap: 0.6em 1.8em; align-items: flex-end; margin: 0.6em 0;"
"""CSS of a line, of the number in it, of what is less important, of marks, and of pictures."""

TABLE = "border: none; margin: 0; color: inherit; font-size: inherit;"
CELL = "text-align: left; padding: 0 1em 0 0; background: none; border: none; color: inherit;"
"""CSS of a table and of its cells."""


def frame(
    lines: Iterable[str],
    headline: Mapping[str, Any],
    *,
    thumbnails: Iterable[str] = (),
    flags: Iterable[str] = (),
    details: Mapping[str, str] | None = None,
) -> str:
    """Return HTML of a result.

    `headline` has the texts `value`, `text` and `rivals`; `lines` follow it.  The `thumbnails` and
    the `details`, folded under their titles, are HTML; `flags` say what should worry.
    """
    value, text, rivals = (escape(headline.get(name, "")) for name in ("value", "text", "rivals"))
    shown = "".join(each for each in thumbnails if each)
    return "".join(
        [
            '<div style="color: inherit; font-size: 0.95em;">',
            f'<p style="{LINE}"><span style="{NUMBER}">{value}</span> {text} '
            f'<span style="{FAINT}">{rivals}</span></p>',
            *(f'<p style="{LINE} {FAINT}">{escape(line)}</p>' for line in lines if line),
            f'<div style="{BESIDE}">{shown}</div>' if shown else "",
            *(
                f'<p style="{LINE}"><span style="{MARK}">⚠\ufe0e</span>{escape(flag)}</p>'
                for flag in flags
            ),
            *(
                f'<details><summary style="cursor: pointer;">{escape(title)}</summary>'
                f"{content}</details>"
                for title, content in (details or {}).items()
                if content
            ),
            "</div>",
        ]
    )


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
