"""Labelled sparse observations from a long table, also in files, or from a SciPy matrix.

What is known of the rows of a long table becomes further columns, in units of their own.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from nmd_lab._runtime.checks import needs_library

from .entries import FloatArray, IntArray, entries_of_rows, first_duplicate, row_of_entries
from .inputs import observe_sparse
from .labels import Labels, check_no_component, is_frame, valid_range
from .matching import first_few
from .observations import float_dtype, row_blocks
from .sparse import SparseObservations
from .typed_table import TypedColumn, TypedTable, table_of

Names = tuple[str, str, str]
"""Columns of a long table with row labels, column labels and values."""

Lines = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
"""Row labels, column labels and values."""


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
        row labels, and its columns may be numbers, booleans, ordered categories and categories.

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
        If columns differ in length, if a pair of labels comes twice, if a label is missing, if
        labels cannot be sorted, or if attributes have no row label in common with the table.

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
    names = (row, column, value)
    lines = _lines(frame, names)
    found = _in_rows(lambda: iter([lines]), names, float_dtype(lines[2], None))
    documented = replace(found.labels, valid_range=valid_range(frame, value))
    labelled = observe_sparse(replace(found, labels=documented))
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
    axes, coords, dims = {"row": rows, "column": columns}, xr.Dataset(), list[str]()
    for (default, axis_labels), size in zip(axes.items(), observed.shape, strict=True):
        dim = str(getattr(axis_labels, "name", None) or default)
        dims.append(f"{dim}_{default}" if dim in dims else dim)
        if axis_labels is None:
            continue
        values = np.asarray(axis_labels)
        if values.shape != (size,):
            raise ValueError(f"{default}s has shape {values.shape}: give {size} labels.")
        if not pd.Index(values).is_unique:
            raise ValueError(f"{default}s holds a label more than once: give each its own.")
        coords[dims[-1]] = values
    labels = replace(observed.labels, dims=tuple(dims), rows=(dims[0],), coords=coords, name=name)
    return replace(observed, labels=labels)


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
            f"attributes has {names.size} columns with labels of {names.nlevels} index levels: "
            "give one column or more, with labels of one level."
        )
    if row in names:
        raise ValueError(
            f"attributes has the column {row!r}: give attributes.set_index({row!r}), so that its "
            "index has the row labels."
        )
    if index.nlevels > 1 or index.hasnans or not index.is_unique:
        raise ValueError(
            "attributes has several index levels, a label twice or a line without one: give one "
            f"line with its own label for each {row}."
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

    def chunks() -> Iterator[Lines]:
        return (_finite(_lines(frame, names), value) for path in paths
                for frame in _frames(path, lines, options) if len(frame))  # fmt: skip

    temporary = Path(tempfile.mkdtemp(prefix="nmd-lab-", dir=target.parent))
    try:
        found = _in_rows(chunks, names, np.dtype(dtype), temporary)
        axes = {"rows": found.row_labels, "columns": found.column_labels}
        for name, array in {**axes, "indptr": found.indptr}.items():
            np.save(temporary / f"{name}.npy", np.asarray(array.tolist()))  # text without pickles
        temporary.replace(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    arrays = {name: np.load(target / f"{name}.npy", mmap_mode="r") for name in ("data", "indices")}
    return replace(found, values=np.asarray(arrays["data"]), indices=np.asarray(arrays["indices"]))


def _frames(path: Path, lines: int, options: dict[str, Any]) -> Iterator[Any]:
    """Yield the table in a file, chunk by chunk."""
    if not path.is_file():
        raise FileNotFoundError(f"files={str(path)!r} is no file: check the name.")
    if path.suffix not in (".parquet", ".pq"):
        yield from pd.read_csv(path, chunksize=lines, **options)
        return
    with needs_library(f"files={str(path)!r} needs pyarrow: pip install pyarrow."):
        from pyarrow.parquet import ParquetFile
    yield from (batch.to_pandas() for batch in ParquetFile(path).iter_batches(lines))


def _lines(frame: Any, names: Names) -> Lines:
    """Return row labels, column labels and values of a long table."""
    found: list[NDArray[Any]] = []
    for argument, name in zip(("row", "column", "value"), names, strict=True):
        try:
            column = np.asarray(frame[name])
        except (KeyError, IndexError, TypeError, ValueError) as error:
            columns = list(getattr(frame, "columns", frame))
            raise KeyError(f"{argument}={name!r} is not in the table: it has {columns}.") from error
        if column.ndim != 1 or (found and column.size != found[0].size):
            raise ValueError(
                f"{argument}={name!r} has shape {column.shape}: give one column, as long as the "
                "others."
            )
        if argument != "value" and pd.isna(column).any():
            raise ValueError(f"{argument}={name!r} has a missing label: drop those lines.")
        found.append(column.astype(column.dtype.newbyteorder("="), copy=False))
    i, j, x = found
    if x.dtype.kind not in "buif":
        raise TypeError(f"value={names[2]!r} has dtype {x.dtype}: convert it to real numbers.")
    return i, j, x


def _finite(lines: Lines, value: str) -> Lines:
    """Return lines, none of which has a value that is missing or infinite."""
    if not np.all(np.isfinite(lines[2])):
        raise ValueError(f"value={value!r} has missing or infinite numbers: drop those lines.")
    return lines


def _in_rows(
    chunks: Callable[[], Iterator[Lines]], names: Names, dtype: Any, folder: Path | None = None
) -> SparseObservations:
    """Return the observations of the lines in chunks, which are read twice.

    The entries lie in files of a folder, if there is one.
    """
    labels, counts = _labels_and_counts(chunks(), names)
    indptr = np.append(0, np.cumsum(counts))
    size, free = int(indptr[-1]), indptr[:-1].copy()
    indexes = [pd.Index(each) for each in labels]
    indices = _new_array(folder, "indices", size, np.int32)
    values = _new_array(folder, "data", size, dtype)
    for i, j, x in chunks():  # each chunk is written to where its rows begin
        i, j = (index.get_indexer(each) for index, each in zip(indexes, (i, j), strict=True))
        order = np.argsort(i, kind="stable")
        i = i[order]
        at = free[i] + np.arange(i.size) - np.searchsorted(i, i)
        indices[at], values[at] = j[order], x[order]
        free += np.bincount(i, minlength=free.size)
    _sort_rows(indptr, indices, values, labels, names)
    coords = xr.Dataset(coords=dict(zip(names, labels, strict=False)))
    of_table = Labels(names[:2], (labels[0].size, labels[1].size), names[:1], coords, names[2])
    pointers = indptr.astype(sparse.get_index_dtype(maxval=size))
    return SparseObservations(values, None, pointers, indices, of_table)


def _new_array(folder: Path | None, name: str, size: int, dtype: Any) -> NDArray[Any]:
    """Return a new array, in a file of a folder if there is one."""
    if folder is None:
        return np.empty(size, dtype)
    return np.lib.format.open_memmap(folder / f"{name}.npy", "w+", dtype, (size,))


def _sort_rows(
    indptr: IntArray, indices: IntArray, values: FloatArray, labels: list[Any], names: Names
) -> None:
    """Sort the entries of each row by column; raise ValueError if a pair of labels comes twice."""
    for here in row_blocks(indptr):
        pointers, block = entries_of_rows(indptr, here)
        rows = row_of_entries(pointers)
        order = np.lexsort((indices[block], rows))
        indices[block], values[block] = indices[block][order], values[block][order]
        k = first_duplicate(rows, indices[block])
        if k is not None:
            pair = labels[0][here.start + rows[k]], labels[1][indices[block][k]]
            raise ValueError(
                f"the table holds {names[0]}={pair[0]!s}, {names[1]}={pair[1]!s} more than once: "
                f"give frame.groupby({list(names[:2])!r}, as_index=False)[{names[2]!r}].mean(), "
                "which has one line for each pair."
            )


def _labels_and_counts(
    chunks: Iterator[Lines], names: Names
) -> tuple[list[NDArray[Any]], NDArray[np.int64]]:
    """Return the sorted labels of rows and of columns, and the number of entries of each row."""
    labels: list[NDArray[Any]] = []
    counts = np.zeros(0, np.int64)
    for i, j, _ in chunks:
        codes, distinct = pd.factorize(i)
        new = distinct, pd.unique(j)
        try:
            found = [np.union1d(*pair) for pair in zip(labels or new, new, strict=True)]
        except TypeError as error:
            raise ValueError(
                f"{names[0]!r} or {names[1]!r} mixes labels that cannot be sorted: give one type."
            ) from error
        before, counts = counts, np.zeros(found[0].size, np.int64)
        if labels:
            counts[np.searchsorted(found[0], labels[0])] = before
        counts[np.searchsorted(found[0], new[0])] += np.bincount(codes)
        labels = found
    if not labels:
        raise ValueError("files= hold no line: give some with observations.")
    return labels, counts
