"""The entries of one row: those that are shown, and the best predictions for the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .ratings import Ratings

Intervals = Callable[[NDArray[np.intp]], NDArray[Any]]
"""Function of columns that returns the ends of an interval for each, (n, 2)."""


class Entry(NamedTuple):
    """One entry of a row."""

    label: str  # title or label of its column
    column: int  # its position
    observed: float
    predicted: float
    low: float = float("nan")
    high: float = float("nan")


class Row(NamedTuple):
    """What a model says of one row."""

    data: Ratings  # the data, for their labels
    predicted: NDArray[Any]  # predictions of all columns; NaN without a model
    intervals: Intervals | None = None  # intervals of new observations

    def entries(self, columns: NDArray[Any], values: NDArray[Any]) -> list[Entry]:
        """Return the entries of some columns, with their labels."""
        ends = np.full((columns.size, 2), np.nan)
        if self.intervals is not None and columns.size:
            ends = self.intervals(columns)
        titles = self.data.column_titles(columns)
        return [
            Entry(title, int(k), float(x), float(self.predicted[k]), *map(float, e))
            for title, k, x, e in zip(titles, columns, values, ends, strict=True)
        ]

    def best(self, rated: NDArray[Any], top: int) -> list[Entry]:
        """Return the best predictions for columns that are not rated."""
        if np.isnan(self.predicted).all():
            return []
        others = self.predicted.copy()
        others[rated] = -np.inf
        best = np.argsort(-others, kind="stable")[:top]
        best = best[others[best] > -np.inf]
        return self.entries(best, np.full(best.size, np.nan))
