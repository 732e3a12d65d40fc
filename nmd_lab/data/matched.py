"""Data beside another matrix, such as that of a fit: their entries at its positions.

Every kind of input of `complete` is taken.  What has labels is matched by label.  Entries that a
sparse matrix does not store are missing, and no sparse input is made dense.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab._checks import check_no_fit

from ._csr import index_dtype, row_pointers
from .base import FloatArray, Observations
from .labels import Labels
from .matching import Axis, match, unknown_labels
from .observations import observe
from .sparse_observations import SparseObservations


class MatchedData(NamedTuple):
    """Observed entries of data, and where another matrix has their rows and columns.

    Attributes
    ----------
    observations : Observations
        The data.
    rows, columns : ndarray of int (m,) and (n,)
        Position in the other matrix of each row and column of the data.
    """

    observations: Observations
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]

    @property
    def is_sparse(self) -> bool:
        """Whether the data store some entries only."""
        return self.observations.pattern is not None

    def to_array(self, shape: tuple[int, int]) -> FloatArray:
        """Return the data in the order of the other matrix, NaN where nothing is observed."""
        array: FloatArray = np.full(shape, np.nan, dtype=self.observations.dtype)
        i, j, observed = self.observations.entries()
        array[self.rows[i], self.columns[j]] = observed
        return array

    def as_sparse(self, labels: Labels) -> SparseObservations:
        """Return the observed entries at their positions in the other matrix, with its labels."""
        i, j, values = self.observations.entries()
        rows, columns = self.rows[i], self.columns[j]
        order = np.lexsort((columns, rows))
        weights = None
        if self.observations.weights is not None:
            weights = self.observations.observed()[1][order].astype(values.dtype)
        limits = self.observations.as_sparse().limits
        dtype = index_dtype(max(values.size, *labels.matrix_shape))
        return SparseObservations(
            values[order],
            weights,
            row_pointers(rows, labels.matrix_shape[0], dtype),
            columns[order].astype(dtype),
            labels,
            limits=None if limits is None else limits.at(order),
        )

    def to_rows(self, positions: NDArray[np.intp], shape: tuple[int, int]) -> FloatArray:
        """Return some rows of the other matrix, NaN where nothing is observed."""
        array: FloatArray
        if not self.is_sparse:
            array = self.to_array(shape)[positions]
            return array
        place = np.full(shape[0], -1)
        place[positions] = np.arange(positions.size)
        i, j, observed = self.observations.entries()
        i = place[self.rows[i]]
        array = np.full((positions.size, shape[1]), np.nan, observed.dtype)
        array[i[i >= 0], self.columns[j[i >= 0]]] = observed[i >= 0]
        array = array[place[positions]]  # a row that is asked for twice has one place
        return array


def match_data(
    labels: Labels,
    X: Any,
    *,
    observed: Any = None,
    weights: Any = None,
    owner: str = "the fit",
    unknown: str | None = None,
) -> MatchedData:
    """Return any accepted input with the positions of its rows and columns in another matrix."""
    observations = observe_beside(labels, X, observed=observed, weights=weights)
    own = observations.labels
    rows, columns = match(own, labels, "rows"), match(own, labels, "columns")
    if rows is None or columns is None:
        raise ValueError(f"X has shape {own.shape}: give the shape of {owner}, {labels.shape}.")
    _check_known(own, labels, "rows", rows, owner, unknown)
    _check_known(own, labels, "columns", columns, owner, unknown)
    return MatchedData(observations, rows, columns)


def observe_beside(
    labels: Labels, X: Any, *, observed: Any = None, weights: Any = None
) -> Observations:
    """Return the observations of any accepted input, with the rows of another matrix."""
    check_no_fit("X", X)
    sample_dims = None
    if isinstance(X, xr.DataArray) and (X.ndim > 2 or set(map(str, X.dims)) == set(labels.dims)):
        sample_dims = labels.rows
    return observe(
        X, observed=observed, weights=weights, sample_dims=sample_dims, table=labels.table
    )


def known_columns(
    labels: Labels, observations: Observations, unknown: str | None = None
) -> NDArray[np.intp]:
    """Return the position in the fit of each column of new rows, -1 as `match_data` does."""
    n = labels.matrix_shape[1]
    columns = match(observations.labels, labels, "columns")
    if columns is None:
        raise ValueError(f"X has {observations.shape[1]} columns: give the {n} of the fit.")
    _check_known(observations.labels, labels, "columns", columns, "the fit", unknown)
    return columns


def _check_known(
    own: Labels,
    labels: Labels,
    axis: Axis,
    positions: NDArray[np.intp],
    owner: str,
    unknown: str | None,
) -> None:
    """Raise ValueError if labels of X are not among those of the other matrix, and have to be."""
    if unknown != "offsets" and np.any(positions < 0):
        where = unknown_labels(own, labels, axis)
        remedy = "" if unknown is None else ", or give unknown='offsets'"
        raise ValueError(f"X has other labels along {where}: select those of {owner}{remedy}.")
