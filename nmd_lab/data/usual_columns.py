"""Usual names of the columns of a long table, which has one observation in each line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

USUAL_COLUMNS = {
    "row": ("user", "userid", "reader", "readerid", "customer", "customerid"),
    "column": ("item", "itemid", "movie", "movieid", "book", "bookid", "product", "productid"),
    "value": ("rating", "ratings", "score", "stars", "value"),
}
"""Usual names of the columns with the labels and the values, in lower case and without "_", "-"
and spaces."""


def usual_columns(names: Iterable[Any]) -> dict[str, Any]:
    """Return the columns of a table that have a usual name, with the keys of `USUAL_COLUMNS`.

    Examples
    --------
    >>> usual_columns(["userId", "movieId", "year"])
    {'row': 'userId', 'column': 'movieId'}
    """
    by_key = {"".join(c for c in str(name).lower() if c not in "_- "): name for name in names}
    found = (
        (role, next((by_key[key] for key in keys if key in by_key), None))
        for role, keys in USUAL_COLUMNS.items()
    )
    return {role: name for role, name in found if name is not None}


def check_no_long_table(names: Iterable[Any]) -> None:
    """Refuse the columns of a long table, which would be taken for those of a matrix.

    Raises
    ------
    ValueError
        If there are usual names for the row labels, the column labels and the values.
    """
    found = usual_columns(names)
    if len(found) == len(USUAL_COLUMNS):
        arguments = ", ".join(f"{role}={name!r}" for role, name in found.items())
        raise ValueError(
            f"X has the columns {', '.join(map(repr, found.values()))}, one observation in each "
            f"line: give nmd.observations_from_table(X, {arguments}), or X.to_numpy() if it is a "
            "matrix."
        )
