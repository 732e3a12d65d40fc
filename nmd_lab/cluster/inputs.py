"""From X and a client to observations on the workers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import DTypeLike, NDArray

from nmd_lab._runtime.checks import check_word
from nmd_lab.data.any_frame import plain_array
from nmd_lab.data.inputs import form_of, observe, observe_dense
from nmd_lab.data.labels import Labels, labels_of
from nmd_lab.data.observations import Observations, float_dtype
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.data.split import rows_of

from .cluster import Cluster, Source
from .observations import ClusterObservations
from .partition import Boxed


def load_given(observations: Observations) -> Observations:
    """Return rows that the client has sent."""
    return observations


def load_block(X: Any, observed: Any, weights: Any, dtype: DTypeLike) -> Observations:
    """Return rows that tasks of Dask have made: a block of an array, of mask and weights."""
    options: dict[str, Any] = {"observed": observed, "weights": weights, "dtype": dtype}
    return observe_dense(X, **options, may_be_empty=True)


def load_pieces(
    pieces: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]],
    shape: tuple[int, int],
    dtype: DTypeLike,
) -> Observations:
    """Return rows from their entries in any order."""
    from scipy.sparse import csr_array

    rows, columns, values = (np.concatenate(each) for each in zip(*pieces, strict=True))
    order = np.lexsort((columns, rows))
    rows, columns, values = rows[order], columns[order], values[order].astype(dtype)
    twice = (np.diff(rows) == 0) & (np.diff(columns) == 0)
    if twice.any():
        raise ValueError("X has an entry twice in the table: keep one of each row and column.")
    matrix = csr_array((values, (rows, columns)), shape=shape)
    return SparseObservations(matrix.data, None, matrix.indptr, matrix.indices, Labels.plain(shape))


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
        Source(size, load_pieces, [client.compute(there), (size, columns.size), wanted])
        for size, there in zip(np.diff(borders).tolist(), pieces, strict=True)
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


FEWEST_PARTITIONS = 8
"""Number of partitions of usual data.

It does not depend on the workers if they have no more threads, so that others can resume a run.
"""

LARGEST_PARTITION = 64 << 20
"""Largest size of a partition, in bytes."""

FEWEST_ENTRIES = 1 << 10
"""Smallest number of stored entries of a partition."""


def checked_client(X: Any, client: Any) -> Any:
    """Return the client of a fit: that which is given, or the active one."""
    if client is None or isinstance(client, str):
        return _active_client(X, client)
    if not hasattr(client, "scheduler_info") or not hasattr(client, "submit"):
        raise TypeError(
            f"client={client!r} is no client of Dask: give a distributed.Client, 'active', or "
            "leave it out."
        )
    if getattr(client, "asynchronous", False):
        raise TypeError("client= is asynchronous: give a client without asynchronous=True.")
    return client


def _active_client(X: Any, client: str | None) -> Any:
    """Return the active client; None for a DataArray over a Dask array if there is none."""
    if client is not None:
        check_word("client", client, ["active"], ", or a distributed.Client")
    try:
        from distributed import default_client
    except ImportError as error:
        remedy = "pip install 'nmd-lab[dask]'"
        raise ImportError(f"a fit on a cluster needs Dask: {remedy}.") from error
    try:
        return default_client()
    except ValueError:
        if client is None and isinstance(X, xr.DataArray):
            return None  # its blocks are read one after another
        what = "X is a collection of Dask" if client is None else "client='active'"
        raise ValueError(
            f"{what}, and no client is active: start one, for example with distributed.Client()."
        ) from None


def observe_on_cluster(
    X: Any,
    client: Any,
    *,
    observed: Any,
    weights: Any,
    dtype: DTypeLike | None,
    sample_dims: str | Sequence[str] | None,
    absent_are_zeros: bool,
) -> ClusterObservations:
    """Return observations on the workers of a client; see `nmd_lab.data.inputs.observe`."""
    masks: dict[str, Any] = {"observed": observed, "weights": weights}
    sources: Iterable[Source]
    if is_dask_table(X):
        _refuse(masks, "a table of Dask")
        sources, labels = sources_of_table(
            X, client, dtype, _number_of_partitions(12 * len(X), client), zeros=absent_are_zeros
        )
    elif form_of(X).is_dask:
        sources, labels = _blocks_of(X, client, masks, dtype, sample_dims)
    else:
        plain = observe(
            X, **masks, dtype=dtype, sample_dims=sample_dims, absent_are_zeros=absent_are_zeros
        )
        labels = plain.labels
        sources = (
            Source(rows.stop - rows.start, load_given, [Boxed(rows_of(plain, rows))])
            for rows in _ranges_of(plain, client)
        )
    observations = ClusterObservations.of(Cluster(client, sources), labels)
    if not observations.n_observed:
        raise ValueError("X has no observed entry: check observed=, weights= and the NaN in X.")
    return observations


def _refuse(masks: dict[str, Any], what: str) -> None:
    """Raise ValueError for arguments that a kind of X does not take."""
    for name, value in masks.items():
        if value is not None:
            raise ValueError(f"{name}= does not go with {what}: leave out what is not observed.")


def _number_of_partitions(n_bytes: int, client: Any) -> int:
    """Return the number of partitions for data of some size."""
    partitions = FEWEST_PARTITIONS
    while partitions < sum(client.nthreads().values()):
        partitions *= 2
    return max(partitions, -(-n_bytes // LARGEST_PARTITION))


def _ranges_of(observations: Any, client: Any) -> list[slice]:
    """Return ranges of rows with about equally many entries."""
    m = observations.shape[0]
    stored, itemsize = observations.n_stored, observations.dtype.itemsize
    partitions = min(
        _number_of_partitions(stored * itemsize, client), stored // FEWEST_ENTRIES + 1, m
    )
    if observations.pattern is None:
        ends = [m * partition // partitions for partition in range(partitions + 1)]
        return [slice(a, b) for a, b in pairwise(ends)]
    indptr = observations.indptr
    wanted = np.linspace(0, stored, partitions + 1)[1:-1]
    ends = np.unique([0, *np.searchsorted(indptr, wanted).clip(0, m).tolist(), m]).tolist()
    return [slice(a, b) for a, b in pairwise(ends)]


def _blocks_of(
    X: Any,
    client: Any,
    masks: dict[str, Any],
    dtype: DTypeLike | None,
    sample_dims: str | Sequence[str] | None,
) -> tuple[list[Source], Labels]:
    """Return the sources of the blocks of a Dask array, or of a DataArray over one."""
    if isinstance(X, xr.DataArray):
        labels = labels_of(X, sample_dims)
        matrix = X.transpose(*labels.rows, *labels.columns).data.reshape(labels.matrix_shape)
    else:
        if X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimensions: give a matrix.")
        matrix, labels = X, Labels.plain(X.shape)
    if any(np.isnan(size) for size in matrix.shape):
        raise ValueError("X has unknown chunk sizes: call X.compute_chunk_sizes() before.")
    if matrix.size == 0:
        raise ValueError(f"X has shape {matrix.shape}, which holds no entry: give a larger matrix.")
    if matrix.dtype.kind not in "buif":
        raise TypeError(f"X has dtype {matrix.dtype}: convert it to real numbers.")
    wanted = float_dtype(matrix, dtype)
    m, n = matrix.shape
    n_bytes = m * n * wanted.itemsize
    matrix = matrix.rechunk({0: _rows_of_blocks(matrix.chunks[0], n_bytes, client), 1: -1})
    lists = [matrix.to_delayed().ravel()]
    for name, other in masks.items():
        lists.append(_like(name, other, matrix))
    sources = [
        Source(size, load_block, [*_begun(client, x, mask, weights), wanted])
        for size, x, mask, weights in zip(matrix.chunks[0], *lists, strict=True)
    ]
    return list(sources), labels


def _begun(client: Any, *blocks: Any) -> list[Any]:
    """Return the futures of blocks; None where there is none."""
    return [None if block is None else client.compute(block) for block in blocks]


def _rows_of_blocks(chunks: tuple[int, ...], n_bytes: int, client: Any) -> Any:
    """Return the numbers of rows of blocks: those of the array, if they are many and small."""
    m, workers = sum(chunks), max(len(client.nthreads()), 1)
    largest = max(chunks) / m * n_bytes
    if len(chunks) >= 2 * workers and largest <= 2 * LARGEST_PARTITION:
        return chunks
    return -(-m // min(_number_of_partitions(n_bytes, client), m))


def _like(name: str, other: Any, matrix: Any) -> Any:
    """Return the blocks of a mask or of weights with those of X; None for each if not given."""
    if other is None:
        return [None] * matrix.numblocks[0]
    import dask.array

    array = other.data if isinstance(other, xr.DataArray) else other
    if np.shape(array) != matrix.shape:
        raise ValueError(
            f"{name} has shape {np.shape(array)}, and X {matrix.shape}: give one of that shape."
        )
    array = array if form_of(array).is_dask else dask.array.from_array(plain_array(other))
    return array.rechunk(matrix.chunks).to_delayed().ravel()
