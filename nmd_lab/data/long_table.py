"""Labelled sparse observations from a long table, also in files, or from a SciPy matrix.

What is known of the rows of a long table becomes further columns, in units of their own.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from .entries import (
    first_duplicate,
    row_of_entries,
)
from .inputs import observe_sparse
from .labels import Labels, check_no_component, is_frame, valid_range
from .matching import first_few
from .sparse import SparseObservations, row_blocks
from .typed_table import TypedColumn, TypedTable, table_of


def observations_from_table(
    frame: Any,
    row: str = "user",
    column: str = "item",
    value: str = "rating",
    *,
    attributes: Any = None,
) -> SparseObservations:
    """Return the labelled sparse observations of a long table.

    Parameters
    ----------
    frame : pandas.DataFrame or mapping of arrays
        Table with one observation in each line.
    row, column : str, default "user" and "item"
        Columns of the table with the row and column labels of the matrix.
    value : str, default "rating"
        Column of the table with the observed values.
    attributes : pandas.DataFrame, optional
        What else is known of the rows, such as the age and the occupation of users.  Its index has
        row labels, and its columns may be numbers, booleans, ordered levels and categories.

    Returns
    -------
    SparseObservations
        Input for `complete`, with sorted labels.  Attributes are further columns after those of the
        table, in units of their own, while all values of the table share one.  Rows are those of
        the table or of the attributes.

    Raises
    ------
    KeyError
        If the table does not have one of the columns.
    TypeError
        If the values are not real numbers, or if attributes are no DataFrame, or one with text.
    ValueError
        If a pair of labels comes twice, if a label is missing, if labels cannot be sorted, or if
        attributes have no row label in common with the table.

    Examples
    --------
    >>> import pandas as pd, nmd_lab as nmd
    >>> frame = pd.DataFrame(
    ...     {"user": ["ann", "ann", "bo"], "item": [7, 9, 7], "rating": [4.0, 5.0, 3.0]}
    ... )
    >>> nmd.observations_from_table(frame)
    <nmd_lab.SparseObservations>  user: 2, item: 2, 3 stored entries (75 %), float64
    >>> users = pd.DataFrame({"age": [31, None], "member": [True, False]}, index=["ann", "bo"])
    >>> X = nmd.observations_from_table(frame, attributes=users)
    >>> X.column_labels.tolist(), X.n_observed
    ([7, 9, 'age', 'member'], 6)
    """
    if row == column:
        raise ValueError(f"row={row!r} and column={column!r} are one column: give two.")
    check_no_component((row, column))
    columns = {}
    for argument, name in (("row", row), ("column", column), ("value", value)):
        try:
            columns[argument] = np.asarray(frame[name])
        except (KeyError, IndexError, ValueError) as error:
            names = list(getattr(frame, "columns", frame))
            raise KeyError(f"{argument}={name!r} is not in the table: it has {names}.") from error
    if columns["value"].dtype.kind not in "buif":
        raise TypeError(
            f"value={value!r} has dtype {columns['value'].dtype}: convert it to real numbers."
        )
    values = columns["value"]
    half = values.dtype == np.float16
    # SciPy has neither half precision nor the other byte order
    values = values.astype(np.float32 if half else values.dtype.newbyteorder("="), copy=False)
    (row_labels, i), (column_labels, j) = (
        _sorted_labels(argument, columns[argument]) for argument in ("row", "column")
    )
    shape = (row_labels.size, column_labels.size)
    order = np.lexsort((j, i))
    duplicate = first_duplicate(i[order], j[order])
    if duplicate is not None:
        k = order[duplicate]
        raise ValueError(
            f"the table holds {row}={row_labels[i[k]]!s}, {column}={column_labels[j[k]]!s} more "
            f"than once: give frame.groupby({[row, column]!r}, as_index=False)[{value!r}].mean(), "
            "which has one line for each pair."
        )
    observed = observe_sparse(sparse.coo_array((values, (i, j)), shape=shape))
    coords = xr.Dataset(coords={row: row_labels, column: column_labels})
    labels = Labels(
        (row, column), shape, (row,), coords, value, valid_range=valid_range(frame, value)
    )
    labelled = replace(observed, labels=labels)
    return labelled if attributes is None else with_attributes(labelled, attributes)


def observations_from_sparse(
    X: Any, rows: Any = None, columns: Any = None, *, name: str | None = None
) -> SparseObservations:
    """Return the observations that a SciPy matrix stores, with labels.

    Parameters
    ----------
    X : scipy.sparse matrix or array (m, n)
        Data in any format.  Entries that are not stored are missing to `complete` and `sample`,
        and zeros to `decompose`.
    rows, columns : array_like (m,) and (n,), or pandas.Index, optional
        Labels; the name of an Index is that of the dimension, by default "row" and "column".
    name : str, optional
        Name of the values, such as "rating".

    Returns
    -------
    SparseObservations
        Input for `complete`.  Its method `to_csr` returns the matrix, `to_table` a long table.

    Raises
    ------
    TypeError, ValueError
        If X is not sparse or not valid, or if the labels are not one for each row or column, or
        come twice.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> from scipy import sparse
    >>> X = sparse.csr_array([[4.0, 5.0], [3.0, 0.0]])
    >>> nmd.observations_from_sparse(X, ["ann", "bo"], [7, 9], name="rating").to_table()
       row  column  rating
    0  ann       7     4.0
    1  ann       9     5.0
    2   bo       7     3.0
    """
    if not sparse.issparse(X):
        raise TypeError(f"X is a {type(X).__name__}: give a scipy.sparse matrix.")
    observed = observe_sparse(X)
    coords, dims = {}, []
    for argument, axis_labels, size, default in zip(
        ("rows", "columns"), (rows, columns), observed.shape, ("row", "column"), strict=True
    ):
        dim = str(getattr(axis_labels, "name", None) or default)
        dims.append(f"{dim}_{default}" if dim in dims else dim)
        if axis_labels is not None:
            coords[dims[-1]] = _checked_labels(argument, axis_labels, size)
    labels = replace(
        observed.labels,
        dims=tuple(dims),
        rows=(dims[0],),
        coords=xr.Dataset(coords=coords),
        name=name,
    )
    return replace(observed, labels=labels)


def _checked_labels(argument: str, axis_labels: Any, size: int) -> NDArray[Any]:
    """Return labels as an array; there must be so many of them, all distinct."""
    labels = np.asarray(axis_labels)
    if labels.shape != (size,):
        raise ValueError(f"{argument} has shape {labels.shape}: give {size} labels.")
    distinct = set(labels.tolist())
    if len(distinct) < size:
        raise ValueError(f"{argument} holds a label more than once: give each its own.")
    return labels


def _sorted_labels(argument: str, entries: Any) -> tuple[Any, Any]:
    """Return the distinct labels in order, and for each line the position of its label."""
    if entries.dtype.kind == "f" and np.isnan(entries).any():
        raise ValueError(f"{argument} holds a missing label: drop those lines.")
    try:
        return np.unique(entries, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            f"{argument} mixes labels that cannot be sorted, or misses some: give one type."
        ) from error


def with_attributes(X: SparseObservations, attributes: Any) -> SparseObservations:
    """Return the observations of a long table next to the typed columns of a DataFrame.

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


def observations_from_files(
    files: Any,
    folder: str | os.PathLike[str],
    *,
    row: str = "user",
    column: str = "item",
    value: str = "rating",
    dtype: DTypeLike = np.float32,
    lines: int = 2_000_000,
    **options: Any,
) -> SparseObservations:
    """Return the labelled sparse observations of a long table in files, larger than memory.

    The files are read twice, by chunks.  The result is that of `observations_from_table`, with its
    entries in files of a folder, from which a fit reads them when it needs them.

    Parameters
    ----------
    files : path-like, or list of these
        CSV files (also compressed), or Parquet files (extra "parquet").
    folder : path-like
        Folder to make, for the entries in compressed rows, `data.npy`, `indices.npy` and
        `indptr.npy`, and the labels, `rows.npy` and `columns.npy`.
    row, column, value : str, default "user", "item" and "rating"
        Columns of the table: labels of rows and columns, and values.
    dtype : float32 or float64, default float32
        Type of the values.
    lines : int, default 2000000
        Number of lines that are in memory at a time.
    **options
        Further arguments of `pandas.read_csv`, such as `sep` and `names`.

    Returns
    -------
    SparseObservations
        Input for `complete`.

    Raises
    ------
    FileExistsError, FileNotFoundError
        If the folder exists, or a file does not.
    KeyError, TypeError, ValueError
        If the table has not these columns, a value is no number, or a pair comes twice.
    ImportError
        If a file is Parquet and pyarrow is missing.

    Examples
    --------
    >>> import os, tempfile
    >>> import pandas as pd, nmd_lab as nmd
    >>> folder = tempfile.mkdtemp()
    >>> file = os.path.join(folder, "table.csv")
    >>> pd.DataFrame({"who": [2, 1], "what": ["p", "q"], "stars": [5, 3]}).to_csv(file)
    >>> names = {"row": "who", "column": "what", "value": "stars"}
    >>> nmd.observations_from_files(file, os.path.join(folder, "stars"), **names)
    <nmd_lab.SparseObservations>  who: 2, what: 2, 2 stored entries (50 %), float32
    """
    names, target = (row, column, value), Path(folder)
    if target.exists():
        raise FileExistsError(f"folder={str(folder)!r} exists: remove it, or give another one.")
    paths = [Path(each) for each in (files if isinstance(files, list | tuple) else [files])]

    def chunks() -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
        for path in paths:
            yield from _chunks(path, names, lines, options)

    labels, counts = _labels_and_counts(chunks(), names)
    indptr = np.append(0, np.cumsum(counts))
    if not indptr[-1]:
        raise ValueError(f"files={str(files)!r} hold no line: give some with observations.")
    temporary = Path(tempfile.mkdtemp(prefix="nmd-lab-", dir=target.parent))
    try:
        for name, array in (("indptr", indptr), ("rows", labels[0]), ("columns", labels[1])):
            np.save(temporary / f"{name}.npy", np.asarray(array.tolist()))  # text without pickles
        _write_entries(temporary, chunks(), labels, indptr, np.dtype(dtype), names)
        temporary.replace(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    values, indices, pointers = (
        np.asarray(np.load(target / f"{name}.npy", mmap_mode="r"))
        for name in ("data", "indices", "indptr")
    )
    shape = labels[0].size, labels[1].size
    coords = xr.Dataset(coords=dict(zip((row, column), labels, strict=True)))
    of_table = Labels((row, column), shape, (row,), coords, value)
    return SparseObservations(values, None, pointers, indices, of_table)


def _chunks(
    path: Path, names: tuple[str, str, str], lines: int, options: dict[str, Any]
) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
    """Yield row labels, column labels and values of a file, chunk by chunk."""
    if not path.is_file():
        raise FileNotFoundError(f"files={str(path)!r} is no file: check the name.")
    if path.suffix in (".parquet", ".pq"):
        try:
            from pyarrow.parquet import ParquetFile
        except ImportError as error:
            raise ImportError(
                f"files={str(path)!r} needs pyarrow: pip install 'nmd-lab[parquet]'."
            ) from error
        frames: Any = (batch.to_pandas() for batch in ParquetFile(path).iter_batches(lines))
    else:
        frames = pd.read_csv(path, chunksize=lines, **options)
    for frame in frames:
        missing = [name for name in names if name not in frame]
        if missing:
            raise KeyError(f"{missing[0]!r} is not in the table: it has {list(frame.columns)}.")
        if frame.empty:
            continue
        if frame[list(names)].isna().to_numpy().any():
            raise ValueError("the table has missing labels or values: drop these lines.")
        i, j, x = (frame[name].to_numpy() for name in names)
        if x.dtype.kind not in "buif":
            raise TypeError(f"value={names[2]!r} has dtype {x.dtype}: convert it to numbers.")
        if not np.all(np.isfinite(x)):
            raise ValueError(f"{names[2]!r} holds infinite numbers: drop these lines.")
        yield i, j, x


def _labels_and_counts(
    chunks: Iterator[Any], names: tuple[str, str, str]
) -> tuple[list[NDArray[Any]], NDArray[np.int64]]:
    """Return the sorted labels of rows and of columns, and the number of entries of each row."""
    labels: list[NDArray[Any]] = []
    counts = np.zeros(0, np.int64)
    for i, j, _ in chunks:
        try:
            new, number = np.unique(i, return_counts=True)
            found = [np.union1d(*pair) for pair in zip(labels or (new, j), (new, j), strict=True)]
        except TypeError as error:
            raise ValueError(
                f"{names[0]!r} or {names[1]!r} mixes labels that cannot be sorted: give one type."
            ) from error
        before, counts = counts, np.zeros(found[0].size, np.int64)
        if labels:
            counts[np.searchsorted(found[0], labels[0])] = before
        counts[np.searchsorted(found[0], new)] += number
        labels = found
    return labels, counts


def _write_entries(
    folder: Path,
    chunks: Iterator[Any],
    labels: list[NDArray[Any]],
    indptr: NDArray[np.int64],
    dtype: np.dtype[Any],
    names: tuple[str, str, str],
) -> None:
    """Write columns and values: each chunk to where its rows begin, then each row in order."""
    size, free = (int(indptr[-1]),), indptr[:-1].copy()
    indices = np.lib.format.open_memmap(folder / "indices.npy", "w+", np.int32, size)
    values = np.lib.format.open_memmap(folder / "data.npy", "w+", dtype, size)
    for i, j, x in chunks:
        i, j = np.searchsorted(labels[0], i), np.searchsorted(labels[1], j)
        order = np.argsort(i, kind="stable")
        i = i[order]
        at = free[i] + np.arange(i.size) - np.searchsorted(i, i)
        indices[at], values[at] = j[order], x[order]
        free += np.bincount(i, minlength=free.size)
    for first, last in row_blocks(indptr):
        block = slice(indptr[first], indptr[last])
        rows = row_of_entries(indptr[first : last + 1])
        order = np.lexsort((indices[block], rows))
        indices[block], values[block] = indices[block][order], values[block][order]
        k = first_duplicate(rows, indices[block])
        if k is not None:
            pair = labels[0][first + rows[k]], labels[1][indices[block][k]]
            raise ValueError(
                f"the table holds {names[0]}={pair[0]!s}, {names[1]}={pair[1]!s} more than once: "
                "keep one line of each pair."
            )
