"""The most probable rows of W for new rows of X, given draws of H."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._threads import one_thread
from .data.base import FloatArray
from .data.labels import labels_of
from .data.observations import observe
from .model.losses import KL, L1
from .model.offsets import Offsets
from .result.fold_in import FittedModel, fold_rows
from .result.posterior import Posterior
from .result.posterior_draws import Stacked

FOLDED_DRAWS = 30
"""Largest number of draws of H for which rows of W are computed."""

ROW_NUMBERS = 1 << 22
"""Largest number of entries of normal matrices that are made together."""

Array = NDArray[np.float64]


def fold_in(posterior: Posterior, X: Any, *, threads: int | None = None) -> Posterior:
    """Return a posterior of new rows: for some draws of H, the most probable rows of W.

    The prior of a row of W and its offset is the Gaussian with mean and covariance of the fitted
    rows of the same draw.  The spread over draws is that of H; that of W for a given H is left
    out, so that intervals are too narrow for rows with few entries.

    Parameters
    ----------
    posterior : Posterior
        Posterior of the fitted matrix.
    X : ndarray or scipy.sparse (n_samples, n_features)
        New rows; NaN and absent entries are missing.
    threads : int, optional
        Largest number of threads.

    Raises
    ------
    ValueError
        If the data are ordinal, whose levels a point estimate of W does not take.
    """
    if posterior.noise == "ordinal":
        raise ValueError(
            "X has rows that are not those of fit(), which loss='ordinal' does not take: fit them, "
            "too, or use another loss."
        )
    thinned = _thinned(posterior)
    stacked = thinned.stacked
    dense = observe(X).to_array() if hasattr(X, "tocsr") else X
    W, row_offsets = [], []
    with one_thread():  # of BLAS: the matrices are small
        for draw in range(thinned.n_draws):
            prior = _prior(stacked.W[draw], None if stacked.rows is None else stacked.rows[draw])
            model = _whitened(thinned, stacked, draw, prior)
            rows = prior.mean + _coordinates(model, dense, posterior.noise, threads) @ prior.half.T
            W.append(rows[:, : posterior.rank])
            row_offsets.append(rows[:, posterior.rank])
    draws = {name: thinned.draws[name].values for name in thinned.draws.data_vars}
    per_draw = draws["rho"].shape
    H = stacked.H.reshape(*per_draw, *stacked.H.shape[1:])
    columns = stacked.columns
    return Posterior.from_arrays(
        labels_of(np.broadcast_to(0.0, X.shape)),
        np.reshape(W, (*per_draw, *W[0].shape)).astype(np.float32),
        H,
        draws["rho"],
        nonlinearity=posterior.nonlinearity,
        loss=posterior.loss,
        noise=posterior.noise,
        mean=posterior.mean,
        row_offsets=None
        if stacked.rows is None
        else np.reshape(row_offsets, (*per_draw, X.shape[0])),
        column_offsets=None if columns is None else columns.reshape(*per_draw, -1),
        beta=draws.get("beta"),
    )


class _Prior(NamedTuple):
    """Gaussian prior of a row of W and its offset: mean, and a root of the covariance."""

    mean: Array
    half: Array


def _thinned(posterior: Posterior) -> Posterior:
    """Return the posterior with a few draws, evenly spaced."""
    sizes = posterior.draws.sizes
    wanted = max(FOLDED_DRAWS // sizes["chain"], 1)
    step = -(-sizes["draw"] // wanted)
    return replace(posterior, draws=posterior.draws.isel(draw=slice(None, None, step)))


def _prior(W: FloatArray, offsets: FloatArray | None) -> _Prior:
    """Return the prior of a row that the fitted rows of one draw suggest."""
    m, rank = W.shape
    both = np.zeros((m, rank + 1))
    both[:, :rank] = W
    if offsets is not None:
        both[:, rank] = offsets
    mean = both.mean(axis=0)
    centred = both - mean
    covariance = centred.T @ centred / m
    # As the Normal-Wishart prior does: a little of a round covariance, as for one more row
    size = np.full(rank + 1, max(np.trace(covariance[:rank, :rank]) / rank, 1e-300))
    size[rank] = covariance[rank, rank]
    covariance = (m * covariance + np.diag(size)) / (m + 1)
    values, vectors = np.linalg.eigh(covariance)
    return _Prior(mean, vectors * np.sqrt(np.maximum(values, 0)))


def _whitened(posterior: Posterior, stacked: Stacked, draw: int, prior: _Prior) -> FittedModel:
    """Return the model of a draw in coordinates of W in which the prior is a standard normal."""
    n = stacked.H.shape[1]
    H = np.ones((posterior.rank + 1, n))
    H[:-1] = stacked.H[draw].T
    columns = np.zeros(n) if stacked.columns is None else stacked.columns[draw]
    offsets = Offsets(posterior.mean, None, columns + prior.mean @ H)
    alpha = _noise_scale(posterior, draw)
    labels = labels_of(np.broadcast_to(0.0, (1, n)))
    return FittedModel(
        posterior.nonlinearity, posterior.loss, prior.half.T @ H, offsets, labels, alpha, 0.0, 0.0
    )


def _coordinates(model: FittedModel, X: FloatArray, noise: str, threads: int | None) -> Array:
    """Return the most probable rows of W, in the coordinates of `_whitened`."""
    size = model.H.shape[0]
    if np.isnan(X).all():
        return np.zeros((X.shape[0], size))
    if noise != "gaussian":
        return np.asarray(fold_rows(model, observe(X), threads=threads)[0])
    A = model.H.T
    base = model.offsets.mean + model.offsets.of_columns(A.shape[0], float)
    products = (A[:, :, None] * A[:, None, :]).reshape(-1, size**2)
    z = np.empty((X.shape[0], size))
    step = max(ROW_NUMBERS // size**2, 1)
    for start in range(0, X.shape[0], step):
        rows = X[start : start + step]
        seen = ~np.isnan(rows)
        matrices = (seen.astype(float) @ products).reshape(-1, size, size)
        matrices += model.alpha * np.eye(size)
        right = np.where(seen, rows - base, 0) @ A
        z[start : start + step] = np.linalg.solve(matrices, right[:, :, None])[:, :, 0]
    return z


def _noise_scale(posterior: Posterior, draw: int) -> float:
    """Return the ridge that stands for the prior of W beside the loss."""
    if isinstance(posterior.loss, KL):
        return 1.0
    beta = posterior.draws.get("beta")
    rho = float(posterior.draws["rho"].values.ravel()[draw])
    if posterior.noise != "after" or beta is None:
        return 1 / rho
    after = 1 / float(beta.values.ravel()[draw])
    return after if isinstance(posterior.loss, L1) else after + 1 / rho
