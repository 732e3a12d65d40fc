"""Tables of Dask with a line for each entry, brought together by rows of X."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import DTypeLike, NDArray

from nmd_lab.data.labels import Labels
from nmd_lab.data.observations import float_dtype

from .sources import Source, load_pieces


def is_dask_table(X: Any) -> bool:
    """Return whether X is a DataFrame of Dask."""
    return type(X).__module__.startswith("dask.dataframe") and hasattr(X, "npartitions")


def sources_of_table(
    X: Any, client: Any, dtype: DTypeLike | None, partitions: int, *, zeros: bool
) -> tuple[list[Source], Labels]:
    """Return the sources of the rows of a table, and their labels."""
    if zeros:
        raise ValueError("X is a table, whose absent entries are missing: use complete().")
    names = list(X.columns)
    if len(names) != 3:
        raise ValueError(
            f"X has the columns {names}: give a table of three, the labels of the row and of the "
            "column, and the value."
        )
    counts = X[names[0]].value_counts(sort=False).compute(scheduler=client).sort_index()
    rows = counts.index.to_numpy()
    columns = np.sort(X[names[1]].unique().compute(scheduler=client).to_numpy())
    wanted = float_dtype(np.empty(0, X.dtypes.iloc[2]), dtype)
    ends = np.append(0, np.cumsum(counts.to_numpy()))
    partitions = min(partitions, int(ends[-1]) // 1024 + 1, len(rows))
    inner = np.searchsorted(ends, np.linspace(0, ends[-1], partitions + 1)[1:-1])
    borders = np.unique([0, *inner.tolist(), len(rows)])
    pieces = _pieces_of(X, rows, columns, borders)
    sources = [
        Source(
            int(b - a),
            load_pieces,
            [client.compute(pieces_there), (int(b - a), columns.size), wanted],
        )
        for a, b, pieces_there in zip(borders, borders[1:], pieces, strict=False)
    ]
    dims = (str(names[0]), str(names[1]))
    coords = xr.Dataset(coords={dims[0]: rows, dims[1]: columns})
    shape = (rows.size, columns.size)
    return sources, Labels(dims, shape, dims[:1], coords, str(names[2]))


def _pieces_of(
    X: Any, rows: NDArray[Any], columns: NDArray[Any], borders: NDArray[Any]
) -> list[list[Any]]:
    """Return the delayed entries of each partition, from each partition of the table."""
    from dask.delayed import delayed

    labels = delayed((rows, columns, borders))
    cut = [delayed(cut_partition, nout=len(borders) - 1)(each, labels) for each in X.to_delayed()]
    return [[each[partition] for each in cut] for partition in range(len(borders) - 1)]


def cut_partition(
    table: Any, labels: tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
) -> tuple[tuple[NDArray[Any], NDArray[Any], NDArray[Any]], ...]:
    """Return the entries of a partition, (rows, columns, values) for each partition of the rows."""
    rows, columns, borders = labels
    i = np.searchsorted(rows, table.iloc[:, 0].to_numpy())
    j = np.searchsorted(columns, table.iloc[:, 1].to_numpy())
    values = table.iloc[:, 2].to_numpy()
    if not np.all(np.isfinite(values)):
        raise ValueError("X has a value in the table that is no finite number: leave it out.")
    partition = np.searchsorted(borders, i, side="right") - 1
    pieces = []
    for number in range(len(borders) - 1):
        here = partition == number
        pieces.append((i[here] - borders[number], j[here], values[here]))
    return tuple(pieces)
