"""The entries of one row: what is known, and the best of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .ratings import Ratings

Intervals = Callable[[NDArray[np.intp]], NDArray[Any]]
"""Function of columns that returns the ends of an interval for each, (n, 2)."""


class Entry(NamedTuple):
    """One entry of a row.

    Attributes
    ----------
    label : str
        Title or label of its column.
    column : int
        Its position.
    observed, predicted : float
        Observed value and prediction; NaN without one.
    low, high : float
        Ends of the interval of a new observation; NaN without one.
    """

    label: str
    column: int
    observed: float
    predicted: float
    low: float = float("nan")
    high: float = float("nan")


def row_entries(
    data: Ratings,
    row: int,
    top: int,
    predicted: NDArray[Any],
    intervals: Intervals | None = None,
) -> tuple[list[Entry], list[Entry]]:
    """Return the largest observed entries of a row, and the best predictions for its others."""
    observations = data.observations
    of_row = slice(observations.indptr[row], observations.indptr[row + 1])
    columns, values = observations.indices[of_row], observations.values[of_row]
    order = np.argsort(-values, kind="stable")[:top]
    observed = _entries(data, columns[order], values[order], predicted, intervals)
    if np.isnan(predicted).all():
        return observed, []
    others = predicted.copy()
    others[columns] = -np.inf
    best = np.argsort(-others, kind="stable")[:top]
    best = best[others[best] > -np.inf]
    return observed, _entries(data, best, np.full(best.size, np.nan), predicted, intervals)


def _entries(
    data: Ratings,
    columns: NDArray[Any],
    values: NDArray[Any],
    predicted: NDArray[Any],
    intervals: Intervals | None,
) -> list[Entry]:
    """Return the entries of some columns, with their labels."""
    labels, titles = data.labels("columns"), data.titles
    ends = np.full((columns.size, 2), np.nan) if intervals is None else intervals(columns)
    return [
        Entry(
            str(titles.get(labels[k], labels[k])), int(k), float(x), float(predicted[k]),
            *map(float, e),
        )
        for k, x, e in zip(columns, values, ends, strict=True)
    ]  # fmt: skip
