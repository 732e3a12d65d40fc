"""W for new rows of X, also of blocks of a Dask array, and these rows beside those of a fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from nmd_lab._runtime.checks import check_no_fit
from nmd_lab.data.entries import FloatArray, row_pointers
from nmd_lab.data.inputs import observe
from nmd_lab.data.labels import COMPONENT, Labels
from nmd_lab.data.masks import NO_LIMITS, GivenLimits
from nmd_lab.data.matching import first_few, is_default, known_columns, plain_label
from nmd_lab.data.observations import Observations
from nmd_lab.data.split import dense_rows
from nmd_lab.model.fitted_values import RowModel
from nmd_lab.model.losses import Loss
from nmd_lab.model.model import Model

from .factors import Factors


def fold_in(
    labels: Labels, model: RowModel, X: Any, unknown: str, **arguments: Any
) -> xr.DataArray:
    """Return the labelled rows of W for new rows of X; see `Predictions.fold_in`."""
    observed = observe_rows(labels, X, absent_are_zeros=model.absent_are_zeros, **arguments)
    observations, columns = match_rows(labels, observed, unknown)
    W, offsets = fold_rows(model, observations, columns)
    labelled = observed.labels.label_rows(W)
    if offsets is None:
        return labelled
    per_row = observed.labels.label_rows(offsets[:, None]).isel({COMPONENT: 0}, drop=True)
    return labelled.assign_coords(offset=per_row)


def observe_rows(
    labels: Labels,
    X: Any,
    *,
    observed: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    limits: GivenLimits = NO_LIMITS,
    absent_are_zeros: bool = False,
) -> Observations:
    """Return the observations of new rows, which have the column dimensions of a fit."""
    check_no_fit("X", X)
    if getattr(X, "ndim", 2) == 1 and hasattr(X, "to_frame"):  # a pandas.Series is one row
        X = X.to_frame().T
    sample_dims = None
    if isinstance(X, xr.DataArray):
        others = [str(dim) for dim in X.dims if dim not in labels.columns]
        if X.ndim > 2 or len(others) == 1:
            sample_dims = others
    return observe(
        X,
        observed=observed,
        weights=weights,
        sample_dims=sample_dims,
        table=labels.table,
        limits=limits,
        absent_are_zeros=absent_are_zeros,
        may_be_empty=True,
    )


def match_rows(
    labels: Labels, observations: Observations, unknown: str
) -> tuple[Observations, NDArray[np.intp]]:
    """Return new rows without unknown columns, and the position in the fit of each other column."""
    of_rows = observations.labels
    columns = known_columns(labels, observations, unknown)
    in_fit = columns >= 0
    if not in_fit.all():
        rows = observations.as_sparse()
        keep = in_fit[rows.indices]
        m, dtype = rows.shape[0], rows.indptr.dtype
        observations = replace(
            rows,
            values=rows.values[keep],
            weights=None if rows.weights is None else rows.weights[keep],
            indptr=row_pointers(rows.rows[keep], m, dtype),
            indices=(np.cumsum(in_fit) - 1)[rows.indices[keep]].astype(rows.indices.dtype),
            labels=Labels.plain((m, int(in_fit.sum()))),
            limits=None if rows.limits is None else rows.limits.at(keep),
        )
    empty = np.flatnonzero(observations.counts(1) == 0)
    if unknown == "error" and empty.size:
        places = of_rows.at_positions(of_rows.rows, empty).values()
        names = next(iter(places)) if len(places) == 1 else zip(*places, strict=True)
        raise ValueError(
            f"X has no observed entry in the rows {first_few(names)}: leave them out, or give "
            "unknown='offsets'."
        )
    return observations, columns[in_fit]


def fold_rows(
    model: RowModel,
    observations: Observations,
    columns: NDArray[np.intp] | None = None,
    *,
    threads: int | None = None,
) -> tuple[FloatArray, FloatArray | None]:
    """Return W (m, rank) of new rows, and their offsets (m,) if the fit has row offsets."""
    from nmd_lab.solver.new_rows import solve_new_rows

    columns = np.arange(model.H.shape[1]) if columns is None else columns
    check_values(model.model, columns, observations)
    return solve_new_rows(model, observations, columns, threads=threads)


def check_values(model: Model, columns: NDArray[np.intp], observations: Observations) -> None:
    """Raise ValueError for values that the loss, or that of their column, does not define."""
    x, weights = observations.observed()
    if model.which is None:
        _check(model.loss, x, weights)
        return
    if model.which.ndim == 2:
        raise ValueError(
            "The fit has a loss for each entry, so that new rows have none: fit with one for each "
            "column."
        )
    _, j, x = observations.entries()
    which, x = model.which[columns[j]], x.astype(np.float64)
    for position in np.unique(which):
        at = which == position
        _check(model.kinds[position].loss, x[at], weights[at])


def _check(loss: Loss, x: FloatArray, weights: FloatArray) -> None:
    """Raise ValueError for values that a loss does not define."""
    if x.size:
        loss.check_data(float(x.min()), float(x.max()))
        loss.for_data(x, weights)


def is_dask_array(X: Any) -> bool:
    """Return whether X is an array of Dask."""
    return type(X).__module__.startswith("dask.array")


def fold_in_blocks(model: RowModel, X: Any) -> xr.DataArray:
    """Return the rows of W for a Dask array of new rows, as a DataArray over a Dask array."""
    rank, n = model.H.shape
    if X.ndim != 2 or X.shape[1] != n:
        raise ValueError(f"X has shape {X.shape}: give rows of the {n} columns of the fit.")
    has_offsets = model.offsets.rows is not None
    width = rank + int(has_offsets)
    lean = model._replace(offsets=model.offsets._replace(rows=np.zeros(0) if has_offsets else None))
    blocks = X.rechunk({1: -1})
    rows = blocks.map_blocks(
        rows_of_block, lean, width, dtype=model.H.dtype, chunks=(blocks.chunks[0], (width,))
    )
    labels = Labels.plain((X.shape[0], n))
    labelled = xr.DataArray(rows[:, :rank], dims=(*labels.rows, COMPONENT))
    if has_offsets:
        labelled = labelled.assign_coords(offset=(labels.rows, rows[:, rank]))
    return labelled


def rows_of_block(block: Any, model: RowModel, width: int) -> FloatArray:
    """Return the rows of W for a block, with their offsets in a last column if there are any."""
    out = np.zeros((len(block), width), model.H.dtype)
    observations = dense_rows(block, None, None, model.H.dtype)
    if observations.n_observed:
        W, offsets = fold_rows(model, observations)
        out[:, : W.shape[1]] = W
        if offsets is not None:
            out[:, -1] = offsets
    return out


def are_factors(fit: Factors, rows: Any) -> bool:
    """Return whether rows are those of W, which have components instead of columns."""
    return isinstance(rows, xr.DataArray) and COMPONENT in rows.dims


def checked_rows(
    fit: Factors, W: xr.DataArray
) -> tuple[NDArray[np.floating], NDArray[np.floating] | None]:
    """Return new rows of W as a matrix, and all row offsets, None if the fit has none."""
    if W.ndim != 2 or W.sizes[COMPONENT] != fit.rank:
        raise ValueError(
            f"rows has the shape {dict(W.sizes)}: give rows of X, or what fold_in() of this fit "
            f"returned, with {fit.rank} components."
        )
    W = W.transpose(..., COMPONENT)
    if not np.all(np.isfinite(W.values)):
        raise ValueError("rows holds NaN or infinite weights: give what fold_in() returned.")
    if fit.offsets.rows is None:
        return W.values, None
    if "offset" not in W.coords:
        raise ValueError("rows has no coordinate 'offset': give what fold_in() returned.")
    new = W.coords["offset"].values.astype(fit.offsets.rows.dtype)
    return W.values, np.concatenate([fit.offsets.rows, new])


def with_rows(labels: Labels, W: xr.DataArray) -> Labels:
    """Return the labels of a fit with those of new rows of W."""
    (dim,), (new_dim,) = labels.rows, [str(dim) for dim in W.dims if dim != COMPONENT]
    axis, k = labels.dims.index(dim), W.sizes[new_dim]
    m = labels.shape[axis]
    along = {name: c for name, c in labels.coords.coords.items() if dim in c.dims}
    coords = labels.coords.drop_vars(list(along))
    index = labels.coords.indexes.get(dim)
    if index is not None:
        coords = coords.assign_coords(_index_coords(dim, _more_labels(dim, index, new_dim, W)))
    for name, coordinate in along.items():
        if coordinate.dims == (dim,) and name not in coords.coords:
            new = W.coords[name].values if name in W.coords else _missing(coordinate.values, k)
            values = np.concatenate([coordinate.values, new])
            coords = coords.assign_coords({name: (dim, values, coordinate.attrs)})
    shape = (*labels.shape[:axis], m + k, *labels.shape[axis + 1 :])
    return replace(labels, shape=shape, coords=coords)


def _more_labels(dim: str, index: Any, new_dim: str, W: xr.DataArray) -> Any:
    """Return the row labels of a fit and of new rows, as one pandas.Index."""
    new, k = W.indexes.get(new_dim), W.sizes[new_dim]
    if new is None or is_default(new_dim, new):
        if not is_default(dim, index):
            raise ValueError(
                f"rows has no row labels, but the fit has labels along {dim!r}: give a DataFrame "
                "or a DataArray with labels of their own."
            )
        new = pd.RangeIndex(len(index), len(index) + k)
    if new.nlevels != index.nlevels:
        raise ValueError(
            f"rows has row labels of {new.nlevels} levels: give the {index.nlevels} of the fit."
        )
    repeated = new.isin(index) | new.duplicated()
    if repeated.any():
        label = new[int(np.argmax(repeated))]
        raise ValueError(
            f"rows has the row label {plain_label(label)!r}, which is there already: give each row "
            "a new one."
        )
    return index.append(new).set_names(index.names)


def _index_coords(dim: str, index: Any) -> Any:
    """Return the coordinates of a pandas.Index along a dimension."""
    if index.nlevels > 1:
        return xr.Coordinates.from_pandas_multiindex(index, dim)
    return {dim: index.rename(dim)}


def _missing(values: NDArray[Any], size: int) -> NDArray[Any]:
    """Return so many values that stand for a missing one beside these values."""
    if values.dtype.kind in "mM":
        return np.full(size, "NaT", dtype=values.dtype)
    if values.dtype.kind in "iubf":
        return np.full(size, np.nan)
    is_text = values.dtype.kind in "UT" or all(isinstance(value, str) for value in values)
    return np.full(size, "" if is_text else None, dtype=object)
