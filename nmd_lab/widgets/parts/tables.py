"""Small tables that the front end draws."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


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
    return "–" if math.isnan(number) else f"{number:.{digits}g}"


def errors_table(errors: Mapping[str, tuple[float, float]], rank: Any) -> list[dict[str, Any]]:
    """Return the errors of a fit and of the SVD of equal rank; the lower ones stand out."""
    if not errors:
        return []
    lowest = [min(column) for column in zip(*errors.values(), strict=True)]
    rows = [
        [f"{name}, rank {rank}", *(number_text(number, 4) for number in numbers)]
        for name, numbers in errors.items()
    ]
    best = [
        [False, *(number == low for number, low in zip(numbers, lowest, strict=True))]
        for numbers in errors.values()
    ]
    head = ("relative error (Frobenius)", "observed", "held out")
    return [table("errors", head, rows, best=best)]
