"""Usual names of the columns of a long table, which has one observation in each line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

USUAL_COLUMNS = {
    "row": ("user", "userid", "reader", "readerid", "customer", "customerid"),
    "column": ("item", "itemid", "movie", "movieid", "book", "bookid", "product", "productid"),
    "value": ("rating", "ratings", "score", "stars", "value"),
}
"""Usual names of the columns with the labels and the values, in lower case and without "_", "-"
and spaces."""


def long_table_columns(
    names: Iterable[Any], given: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any] | None:
    """Return the columns of a long table by "row", "column" and "value", None if one is not there.

    Parameters
    ----------
    names : iterable
        Names of all columns of the table.
    given : mapping, optional
        Those of the three columns that are known; the others are found by their usual names, such
        as userId or movie_id.

    Examples
    --------
    >>> long_table_columns(["userId", "movie_id", "rating", "timestamp"])
    {'row': 'userId', 'column': 'movie_id', 'value': 'rating'}
    """
    names = list(names)
    by_key = {re.sub("[-_ ]", "", str(name).lower()): name for name in names}
    found = {}
    for role, usual in USUAL_COLUMNS.items():
        known = (by_key[key] for key in usual if key in by_key)
        name = given[role] if role in given else next(known, None)
        if name is None or name not in names:
            return None
        found[role] = name
    return found


def check_no_long_table(names: Iterable[Any]) -> None:
    """Refuse the columns of a long table, which would be taken for those of a matrix.

    Raises
    ------
    ValueError
        If there are usual names for the row labels, the column labels and the values.
    """
    found = long_table_columns(names)
    if found is not None:
        arguments = ", ".join(f"{role}={name!r}" for role, name in found.items())
        raise ValueError(
            f"X has the columns {', '.join(map(repr, found.values()))}, one observation in each "
            f"line: give nmd.observations_from_table(X, {arguments}), or X.to_numpy() if it is a "
            "matrix."
        )
