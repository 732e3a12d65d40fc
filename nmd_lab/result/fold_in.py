"""W for new rows of X, also of blocks of a Dask array."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from nmd_lab._runtime.checks import check_no_fit
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.inputs import observe, observe_dense
from nmd_lab.data.labels import COMPONENT, Labels
from nmd_lab.data.masks import NO_LIMITS, GivenLimits
from nmd_lab.data.matching import first_few, known_columns
from nmd_lab.data.observations import Observations
from nmd_lab.model.fitted_values import RowModel
from nmd_lab.model.losses import Loss
from nmd_lab.model.model import Model


def fold_in(
    labels: Labels, model: RowModel, X: Any, unknown: str, **arguments: Any
) -> xr.DataArray:
    """Return the labelled rows of W for new rows of X; see `Decomposition.fold_in`."""
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
        known = rows.select(in_fit[rows.indices])
        position = (np.cumsum(in_fit) - 1).astype(known.indices.dtype)
        labels = Labels.plain((rows.shape[0], int(in_fit.sum())))
        observations = replace(known, indices=position[known.indices], labels=labels)
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
    observations = observe_dense(block, dtype=model.H.dtype, may_be_empty=True)
    if observations.n_observed:
        W, offsets = fold_rows(model, observations)
        out[:, : W.shape[1]] = W
        if offsets is not None:
            out[:, -1] = offsets
    return out
