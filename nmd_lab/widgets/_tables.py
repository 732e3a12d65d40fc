"""Small tables as HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple


class Cell(NamedTuple):
    """One cell of a table.

    Attributes
    ----------
    text : str
        Content, not yet escaped.
    css_class : str or None
        Class of the cell.
    tooltip : str or None
        Text that is shown while the pointer rests on the cell.
    """

    text: str
    css_class: str | None = None
    tooltip: str | None = None

    def html(self) -> str:
        """Return the cell as HTML."""
        attributes = {"title": self.tooltip, "class": self.css_class}
        written = "".join(
            f' {name}="{escape(value)}"' for name, value in attributes.items() if value is not None
        )
        return f"<td{written}>{escape(self.text)}</td>"


def html_table(head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Return a table with a row of headings."""
    headings = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(cell.html() for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{headings}</tr></thead><tbody>{body}</tbody></table>"


def number_text(number: float, digits: int) -> str:
    """Return a number with so many significant digits, and a dash for NaN."""
    return "–" if math.isnan(number) else f"{number:.{digits}g}"
