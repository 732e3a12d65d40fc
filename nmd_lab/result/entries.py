"""The predictions of a fit at the observed entries of data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nmd_lab.data.base import FloatArray
from nmd_lab.data.matching import MatchedData, match_data

from .factors import Factors


class ComparedEntries(NamedTuple):
    """Observed values, the model at the same entries, and the weights of the entries.

    Attributes
    ----------
    values, model, weights : ndarray of float64 (n_observed,)
        One number for each observed entry.
    """

    values: FloatArray
    model: FloatArray
    weights: FloatArray


def model_at(fit: Factors, data: MatchedData) -> FloatArray:
    """Return f(WH) at the observed entries of data, sorted by row and column of the data."""
    i, j, _ = data.observations.entries()
    if data.is_sparse or np.any(data.rows < 0) or np.any(data.columns < 0):
        return fit.at(data.rows[i], data.columns[j])
    return fit.block(data.rows, data.columns)[i, j]


def compared_entries(
    fit: Factors, X: Any, observed: Any = None, weights: Any = None
) -> ComparedEntries:
    """Return the observed entries of X beside the model, as float64; see `match_data`."""
    data = match_data(fit.labels, X, observed=observed, weights=weights)
    values, own_weights = data.observations.observed()
    return ComparedEntries(values, model_at(fit, data).astype(np.float64), own_weights)
