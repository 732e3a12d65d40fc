"""Columns of several kinds in an estimator: a DataFrame as numbers, and errors in units."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.frames import class_kind
from nmd_lab.data.labels import is_frame
from nmd_lab.data.typed_table import TypedTable, table_of
from nmd_lab.model.model import Model


def typed_columns(X: Any) -> TypedTable | None:
    """Return the types of the columns; None if all hold numbers, and for other data."""
    if not is_frame(X) or not any(_has_classes(column) for _, column in X.items()):
        return None
    return table_of(X)


def _has_classes(column: Any) -> bool:
    """Return whether a column holds booleans, levels, categories or text with few values."""
    kind = getattr(column.dtype, "kind", "O")
    return hasattr(column.dtype, "categories") or kind == "b" or class_kind(column) is not None


def as_numbers(table: TypedTable | None, X: Any) -> Any:
    """Return a DataFrame with the columns of the matrix."""
    if table is None:
        refuse_classes(X)
        return X
    names = [column.name for column in table.columns]
    if list(X.columns) != names:
        raise ValueError(f"X has the columns {list(X.columns)}: give those of the fit, {names}.")
    return table.columns_of(X).encode(X)


def refuse_classes(X: Any) -> None:
    """Raise TypeError if a column of a DataFrame holds levels or categories."""
    names = [name for name, dtype in X.dtypes.items() if hasattr(dtype, "categories")]
    if names:
        raise TypeError(
            f"X has categories in column{'s' * (len(names) > 1)} {', '.join(map(repr, names))}, "
            "which the fit has not, or partial_fit does not take: use fit(X)."
        )


def in_units(kinds: Model | None, errors: FloatArray) -> FloatArray:
    """Return errors of all columns in the units of the score."""
    return errors if kinds is None else kinds.in_units(errors, 0, np.arange(errors.shape[1]))


def constants_of(kinds: Model | None, n: int) -> FloatArray:
    """Return the prediction of the score 0: the best constants of several kinds, otherwise 0."""
    return np.zeros(n) if kinds is None else kinds.expected(np.zeros(n), 0, np.arange(n))
