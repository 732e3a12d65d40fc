"""What is known of the rows of a long table, as further columns in units of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from .labels import is_frame
from .matching import first_few
from .sparse import observe_sparse
from .sparse_observations import SparseObservations
from .typed_table import TypedColumn, TypedTable, table_of


def with_attributes(X: SparseObservations, attributes: Any) -> SparseObservations:
    """Return the observations of a long table beside the typed columns of a DataFrame.

    No entry is stored where the table or the DataFrame has none.
    """
    row, column = X.labels.dims
    rows, columns = (X.labels.coords.indexes[dim] for dim in X.labels.dims)
    typed = _typed_columns(attributes, X.labels.name, row, rows, column, columns)
    beside = typed.encode(attributes).to_numpy()
    try:
        row_labels = rows.append(attributes.index.difference(rows, sort=False)).sort_values()
    except TypeError as error:
        raise ValueError(
            f"attributes has row labels that cannot be sorted with those of {row!r}: give one type."
        ) from error
    at, after = np.nonzero(~np.isnan(beside))
    stored = np.concatenate([X.values, beside[at, after].astype(X.dtype)])
    i = row_labels.get_indexer(rows.append(attributes.index))
    i = np.concatenate([i[X.rows], i[len(rows) + at]])
    j = np.concatenate([X.indices, len(columns) + after])
    items = TypedColumn(X.labels.name, "values", tuple(columns.tolist()))
    table = TypedTable((items, *typed.columns))
    shape = len(row_labels), len(table.labels)
    labels = replace(
        X.labels,
        shape=shape,
        coords=X.labels.coords.drop_vars([row, column]).assign_coords(
            {row: row_labels.rename(row), column: np.array(table.labels, dtype=object)}
        ),
        valid_range=None,  # of the values, and not of the attributes
        table=table,
    )
    observed = observe_sparse(sparse.coo_array((stored, (i, j)), shape=shape))
    return replace(observed, labels=labels)


def _typed_columns(
    attributes: Any, value: Any, row: str, rows: Any, column: str, columns: Any
) -> TypedTable:
    """Return the types of the attributes; raise an error if they do not go with a long table."""
    if not is_frame(attributes):
        raise TypeError(
            f"attributes is a {type(attributes).__name__}: give a DataFrame with the labels of "
            f"{row!r} as its index."
        )
    names, index = attributes.columns, attributes.index
    if names.nlevels > 1 or not names.size:
        raise ValueError(
            f"attributes has {names.size} columns with labels of {names.nlevels} levels: give one "
            "column or more, with labels of one level."
        )
    if row in names:
        raise ValueError(
            f"attributes has the column {row!r}: give attributes.set_index({row!r}), so that its "
            "index has the row labels."
        )
    if index.nlevels > 1 or index.hasnans or not index.is_unique:
        raise ValueError(
            "attributes has an index of several levels, with a label twice or without a label: "
            f"give one line with its own label for each {row}."
        )
    if not index.isin(rows).any():
        raise ValueError(
            f"attributes has the row labels {first_few(index)}, none of them in {row!r} of the "
            f"table, which has {first_few(rows)}: give these as its index."
        )
    try:
        table = table_of(attributes, numbers_too=True)
    except TypeError as error:
        raise TypeError(f"With X = attributes, {error}") from error
    assert table is not None
    wrong = [name for name in (*names, *table.labels) if name == value or name in columns]
    if wrong or not names.is_unique:
        name = wrong[0] if wrong else names[names.duplicated()][0]
        raise ValueError(
            f"attributes has the column {name!r}, and there is another one of that name among "
            f"{value!r}, the labels of {column!r} and the attributes: rename it."
        )
    return table
