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
    added : float
        Difference from the prediction for somebody without ratings; NaN if it is not known.
    """

    label: str
    column: int
    observed: float
    predicted: float
    low: float = float("nan")
    high: float = float("nan")
    added: float = float("nan")


class Row(NamedTuple):
    """What a model says of one row.

    Attributes
    ----------
    data : Ratings
        The data, for their labels.
    predicted : ndarray (n,)
        Predictions of all columns; NaN without a model.
    intervals : Intervals or None
        Intervals of new observations.
    ends : (float, float) or None
        Ends of the scale, beyond which no interval reaches.
    usual : ndarray (n,) or None
        Predictions for somebody without ratings.
    """

    data: Ratings
    predicted: NDArray[Any]
    intervals: Intervals | None = None
    ends: tuple[float, float] | None = None
    usual: NDArray[Any] | None = None

    def entries(self, columns: NDArray[Any], values: NDArray[Any]) -> list[Entry]:
        """Return the entries of some columns, with their labels."""
        ends = np.full((columns.size, 2), np.nan)
        if self.intervals is not None and columns.size:
            ends = self.intervals(columns)
            ends = ends if self.ends is None else np.clip(ends, *self.ends)
        added = np.full(columns.size, np.nan)
        if self.usual is not None:
            added = self.predicted[columns] - self.usual[columns]
        titles = self.data.column_titles(columns)
        return [
            Entry(
                title, int(k), float(x), float(self.predicted[k]), float(a), float(b), float(more)
            )
            for title, k, x, (a, b), more in zip(titles, columns, values, ends, added, strict=True)
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
