"""The columns with the largest predictions of a row: what to recommend."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import sparse

from nmd_lab._runtime.checks import check_integer, check_word, errors_about
from nmd_lab.data.labels import COMPONENT, Labels, plain_array
from nmd_lab.data.matching import AXES, match, observe_like
from nmd_lab.data.sparse import is_sparse

from .entries import index_of, is_single, positions_of

KnownColumns = Callable[[int], NDArray[np.integer]]
"""A function of the position of a row, which returns the columns to leave out."""


class ScoredRows(NamedTuple):
    """The parts of a result that a ranking needs.

    Attributes
    ----------
    labels : Labels
        Labels of X.
    rows, columns : DataArray
        Any array along the rows, and one along the columns, with their labels.
    scores : callable
        Function of the position of a row, which returns one number for each column.
    by_size : bool
        Whether the largest are those of largest absolute value.
    """

    labels: Labels
    rows: xr.DataArray
    columns: xr.DataArray
    scores: Callable[[int], NDArray[np.floating]]
    by_size: bool = False


def top(result: Any, row: Any, k: Any, by: str, exclude: Any) -> xr.DataArray:
    """Return the largest predictions of rows, by label or position; see `Fitted.top`."""
    check_word("by", by, ["mean", "lower", "upper"])
    labels = result._labels
    m, n = labels.matrix_shape
    W, H = labels.label_factors(np.empty((m, 1)), np.empty((1, n)))
    along_rows, along_columns = (each.isel({COMPONENT: 0}, drop=True) for each in (W, H))
    scored = ScoredRows(labels, along_rows, along_columns, partial(result._ranked_by, by))
    positions = positions_of(labels, "rows", row, name="row").ravel()
    return ranking(scored, positions, is_single(labels, "rows", row), k, exclude)


def main_columns(labels: Labels, H: xr.DataArray, k: Any) -> xr.DataArray:
    """Return the numbers of largest size in each row of H, with the labels of their columns."""
    rows, rank = H.values.reshape(H.sizes[COMPONENT], -1), H.sizes[COMPONENT]
    columns = H.isel({COMPONENT: 0}, drop=True)
    components = xr.DataArray(np.arange(rank), dims=COMPONENT)
    scored = ScoredRows(labels, components, columns, lambda row: rows[row], by_size=True)
    return ranking(scored, np.arange(rank), False, k, None).rename(H.name or "H")


def ranking(
    fit: ScoredRows, rows: NDArray[np.intp], one_row: bool, k: Any, exclude: Any
) -> xr.DataArray:
    """Return the largest numbers of rows, given their positions."""
    k = check_integer("k", k, 1)
    n = fit.labels.matrix_shape[1]
    excluded = _known_columns(fit.labels, exclude)
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
    dtype = found[0][1].dtype if found else np.float64
    scores = np.full((rows.size, width), np.nan, dtype=dtype)
    for line, (best, values) in enumerate(found):
        position[line, : best.size], scores[line, : best.size] = best, values
    return _table(fit, rows, position, scores).rename(name)


def _best(
    fit: ScoredRows, row: int, k: int, excluded: NDArray[np.integer]
) -> tuple[NDArray[np.intp], NDArray[np.floating]]:
    """Return the columns of the k largest numbers of a row, and these numbers."""
    n = fit.labels.matrix_shape[1]
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


def _known_columns(labels: Labels, exclude: Any) -> KnownColumns:
    """Return the function that gives the columns of a row to leave out."""
    if np.ndim(exclude) < 2 and not is_sparse(exclude):
        columns = _listed_columns(labels, [] if exclude is None else exclude)
        return lambda row: columns
    are_flags = not is_sparse(exclude) and plain_array(exclude).dtype == bool
    with errors_about("exclude"):
        observations = observe_like(
            labels, exclude, observed=exclude if are_flags else None, may_be_empty=True
        )
    of_known = observations.labels
    row_positions, column_positions = (match(of_known, labels, axis) for axis in AXES)
    if row_positions is None or column_positions is None:
        raise ValueError(
            f"exclude has shape {of_known.shape}: give it the shape of X, {labels.shape}."
        )
    i, j, _ = observations.entries()
    i, j = row_positions[i], column_positions[j]
    both = (i >= 0) & (j >= 0)  # what the fit does not have, it cannot recommend
    stored = sparse.csr_array(
        (np.ones(both.sum(), bool), (i[both], j[both])), shape=labels.matrix_shape
    )
    return lambda row: stored.indices[stored.indptr[row] : stored.indptr[row + 1]]


def _listed_columns(labels: Labels, exclude: Any) -> NDArray[np.intp]:
    """Return the positions of a list of columns, or of those that a Series has values for."""
    index = index_of(labels, "columns")
    if hasattr(exclude, "index") and hasattr(exclude, "notna") and index is not None:
        chosen = exclude if exclude.dtype == bool else exclude.notna()
        found: NDArray[np.intp] = index.get_indexer(exclude.index[chosen.to_numpy()])
        return found[found >= 0]  # what the fit does not have, it cannot recommend
    return positions_of(labels, "columns", exclude, name="exclude").ravel()
