"""Observations back in the container that they came in."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from scipy import sparse

from .base import FloatArray, Observations
from .labels import Labels, is_frame
from .sparse_observations import SparseObservations


def like(X: Any, observations: Observations, values: FloatArray | None = None) -> Any:
    """Return observations, or other values at their entries, in the type of X.

    Of a DataFrame of several kinds, its own cells are returned as what they are.
    """
    if values is not None:
        observations = _with_observed(observations, values)
    if isinstance(X, SparseObservations):
        return observations
    if sparse.issparse(X):
        matrix = observations.as_sparse().to_csr()
        return sparse.csr_matrix(matrix) if isinstance(X, sparse.spmatrix) else matrix
    array, table = observations.to_array(), observations.labels.table
    if values is None and table is not None:
        return table.with_holes(X, ~np.isnan(array))
    return dense_like(X, observations.labels, array)


def dense_like(X: Any, labels: Labels, array: FloatArray) -> Any:
    """Return a matrix in the type of dense data, an ndarray for lists and masked arrays."""
    if isinstance(X, xr.DataArray):
        return X.copy(data=labels.label(array).values)
    if is_frame(X):
        columns = X.columns if labels.table is None else labels.table.labels
        return type(X)(array, index=X.index, columns=columns)
    return array


def _with_observed(observations: Observations, values: FloatArray) -> Observations:
    """Return observations with other values at the observed entries."""
    if observations.pattern is not None:
        return observations.with_values(values)
    matrix = np.zeros(observations.shape, dtype=values.dtype)
    i, j, _ = observations.entries()
    matrix[i, j] = values
    return observations.with_values(matrix)
