"""Predictions of a posterior at entries, in blocks of bounded memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._checks import check_positions
from nmd_lab.data.base import Observations
from nmd_lab.data.containers import like
from nmd_lab.data.matching import match_data
from nmd_lab.data.sparse import is_sparse

from .draws import NUMBERS, DrawnFactors
from .mixture import Predictive
from .noise import Array

Summary = Callable[[Predictive, Array, slice], Array]
"""A function of the distribution, of v (draws, entries), and of the place of these entries among
all, which returns one row for each entry."""


class Entries(NamedTuple):
    """Positions of entries in X, and the test data that they are from.

    Attributes
    ----------
    i, j : ndarray of int (n_entries,)
        Positions of rows and columns.
    data : object or None
        Test data.
    observations : Observations or None
        Observed entries of the test data.
    """

    i: NDArray[np.intp]
    j: NDArray[np.intp]
    data: Any = None
    observations: Observations | None = None

    def back(self, values: Array) -> Any:
        """Return one number for each entry, in the type of the test data if there are some."""
        if self.observations is None:
            return values
        return like(self.data, self.observations, values)


def entries_of(
    posterior: DrawnFactors, rows: Any, columns: Any, unknown: str | None = None
) -> Entries:
    """Return the entries at positions, or the observed ones of test data if columns is None."""
    if columns is None:
        if not is_sparse(rows) and np.ndim(rows) < 2:
            raise TypeError(
                "columns=None goes with test data only: give the positions of columns, or "
                "data with rows and columns."
            )
        data = match_data(posterior.labels, rows, owner="the posterior", unknown=unknown)
        i, j, _ = data.observations.entries()
        return Entries(data.rows[i], data.columns[j], rows, data.observations)
    i, j = np.broadcast_arrays(np.atleast_1d(rows), np.atleast_1d(columns))
    m, n = posterior.shape
    return Entries(
        check_positions("rows", i, m, "predict_labels"),
        check_positions("columns", j, n, "predict_labels"),
    )


def summarise(posterior: DrawnFactors, entries: Entries, summary: Summary, width: int = 0) -> Array:
    """Return a summary of the draws at each entry."""
    predictive, size = posterior.predictive, entries.i.size
    out = np.empty((size, width) if width else size, posterior.dtype)
    step = max(NUMBERS // (posterior.n_draws * predictive.numbers), 1)
    for start in range(0, size, step):
        part = slice(start, min(start + step, size))
        out[part] = summary(predictive, posterior.linear_at(entries.i[part], entries.j[part]), part)
    return out
