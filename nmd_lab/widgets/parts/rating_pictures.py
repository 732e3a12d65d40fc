"""Pictures of partly observed data: what was observed, the model, and where it is unsure."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab.data.pictures import Picture, picture_of
from nmd_lab.data.sparse import is_sparse
from nmd_lab.data.sparse_observations import SparseObservations
from nmd_lab.result.entries import entries_at
from nmd_lab.result.posterior.posterior import Posterior
from nmd_lab.widgets.states.frame import Frame, frame_of
from nmd_lab.widgets.states.ratings import Ratings, is_table

Array = NDArray[Any]


def frame_of_ratings(data: Ratings, row: int, columns: Any) -> Frame | None:
    """Return what is shown of some ratings: a row that is a picture, or the whole dense matrix."""
    picture = _picture(data.observations)
    if picture is not None:
        return frame_of(data.observations.shape, picture, rows=np.array([row]))
    dense = not is_sparse(data.matrix) and not is_table(data.matrix, columns)
    return frame_of(data.observations.shape, None) if dense else None


def _picture(observations: SparseObservations) -> Picture | None:
    """Return how the columns make a picture, as their labels say."""
    labels = observations.labels
    template = labels.label_factors(
        np.zeros((observations.shape[0], 1)), np.zeros((1, observations.shape[1]))
    )[1]
    row: xr.DataArray = template[0].drop_vars("component", errors="ignore")
    return picture_of(row, None)


def observed_at(entries: SparseObservations, frame: Frame) -> Array:
    """Return the observed values at the entries of a frame, NaN where there are none."""
    place = [np.full(size, -1) for size in entries.shape]
    place[0][frame.rows] = np.arange(frame.rows.size)
    place[1][frame.columns] = np.arange(frame.columns.size)
    rows, columns, values = entries.entries()
    at, along = place[0][rows], place[1][columns]
    inside = (at >= 0) & (along >= 0)
    observed = np.full((frame.rows.size, frame.columns.size), np.nan)
    observed[at[inside], along[inside]] = values[inside]
    return observed


def spread_at(posterior: Posterior, frame: Frame) -> Array:
    """Return the standard deviation of the posterior at the entries of a frame."""
    spread = posterior.predict_std(entries_at(frame.rows[:, None], frame.columns), noise=False)
    return np.reshape(spread, (frame.rows.size, frame.columns.size))
