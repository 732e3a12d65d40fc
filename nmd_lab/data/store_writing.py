"""Writing a `SparseStore`: entries are read by chunks, and sorted by rows on disk."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .sparse import observe_sparse

LAYOUT = 1
"""Version of the layout of a store."""

ARRAYS = {"indptr": np.dtype(np.int64), "indices": np.dtype(np.int32)}
"""Files of the pattern."""

CHUNK_LINES = 2_000_000
"""Lines of a table that are in memory at a time."""

Chunk = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
"""Labels of rows and columns, and values, of some lines."""


def write_matrix(matrix: Any, path: Path) -> None:
    """Write a SciPy matrix or observations as a store."""
    observations = observe_sparse(matrix)
    if observations.weights is not None or observations.limits is not None:
        raise ValueError("matrix has weights or limits, which a store does not hold: leave them.")
    with _Writer(path, observations.values.dtype) as writer:
        writer.add(np.diff(observations.indptr), observations.indices, observations.values)
        labels = observations.labels
        axis_labels = [
            labels.flat(dims) if all(d in labels.coords.indexes for d in dims) else None
            for dims in (labels.rows, labels.columns)
        ]
        dims = (labels.rows[0], labels.columns[0])
        writer.finish(observations.shape, dims, axis_labels, labels.name)


def write_table(
    table: Any, path: Path, names: tuple[str, str, str], dtype: np.dtype[Any], lines: int
) -> None:
    """Write a long table as a store: labels first, then buckets of rows, each of them sorted."""
    tables = table if isinstance(table, list | tuple) else [table]

    def chunks() -> Iterator[Chunk]:
        for each in tables:
            yield from _chunks(each, names, lines)

    labels, total = _labels(chunks)
    if not total:
        raise ValueError("the table holds no line: give one with observations.")
    shape = labels[0].size, labels[1].size
    n_buckets = -(-total // lines)
    with tempfile.TemporaryDirectory(prefix="nmd-lab-", dir=path.parent) as folder:
        buckets = _distribute(chunks, labels, n_buckets, dtype, Path(folder))
        with _Writer(path, dtype) as writer:
            for k, bucket in enumerate(buckets):
                first, last = (shape[0] * end // n_buckets for end in (k, k + 1))
                writer.add(*_sorted(bucket, first, last, labels, names, dtype))
            writer.finish(shape, names[:2], labels, names[2])


def _labels(chunks: Callable[[], Iterator[Chunk]]) -> tuple[list[NDArray[Any]], int]:
    """Return the sorted labels of rows and of columns, and the number of lines."""
    found: list[NDArray[Any]] = []
    total = 0
    for i, j, x in chunks():
        new = [np.unique(i), np.unique(j)]
        found = [np.union1d(*pair) for pair in zip(found, new, strict=True)] if found else new
        total += x.size
    return found, total


def _distribute(
    chunks: Callable[[], Iterator[Chunk]],
    labels: list[NDArray[Any]],
    n_buckets: int,
    dtype: np.dtype[Any],
    folder: Path,
) -> list[Path]:
    """Write the entries of each range of rows into a file of its own."""
    paths, m = [folder / str(k) for k in range(n_buckets)], labels[0].size
    entry = np.dtype([("i", np.int32), ("j", np.int32), ("x", dtype)])
    ends = np.array([m * (k + 1) // n_buckets for k in range(n_buckets)])
    for path in paths:
        path.touch()
    for i, j, x in chunks():
        entries = np.empty(x.size, entry)
        entries["i"], entries["j"] = np.searchsorted(labels[0], i), np.searchsorted(labels[1], j)
        entries["x"] = x
        bucket = np.searchsorted(ends, entries["i"], side="right")
        order = np.argsort(bucket, kind="stable")
        borders = np.searchsorted(bucket[order], np.arange(n_buckets + 1))
        for k, path in enumerate(paths):
            with path.open("ab") as file:
                entries[order[borders[k] : borders[k + 1]]].tofile(file)
    return paths


def _sorted(
    bucket: Path,
    first: int,
    last: int,
    labels: list[NDArray[Any]],
    names: tuple[str, str, str],
    dtype: np.dtype[Any],
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return lengths of rows, columns and values of a bucket, in the order of a store."""
    entries = np.fromfile(bucket, [("i", np.int32), ("j", np.int32), ("x", dtype)])
    order = np.lexsort((entries["j"], entries["i"]))
    i, j, x = (entries[name][order] for name in "ijx")
    twice = np.flatnonzero((i[1:] == i[:-1]) & (j[1:] == j[:-1]))
    if twice.size:
        k = twice[0]
        raise ValueError(
            f"the table holds {names[0]}={labels[0][i[k]]!s}, {names[1]}={labels[1][j[k]]!s} more "
            "than once: keep one line of each pair."
        )
    return np.bincount(i - first, minlength=last - first), j, x


def _chunks(table: Any, names: tuple[str, str, str], lines: int) -> Iterator[Chunk]:
    """Yield the lines of a table, or of a file, chunk by chunk."""
    import pandas as pd

    if isinstance(table, str | os.PathLike):
        frames = _frames(Path(table), names, lines)
    else:
        frames = (table[first : first + lines] for first in range(0, len(table), lines))
    for frame in frames:
        missing = [name for name in names if name not in frame]
        if missing:
            raise KeyError(f"{missing[0]!r} is not in the table: it has {list(frame.columns)}.")
        if frame[list(names)].isna().to_numpy().any():
            raise ValueError("the table has missing labels or values: drop these lines.")
        row, column, value = (frame[name] for name in names)
        if not pd.api.types.is_numeric_dtype(value):
            raise TypeError(f"value={names[2]!r} has dtype {value.dtype}: convert it to numbers.")
        x = value.to_numpy(np.float64)
        if not np.all(np.isfinite(x)):
            raise ValueError(f"{names[2]!r} holds infinite numbers: drop these lines.")
        yield row.to_numpy(), column.to_numpy(), x


def _frames(path: Path, names: tuple[str, str, str], lines: int) -> Iterator[Any]:
    """Yield the tables of a file: CSV, Parquet, or ratings of MovieLens."""
    import pandas as pd

    if not path.is_file():
        raise FileNotFoundError(f"table={str(path)!r} is no file: check the name.")
    if path.suffix in (".parquet", ".pq"):
        try:
            from pyarrow.parquet import ParquetFile
        except ImportError as error:
            raise ImportError(
                f"table={str(path)!r} needs pyarrow: pip install 'nmd-lab[parquet]'."
            ) from error
        for batch in ParquetFile(path).iter_batches(lines, columns=list(names)):
            yield batch.to_pandas()
        return
    options: dict[str, Any] = {"chunksize": lines}
    if path.name == "u.data":
        options |= {"sep": "\t", "header": None, "names": [*names, "time"]}
    elif path.name == "ratings.dat":  # fields between "::"
        options |= {"sep": ":", "header": None, "usecols": [0, 2, 4], "names": list(names)}
    for frame in pd.read_csv(path, **options):
        yield frame.rename(columns={"userId": names[0], "movieId": names[1]})


class _Writer:
    """Writes the files of a store into a temporary folder, which then gets its name."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        if path.exists():
            raise FileExistsError(f"path={str(path)!r} exists: remove it, or give another one.")
        self._path, self._dtype, self._entries = path, dtype, 0
        self._sizes: dict[str, int] = {}
        self._digests: dict[str, Any] = {}

    def __enter__(self) -> _Writer:
        self._folder = Path(tempfile.mkdtemp(prefix="nmd-lab-", dir=self._path.parent))
        self._write("indptr", np.zeros(1, np.int64))
        self._write("indices", np.empty(0, np.int32))
        self._write("values", np.empty(0, self._dtype))
        return self

    def __exit__(self, *_: Any) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def add(self, lengths: NDArray[Any], indices: NDArray[Any], values: NDArray[Any]) -> None:
        """Add rows: their numbers of entries, and the entries."""
        self._write("indptr", self._entries + np.cumsum(lengths, dtype=np.int64))
        self._write("indices", indices.astype(np.int32))
        self._write("values", values.astype(self._dtype))
        self._entries += indices.size

    def finish(
        self, shape: tuple[int, int], dims: tuple[str, str], labels: list[Any], name: str | None
    ) -> None:
        """Write labels and description, and give the folder its name."""
        kinds = {}
        for file, axis_labels in zip(("row_labels", "column_labels"), labels, strict=True):
            if axis_labels is None:
                continue
            if axis_labels.dtype.kind in "iuf":
                kinds[file] = axis_labels.dtype.str
                self._write(file, axis_labels)
            else:
                kinds[file] = "text"
                text = json.dumps([str(each) for each in axis_labels]).encode()
                self._write(file, np.frombuffer(text, np.uint8))
        about = {
            "layout": LAYOUT,
            "shape": list(shape),
            "n_stored": self._entries,
            "dtype": self._dtype.name,
            "dims": list(dims),
            "name": name,
            "labels": kinds,
            "sizes": self._sizes,
            "checksums": {file: digest.hexdigest() for file, digest in self._digests.items()},
        }
        (self._folder / "meta.json").write_text(json.dumps(about), encoding="utf-8")
        self._folder.replace(self._path)

    def _write(self, name: str, array: NDArray[Any]) -> None:
        """Append an array to a file."""
        with (self._folder / name).open("ab") as file:
            array.tofile(file)
        self._sizes[name] = self._sizes.get(name, 0) + array.nbytes
        data: Any = np.ascontiguousarray(array).view(np.uint8)
        self._digests.setdefault(name, hashlib.sha256()).update(data)
