"""Usual names of the columns of a long table, which has one observation in each line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

USUAL_COLUMNS = {
    "row": ("user", "userid", "reader", "readerid", "customer", "customerid"),
    "column": ("item", "itemid", "movie", "movieid", "book", "bookid", "product", "productid"),
    "value": ("rating", "ratings", "score", "stars", "value"),
}
"""Usual names of the columns with the labels and the values, in lower case and without "_", "-"
and spaces."""

COLUMNS_BESIDE = ("timestamp", "time", "date", "when", "t", "title", "expected")
"""Names of further columns that a long table may have."""


def long_table_columns(
    names: Iterable[Any], named: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any] | None:
    """Return the columns of a long table by "row", "column" and "value", None if it is none."""
    by_key = {re.sub("[-_ ]", "", str(name).lower()): name for name in names}
    found = {
        role: named.get(role, next((by_key[key] for key in usual if key in by_key), None))
        for role, usual in USUAL_COLUMNS.items()
    }
    if None in found.values() or not set(found.values()) <= set(by_key.values()):
        return None
    beside = {key for key, name in by_key.items() if name not in found.values()}
    return found if named or beside <= set(COLUMNS_BESIDE) else None


def has_repeats(labels: Any) -> bool:
    """Return whether a label comes more than once, as those of the rows of a long table do."""
    import pandas as pd

    return bool(pd.Index(labels).has_duplicates)


def check_no_long_table(X: Any, names: Iterable[Any]) -> None:
    """Raise ValueError if a table with these column names is a long table, not a matrix."""
    names = list(names)
    found = long_table_columns(names)
    if found is None:
        return
    position = names.index(found["row"])
    if has_repeats(X.iloc[:, position] if hasattr(X, "iloc") else np.asarray(X)[:, position]):
        arguments = ", ".join(f"{role}={name!r}" for role, name in found.items())
        raise ValueError(
            f"X has the columns {', '.join(map(repr, found.values()))}, one observation in each "
            f"line: give nmd.observations_from_table(X, {arguments}), or X.to_numpy() if it is a "
            "matrix."
        )
