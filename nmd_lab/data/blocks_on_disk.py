"""Data in files: dense ones are read by blocks of rows, ratings are brought into CSR form.

A `numpy.memmap` of floats in C order is used as it is.  Everything else (another type or order, a
zarr array, a dataset of HDF5, a DataArray that xarray has not loaded) is copied block by block into
a file of the working folder, once.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import DTypeLike, NDArray

from nmd_lab._runtime.disk import FileArray, Scratch

from .any_frame import plain_array
from .dense import DenseObservations
from .entries import EntryWeights, first_duplicate, row_of_entries
from .labels import Labels, labels_of
from .masks import as_booleans, check_weights, infinity_error
from .observations import BLOCK, float_dtype
from .sparse import SparseObservations, row_blocks


def observe_stored(
    X: Any,
    scratch: Scratch,
    *,
    observed: Any = None,
    weights: Any = None,
    dtype: DTypeLike | None = None,
    sample_dims: Any = None,
    may_be_empty: bool = False,
) -> DenseObservations:
    """Return the observations of a matrix in a file, without reading it as a whole."""
    labels = labels_of(X, sample_dims) if isinstance(X, xr.DataArray) else Labels.plain(X.shape)
    if X.size == 0:
        raise ValueError(f"X has shape {X.shape}, which holds no entry: give a larger matrix.")
    stored = _matrix(X, labels, dtype, scratch)
    for name, array in (("observed", observed), ("weights", weights)):
        if array is not None and np.shape(array) != stored.shape:
            raise ValueError(
                f"{name} has shape {np.shape(array)}, and X {stored.shape}: give one of that shape."
            )
    bits, n_seen = _seen(stored, observed, weights)
    if not (n_seen or may_be_empty):
        raise ValueError("X has no observed entry: check observed=, weights= and the NaN in X.")
    floats = None
    if weights is not None:
        floats = _matrix(weights, Labels.plain(stored.shape), stored.dtype, scratch).ravel()
    stored_weights = None
    if n_seen < stored.size or floats is not None:
        seen = None if n_seen == stored.size and weights is None else bits
        stored_weights = EntryWeights.from_bits(seen, floats, stored.shape)
    return DenseObservations(stored, stored_weights, labels, scratch=scratch)  # type: ignore[arg-type]


def _matrix(X: Any, labels: Labels, dtype: DTypeLike | None, scratch: Scratch) -> FileArray:
    """Return a matrix of floats in C order that is read by rows."""
    wanted = float_dtype(X, dtype)
    if isinstance(X, np.memmap) and X.dtype == wanted and X.flags.c_contiguous and X.mode != "c":
        return _mapped(X)
    m, n = labels.matrix_shape
    out = scratch.zeros(m * n, wanted)
    rows = max(1, BLOCK // n)
    for first in range(0, m, rows):
        last = min(first + rows, m)
        with np.errstate(over="ignore"):  # what overflows is found later
            out[first * n : last * n] = _rows(X, labels, first, last).ravel()
    return out.reshape(m, n)


def _rows(X: Any, labels: Labels, first: int, last: int) -> Any:
    """Return a range of rows as an array."""
    if not isinstance(X, xr.DataArray):
        return plain_array(X[first:last])
    if len(labels.rows) == 1:
        block = X.isel({labels.rows[0]: slice(first, last)})
        block = block.transpose(*labels.rows, *labels.columns)
        return plain_array(block).reshape(last - first, -1)
    sizes = [X.sizes[dim] for dim in labels.rows]
    places = np.unravel_index(np.arange(first, last), sizes)
    one_by_one = [
        plain_array(
            X.isel(dict(zip(labels.rows, map(int, place), strict=True))).transpose(*labels.columns)
        ).ravel()
        for place in zip(*places, strict=True)
    ]
    return np.stack(one_by_one)


def _mapped(X: np.memmap) -> FileArray:
    """Return a memmap as it is."""
    mapping: Any = X._mmap  # type: ignore[attr-defined]
    base = np.frombuffer(mapping, np.uint8)
    start = X.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return FileArray(np.asarray(X).view(np.ndarray), mapping, start)


def _seen(stored: FileArray, observed: Any, weights: Any) -> tuple[Any, int]:
    """Return the mask of the observed entries in bits, and their number."""
    m, n = stored.shape
    rows = max(1, BLOCK // n) * 8 if n % 8 else max(1, BLOCK // n)  # whole bytes
    bits, n_seen = np.zeros(-(-m * n // 8), np.uint8), 0
    for first in range(0, m, rows):
        block = slice(first, min(first + rows, m))
        x = stored[block]
        seen = ~np.isnan(x)
        if observed is not None:
            seen &= as_booleans(plain_array(observed[block]))
        if weights is not None:
            weights_block = plain_array(weights[block])
            check_weights(weights_block)
            seen &= weights_block > 0
        if np.any(np.isinf(x) & seen):
            i, j = np.argwhere(np.isinf(x) & seen)[0]
            raise infinity_error(first + i, j)
        packed = np.packbits(seen)
        begin = first * n // 8
        bits[begin : begin + packed.size] = packed
        n_seen += int(np.count_nonzero(seen))
    return bits, n_seen


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
