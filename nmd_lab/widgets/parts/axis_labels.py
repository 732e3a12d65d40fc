"""Texts and groups of the rows and columns of a matrix, from the labels of the data."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from nmd_lab.data.labels import Labels

MOST_GROUPS = 12
"""Largest number of distinct values of a coordinate that gives points their colours."""


def texts(labels: Labels, axis: Literal["rows", "columns"]) -> list[str]:
    """Return the labels of the rows or columns as texts; an empty list if there are none."""
    dims = labels.rows if axis == "rows" else labels.columns
    if len(dims) != 1 or dims[0] not in labels.coords.indexes:
        return []
    index = labels.coords.indexes[dims[0]]
    if isinstance(index, pd.RangeIndex) or np.array_equal(index, np.arange(len(index))):
        return []
    return [str(label) for label in index]


def groups(labels: Labels) -> tuple[str, list[int], list[str]]:
    """Return a coordinate of the rows with few distinct values."""
    if len(labels.rows) == 1:
        for name, coordinate in labels.coords.coords.items():
            if coordinate.dims != labels.rows or name in labels.coords.indexes:
                continue
            values, numbers = np.unique(coordinate.values, return_inverse=True)
            if 1 < len(values) <= MOST_GROUPS:
                return str(name), numbers.tolist(), [str(value) for value in values]
    return "", [], []
