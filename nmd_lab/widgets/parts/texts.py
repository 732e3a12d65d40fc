"""Texts of the page: labels of rows and columns, the data and the model in the bar, tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from nmd_lab.data.labels import Labels
from nmd_lab.result.selection import as_text

MEANS = "column means"  # name of the rival that has no rank
MOST_GROUPS, MOST_COLORS = 12, 8  # values of a coordinate that colours points, and these colours


def texts(labels: Labels, axis: Literal["rows", "columns"]) -> list[str]:
    """Return the labels of the rows or columns as texts; an empty list if there are none."""
    dims = labels.rows if axis == "rows" else labels.columns
    if len(dims) != 1 or dims[0] not in labels.coords.indexes:
        return []
    index = labels.coords.indexes[dims[0]]
    if isinstance(index, pd.RangeIndex) or np.array_equal(index, np.arange(len(index))):
        return []
    return [str(label) for label in index]


def groups(labels: Labels) -> tuple[str, list[int], list[str]]:
    """Return a coordinate of the rows with few distinct values: its name, numbers and values."""
    for name, coordinate in labels.coords.coords.items():
        if coordinate.dims != labels.rows[:1] or name in labels.coords.indexes:
            continue
        values, numbers = np.unique(coordinate.values, return_inverse=True)
        if len(labels.rows) == 1 and 1 < len(values) <= MOST_GROUPS:
            return str(name), numbers.tolist(), [str(value) for value in values]
    return "", [], []


def colours(labels: Labels) -> tuple[str, list[int], list[str]]:
    """Return `groups`, those beyond the number of colours together as one."""
    name, numbers, names = groups(labels)
    if others := ", ".join(names[MOST_COLORS:]):
        names[MOST_COLORS:] = [f"other: {others}"]
    return name, np.minimum(numbers, MOST_COLORS).tolist(), names


def row_texts(labels: Labels) -> list[str]:
    """Return the labels of the rows, or the groups to which they belong, as texts."""
    name, numbers, names = groups(labels)
    return texts(labels, "rows") or [f"{name} {names[number]}" for number in numbers]


def many(count: int, thing: str) -> str:
    """Return how many things there are, such as "1 fit" or "2 fits"."""
    return f"{count} {thing}{'s' if count != 1 else ''}"


def model_text(fit: Any) -> str:
    """Return rank, nonlinearity and ridge of a fit or a posterior in a few words."""
    names = {"identity": "linear", "relu": "ReLU", "minmax": "MinMax", "mixed": "by column"}
    f = str(fit.nonlinearity.name)
    words = [many(fit.rank, "component"), names.get(f, f)]
    alpha = fit.parameters.get("alpha")
    if isinstance(alpha, float | int) and alpha > 0:
        words.append(f"ridge {as_text(alpha, 3)}")
    return " · ".join(words)


def size_text(
    name: str, shape: tuple[int, int], share: float = 1.0, *, is_table: bool = False
) -> str:
    """Return the name and the size of data, and the share that is known if that is not all."""
    more = f", {as_text(100 * share, 2)} % known" if share < 1 else ""
    m, n = shape
    size = f": {many(m, 'row')}, {many(n, 'column')}" if is_table else f" {m} × {n}"
    return f"{name}{size}{more}"


def table(
    name: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    caption: str = "",
    ids: Sequence[Any] | None = None,
    best: Sequence[Sequence[bool]] | None = None,
) -> dict[str, Any]:
    """Return a table; `ids` has the column of each line, or its row and column, to be picked."""
    return {
        "name": name,
        "caption": caption,
        "head": list(head),
        "rows": [list(row) for row in rows],
        "ids": None if ids is None else np.asarray(ids).tolist(),
        "best": None if best is None else [list(row) for row in best],
    }


def number_text(number: float, digits: int) -> str:
    """Return a number with so many significant digits, and a dash for NaN."""
    return "–" if math.isnan(number) else f"{number:#.{digits}g}".rstrip(".")


def errors_table(errors: Mapping[str, float], rank: Any) -> list[dict[str, Any]]:
    """Return the held-out errors of a fit and of a linear model; the lowest stands out."""
    if not errors:
        return []
    ranked = {name: name if name == MEANS else f"{name}, rank {rank}" for name in errors}
    rows = [[ranked[name], number_text(error, 4)] for name, error in errors.items()]
    best = [[False, error == min(errors.values())] for error in errors.values()]
    return [table("errors", ("model", "held-out error"), rows, best=best)]
