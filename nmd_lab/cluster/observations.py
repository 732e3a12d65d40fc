"""Observations whose rows lie on the workers of a cluster, and how X gets there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np
import xarray as xr
from numpy.typing import DTypeLike, NDArray

from nmd_lab._runtime.checks import check_word
from nmd_lab.data.entries import FloatArray, GivenOffsets, IntArray, Transform, has_offsets
from nmd_lab.data.inputs import form_of, observe, observe_dense
from nmd_lab.data.labels import Labels, labels_of, plain_array
from nmd_lab.data.observations import Observations, float_dtype
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.data.split import rows_of, split, without
from nmd_lab.engines.stages import OPTIMALITY_PENALTIES, optimality
from nmd_lab.fit.holding_out import score_of
from nmd_lab.kernels.lowrank import RowBlocks
from nmd_lab.problem.problem import sweep_of

from .partition import (
    DATA,
    Boxed,
    Cluster,
    Partition,
    Source,
    Summary,
    ask,
    divide,
    make,
    random_share,
    summarize,
)
from .rows import ClusterMatrix, ClusterRows, Named, PartitionFiles, as_result, stacked
from .sweeps import HeldOutOnCluster, optimality_on_cluster, sweep_on_cluster


def make_residual(
    partition: Partition,
    data: str,
    name: str,
    transform: Transform,
    fill: float,
    offsets: GivenOffsets,
) -> tuple[()]:
    """Make the rows of transform(X) minus offsets, as `Observations.centred`."""
    matrix, constant = partition.rows[data].centred(transform, offsets)
    partition.objects[name] = RowBlocks(matrix, constant + fill)
    return ()


def centred_sums(
    partition: Partition, data: str, transform: Transform, axis: int, offsets: GivenOffsets
) -> tuple[FloatArray]:
    """Return the sums of rows or columns of transform(X) minus offsets."""
    return (partition.rows[data].centred_sums(transform, offsets, axis),)


def allow_rows(
    partition: Partition, data: str, name: str, solved: slice, constraint: Any
) -> tuple[()]:
    """Put the nearest rows that are allowed in the place of those of a start."""
    W, observations = partition.objects[name].copy(), partition.rows[data]
    observations.allow(W, solved, constraint, observations.empty_rows_and_columns()[0])
    partition.objects[name] = W
    return ()


NO_PATTERN = (np.empty(0, np.intp), np.empty(0, np.intp))
"""What stands for the pattern of sparse data, which the client does not have."""


@dataclass(frozen=True)
class ClusterObservations(Observations):
    """A partly observed matrix whose rows lie on workers.

    Attributes
    ----------
    cluster : Cluster
        The workers.
    labels : Labels
        Dimensions and coordinates for results.
    summary : Summary
        Summary of the entries at the client.
    named : Named or None
        Matrix of the partitions; None for X itself.
    """

    cluster: Cluster
    labels: Labels
    summary: Summary
    named: Named | None = None

    limits = None
    remote: ClassVar[bool] = True

    @classmethod
    def of(
        cls, cluster: Cluster, labels: Labels, named: Named | None = None
    ) -> ClusterObservations:
        """Return the observations that the partitions hold, after a look at all of them."""
        name = DATA if named is None else named.name
        parts = [each for (each,) in cluster.map(summarize, name)]
        return cls(cluster, labels, Summary.of(parts), named)

    @property
    def name(self) -> str:
        """Name of the matrix on the workers."""
        return DATA if self.named is None else self.named.name

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        return self.summary.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.labels.matrix_shape

    @property
    def n_observed(self) -> int:
        """Number of observed entries."""
        return self.summary.n_observed

    @property
    def n_stored(self) -> int:
        """Number of entries that a solver stores."""
        return self.summary.n_stored

    @property
    def pattern(self) -> Any:
        """None if all entries are stored; otherwise an empty pattern, as the partitions have it."""
        return NO_PATTERN if self.summary.sparse else None

    @property
    def absent_are_zeros(self) -> bool:
        """Whether entries without a stored value are observed and equal to 0."""
        return self.summary.absent_are_zeros

    @property
    def weights(self) -> Any:  # type: ignore[override]
        """None if every weight is one; otherwise an empty array of their type."""
        return None if self.summary.weights is None else np.empty(0, self.summary.weights)

    def weight_reader(self) -> Any:
        """Return what `weights` is."""
        return self.weights

    def sum_of_blocks(self, function: Callable[[FloatArray, FloatArray], Any]) -> Any:
        """Return the sum of a function of the values and weights of a block."""
        return self.cluster.sum(ask, self.name, "sum_of_blocks", function)[0]

    def _ask(self, method: str, *arguments: Any) -> list[Any]:
        """Return the answers of a method of the observations of all partitions."""
        return [each for (each,) in self.cluster.map(ask, self.name, method, *arguments)]

    def row_sums(self, transform: Transform) -> FloatArray:
        """Return the sum of transform(X) over the stored entries of each row."""
        return np.concatenate(self._ask("row_sums", transform))

    def centred(self, transform: Transform, offsets: GivenOffsets) -> Any:
        """Return transform(X) minus offsets as a `ClusterMatrix`, and 0."""
        fill = 0.0
        incomplete = self.n_observed < self.shape[0] * self.shape[1]
        if incomplete and not has_offsets(offsets):
            fill = self.sum_of(lambda x, _: transform(x)) / self.n_observed
            offsets = fill, None, None
        named = Named(self.cluster, "residual")
        step = (make_residual, self.name, named.name, transform, fill)
        self.cluster.map(*step, of_each=self._each_offsets(offsets), changes=True)
        return ClusterMatrix(named, self.shape, self.dtype), 0.0

    def centred_sums(self, transform: Transform, offsets: GivenOffsets, axis: int) -> FloatArray:
        """Return the sums of `centred` over all rows (axis 0) or over all columns (axis 1)."""
        step = (centred_sums, self.name, transform, axis)
        sums = [each for (each,) in self.cluster.map(*step, of_each=self._each_offsets(offsets))]
        return np.concatenate(sums) if axis else np.sum(sums, axis=0)

    def _each_offsets(self, offsets: GivenOffsets) -> dict[int, tuple[Any, ...]]:
        """Return the offsets for the rows of each partition."""
        mean, rows, columns = offsets
        return {
            place.number: ((mean, None if rows is None else rows[place.rows], columns),)
            for place in self.cluster.places
        }

    def stacked(self, pieces: Sequence[Any], dtype: Any) -> ClusterRows:  # type: ignore[override]
        """Return a W of pieces side by side."""
        return stacked(self.cluster, pieces, dtype)

    def allow(self, W: ClusterRows, solved: slice, constraint: Any, empty: IntArray) -> None:
        """Set columns of W to the nearest allowed ones; the partitions have their empty rows."""
        self.cluster.map(allow_rows, self.name, W.name, solved, constraint, changes=True)

    def gathered(self, W: ClusterRows) -> Any:
        """Return W for a result, as an array or an array of Dask."""
        return as_result(W)

    def computing(self) -> AbstractContextManager[Any]:
        """Return a context in which arrays of Dask are computed on the workers."""
        import dask

        context: AbstractContextManager[Any] = dask.config.set(scheduler=self.cluster.client.get)
        return context

    def checkpoint_files(self, path: Path) -> PartitionFiles:
        """Return the files of the partitions that belong to a checkpoint."""
        return PartitionFiles(self.cluster, path)

    def range(self) -> tuple[float, float]:
        """Return the smallest and the largest observed value."""
        return self.summary.smallest, self.summary.largest

    def counts(self, axis: int) -> NDArray[np.integer]:
        """Return the number of observed entries of each column (axis 0) or row (axis 1)."""
        counts = [self.summary.column_counts] if axis == 0 else self._ask("counts", 1)
        return np.concatenate(counts)

    def empty_rows_and_columns(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the positions of the rows and of the columns without an observed entry."""
        places = zip(self.cluster.places, self._ask("empty_rows_and_columns"), strict=True)
        rows = np.concatenate([empty + place.rows.start for place, (empty, _) in places])
        return rows, np.flatnonzero(self.summary.column_counts == 0)

    def mapped(self, transform: Transform) -> ClusterObservations:
        """Return observations of transform(X), with the same pattern, weights and labels."""
        return self._mapped_by("mapped", transform)

    def as_sparse(self) -> ClusterObservations:
        """Return the observed entries as sparse data."""
        return self if self.summary.sparse else self._mapped_by("as_sparse")

    def divided(
        self, parts: Callable[..., Any], of_each: list[tuple[Any, ...]]
    ) -> tuple[ClusterObservations, ClusterObservations]:
        """Return the two observations that a function makes of the rows of each partition."""
        rest, held = (Named(self.cluster, kind, in_rows=True) for kind in ("rest", "held-out"))
        names = (self.name, rest.name, held.name)
        self.cluster.map(divide, *names, parts, of_each=dict(enumerate(of_each)), changes=True)
        one, other = (ClusterObservations.of(self.cluster, self.labels, n) for n in (rest, held))
        return one, other

    def content(self) -> Iterator[tuple[str, Iterable[NDArray[Any]]]]:
        """Yield a heading with the hashes of all partitions."""
        hashes = self._ask("fingerprint")
        yield hashlib.sha256("".join(hashes).encode()).hexdigest(), []

    def zero_unobserved(self, W: Any, H: FloatArray) -> tuple[Any, FloatArray]:
        """Return two factors with 0 for columns without an observed entry.

        A row of W that begins at 0 stays 0 where nothing is observed.
        """
        H = H.copy()
        H[:, self.summary.column_counts == 0] = 0
        return W, H

    def _mapped_by(self, method: str, *arguments: Any) -> ClusterObservations:
        """Return observations that a method makes from those of each partition."""
        named = Named(self.cluster, "data", in_rows=True)
        self.cluster.map(make, self.name, named.name, method, *arguments, changes=True)
        return ClusterObservations.of(self.cluster, self.labels, named)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise ValueError(
            "this needs all entries of X in one place, and they lie on the workers of a cluster: "
            "give X as an array, or leave client= out."
        )

    reader = transformed = observed = observed_blocks = entries = _refuse
    select = csr_rows = to_array = with_values = stored_positions = _refuse


@split.register
def _(
    observations: ClusterObservations, test_size: Any, rng: np.random.Generator
) -> tuple[ClusterObservations, ClusterObservations]:
    """Hold out a fraction of each partition: each row, and each column in each, keeps an entry."""
    seeds = rng.integers(2**63, size=len(observations.cluster)).tolist()
    return observations.divided(random_share, [(test_size, seed) for seed in seeds])


@without.register
def _(
    observations: ClusterObservations, held_out: Observations
) -> tuple[ClusterObservations, ClusterObservations]:
    """Let each partition hold out its rows of a matrix."""
    rows = [(rows_of(held_out, place.rows),) for place in observations.cluster.places]
    return observations.divided(without, rows)


@score_of.register
def _(held_out: ClusterObservations, model: Any) -> HeldOutOnCluster:
    return HeldOutOnCluster(held_out.cluster, held_out.name, model)


@sweep_of.register
def _(observations: ClusterObservations, problem: Any, rank: int, now: Any = None) -> Any:
    return sweep_on_cluster(problem, observations.cluster, observations.name, rank, now)


@optimality.register
def _(observations: ClusterObservations, problem: Any, W_aug: Any, H_aug: Any) -> float:
    where = observations.cluster, observations.name
    return optimality_on_cluster(problem, *where, W_aug, H_aug, OPTIMALITY_PENALTIES)


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
