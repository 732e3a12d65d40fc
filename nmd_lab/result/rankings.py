"""The columns with the largest predictions of a row: what to recommend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


Best = tuple[NDArray[np.intp], NDArray[np.floating]]
"""Columns of the largest numbers of a row, and these numbers."""


def top(result: Any, row: Any, k: Any, by: str, exclude: Any) -> xr.DataArray:
    """Return the largest predictions of rows, by label or position; see `Fitted.top`."""
    check_word("by", by, ["mean", "lower", "upper"])
    labels: Labels = result._labels
    rows = positions_of(labels, "rows", row, name="row").ravel()
    k, excluded = check_integer("k", k, 1), _known_columns(labels, exclude)
    best = [_best(labels, result._ranked_by(by, i), k, excluded(i)) for i in rows.tolist()]
    W = labels.label_rows(np.empty((labels.matrix_shape[0], 1)))
    along = _flat(W.isel({COMPONENT: 0}, drop=True), "row_")
    if is_single(labels, "rows", row):
        found = _one_row(labels, along, int(rows[0]), *best[0])
    else:
        found = _table(labels, along, rows, best, min(k, labels.matrix_shape[1]))
    return found.rename(labels.name or "prediction")


def main_columns(labels: Labels, H: xr.DataArray, k: Any) -> xr.DataArray:
    """Return the numbers of largest size in each row of H, with the labels of their columns."""
    k, rank = check_integer("k", k, 1), H.sizes[COMPONENT]
    each = H.values.reshape(rank, -1)
    best = [_best(labels, row, k, np.empty(0, np.intp), by_size=True) for row in each]
    components = xr.DataArray(np.arange(rank), dims=COMPONENT)
    return _table(labels, components, np.arange(rank), best, k).rename(H.name or "H")


def _best(
    labels: Labels,
    scores: NDArray[np.floating],
    k: int,
    excluded: NDArray[np.integer],
    by_size: bool = False,
) -> Best:
    """Return the columns of the k largest numbers of a row, and these numbers."""
    allowed = np.ones(scores.size, dtype=bool)
    if labels.table is not None and labels.table.of_values.any():  # attributes are in other units
        allowed = labels.table.of_values
    allowed[excluded] = False
    columns = np.flatnonzero(allowed)
    sizes = np.abs(scores) if by_size else scores
    best = columns[np.argsort(-sizes[columns], kind="stable")[:k]]
    return best, scores[best]


def _along_columns(labels: Labels) -> xr.DataArray:
    """Return an array along the columns, with their labels."""
    H = labels.label_columns(np.empty((1, labels.matrix_shape[1])))
    return _flat(H.isel({COMPONENT: 0}, drop=True), "column_")


def _one_row(
    labels: Labels,
    along_rows: xr.DataArray,
    row: int,
    best: NDArray[np.intp],
    scores: NDArray[np.floating],
) -> xr.DataArray:
    """Return the best numbers of a row with the labels of their columns, and that of the row."""
    columns = _along_columns(labels)
    dim = str(columns.dims[0])
    chosen = columns.isel({dim: best}).copy(data=scores)
    coords = along_rows.isel({along_rows.dims[0]: row}).coords
    names = {label: value for label, value in coords.items() if label not in chosen.coords}
    return chosen.assign_coords({**names, "position": (dim, best)}).assign_attrs(row=row)


def _table(
    labels: Labels, along_rows: xr.DataArray, rows: NDArray[np.intp], each: list[Best], most: int
) -> xr.DataArray:
    """Return the best numbers along rows and places, with the labels of the columns."""
    width = max((best.size for best, _ in each), default=most)
    position = np.full((rows.size, width), -1)
    numbers = np.full(position.shape, np.nan, each[0][1].dtype if each else np.float64)
    for line, (best, scores) in enumerate(each):
        position[line, : best.size], numbers[line, : best.size] = best, scores
    columns = _along_columns(labels)
    row_dim, column_dim = str(along_rows.dims[0]), str(columns.dims[0])
    place = "place"
    while place in {row_dim, column_dim, *labels.dims, *map(str, labels.coords.coords)}:
        place += "_"
    dims = (row_dim, place)
    table = xr.DataArray(numbers, dims=dims, coords=along_rows.isel({row_dim: rows}).coords)
    if columns.coords:
        columns = columns.reset_index(list(columns.indexes))
    for name, coordinate in columns.coords.items():
        if name not in table.coords and coordinate.dims == (column_dim,):
            picked = xr.DataArray(coordinate.values[position], dims=dims)
            filled = picked if (position >= 0).all() else picked.where(position >= 0)
            table = table.assign_coords({name: filled})
    places = np.arange(1, width + 1)
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
