"""Factors of a baseline become a `Decomposition`."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import xarray as xr

from nmd_lab.decomposition import Decomposition
from nmd_lab.losses import Loss
from nmd_lab.nonlinearities import Identity
from nmd_lab.observations import FloatArray, Observations


def labelled(
    observations: Observations,
    W: FloatArray,
    H: FloatArray,
    loss: Loss,
    *,
    method: str,
    began: float,
    stop_reason: str,
    **parameters: Any,
) -> Decomposition:
    """Put the labels on and record how close WH is to the observed entries.

    Parameters
    ----------
    observations : Observations
        The data.
    W, H : ndarray (m, rank), (rank, n)
        The factors.
    loss : Loss
        In whose sense the errors are meant.
    method : str
        The name of the baseline.
    began : float
        When the work started, by `time.perf_counter`.
    stop_reason : str
        Why it ended.
    **parameters
        What else the result should remember.
    """
    dtype = observations.values.dtype
    W, H = (np.ascontiguousarray(factor, dtype=dtype) for factor in (W, H))
    values, weights = observations.observed()
    model = W @ H
    if observations.weights is not None:
        model = model[observations.weights > 0]
    data_term = float(np.sum(weights * loss(values, model.ravel())))
    numbers = {
        "objective": data_term,
        "relative_error": loss.relative_error(data_term, loss.reference(values, weights)),
        "seconds": time.perf_counter() - began,
    }
    labelled_W, labelled_H = observations.labels.label_factors(W, H)
    return Decomposition(
        W=labelled_W,
        H=labelled_H,
        nonlinearity=Identity(),
        loss=loss,
        history=xr.Dataset(
            {name: ("iteration", [number]) for name, number in numbers.items()},
            coords={"iteration": [1]},
        ),
        stop_reason=stop_reason,
        parameters={
            "method": method,
            "rank": W.shape[1],
            "iteration": 1,
            "n_observed": observations.n_observed,
            **parameters,
        },
        labels=observations.labels,
    )
