"""Where rows are in an order, such as that of time, and in which series."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .cell_numbers import numbers_of
from .labels import Labels
from .matching import first_few
from .observations import Observations

DATES = pd.DatetimeIndex | pd.PeriodIndex
"""Indexes of dates."""


class RowPlaces(NamedTuple):
    """Places of the rows.

    Attributes
    ----------
    times : ndarray (m,)
        Place of each row in its series; dates as days.
    series : ndarray of int (m,)
        Key of its series.
    phases : ndarray of int (m,)
        Phase in the season, 0 if there is none.
    """

    times: NDArray[np.float64]
    series: NDArray[np.int64]
    phases: NDArray[np.int64]

    @property
    def sequence(self) -> NDArray[np.int64]:
        """Positions of the rows, one series after another."""
        return np.lexsort((self.times, self.series)).astype(np.int64)

    @property
    def steps(self) -> NDArray[np.float64]:
        """Step to each row of the sequence from the one before; infinite where a series begins."""
        at = self.sequence
        steps = np.diff(self.times[at], prepend=-np.inf)
        steps[1:][np.diff(self.series[at]) != 0] = np.inf
        return steps

    @property
    def median_step(self) -> float:
        """Median of the finite steps; 1 if there are none."""
        finite = self.steps[np.isfinite(self.steps)]
        return float(np.median(finite)) if finite.size else 1.0

    def on_grid_of(self, others: RowPlaces) -> NDArray[np.int64]:
        """Return the position of each row in an evenly spaced grid.

        The grid begins with the earliest of other rows; their months and years are even steps.
        """
        steps, most = others.steps, 1.5 * others.median_step
        unit = steps[steps < most].mean() if np.any(steps < most) else 1.0
        return np.asarray(np.rint((self.times - others.times.min()) / unit), dtype=np.int64)

    def with_phases(self, others: RowPlaces, period: int) -> RowPlaces:
        """Return the places with phases in a season of others; 0 is no season."""
        return self._replace(phases=self.on_grid_of(others) % max(period, 1))

    def at(self, rows: NDArray[np.integer]) -> RowPlaces:
        """Return the places of some rows, by position."""
        return RowPlaces(self.times[rows], self.series[rows], self.phases[rows])

    def followed_by(self, others: RowPlaces) -> RowPlaces:
        """Return the places of these rows and of others."""
        both: Any = zip(self, others, strict=True)
        return RowPlaces(*map(np.concatenate, both))


def row_places(observations: Observations, order: Any) -> RowPlaces:
    """Return the places of the rows.

    `order` is an array of them, or names of dimensions, levels of the index or columns: the last
    name is that of the places, and those before it, like other levels of the index, tell series
    apart.
    """
    names: list[Any] = names_of(order)
    if not names:
        values = list(np.atleast_1d(order))
        return _checked(values, np.zeros(len(values), np.int64), observations.shape[0])
    *of_series, last = names
    labels = observations.labels  # by dimension, or by level of the index
    of_rows = labels.flat_index(labels.rows).to_frame(index=False)
    of_series += [each for each in of_rows if last in of_rows and each not in names]
    for name in names:
        if name not in of_rows:
            of_rows[name] = _column(observations, name)
    series = np.zeros(len(of_rows), np.int64)
    if of_series:
        hashes = pd.util.hash_pandas_object(of_rows[of_series], index=False)
        series = hashes.to_numpy(np.uint64).view(np.int64)
    return _checked(of_rows[last], series, observations.shape[0])


def names_of(order: Any) -> list[str]:
    """Return the names that an order is given by, none for an array of places."""
    names = [order] if isinstance(order, str) else list(np.atleast_1d(order))
    return list(map(str, names)) if all(isinstance(name, str) for name in names) else []


def has_dates_in_order(labels: Labels) -> bool:
    """Return whether the rows are labelled by dates that rise."""
    index = labels.index(labels.rows[0])
    is_one = len(labels.rows) == 1 and isinstance(index, DATES)
    return is_one and index.is_monotonic_increasing and index.is_unique


def _column(observations: Observations, name: str) -> NDArray[Any]:
    """Return the values of a column of X in all rows, positions of classes."""
    labels = observations.labels
    names = labels.flat(labels.columns).tolist()
    if labels.table is not None:
        names = [column.name for column in labels.table.of_matrix]
    at = np.array([each == name for each in names])
    if not at.any():
        raise ValueError(
            f"order={name!r} is no dimension, level of the index or column of X: give the name of "
            "one, or an array of the places of the rows."
        )
    i, j, x = observations.entries()
    values, here = np.full((observations.shape[0], at.sum()), np.nan), at[j]
    values[i[here], np.cumsum(at)[j[here]] - 1] = x[here]
    _refuse_missing(np.asarray(np.isnan(values).all(axis=1)))
    return values[:, 0] if at.sum() == 1 else values.argmax(axis=1)


def _checked(order: Any, series: NDArray[np.int64], m: int) -> RowPlaces:
    """Return places that are numbers or dates, one for each row, and different in a series."""
    values: Any = pd.Series(order)
    if isinstance(values.dtype, pd.PeriodDtype):
        values = values.dt.to_timestamp()
    if len(values) != m:
        raise ValueError(f"order has {len(values)} places, and X {m} rows: give one for each row.")
    try:
        times = numbers_of(values)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"order has {values.iloc[0]!r}, which is no number or date: give numbers or dates."
        ) from error
    _refuse_missing(~np.isfinite(times))
    places = RowPlaces(times, series, np.zeros(m, np.int64))
    if repeated := places.times[places.sequence[places.steps == 0]].tolist():
        raise ValueError(
            f"order has the places {first_few(repeated)} twice: give the names of the series, "
            "too, such as order=['station', 'date']."
        )
    return places


def _refuse_missing(is_missing: NDArray[np.bool_]) -> None:
    """Raise ValueError if the place of a row, or its series, is missing."""
    if rows := np.flatnonzero(is_missing).tolist():
        raise ValueError(
            f"order has no place for the rows {first_few(rows)}: fill it, or leave them out."
        )
