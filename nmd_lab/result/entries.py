"""Data beside a fit: their entries at its positions, and its predictions there.

Every kind of input of `complete` is taken.  What has labels is matched with the fit by label.
Entries that a sparse matrix does not store are missing, and no sparse input is made dense.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab.data.base import FloatArray, Observations
from nmd_lab.data.labels import Labels
from nmd_lab.data.matching import Axis, match, unknown_label
from nmd_lab.data.observations import observe

from .factors import Factors


class MatchedData(NamedTuple):
    """Observed entries of some data, and where the fit has their rows and columns.

    Attributes
    ----------
    observations : Observations
        The data.
    rows, columns : ndarray of int (m,) and (n,)
        Position in the fit of each row and column of the data.
    """

    observations: Observations
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]

    @property
    def is_sparse(self) -> bool:
        """Whether the data store some entries only."""
        return self.observations.pattern is not None

    def to_array(self, shape: tuple[int, int]) -> FloatArray:
        """Return the data as a matrix in the order of the fit, NaN where nothing is observed."""
        values = self.observations.values
        array: FloatArray = np.full(shape, np.nan, dtype=values.dtype)
        i, j, observed = self.observations.entries()
        array[self.rows[i], self.columns[j]] = observed
        return array

    def to_rows(self, positions: NDArray[np.intp], shape: tuple[int, int]) -> FloatArray:
        """Return some rows of the fit as a matrix, NaN where nothing is observed."""
        if not self.is_sparse:
            return self.to_array(shape)[positions]
        place = np.full(shape[0], -1)
        place[positions] = np.arange(positions.size)
        i, j, observed = self.observations.entries()
        i = place[self.rows[i]]
        array: FloatArray = np.full((positions.size, shape[1]), np.nan, observed.dtype)
        array[i[i >= 0], self.columns[j[i >= 0]]] = observed[i >= 0]
        same = place[positions]  # a row that is asked for twice has one place
        return array[same]


class ComparedEntries(NamedTuple):
    """Observed values, the model at the same entries, and the weights of the entries.

    Attributes
    ----------
    values, model, weights : ndarray of float64 (n_observed,)
        One number for each observed entry.
    """

    values: NDArray[np.float64]
    model: NDArray[np.float64]
    weights: NDArray[np.float64]


def match_data(labels: Labels, X: Any, *, mask: Any = None, weights: Any = None) -> MatchedData:
    """Return any accepted input with the positions of its rows and columns in a fit.

    Parameters
    ----------
    labels : Labels
        Labels of the fit.
    X : array_like, masked array, DataFrame, DataArray, scipy.sparse matrix or SparseObservations
        Data of the shape of the fit, or with labels that the fit has.
    mask, weights : array_like, optional
        Mask of the observed entries of X, and their weights.

    Raises
    ------
    ValueError, TypeError
        If X is invalid, or its shape or labels are not those of the fit.
    """
    observations = observe_beside(labels, X, mask=mask, weights=weights)
    own = observations.labels
    return MatchedData(observations, _known(own, labels, "rows"), _known(own, labels, "columns"))


def observe_beside(
    labels: Labels, X: Any, *, mask: Any = None, weights: Any = None
) -> Observations:
    """Return the observations of any accepted input, with the row dimensions of a fit."""
    sample_dims = None
    if isinstance(X, xr.DataArray) and (X.ndim > 2 or set(map(str, X.dims)) == set(labels.dims)):
        sample_dims = labels.rows
    return observe(X, mask=mask, weights=weights, sample_dims=sample_dims)


def known_columns(labels: Labels, observations: Observations) -> NDArray[np.intp]:
    """Return the position in the fit of each column of new rows."""
    n = labels.matrix_shape[1]
    columns = match(observations.labels, labels, "columns")
    if columns is None:
        raise ValueError(f"X has {observations.shape[1]} columns: give the {n} of the fit.")
    return _all_known(observations.labels, labels, "columns", columns)


def _known(own: Labels, labels: Labels, axis: Axis) -> NDArray[np.intp]:
    """Return the position in the fit of each row or column of X."""
    positions = match(own, labels, axis)
    if positions is None:
        raise ValueError(f"X has shape {own.shape}: give the shape of the fit, {labels.shape}.")
    return _all_known(own, labels, axis, positions)


def _all_known(
    own: Labels, labels: Labels, axis: Axis, positions: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return the positions; raise ValueError if a label is not in the fit."""
    if np.any(positions < 0):
        where = unknown_label(own, labels, axis, positions)
        raise ValueError(f"X has other labels along {where}: select those of the fit.")
    return positions


def model_at(fit: Factors, data: MatchedData) -> FloatArray:
    """Return f(WH) at the observed entries of data, sorted by row and column of the data."""
    i, j, _ = data.observations.entries()
    if data.is_sparse:
        return fit.at(data.rows[i], data.columns[j])
    return fit.block(data.rows, data.columns)[i, j]


def compared_entries(fit: Factors, X: Any, mask: Any = None, weights: Any = None) -> ComparedEntries:
    """Return the observed entries of X beside the model, as float64; see `match_data`."""
    data = match_data(fit.labels, X, mask=mask, weights=weights)
    values, own_weights = data.observations.observed()
    return ComparedEntries(values, model_at(fit, data).astype(np.float64), own_weights)
