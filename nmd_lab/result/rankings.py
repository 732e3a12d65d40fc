"""The columns with the largest predictions of a row: what to recommend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import sparse

from nmd_lab._runtime.checks import check_integer, check_word, errors_about
from nmd_lab.data.labels import COMPONENT, Labels
from nmd_lab.data.matching import AXES, match, observe_beside
from nmd_lab.data.sparse import is_sparse

from .draws import CHAIN, DRAW
from .entries import entries_at, index_of, is_single, positions_of
from .factors import Factors
from .intervals import PosteriorPredictions
from .mixture import Array

KnownColumns = Callable[[int], NDArray[np.integer]]
"""A function of the position of a row, which returns the columns to leave out."""


class ScoredRows(NamedTuple):
    """What a ranking needs to know of a result.

    Attributes
    ----------
    labels : Labels
        Labels of X.
    rows, columns : DataArray
        Any array along the rows, and one along the columns, with their labels.
    scores : callable
        Function of the position of a row, which returns one number for each column.
    dtype : dtype
        Type of these numbers.
    by_size : bool
        Whether the largest are those of largest absolute value.
    """

    labels: Labels
    rows: xr.DataArray
    columns: xr.DataArray
    scores: Callable[[int], NDArray[np.floating]]
    dtype: np.dtype[Any]
    by_size: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.rows.size, self.columns.size


class Rankings(Factors):
    """The largest predictions of rows."""

    def top(self, row: Any, k: int = 10, *, exclude: Any = None) -> xr.DataArray:
        """Return the k columns with the largest predictions in one or several rows, best first.

        Parameters
        ----------
        row : label, int or array_like
            Labels or positions of the rows, by the rule of `predict`.
        k : int, default 10
            Number of columns.
        exclude : sparse matrix, SparseObservations, DataFrame, DataArray or array_like, optional
            Columns to leave out, because their entries in the row are known: a sparse matrix (its
            stored entries), dense data of the shape of X (entries that are True, or not NaN), or
            labels or positions of columns.  Data with labels may have some of the rows and columns
            only.  A Series has the labels of columns as its index, such as the ratings of one
            person; it holds for all rows.

        Returns
        -------
        xarray.DataArray
            For one row: predictions with the labels of their columns, and the label of the row.
            The coordinate `position` has the positions of the columns.  For several rows: their
            predictions along the rows and `place` (1 is best), with the labels of the columns as
            coordinates.  Where fewer than k columns are left, the rest is NaN, with position -1.

        Raises
        ------
        KeyError
            If X had no such row or column label; the message names them.
        IndexError, TypeError, ValueError
            If another argument is invalid.

        Examples
        --------
        >>> import pandas as pd, nmd_lab as nmd
        >>> X = pd.DataFrame([[1.0, 3, 2], [2.0, 6, 4]], index=["ann", "bo"], columns=list("pqr"))
        >>> fit = nmd.complete(X, 1, alpha=0, random_state=0)
        >>> fit.top("bo", k=2).column.values, fit.top("bo", k=2, exclude=["q"]).values.round(6)
        (array(['q', 'r'], dtype=object), array([4., 2.]))
        >>> fit.top([0, 1], k=2).position.values
        array([[1, 2],
               [1, 2]])
        """
        return ranked_rows(self._scored, row, k, exclude)

    def top_of_components(self, k: int = 10) -> xr.DataArray:
        """Return the k columns with the numbers of largest size in each row of H, the main terms.

        Parameters
        ----------
        k : int, default 10
            Number of columns.

        Returns
        -------
        xarray.DataArray (rank, k)
            Numbers of H along `component` and `place` (1 has the largest absolute value), with the
            labels of the columns as coordinates.  The coordinate `position` has the positions of
            the columns.

        Raises
        ------
        TypeError, ValueError
            If `k` is invalid.

        Examples
        --------
        >>> import pandas as pd, nmd_lab as nmd
        >>> X = pd.DataFrame([[1.0, 3.0, 2.0], [2.0, 6.0, 4.0]], columns=["p", "q", "r"])
        >>> fit = nmd.decompose(X, 1, w_constraint="nonnegative", random_state=0)
        >>> fit.top_of_components(k=2).column.values
        array([['q', 'r']], dtype=object)
        """
        return main_columns(self.labels, self.H, k)

    @property
    def _scored(self) -> ScoredRows:
        """The predictions by row."""
        n = self.shape[1]
        return ScoredRows(
            self.labels,
            self.W.isel({COMPONENT: 0}, drop=True),
            self.H.isel({COMPONENT: 0}, drop=True),
            lambda row: self.fitted.at(np.full(n, row), np.arange(n)),
            self.W.dtype,
        )


def ranked_rows(fit: ScoredRows, row: Any, k: Any, exclude: Any) -> xr.DataArray:
    """Return the largest numbers of rows, by label or position; see `Rankings.top`."""
    positions = positions_of(fit.labels, "rows", row, name="row").ravel()
    return ranking(fit, positions, is_single(fit.labels, "rows", row), k, exclude)


def main_columns(labels: Labels, H: xr.DataArray, k: Any) -> xr.DataArray:
    """Return the numbers of largest size in each row of H; see `Rankings.top_of_components`."""
    rows, rank = H.values.reshape(H.sizes[COMPONENT], -1), H.sizes[COMPONENT]
    columns = H.isel({COMPONENT: 0}, drop=True)
    components = xr.DataArray(np.arange(rank), dims=COMPONENT)
    scored = ScoredRows(labels, components, columns, lambda row: rows[row], H.dtype, by_size=True)
    return ranking(scored, np.arange(rank), False, k, None).rename(H.name or "H")


def ranking(
    fit: ScoredRows, rows: NDArray[np.intp], one_row: bool, k: Any, exclude: Any
) -> xr.DataArray:
    """Return the largest numbers of rows, given their positions."""
    k = check_integer("k", k, 1)
    n = fit.shape[1]
    excluded = _known_columns(fit, exclude)
    found = [_best(fit, row, k, excluded(int(row))) for row in rows]
    columns = _flat(fit.columns, "column_")
    name = fit.labels.name or "prediction"
    if one_row:
        best, scores = found[0]
        dim = str(columns.dims[0])
        chosen = columns.isel({dim: best}).copy(data=scores).rename(name)
        along = _flat(fit.rows, "row_")
        coords = along.isel({along.dims[0]: int(rows[0])}).coords
        names = {label: value for label, value in coords.items() if label not in chosen.coords}
        return chosen.assign_coords({**names, "position": (dim, best)}).assign_attrs(
            row=int(rows[0])
        )
    width = min(k, max((best.size for best, _ in found), default=min(k, n)))
    position = np.full((rows.size, width), -1)
    scores = np.full((rows.size, width), np.nan, dtype=fit.dtype)
    for line, (best, values) in enumerate(found):
        position[line, : best.size], scores[line, : best.size] = best, values
    return _table(fit, rows, position, scores).rename(name)


def _best(
    fit: ScoredRows, row: int, k: int, excluded: NDArray[np.integer]
) -> tuple[NDArray[np.intp], NDArray[np.floating]]:
    """Return the columns of the k largest numbers of a row, and these numbers."""
    n = fit.shape[1]
    scores = fit.scores(int(row))
    table = fit.labels.table
    allowed = np.ones(n, dtype=bool)
    if table is not None and table.of_values.any():  # attributes are in other units
        allowed = table.of_values
    allowed[excluded] = False
    columns = np.flatnonzero(allowed)
    sizes = np.abs(scores) if fit.by_size else scores
    best = columns[np.argsort(-sizes[columns], kind="stable")[:k]]
    return best, scores[best]


def _table(
    fit: ScoredRows, rows: NDArray[np.intp], position: NDArray[Any], scores: NDArray[Any]
) -> xr.DataArray:
    """Return predictions along rows and places, with the labels of the columns."""
    row_template, column_template = _flat(fit.rows, "row_"), _flat(fit.columns, "column_")
    row_dim, column_dim = str(row_template.dims[0]), str(column_template.dims[0])
    place = "place"
    while place in {row_dim, column_dim, *fit.labels.dims, *map(str, fit.labels.coords.coords)}:
        place += "_"
    dims = (row_dim, place)
    table = xr.DataArray(scores, dims=dims, coords=row_template.isel({row_dim: rows}).coords)
    if column_template.coords:
        column_template = column_template.reset_index(list(column_template.indexes))
    for name, coordinate in column_template.coords.items():
        if name not in table.coords and coordinate.dims == (column_dim,):
            picked = xr.DataArray(coordinate.values[position], dims=dims)
            filled = picked if (position >= 0).all() else picked.where(position >= 0)
            table = table.assign_coords({name: filled})
    places = np.arange(1, position.shape[1] + 1)
    return table.assign_coords({place: places, "position": (dims, position)})


def _flat(array: xr.DataArray, name: str) -> xr.DataArray:
    """Return an array with one dimension; several are stacked to one of a name."""
    return array.stack({name: array.dims}) if array.ndim > 1 else array


def _known_columns(fit: ScoredRows, exclude: Any) -> KnownColumns:
    """Return the function that gives the columns of a row to leave out."""
    if exclude is None:
        return _none
    if np.ndim(exclude) < 2 and not is_sparse(exclude):
        columns = _listed_columns(fit.labels, exclude)
        return lambda row: columns
    if _holds_nothing(exclude):
        return _none
    are_flags = not is_sparse(exclude) and np.asarray(exclude).dtype == bool
    with errors_about("exclude"):
        observations = observe_beside(fit.labels, exclude, observed=exclude if are_flags else None)
    labels = observations.labels
    row_positions, column_positions = (match(labels, fit.labels, axis) for axis in AXES)
    if row_positions is None or column_positions is None:
        raise ValueError(
            f"exclude has shape {labels.shape}: give it the shape of X, {fit.labels.shape}."
        )
    i, j, _ = observations.entries()
    i, j = row_positions[i], column_positions[j]
    both = (i >= 0) & (j >= 0)  # what the fit does not have, it cannot recommend
    stored = sparse.csr_array((np.ones(both.sum(), bool), (i[both], j[both])), shape=fit.shape)
    return lambda row: stored.indices[stored.indptr[row] : stored.indptr[row + 1]]


def _listed_columns(labels: Labels, exclude: Any) -> NDArray[np.intp]:
    """Return the positions of a list of columns, or of those that a Series has values for."""
    index = index_of(labels, "columns")
    if hasattr(exclude, "index") and hasattr(exclude, "notna") and index is not None:
        chosen = exclude if exclude.dtype == bool else exclude.notna()
        found: NDArray[np.intp] = index.get_indexer(exclude.index[chosen.to_numpy()])
        return found[found >= 0]  # what the fit does not have, it cannot recommend
    return positions_of(labels, "columns", exclude, name="exclude").ravel()


def _none(row: int) -> NDArray[np.intp]:
    """Return no columns to leave out."""
    return np.empty(0, dtype=np.intp)


def _holds_nothing(exclude: Any) -> bool:
    """Return whether data have no entry to leave out, which is no fault here."""
    if is_sparse(exclude):
        size: int = exclude.nnz if hasattr(exclude, "nnz") else exclude.values.size
        return size == 0
    array = np.asarray(exclude)
    if array.dtype == bool:
        return not array.any()
    return array.dtype.kind == "f" and bool(np.isnan(array).all())


By = Literal["mean", "lower", "upper"]
"""Numbers by which columns are ranked."""


class PosteriorRankings(PosteriorPredictions):
    """The best columns of rows."""

    def top(self, row: Any, k: int = 10, *, by: By = "mean", exclude: Any = None) -> xr.DataArray:
        """Return the k best columns of one or several rows, best first.

        Parameters
        ----------
        row : label, int or array_like
            Labels or positions of the rows, by the rule of `Decomposition.predict`.
        k : int, default 10
            Number of columns.
        by : {"mean", "lower", "upper"}, default "mean"
            What is compared: the prediction, or the lower or upper end of the 90 % interval of
            E f(T) (`predict_interval` with ``noise=False``).  "lower" is for what is surely good,
            "upper" for what may turn out to be.
        exclude : sparse matrix, SparseObservations, DataFrame, DataArray or array_like, optional
            Columns to leave out, as for `Decomposition.top`.

        Returns
        -------
        xarray.DataArray
            The compared numbers, labelled as those of `Decomposition.top`.

        Raises
        ------
        KeyError, IndexError, TypeError, ValueError
            As for `Decomposition.top`.

        Examples
        --------
        >>> import nmd_lab as nmd
        >>> table = nmd.datasets.make_ratings(60, 40, 700, random_state=0)
        >>> ratings = nmd.observations_from_table(table)
        >>> posterior = nmd.sample(ratings, 2, draws=50, random_state=0)
        >>> surest = posterior.top(0, k=3, by="lower", exclude=ratings)
        >>> bool((surest.diff(surest.dims[0]) <= 0).all())
        True
        """
        return ranked_rows(self._scored_by(by), row, k, exclude)

    def _scored_by(self, by: str) -> ScoredRows:
        """Return the numbers that are compared, by row."""
        check_word("by", by, ["mean", "lower", "upper"])
        columns = np.arange(self.shape[1])

        def scores(row: int) -> Array:
            entries = entries_at(row, columns)
            if by == "mean":
                return np.asarray(self.predict(entries))
            ends = self.predict_interval(entries, noise=False)
            return ends[:, 0 if by == "lower" else 1]

        first: dict[str, Any] = {CHAIN: 0, DRAW: 0, COMPONENT: 0}
        W, H = (self.draws[name].isel(first, drop=True) for name in ("W", "H"))
        return ScoredRows(self.labels, W, H, scores, np.dtype(np.float64))
