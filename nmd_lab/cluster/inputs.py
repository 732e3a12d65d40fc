"""How X gets to the workers: arrays and tables of Dask, and all that the client sends."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import coo_array

from nmd_lab._runtime.checks import check_word
from nmd_lab.data.entries import check_matrix, check_shape
from nmd_lab.data.inputs import form_of, observe, observe_dense, observe_sparse
from nmd_lab.data.labels import Labels, labels_of, plain_array
from nmd_lab.data.observations import Observations, float_dtype

from .observations import ClusterObservations
from .partitions import Partitions, silent

Source = tuple[int, Any]
"""Number of rows of a partition, and the future of their observations."""

Options = dict[str, Any]
"""The options of `observe`: observed, weights, dtype, sample_dims, absent_are_zeros."""


def as_given(observations: Observations) -> Observations:
    """Return rows that the client has sent."""
    return observations


def load_table(
    table: Any, rows: NDArray[Any], columns: NDArray[Any], dtype: DTypeLike
) -> Observations:
    """Return rows of some labels from a table of columns and values, whose index has the rows."""
    i = np.searchsorted(rows, table.index.to_numpy())
    j = np.searchsorted(columns, table.iloc[:, 0].to_numpy())
    values = table.iloc[:, 1].to_numpy()
    if not np.all(np.isfinite(values)):
        raise ValueError("X has a value in the table that is no finite number: leave it out.")
    matrix = coo_array((values.astype(dtype), (i, j)), shape=(rows.size, columns.size)).tocsr()
    if matrix.nnz < values.size:
        raise ValueError("X has an entry twice in the table: keep one of each row and column.")
    return observe_sparse(matrix, may_be_empty=True)


def _sources_of_table(X: Any, client: Any, how: Options) -> tuple[Iterable[Source], Labels]:
    """Return the sources of the rows of a table, and their labels."""
    from dask.delayed import delayed

    for name in ("observed", "weights"):
        if how[name] is not None:
            raise ValueError(
                f"{name}= does not go with a table of Dask: leave out what is not observed."
            )
    if how["absent_are_zeros"]:
        raise ValueError("X is a table, whose absent entries are missing: use complete().")
    names = list(X.columns)
    if len(names) != 3:
        raise ValueError(
            f"X has the columns {names}: give a table of three, the labels of the row and of the "
            "column, and the value."
        )
    counts = X[names[0]].value_counts(dropna=False).compute(scheduler=client).sort_index()
    columns = X[names[1]].unique().compute(scheduler=client)
    for name, labels in zip(names, (counts.index, columns), strict=False):
        if labels.isna().any():
            raise ValueError(f"X has a line without a label in {name!r}: leave it out.")
    rows, columns = counts.index.to_numpy(), np.sort(columns.to_numpy())
    wanted = float_dtype(np.empty(0, X.dtypes.iloc[2]), how["dtype"])
    ends = np.append(0, np.cumsum(counts.to_numpy()))
    borders = _borders(ends, 12, client)
    divisions = [*rows[borders[:-1]].tolist(), rows[-1]]
    by_row = X.set_index(names[0], divisions=divisions, shuffle_method="tasks")
    load, all_columns = delayed(load_table), delayed(columns)
    loads = [
        load(table, rows[a:b], all_columns, wanted)
        for (a, b), table in zip(pairwise(borders), by_row.to_delayed(), strict=True)
    ]
    dims = (str(names[0]), str(names[1]))
    coords = xr.Dataset(coords={dims[0]: rows, dims[1]: columns})
    sources = zip(np.diff(borders).tolist(), client.compute(loads), strict=True)
    return sources, Labels(dims, (rows.size, columns.size), dims[:1], coords, str(names[2]))


def checked_client(X: Any, client: Any) -> Any:
    """Return the client of a fit: that which is given, or the active one.

    It is None for a DataArray over a Dask array if no client is active.
    """
    if isinstance(client, str):
        check_word("client", client, ["active"], ", or a distributed.Client")
    try:
        from distributed import Client, default_client
    except ImportError as error:
        raise ImportError("a fit on a cluster needs Dask: pip install dask distributed.") from error
    if client is not None and client != "active":
        if not isinstance(client, Client):
            raise TypeError(
                f"client={client!r} is no client of Dask: give a distributed.Client, 'active', or "
                "leave it out."
            )
        if client.asynchronous:
            raise TypeError("client= is asynchronous: give a client without asynchronous=True.")
        return client
    try:
        return default_client()
    except ValueError:
        if client is None and isinstance(X, xr.DataArray):
            return None  # its blocks are read one after another
        what = "X is a collection of Dask" if client is None else "client='active'"
        raise ValueError(
            f"{what}, and no client is active: start one, for example with distributed.Client()."
        ) from None


def _sources_of(X: Any, client: Any, how: Options) -> tuple[Iterable[Source], Labels]:
    """Return the sources of the rows of X, and their labels."""
    if type(X).__module__.startswith("dask.dataframe") and hasattr(X, "npartitions"):
        return _sources_of_table(X, client, how)
    if form_of(X).is_dask:
        return _blocks_of(X, client, how)
    plain = observe(X, **how)
    m, n = plain.shape
    ends = np.arange(m + 1) * n if plain.pattern is None else plain.pattern[0]
    ranges = pairwise(_borders(ends, plain.dtype.itemsize, client).tolist())
    sources: Iterable[Source] = (
        (b - a, client.submit(partial(as_given, plain.of_rows(slice(a, b))), pure=False))
        for a, b in ranges
    )
    return sources, plain.labels


def _number_of_partitions(n_bytes: int, client: Any) -> int:
    """Return the number of partitions for data of some size."""
    threads: int = max(sum(client.nthreads().values()), 8)
    partitions = 1 << (threads - 1).bit_length()  # as other workers have, which can resume a run
    return max(partitions, -(-n_bytes // (64 << 20)))  # of at most 64 MiB


def _borders(ends: NDArray[Any], itemsize: int, client: Any) -> NDArray[np.intp]:
    """Return where partitions of rows begin and end, with about equally many entries.

    Row i has the entries ends[i] to ends[i + 1].
    """
    m, stored = ends.size - 1, int(ends[-1])
    # Each has at least 1024 stored entries.
    partitions = min(_number_of_partitions(stored * itemsize, client), stored // 1024 + 1, m)
    inner = np.searchsorted(ends, np.linspace(0, stored, partitions + 1)[1:-1])
    return np.unique([0, *inner.tolist(), m])


def _blocks_of(X: Any, client: Any, how: Options) -> tuple[Iterable[Source], Labels]:
    """Return the sources of the blocks of a Dask array, or of a DataArray over one."""
    from dask.delayed import delayed

    matrix, labels = X, labels_of(X, how["sample_dims"])
    if isinstance(X, xr.DataArray):
        matrix = X.transpose(*labels.rows, *labels.columns).data.reshape(labels.matrix_shape)
    if any(np.isnan(size) for size in matrix.shape):
        raise ValueError("X has unknown chunk sizes: call X.compute_chunk_sizes() before.")
    check_matrix(matrix)
    wanted = float_dtype(matrix, how["dtype"])
    m, n = matrix.shape
    n_bytes = m * n * wanted.itemsize
    matrix = matrix.rechunk({0: -(-m // min(_number_of_partitions(n_bytes, client), m)), 1: -1})
    masks, weights = (_like(name, how[name], matrix) for name in ("observed", "weights"))
    blocks = zip(matrix.to_delayed().ravel(), masks, weights, strict=True)
    load = delayed(partial(observe_dense, dtype=wanted, may_be_empty=True))
    loads = [load(each, observed=mask, weights=w) for each, mask, w in blocks]
    return zip(matrix.chunks[0], client.compute(loads), strict=True), labels


def _like(name: str, other: Any, matrix: Any) -> Any:
    """Return the blocks of a mask or of weights with those of X; None for each if not given."""
    if other is None:
        return [None] * matrix.numblocks[0]
    import dask.array

    array = dask.array.asarray(other if form_of(other).is_dask else plain_array(other))
    check_shape(name, array.shape, matrix.shape)
    return array.rechunk(matrix.chunks).to_delayed().ravel()


def observe_on_cluster(X: Any, client: Any, **how: Any) -> ClusterObservations:
    """Return observations on the workers of a client; see `nmd_lab.data.inputs.observe`."""
    sources, labels = _sources_of(X, client, how)
    with silent():
        sizes, loaded = zip(*sources, strict=True)
    partitions = Partitions(client, sizes)
    parts = partitions.map(as_given, loaded)  # which moves each to the worker of its partition
    del loaded
    observations = ClusterObservations.of(partitions, labels, parts)
    if not observations.n_observed:
        raise ValueError("X has no observed entry: check observed=, weights= and the NaN in X.")
    return observations
