"""Sums of the rows and of the columns of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .entries import FloatArray

SUMMED_ROWS = 1024
"""Number of rows that are summed at a time."""


def sums_along(R: Any, axis: int) -> FloatArray:
    """Return the sums of all rows (axis 1) or columns (axis 0) of a sparse or a dense matrix."""
    if sparse.issparse(R):
        matrix: Any = R
        return np.asarray(matrix.sum(axis=axis), dtype=np.float64).ravel()
    sums = np.zeros(R.shape[1 - axis])
    for first in range(0, R.shape[0], SUMMED_ROWS):
        rows = slice(first, first + SUMMED_ROWS)
        block_sums = np.sum(R[rows], axis=axis, dtype=np.float64)
        if axis:
            sums[rows] = block_sums
        else:
            sums += block_sums
    return sums
