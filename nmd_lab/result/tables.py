"""A posterior of a whole table: intervals, correlations, reliability, whole matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from nmd_lab._runtime.checks import check_share
from nmd_lab.data.labels import any_frame, is_frame
from nmd_lab.data.matching import MatchedData
from nmd_lab.data.typed_table import TypedColumn, table_of

from .entries import entries_at, entries_of
from .imputation import Positions, PosteriorImputation, intervals_within
from .loadings import latent_correlations
from .mixture import Array


def held_out_cells(posterior: PosteriorImputation, X: Any) -> pd.DataFrame:
    """Return the observed cells of test data, as `cells_at` does."""
    entries = entries_of(posterior._labels, X, None, None, "the posterior")
    assert entries.data is not None
    values = entries.data.observations.entries()[2].astype(np.float64)
    return cells_at(posterior, entries.i, entries.j, values)


def cells_at(
    posterior: PosteriorImputation, i: Positions, j: Positions, values: Array | None = None
) -> pd.DataFrame:
    """Return the cells of the table at entries of the matrix, with what is observed if given.

    Columns `row` and `column` are positions in the matrix, of the first indicator for a category.
    """
    unknown = posterior._unknown_row()
    columns = [] if posterior._labels.table is None else list(posterior._labels.table.blocks())
    classes = [(c, at) for c, at in columns if c.kind in ("boolean", "categories")]
    of_classes = np.concatenate([np.empty(0, np.intp), *(at for _, at in classes)])
    at = np.flatnonzero(~np.isin(j, of_classes))
    spread = unknown.predict_std(entries_at(0, np.arange(posterior._shape[1])))[j[at]]
    groups = [_numbers(posterior, i[at], j[at], spread, None if values is None else values[at])]
    for column, positions in classes:
        at, codes = np.flatnonzero(j == positions[0]), None
        if values is not None:
            codes = values[at]
            if column.has_indicators:  # those of a cell follow one another
                codes = values[at[:, None] + np.arange(positions.size)].argmax(axis=1)
        known = unknown._mean_class_shares(np.zeros(1, np.intp), positions).max()
        cells = _classes(posterior._mean_class_shares(i[at], positions), column, known, codes)
        cells.insert(0, "row", i[at])
        cells.insert(1, "column", j[at])
        groups.append(cells)
    return pd.concat([group for group in groups if len(group)] or groups[:1], ignore_index=True)


def _numbers(
    posterior: PosteriorImputation, i: Positions, j: Positions, spread: Array, x: Array | None
) -> pd.DataFrame:
    """Return cells of numbers and levels: their error is in units of the spread of the column."""
    entries = entries_at(i, j)
    predicted = posterior.predict(entries)
    cells = pd.DataFrame({"row": i, "column": j, "kind": "number"})
    cells["predicted"] = predicted.astype(object)
    cells["unsure"] = _ratio(posterior.predict_std(entries), spread)
    if x is not None:
        cells["observed"] = x.astype(object)
        cells["wrong"] = _ratio(x - predicted, spread)
    return cells


def _classes(
    p: Array, column: TypedColumn, known: float, codes: NDArray[Any] | None
) -> pd.DataFrame:
    """Return cells of booleans or categories: a wrong class is an error of one.

    `p` are the probabilities of the classes, and `known` the largest one in an unknown row.
    """
    classes, best = np.array([*column.classes, None], dtype=object), p.argmax(axis=1)
    cells = pd.DataFrame({"kind": "class", "predicted": classes[best]})
    cells["probability"] = p.max(axis=1)
    cells["unsure"] = _ratio(1 - p.max(axis=1), np.full(best.size, 1 - known))
    if codes is not None:
        cells["observed"] = classes[codes.astype(np.intp)]
        cells["wrong"] = (best != codes).astype(np.float64)
    return cells


def _ratio(numbers: Array, of: Array) -> Array:
    """Return a quotient, 0 where nothing is unsure."""
    return np.divide(numbers, of, out=np.zeros(numbers.shape), where=of > 1e-12)


def with_labels(posterior: PosteriorImputation, cells: pd.DataFrame) -> pd.DataFrame:
    """Return cells with labels of rows and columns in the place of their positions."""
    labels = posterior._labels
    names = labels.flat(labels.columns).astype(object)
    if labels.table is not None:
        each = (column.name for column in labels.table.of_matrix)
        names = np.fromiter(each, dtype=object, count=names.size)
    order = ["row", "column", "kind", "observed", "predicted", "unsure", "wrong", "share", "error"]
    rows = labels.flat(labels.rows)[cells["row"]]
    cells = cells.assign(row=rows, column=names[cells["column"]])
    return cells[[name for name in order if name in cells]]


BOUNDS = ("low", "high")
"""Names of the ends of an interval."""


class PosteriorTables(PosteriorImputation):
    """Intervals of the cells of a table, and correlations of its columns."""

    @any_frame
    def intervals(self, X: Any, level: float = 0.9, *, noise: bool = True) -> Any:
        """Return an interval for each cell of a table, whether it is observed or missing.

        A cell of which the fit knows only limits has an interval within them.

        Parameters
        ----------
        X : array_like, masked array, DataFrame or DataArray
            The fitted data, some of their rows and columns by label, or new rows, by the rule of
            `impute`.
        level : float, default 0.9
            Probability of an interval, in (0, 1).
        noise : bool, default True
            Whether the noise of an observation counts, as for `predict_interval`.

        Returns
        -------
        DataFrame or DataArray
            For a DataFrame, one with its index, and two columns for each of its columns:
            ``(column, "low")`` and ``(column, "high")``.  Ends are numbers, levels or booleans;
            categories have no order, and are left out (`probabilities` has them).  Columns are
            named ``column_low`` and ``column_high`` in polars and Arrow.  For other data a
            DataArray with the dimension `bound` (low, high) after those of X.

        Raises
        ------
        ValueError, TypeError
            As for `impute`; also if `level` is not in (0, 1).

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> intervals = posterior.intervals(wine)
        >>> intervals["alcohol"].columns.tolist()
        ['low', 'high']
        >>> inside = wine["alcohol"].between(
        ...     intervals["alcohol", "low"], intervals["alcohol", "high"]
        ... )
        >>> bool(inside.mean() > 0.8)
        True
        """
        level = check_share("level", level, zero=False)
        posterior, data = self._matched(X)
        ordered = _ordered_columns(data)
        grid = entries_at(data.rows[:, None], data.columns[ordered])
        found = posterior.predict_interval(grid, level=level, noise=noise)
        ends = np.full((data.rows.size, data.columns.size, 2), np.nan, found.dtype)
        ends[:, ordered] = found.reshape(data.rows.size, -1, 2)
        if noise:
            at, within = intervals_within(posterior, data, level)
            ends[at] = within
        if is_frame(X):
            return _bounds_of_frame(X, data, ends)
        both = [data.observations.labels.label(ends[..., k]) for k in range(2)]
        array = xr.concat(both, "bound").transpose(..., "bound")
        return array.assign_coords(bound=list(BOUNDS))

    def correlations(self, level: float = 0.9) -> xr.Dataset:
        """Return the correlations of the columns, behind their levels, limits and missing cells.

        They are those of T in a new row: those that f(T), cut points and limits only show in part.
        The covariance in a draw is H' Σ H plus the noise of each column, with the covariance Σ of
        the rows of W, within and between their groups; the offset of a row counts as a component.

        Parameters
        ----------
        level : float, default 0.9
            Probability of the intervals, in (0, 1).

        Returns
        -------
        xarray.Dataset
            Variables `mean`, `low` and `high`, along the dimensions of the columns of X and again
            along these with "_" after their names.  A category has a column for each indicator.

        Raises
        ------
        ValueError
            If `level` is not in (0, 1), or the draws lack `row_precision`.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> r = posterior.correlations()
        >>> bool(r["low"].sel(column="flavanoids", column_="total_phenols") > 0.7)
        True
        """
        return latent_correlations(self, check_share("level", level, zero=False))

    def reliability(self, X: Any) -> pd.DataFrame:
        """Return held-out cells, most certain first, with the error of those up to each.

        Parameters
        ----------
        X : array_like, masked array, DataFrame, DataArray, scipy.sparse or SparseObservations
            Test data, as for `predict`: what `sample` has not seen, and NaN elsewhere.

        Returns
        -------
        pandas.DataFrame
            One line for each cell.  `kind` is "number" (and level) or "class" (yes or no, too).
            `unsure` is 0 where nothing is, and 1 where as much is as without anything observed in
            the row: for a number the ratio of the standard deviations, for a class that of the
            probabilities to be wrong.  `wrong` is the error, of a number in units of its standard
            deviation without anything observed in the row, of a class 0 or 1.  `share` is the
            fraction of the cells of this kind up to the line, and `error` their error: root mean
            square, or fraction of wrong classes.

        Raises
        ------
        ValueError, TypeError
            As for `predict`; also if the draws lack `row_precision`.

        See Also
        --------
        nmd_lab.plots.reliability : `error` against `share`.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> train, test = nmd.split_observed(wine, 0.1, random_state=0)
        >>> posterior = nmd.sample(train, 3, draws=50, random_state=0)
        >>> cells = posterior.reliability(test)
        >>> (
        ...     bool(len(cells) == test.notna().sum().sum()),
        ...     bool(cells["unsure"].is_monotonic_increasing),
        ... )
        (True, True)
        >>> bool(cells["error"][115] < cells["error"].iloc[-1])  # the surer half
        True
        """
        cells = held_out_cells(self, X).sort_values("unsure", kind="stable", ignore_index=True)
        by_kind = cells.assign(one=1.0, square=cells["wrong"] ** 2).groupby("kind")
        count = by_kind["one"].cumsum()
        error = (by_kind["square"].cumsum() / count) ** 0.5
        error = error.where(cells["kind"] == "number", by_kind["wrong"].cumsum() / count)
        share = count / by_kind["one"].transform("sum")
        return with_labels(self, cells.assign(share=share, error=error))


def _ordered_columns(data: MatchedData) -> Positions:
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
