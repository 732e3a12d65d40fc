"""What a posterior says of a whole table, in the form of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from nmd_lab._checks import check_share
from nmd_lab.data.labels import is_frame
from nmd_lab.data.matching import MatchedData
from nmd_lab.data.typed_table import table_of
from nmd_lab.result.entries import entries_at

from .cells import cells_by_doubt
from .correlations import latent_correlations
from .imputation import PosteriorImputation
from .kernels import Array

if TYPE_CHECKING:
    import pandas as pd

BOUNDS = ("low", "high")
"""Names of the ends of an interval."""


class PosteriorTables(PosteriorImputation):
    """Intervals of the cells of a table, and correlations of its columns."""

    def intervals(self, X: Any, level: float = 0.9, *, noise: bool = True) -> Any:
        """Return an interval for each cell of a table, whether it is observed or missing.

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
            categories have no order, and are left out (`probabilities` has them).  Otherwise a
            DataArray with the dimension `bound` (low, high) after those of X.

        Raises
        ------
        ValueError, TypeError
            As for `impute`; also if `level` is not in (0, 1).

        Examples
        --------
        >>> import numpy as np, pandas as pd, nmd_lab as nmd
        >>> size = np.arange(30.0)
        >>> X = pd.DataFrame({"size": size, "weight": 2 * size + 1, "adult": size > 14})
        >>> intervals = nmd.sample(X, 1, draws=50, random_state=0).intervals(X)
        >>> intervals["weight"].columns.tolist(), bool(intervals["adult", "low"].iloc[-1])
        (['low', 'high'], True)
        >>> bool((intervals["weight", "low"] < X["weight"]).mean() > 0.8)
        True
        """
        level = check_share("level", level, zero=False)
        posterior, data = self.beside(X)
        grid = entries_at(data.rows[:, None], data.columns)
        ends = posterior.predict_interval(grid, level=level, noise=noise)
        ends = ends.reshape(data.rows.size, data.columns.size, 2)
        if is_frame(X):
            return _bounds_of_frame(X, data, ends)
        both = [data.observations.labels.label(ends[..., k]) for k in range(2)]
        array = xr.concat(both, "bound").transpose(..., "bound")
        return array.assign_coords(bound=list(BOUNDS))

    def correlations(self, level: float = 0.9) -> xr.Dataset:
        """Return the correlations of the columns, behind their levels, limits and holes.

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
        >>> import numpy as np, pandas as pd, nmd_lab as nmd
        >>> size = np.random.default_rng(0).normal(size=50)
        >>> X = pd.DataFrame({"size": size, "debt": 3 - 2 * size, "adult": size > 0})
        >>> r = nmd.sample(X, 1, draws=50, random_state=0).correlations()
        >>> r["mean"].sel(column="size", column_="debt").item() < -0.9
        True
        """
        return latent_correlations(self, check_share("level", level, zero=False))

    def reliability(self, X: Any) -> pd.DataFrame:
        """Return held-out cells, surest first, with the error of those that are as sure or surer.

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
            deviation without anything observed in the row, of a class 0 or 1.  `share` is the share
            of the cells of this kind up to the line, and `error` their error: root mean square, or
            share of wrong classes.

        Raises
        ------
        ValueError, TypeError
            As for `predict`; also if the draws lack `row_precision`.

        See Also
        --------
        nmd_lab.plots.reliability : `error` against `share`.

        Examples
        --------
        >>> import numpy as np, pandas as pd, nmd_lab as nmd
        >>> size = np.random.default_rng(0).normal(size=50)
        >>> truth = pd.DataFrame({"size": size, "debt": 3 - 2 * size, "adult": size > 0})
        >>> held_out = np.random.default_rng(1).random(truth.shape) < 0.2
        >>> posterior = nmd.sample(
        ...     truth.mask(held_out).convert_dtypes(), 1, draws=50, random_state=0
        ... )
        >>> cells = posterior.reliability(truth.convert_dtypes().where(held_out))
        >>> bool(len(cells) == held_out.sum()), sorted(cells["kind"].unique())
        (True, ['class', 'number'])
        """
        return cells_by_doubt(self, X)


def _bounds_of_frame(frame: Any, data: MatchedData, ends: Array) -> pd.DataFrame:
    """Return the ends (m, n, 2) of intervals in the types and with the labels of a DataFrame."""
    import pandas as pd

    table = data.observations.labels.table or table_of(frame, numbers_too=True)
    assert table is not None
    bounds, names = [], []
    empty = pd.Series(np.nan, frame.index)
    for name, (column, at) in zip(frame.columns, table.blocks(), strict=True):
        if column.kind == "categories":
            continue
        for k, bound in enumerate(BOUNDS):
            values = ends[:, at[0], k]
            is_number = column.kind == "number"
            typed = (
                values if is_number else column.filled(empty, column.nearest(values[:, None])).array
            )
            bounds.append(pd.Series(typed, frame.index))
            names.append((*(name if isinstance(name, tuple) else (name,)), bound))
    if not bounds:  # categories have no order
        return pd.DataFrame(index=frame.index)
    labels = pd.MultiIndex.from_tuples(names, names=[*frame.columns.names, "bound"])
    return pd.concat(bounds, axis=1).set_axis(labels, axis=1)
