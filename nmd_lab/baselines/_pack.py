"""From plain factors to what a baseline returns: their error, and a labelled `Decomposition`."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from nmd_lab.data.base import FloatArray, Observations
from nmd_lab.model.losses import Loss
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.solver.storage import layout_of


def data_term(
    observations: Observations, f: Nonlinearity, loss: Loss, W: FloatArray, H: FloatArray
) -> float:
    """Return the weighted loss of f(WH) on the observed entries, block by block.

    Parameters
    ----------
    observations : Observations
        The data, with absent entries missing.
    f : Nonlinearity
        What predictions pass through.
    loss : Loss
        What an error costs.
    W, H : ndarray (m, rank), (rank, n)
        C-ordered factors of the observations' dtype.
    """
    layout, values = layout_of(observations), observations.values.ravel()
    weights = None if observations.weights is None else observations.weights.ravel()
    right, buffer = layout.prepare(H), np.empty(layout.block_size, dtype=W.dtype)
    total = 0.0
    for block in layout.blocks():
        model = buffer[: block.entries.stop - block.entries.start]
        layout.products(block, W, right, model)
        losses = loss(values[block.entries], f(model))
        total += float(np.sum(losses if weights is None else losses * weights[block.entries]))
    return total


def plain(value: Any) -> Any:
    """Return a number or a word as a file can hold it, and of anything else its type."""
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, str | float | int | None) else f"given {type(value).__name__}"


def decomposition_of(
    observations: Observations,
    f: Nonlinearity,
    loss: Loss,
    factors: tuple[FloatArray, FloatArray],
    history: dict[str, list[float]],
    stop_reason: str,
    parameters: dict[str, Any],
) -> Decomposition:
    """Return the result of a baseline, with the labels of X back on.

    Parameters
    ----------
    observations : Observations
        The data.
    f, loss : Nonlinearity, Loss
        What predictions pass through, and in whose sense errors are meant.
    factors : tuple of ndarray
        W (m, rank) and H (rank, n).
    history : dict of list of float
        The recorded numbers of all iterations.
    stop_reason : str
        Why the work ended.
    parameters : dict
        What the result should remember; "iteration" is the one that made the factors.
    """
    W, H = observations.labels.label_factors(*factors)
    iterations = np.arange(1, len(history["seconds"]) + 1)
    return Decomposition(
        W=W,
        H=H,
        nonlinearity=f,
        loss=loss,
        history=xr.Dataset(
            {name: ("iteration", numbers) for name, numbers in history.items()},
            coords={"iteration": iterations},
        ),
        stop_reason=stop_reason,
        parameters={
            "rank": W.sizes["component"],
            "n_observed": observations.n_observed,
            **parameters,
        },
        labels=observations.labels,
    )
