"""Intervals of new observations: at single entries, and for the cells of a whole table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from nmd_lab._runtime.checks import check_share
from nmd_lab.data.labels import is_frame
from nmd_lab.data.matching import MatchedData
from nmd_lab.data.typed_table import table_of

from .draws import Draws, Positions
from .entries import Entries, entries_at
from .fill import intervals_within_limits
from .fold_in import rows_of, unknown_row
from .mixture import Array, Predictive
from .predict import summarise

BOUNDS = ("low", "high")
"""Names of the ends of an interval."""


def intervals_at(draws: Draws, entries: Entries, level: float, noise: bool = True) -> Array:
    """Return the ends (entries, 2) of equal-tailed intervals at entries.

    The distribution of an observation is a mixture: that of its noise around v in each draw.  A row
    that X does not have is drawn from the prior of rows.
    """
    tails = (1 - level) / 2, (1 + level) / 2

    def ends_of(predictive: Predictive, v: Array, _: Positions | None = None) -> Array:
        if not noise:
            return np.asarray(np.quantile(predictive.mean(v), tails, axis=0).T)
        return np.stack([predictive.quantile(v, tail) for tail in tails], axis=1)

    ends, is_new = np.empty((entries.i.size, 2), draws.dtype), entries.i < 0
    for which in np.unique(is_new):
        of_rows = unknown_row(draws) if which else draws
        at = np.flatnonzero(is_new == which)
        i, j = np.maximum(entries.i[at], 0), entries.j[at]
        ends[at] = summarise(of_rows, entries_at(i, j), ends_of, 2)
        if (other := j < 0).any():
            v = of_rows.linear_at_unknown_column(i[other])
            ends[at[other]] = ends_of(of_rows.predictives[0], v)
    return ends.clip(*draws.scale) if noise and draws.scale is not None else ends


def intervals_of_table(posterior: Any, X: Any, level: float, noise: bool) -> Any:
    """Return intervals of all cells of X; see `Posterior.intervals`."""
    level = check_share("level", level, zero=False)
    _, draws, data = rows_of(posterior, X)
    ordered = _ordered_columns(data)
    grid = entries_at(data.rows[:, None], data.columns[ordered])
    found = intervals_at(draws, grid, level, noise)
    ends = np.full((data.rows.size, data.columns.size, 2), np.nan, found.dtype)
    ends[:, ordered] = found.reshape(data.rows.size, -1, 2)
    if noise:
        at, within = intervals_within_limits(draws, data, level)
        ends[at] = within
    if is_frame(X):
        return _bounds_of_frame(X, data, ends)
    both = [data.observations.labels.label(ends[..., k]) for k in range(2)]
    array = xr.concat(both, "bound").transpose(..., "bound")
    return array.assign_coords(bound=list(BOUNDS))


def _ordered_columns(data: MatchedData) -> NDArray[np.intp]:
    """Return the columns of the data but for the indicators of categories, which have no order."""
    table = data.observations.labels.table
    if table is None:
        return np.arange(data.columns.size)
    return np.flatnonzero([not column.has_indicators for column in table.of_matrix])


def _bounds_of_frame(frame: Any, data: MatchedData, ends: Array) -> pd.DataFrame:
    """Return the ends (m, n, 2) of intervals in the types and with the labels of a DataFrame."""
    table = data.observations.labels.table or table_of(frame, numbers_too=True)
    assert table is not None
    bounds, names = [], []
    empty, every = pd.Series(np.nan, frame.index), np.ones(len(frame), bool)
    for name, (column, at) in zip(frame.columns, table.blocks(), strict=True):
        if column.kind == "categories":
            continue
        for k, bound in enumerate(BOUNDS):
            values = pd.Series(ends[:, at[0], k], frame.index)
            if column.is_class:
                nearest = column.nearest(ends[:, at[0], k, None])
                values = column.filled(empty, nearest, every)
            bounds.append(values)
            names.append((*(name if isinstance(name, tuple) else (name,)), bound))
    if not bounds:  # categories have no order
        return pd.DataFrame(index=frame.index)
    labels = pd.MultiIndex.from_tuples(names, names=[*frame.columns.names, "bound"])
    return pd.concat(bounds, axis=1).set_axis(labels, axis=1)
