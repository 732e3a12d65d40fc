"""Entries of X that a person names, or of test data, and the predictions of a fit there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.base import FloatArray
from nmd_lab.data.containers import like
from nmd_lab.data.labels import Labels
from nmd_lab.data.matching import MatchedData, match_data
from nmd_lab.data.sparse import is_sparse
from nmd_lab.model.fitted_values import FittedValues

from .factors import Factors
from .lookup import Unknown, check_unknown, positions_of


class Entries(NamedTuple):
    """Positions of entries in X, and the test data that they are from.

    Attributes
    ----------
    i, j : ndarray of int (n_entries,)
        Positions of rows and columns; -1 for what X does not have.
    test : object or None
        Test data.
    data : MatchedData or None
        Observed entries of the test data.
    """

    i: NDArray[np.intp]
    j: NDArray[np.intp]
    test: Any = None
    data: MatchedData | None = None

    def back(self, values: NDArray[Any]) -> Any:
        """Return one number for each entry, in the type of the test data if there are some."""
        return values if self.data is None else like(self.test, self.data.observations, values)


def entries_at(i: Any, j: Any) -> Entries:
    """Return the entries at positions, which broadcast; methods take them in the place of rows."""
    i, j = np.broadcast_arrays(np.atleast_1d(i), np.atleast_1d(j))
    return Entries(i.ravel(), j.ravel())


def entries_of(
    labels: Labels, rows: Any, columns: Any, unknown: Unknown | None = None, owner: str = "the fit"
) -> Entries:
    """Return the entries of rows and columns by position or label, or those of test data."""
    if isinstance(rows, Entries):
        return rows
    if unknown is not None:
        check_unknown(unknown)
    if columns is not None:
        return entries_at(
            positions_of(labels, "rows", rows, unknown),
            positions_of(labels, "columns", columns, unknown),
        )
    if not is_sparse(rows) and np.ndim(rows) < 2:
        raise TypeError(
            "columns=None goes with test data only: give columns, or data with rows and columns."
        )
    return entries_in(match_data(labels, rows, owner=owner, unknown=unknown), rows)


def entries_in(data: MatchedData, test: Any = None) -> Entries:
    """Return the observed entries of test data."""
    i, j, _ = data.observations.entries()
    return Entries(data.rows[i], data.columns[j], test, data)


def values_at(fitted: FittedValues, entries: Entries) -> FloatArray:
    """Return f(WH) at entries; those of test data are sorted by row and column of the data."""
    data = entries.data
    if data is None or data.is_sparse or np.any(data.rows < 0) or np.any(data.columns < 0):
        return fitted.at(entries.i, entries.j)
    i, j, _ = data.observations.entries()
    return fitted.block(data.rows, data.columns)[i, j]


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


def compared_entries(
    fit: Factors, X: Any, observed: Any = None, weights: Any = None
) -> ComparedEntries:
    """Return the observed entries of X beside the model, as float64; see `match_data`."""
    data = match_data(fit.labels, X, observed=observed, weights=weights)
    values, own_weights = data.observations.observed()
    model = values_at(fit.fitted, entries_in(data))
    return ComparedEntries(values, model.astype(np.float64), own_weights)
