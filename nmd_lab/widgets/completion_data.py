"""Partly observed data of every kind as sparse observations, and the code that makes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.labels import is_frame
from nmd_lab.data.long_table import observations_from_table
from nmd_lab.data.observations import observe
from nmd_lab.data.sparse import SparseObservations

from .code import call, expression
from .data_choices import Source

TABLE = {"row": "user", "column": "item", "value": "rating"}
"""The columns of a table that are meant unless others are named."""

BUNDLED = {
    "MovieLens, small": Source("movielens_small", {}),
    "generated": Source(
        "make_ratings", {"n_users": 400, "n_items": 300, "n_ratings": 12_000, "random_state": 0}
    ),
}
"""Tables of ratings that are at hand everywhere."""


class Ratings(NamedTuple):
    """What is observed, with words for its columns.

    Attributes
    ----------
    matrix : object
        What a fit is given.
    observations : SparseObservations
        Its entries.
    titles : dict
        Words for the labels of columns.
    """

    matrix: Any
    observations: SparseObservations
    titles: Mapping[Any, str]

    def labels(self, line: str) -> NDArray[Any]:
        """Return the labels of the "rows" or "columns", or their positions."""
        labels, shape = self.observations.labels, self.observations.shape
        dims, size = (labels.rows, shape[0]) if line == "rows" else (labels.columns, shape[1])
        index = labels.coords.indexes.get(dims[0]) if len(dims) == 1 else None
        return np.arange(size) if index is None else np.asarray(index, dtype=object)

    def find(self, words: str) -> int:
        """Return the position of the row with a label.

        Raises
        ------
        ValueError
            If there is none.
        """
        names = [str(label) for label in self.labels("rows")]
        wanted = words.strip()
        if wanted not in names:
            near = f"the first is {names[0]!r}, the last {names[-1]!r}"
            raise ValueError(f"no row is labelled {wanted!r}: {near}.")
        return names.index(wanted)


def read_ratings(
    given: Any, columns: Mapping[str, str], titles: Mapping[Any, str] | None
) -> Ratings:
    """Return data as sparse observations.

    Parameters
    ----------
    given : matrix or DataFrame
        A long table, or anything that `nmd_lab.complete` takes.
    columns : mapping
        The names of a table's columns.
    titles : mapping or None
        Words for the labels of columns; None: the table's column "title", if there is one.
    """
    if is_table(given, columns):
        if titles is None and "title" in given.columns:
            distinct = given.drop_duplicates(columns["column"])
            titles = dict(zip(distinct[columns["column"]], distinct["title"], strict=True))
        given = observations_from_table(given, **columns)
    return Ratings(given, observe(given).as_sparse(), titles or {})


def reading_code(given: Any, name: str, columns: Mapping[str, str]) -> tuple[str, str]:
    """Return the code that turns data into what `complete` takes, and the name of that."""
    if given is not None and not is_table(given, columns):
        return "", name
    parts = [f"{key}={expression(word)}" for key, word in columns.items() if word != TABLE[key]]
    return f"observed = {call('nmd.observations_from_table', name, *parts)}\n", "observed"


def is_table(given: Any, columns: Mapping[str, str]) -> bool:
    """Return whether data are a long table with these columns."""
    return is_frame(given) and set(columns.values()) <= set(given.columns)
