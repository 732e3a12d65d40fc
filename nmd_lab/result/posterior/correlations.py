"""Correlations between the columns of T, with their uncertainty."""

from __future__ import annotations

import numpy as np
import xarray as xr

from nmd_lab.data.labels import COMPONENT

from .draws import NUMBERS, DrawnFactors
from .kernels import Array


def latent_correlations(posterior: DrawnFactors, level: float) -> xr.Dataset:
    """Return mean and interval of the correlation of each pair of columns."""
    standard = standardised_loadings(posterior)
    n = standard.shape[1]
    moments = np.empty((3, n, n))
    step = max(NUMBERS // (posterior.n_draws * n), 1)
    for first in range(0, n, step):
        r = standard[:, first : first + step] @ standard.transpose(0, 2, 1)
        at = np.arange(r.shape[1])
        r[:, at, first + at] = 1.0  # a column with itself, noise included
        moments[0, first : first + step] = r.mean(axis=0)
        tails = (1 - level) / 2, (1 + level) / 2
        moments[1:, first : first + step] = np.quantile(r, tails, axis=0)
    return _labelled(posterior, moments).assign_attrs(level=level)


def standardised_loadings(posterior: DrawnFactors) -> Array:
    """Return G (draws, n, d) whose G G' has the correlations beside its diagonal."""
    covariances = posterior.row_prior.covariances
    _, H, row_offsets, _ = posterior.stacked
    loadings = H.astype(np.float64)
    if row_offsets is not None:  # its partner in H is one
        loadings = np.concatenate([loadings, np.ones((*loadings.shape[:2], 1))], axis=2)
    scaled: Array = loadings @ np.linalg.cholesky(covariances)
    rho = posterior.draws["rho"].values.reshape(posterior.n_draws, -1).astype(np.float64)
    noise = 1 / rho if posterior.noise_by != "rows" else np.mean(1 / rho, axis=1, keepdims=True)
    scaled /= np.sqrt(np.sum(np.square(scaled), axis=2) + noise)[:, :, None]
    return scaled


def _labelled(posterior: DrawnFactors, moments: Array) -> xr.Dataset:
    """Return mean, low and high (3, n, n) along the columns of X twice."""
    labels = posterior.labels
    of_columns = labels.label_columns(np.empty((1, labels.matrix_shape[1])))
    first = of_columns.isel({COMPONENT: 0}, drop=True)
    second = first.rename({name: f"{name}_" for name in {*first.dims, *first.coords}})
    dims, shape = (*first.dims, *second.dims), (*first.shape, *second.shape)
    arrays = zip(("mean", "low", "high"), moments, strict=True)
    variables = {name: (dims, values.reshape(shape)) for name, values in arrays}
    return xr.Dataset(variables, {**first.coords, **second.coords})
