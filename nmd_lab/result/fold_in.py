"""W for new rows of X, with the H of a fit."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from nmd_lab.data.base import FloatArray, Observations
from nmd_lab.data.labels import COMPONENT, Labels
from nmd_lab.data.observations import observe
from nmd_lab.model.losses import Loss
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.model.offsets import Offsets
from nmd_lab.model.proximal import make_pair


class FittedModel(NamedTuple):
    """The parts of a fit that determine W for new rows.

    Attributes
    ----------
    nonlinearity : Nonlinearity
        Nonlinearity f.
    loss : Loss
        Loss d.
    H : ndarray (rank, n)
        Right factor.
    offsets : Offsets
        Offsets, which are added to WH inside f.
    labels : Labels
        Labels of the fitted matrix.
    alpha, epsilon : float
        Ridge of the objective, and relative ridge of the factor steps.
    """

    nonlinearity: Nonlinearity
    loss: Loss
    H: FloatArray
    offsets: Offsets
    labels: Labels
    alpha: float
    epsilon: float


def fold_in(
    model: FittedModel,
    X: Any,
    *,
    mask: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> xr.DataArray:
    """Return the labelled rows of W for new rows of X; see `Predictions.fold_in`."""
    sample_dims = None
    if isinstance(X, xr.DataArray) and X.ndim > 2:
        sample_dims = [str(dim) for dim in X.dims if dim not in model.labels.columns]
    observations = observe(X, mask=mask, weights=weights, sample_dims=sample_dims)
    W, offsets = fold_rows(model, observations)
    labelled = observations.labels.label_rows(W)
    if offsets is None:
        return labelled
    per_row = observations.labels.label_rows(offsets[:, None]).isel({COMPONENT: 0}, drop=True)
    return labelled.assign_coords(offset=per_row)


def fold_rows(
    model: FittedModel, observations: Observations, *, threads: int | None = None
) -> tuple[FloatArray, FloatArray | None]:
    """Return W (m, rank) of new rows, and their offsets (m,) if the fit has row offsets.

    Parameters
    ----------
    model : FittedModel
        Model of the fit.
    observations : Observations
        New rows, with the columns of the fit in any order.
    threads : int, optional
        Number of threads, each for one block of rows at a time; by default all.
    """
    from nmd_lab.solver.new_rows import RowProblem, solve_new_rows

    n = model.H.shape[1]
    if observations.shape[1] != n:
        raise ValueError(f"X has {observations.shape[1]} columns: give the {n} of the fit.")
    order = observations.labels.order_of_columns(model.labels)
    pair = make_pair(model.nonlinearity, model.loss)
    values, _ = observations.observed()
    pair.loss.check_data(float(values.min()), float(values.max()))
    base = model.offsets.mean + model.offsets.of_columns(n, float) + np.zeros(n)
    problem = RowProblem(
        pair,
        np.ascontiguousarray(model.H.T)[order],
        base[order],
        model.offsets.rows is not None,
        model.alpha,
        model.epsilon,
    )
    return solve_new_rows(problem, observations, threads=threads)
