"""Small tables that the front end draws."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

MEANS = "column means"  # name of the rival that has no rank


def table(
    name: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    caption: str = "",
    ids: Sequence[int] | None = None,
    best: Sequence[Sequence[bool]] | None = None,
) -> dict[str, Any]:
    """Return a table."""
    return {
        "name": name,
        "caption": caption,
        "head": list(head),
        "rows": [list(row) for row in rows],
        "ids": None if ids is None else [int(each) for each in ids],
        "best": None if best is None else [list(row) for row in best],
    }


def number_text(number: float, digits: int) -> str:
    """Return a number with so many significant digits, and a dash for NaN.

    >>> number_text(0.123456, 3), number_text(float("nan"), 3)
    ('0.123', '–')
    """
    return "–" if math.isnan(number) else f"{number:#.{digits}g}".rstrip(".")


def errors_table(errors: Mapping[str, float], rank: Any) -> list[dict[str, Any]]:
    """Return the held-out errors of a fit and of a linear model; the lowest stands out."""
    if not errors:
        return []
    ranked = {name: name if name == MEANS else f"{name}, rank {rank}" for name in errors}
    rows = [[ranked[name], number_text(error, 4)] for name, error in errors.items()]
    best = [[False, error == min(errors.values())] for error in errors.values()]
    return [table("errors", ("model", "held-out error"), rows, best=best)]
