"""Ratings of every kind as sparse observations, and the code that reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.labels import is_frame
from nmd_lab.data.long_table import observations_from_table
from nmd_lab.data.observations import observe
from nmd_lab.data.sparse_observations import SparseObservations
from nmd_lab.data.usual_columns import has_repeats, long_table_columns

from .code import call, expression

DEFAULT_COLUMNS = {"row": "user", "column": "item", "value": "rating"}
"""Columns of a long table that hold the labels and the values unless others are named."""


class Ratings(NamedTuple):
    """Partly observed data."""

    matrix: Any  # the data as `nmd_lab.complete` takes them
    observations: SparseObservations  # the observed entries
    titles: Mapping[Any, str]  # titles by column label, such as the names of films

    def labels(self, axis: Literal["rows", "columns"]) -> NDArray[Any]:
        """Return the labels of the rows or of the columns; their positions if there are none."""
        labels, shape = self.observations.labels, self.observations.shape
        dims, size = (labels.rows, shape[0]) if axis == "rows" else (labels.columns, shape[1])
        index = labels.coords.indexes.get(dims[0]) if len(dims) == 1 else None
        return np.arange(size) if index is None else np.asarray(index, dtype=object)

    def column_titles(self, columns: Any = slice(None)) -> list[str]:
        """Return the titles of columns, or their labels where there are none."""
        return [str(self.titles.get(label, label)) for label in self.labels("columns")[columns]]

    def find(self, label: str) -> int:
        """Return the position of the row with a label, as the user writes it."""
        names = [str(name) for name in self.labels("rows")]
        name = label.strip()
        if name not in names:
            hint = f"the first is {names[0]!r}, the last {names[-1]!r}"
            raise ValueError(f"no row is labelled {name!r}: {hint}.")
        return names.index(name)


def as_ratings(X: Any, columns: Mapping[str, str], titles: Mapping[Any, str] | None) -> Ratings:
    """Return data as sparse observations."""
    if is_table(X, columns):
        if titles is None and "title" in X.columns:
            distinct = X.drop_duplicates(columns["column"])
            titles = dict(zip(distinct[columns["column"]], distinct["title"], strict=True))
        X = observations_from_table(X, **columns)
    return Ratings(X, observe(X).as_sparse(), titles or {})


def reading_code(table: str, columns: Mapping[str, str]) -> str:
    """Return the code that makes the observations ``observed`` of a long table."""
    renamed = [
        f"{key}={expression(name)}" for key, name in columns.items() if name != DEFAULT_COLUMNS[key]
    ]
    return f"observed = {call('nmd.observations_from_table', table, *renamed)}\n"


def table_columns(X: Any, asked: Mapping[str, str] = DEFAULT_COLUMNS) -> dict[str, str] | None:
    """Return the columns of a long table, or None if the data are none."""
    if not is_frame(X):
        return None
    named = {role: name for role, name in asked.items() if name != DEFAULT_COLUMNS[role]}
    columns = long_table_columns(X.columns, named)
    if columns is None or not (named or has_repeats(X[columns["row"]])):
        return None
    return columns


def is_table(X: Any, columns: Mapping[str, str]) -> bool:
    """Return whether data are a long table with these columns."""
    return table_columns(X, columns) is not None
