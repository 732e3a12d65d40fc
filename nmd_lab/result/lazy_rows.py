"""W for new rows that are blocks of a Dask array, each computed where its block is."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from nmd_lab.data.base import FloatArray
from nmd_lab.data.labels import COMPONENT, Labels
from nmd_lab.data.row_blocks import dense_rows
from nmd_lab.model.fitted_values import RowModel

from .fold_in import fold_rows


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
