"""Ends of columns at which many values lie, such as the zeros of an amount.

>>> import numpy as np
>>> from nmd_lab.data.observations import observe
>>> amount, age = np.maximum(np.arange(-4.0, 16), 0), np.arange(20.0, 40)
>>> ends_of_columns(observe(np.column_stack([amount, age])))
array([[  0.,  inf],
       [-inf,  inf]])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .base import Observations

SHARE = 0.1  # of the observed values of a column, at its smallest or its largest one
FEWEST = 8  # different values of a column; one with fewer counts or grades, and has no end
OF_CONSTANT = 20  # observed values of a constant, or half of the rows; fewer may be equal by chance


def ends_of_columns(observations: Observations) -> NDArray[np.float64]:
    """Return the smallest and the largest value of each column (n, 2) if many are just that.

    A constant has both.  They are -inf and inf where few values are there, and in a column with
    limits, which says more, and in the values of a long table.
    """
    n = observations.shape[1]
    ends = np.tile([-np.inf, np.inf], (n, 1))
    _, columns, x = observations.entries()
    limits = observations.as_sparse().limits
    table, enough = observations.labels.table, min(OF_CONSTANT, observations.shape[0] / 2)
    limited = np.zeros(n, dtype=bool) if table is None else table.of_values.copy()
    if limits is not None:
        limited[columns[limits.codes != 0]] = True
    order = np.argsort(columns, kind="stable")
    bounds = np.searchsorted(columns[order], np.arange(n + 1))
    for j in np.flatnonzero(~limited):
        values, counts = np.unique(x[order[bounds[j] : bounds[j + 1]]], return_counts=True)
        if values.size >= FEWEST or (values.size == 1 and counts[0] >= enough):
            many = counts[[0, -1]] >= SHARE * counts.sum()
            ends[j, many] = values[[0, -1]][many]
    return ends
