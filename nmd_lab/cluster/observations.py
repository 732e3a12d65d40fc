"""Observations whose rows lie on the workers of a cluster, and how X gets there.

Files of the partitions that belong to a checkpoint are in the folder ``NAME.parts`` with the file
of the client, one folder of them for each checkpoint, and the workers must be able to write there.
"""

from __future__ import annotations

import hashlib
import math
import shutil
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from operator import itemgetter, methodcaller
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np
import xarray as xr
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import coo_array

from nmd_lab._runtime.checks import check_word, needs_library
from nmd_lab.checkpoint import Codec, Recipe, read_file, write_file
from nmd_lab.data.entries import (
    FloatArray,
    GivenOffsets,
    IntArray,
    Transform,
    check_matrix,
    check_shape,
)
from nmd_lab.data.folds import split, without
from nmd_lab.data.inputs import form_of, observe, observe_dense, observe_sparse
from nmd_lab.data.labels import Labels, labels_of, plain_array
from nmd_lab.data.observations import Observations, float_dtype, row_borders

from .partitions import ClusterEntries, ClusterRows, Partitions, silent, stack


class PartitionFiles:
    """The files of the partitions of a run."""

    def __init__(self, partitions: Partitions, checkpoint: Path) -> None:
        self.partitions = partitions
        self.folder = checkpoint.resolve().with_name(f"{checkpoint.name}.parts")
        self._written: list[str] = []
        self._to_write: dict[int, list[Any]] = {}  # by what stands for each list
        self._read: list[list[Any]] = []

    @property
    def recipes(self) -> dict[type, Recipe]:
        """How a checkpoint stores what the files of the partitions hold."""
        return {
            ClusterRows: (self._of_rows, self._rows),
            ClusterEntries: (self._of_entries, self._entries),
        }

    def _of_rows(self, rows: ClusterRows) -> tuple[Any, ...]:
        """Return what makes a matrix again, and note its blocks."""
        return self._noted(rows.blocks), rows.columns, rows.dtype.str, rows.ndim, rows.products

    def _rows(self, number: int, columns: Any, dtype: str, *others: Any) -> ClusterRows:
        """Return a matrix whose rows have been read."""
        return ClusterRows(self.partitions, self._read[number], columns, np.dtype(dtype), *others)

    def _of_entries(self, entries: ClusterEntries) -> tuple[int]:
        """Note T and U, of which the client has nothing else."""
        parts: Any = entries.sweeps or entries.stored  # before the first iteration, what was read
        return (self._noted(parts),)

    def _entries(self, number: int) -> ClusterEntries:
        """Return T and U that have been read."""
        return ClusterEntries(self._read[number])

    def _noted(self, each: list[Any]) -> int:
        """Return the number of a list of what the partitions are to write."""
        self._to_write[id(each)] = each
        return list(self._to_write).index(id(each))

    def write(self) -> str:
        """Let each partition write what has been noted, and return the name of their folder."""
        name = uuid.uuid4().hex
        folder = self.folder / name
        local = self._to_write.values()
        self._to_write, self._read = {}, []
        folder.mkdir(parents=True)
        self.partitions.answers(write_partition, self._paths(folder), *local)
        self._written.append(name)
        return name

    def clean(self) -> None:
        """Remove what is older than the last two checkpoints."""
        for name in self._written[:-2]:
            shutil.rmtree(self.folder / name, ignore_errors=True)
        del self._written[:-2]

    def read(self, name: str) -> None:
        """Let each partition read its file."""
        folder = self.folder / name
        found = len(list(folder.glob("*.part"))) if folder.is_dir() else 0
        if found != len(self.partitions):
            raise ValueError(
                f"checkpoint= has {found} partitions in {str(folder)!r}, and X has "
                f"{len(self.partitions)}: give a cluster of as many workers as before."
            )
        self._written.append(name)
        files = self.partitions.map(read_partition, self._paths(folder))
        (most, *_) = self.partitions.answers(len, files)
        self._read = [self.partitions.map(itemgetter(k), files) for k in range(most)]

    def _paths(self, folder: Path) -> list[str]:
        return [str(folder / f"{number}.part") for number in range(len(self.partitions))]


def write_partition(path: str, *parts: Any) -> None:
    """Write T and U of a partition, and its rows of matrices."""
    codec = Codec()
    state = codec.encode([vars(x.sweep.state) if hasattr(x, "sweep") else x for x in parts])
    write_file(Path(path), {"state": state}, codec.arrays)


def read_partition(path: str) -> list[Any]:
    """Return what `write_partition` has written."""
    header, arrays = read_file(Path(path))
    state: list[Any] = Codec(arrays).decode(header["state"])
    return state


MAX_RESULT_BYTES = 1 << 28
"""Size of a factor up to which a result has it as an array."""


@dataclass(frozen=True, eq=False)
class ClusterObservations(Observations):
    """A partly observed matrix whose rows lie on workers.

    Attributes
    ----------
    partitions : Partitions
        The workers.
    labels : Labels
        Dimensions and coordinates for results.
    parts : list of Future
        Observations of each partition.
    pattern : tuple or None
        None if all entries are stored; otherwise an empty one, as the partitions have it.
    weights : ndarray or None
        None if every weight is one; otherwise an empty array of their type.
    extremes : (float, float)
        Smallest and largest observed value.
    column_counts : ndarray of int (n,)
        Number of observed entries of each column.
    """

    partitions: Partitions
    labels: Labels
    parts: list[Any]
    dtype: Any = None
    n_stored: int = 0
    n_observed: int = 0
    pattern: Any = None
    absent_are_zeros: bool = False
    weights: Any = None
    extremes: tuple[float, float] = (np.inf, -np.inf)
    column_counts: Any = None

    limits = None
    remote: ClassVar[bool] = True

    @classmethod
    def of(cls, partitions: Partitions, labels: Labels, parts: list[Any]) -> ClusterObservations:
        """Return the observations that the partitions hold, after a look at all of them."""
        facts = zip(*partitions.answers(facts_of_partition, parts), strict=True)
        (dtype, *_), (sparse, *_), (zeros, *_), stored, observed, weights, low, high, counts = facts
        types = [each for each in weights if each is not None]
        return cls(
            *(partitions, labels, parts, dtype, sum(stored), sum(observed)),
            *((np.empty(0, np.intp),) * 2 if sparse else None, zeros),
            np.empty(0, max(types, key=lambda each: each.itemsize)) if types else None,
            (min(low), max(high)),
            np.sum(counts, axis=0),
        )

    def _ask(self, method: str, *arguments: Any) -> list[Any]:
        """Return the answers of a method of the observations of all partitions."""
        return self.partitions.answers(methodcaller(method, *arguments), self.parts)

    def sum_of_blocks(self, function: Callable[[FloatArray, FloatArray], Any]) -> Any:
        """Return the sum of a function of the values and weights of a block."""
        return self.partitions.sum(methodcaller("sum_of_blocks", function), self.parts)

    def centred_sums(self, transform: Transform, offsets: GivenOffsets, axis: int) -> FloatArray:
        """Return the sums of `centred` over all rows (axis 0) or over all columns (axis 1)."""

        def of_partition(X: Observations, here: GivenOffsets) -> FloatArray:
            return X.centred_sums(transform, here, axis)

        sums = self.partitions.answers(of_partition, self.parts, self.each_offsets(offsets))
        return np.concatenate(sums) if axis else np.sum(sums, axis=0)

    def each_offsets(self, offsets: GivenOffsets) -> list[GivenOffsets]:
        """Return the offsets for the rows of each partition."""
        mean, rows, columns = offsets
        ranges = self.partitions.ranges
        return [(mean, None if rows is None else rows[here], columns) for here in ranges]

    def stacked(self, pieces: Sequence[Any], dtype: Any) -> ClusterRows:  # type: ignore[override]
        """Return a W of pieces side by side: matrices on the workers, arrays, numbers."""
        ranges = self.partitions.ranges
        local = [
            each.parts
            if isinstance(each, ClusterRows)
            else [each[rows] if isinstance(each, np.ndarray) else each for rows in ranges]
            for each in pieces
        ]
        blocks = self.partitions.map(partial(stack, np.dtype(dtype)), *local)
        width = sum(each.shape[1] if np.ndim(each) == 2 else 1 for each in pieces)
        return ClusterRows(self.partitions, blocks, np.eye(width), np.dtype(dtype))

    def allow(self, W: ClusterRows, solved: slice, constraint: Any, empty: IntArray) -> None:
        """Set columns of W to the nearest allowed ones; the partitions have their empty rows."""
        local, shared = (self.parts, W.parts), (solved, constraint)
        W.blocks = self.partitions.map(allowed_rows, *local, shared=shared)
        W.columns = np.eye(W.shape[1])

    def gathered(self, W: ClusterRows) -> Any:
        """Return W as an array, or one of Dask if it is large, whose blocks stay on the workers."""
        if math.prod(W.shape) * W.dtype.itemsize <= MAX_RESULT_BYTES:
            return np.array(W)
        import dask.array
        from dask.delayed import delayed

        shapes = [(rows.stop - rows.start, W.shape[1]) for rows in self.partitions.ranges]
        blocks = zip(map(delayed, W.parts), shapes, strict=True)
        return dask.array.concatenate(
            [dask.array.from_delayed(block, shape, W.dtype) for block, shape in blocks]
        )

    def computing(self) -> AbstractContextManager[Any]:
        """Return a context in which arrays of Dask are computed on the workers."""
        import dask

        context: AbstractContextManager[Any] = dask.config.set(scheduler=self.partitions.client.get)
        return context

    def checkpoint_files(self, path: Path) -> PartitionFiles:
        """Return the files of the partitions that belong to a checkpoint."""
        return PartitionFiles(self.partitions, path)

    def range(self) -> tuple[float, float]:
        """Return the smallest and the largest observed value."""
        return self.extremes

    def counts(self, axis: int) -> NDArray[np.integer]:
        """Return the number of observed entries of each column (axis 0) or row (axis 1)."""
        return self.column_counts if axis == 0 else np.concatenate(self._ask("counts", 1))

    def mapped(self, transform: Transform) -> ClusterObservations:
        """Return observations of transform(X), with the same pattern, weights and labels."""
        return self._made_by("mapped", transform)

    def as_sparse(self) -> ClusterObservations:
        """Return the observed entries as sparse data."""
        return self if self.pattern else self._made_by("as_sparse")

    def _made_by(self, method: str, *arguments: Any) -> ClusterObservations:
        """Return observations that a method makes from those of each partition."""
        parts = self.partitions.map(methodcaller(method, *arguments), self.parts)
        return ClusterObservations.of(self.partitions, self.labels, parts)

    def divided(
        self, divide: Callable[..., Any], local: list[Any]
    ) -> tuple[ClusterObservations, ClusterObservations]:
        """Return the two observations that a function makes of the rows of each partition."""
        pairs = self.partitions.map(divide, self.parts, local)
        rest, held = (self.partitions.map(itemgetter(k), pairs) for k in (0, 1))
        both = (rest, self.partitions.map(methodcaller("as_sparse"), held))
        one, other = (ClusterObservations.of(self.partitions, self.labels, each) for each in both)
        return one, other

    def fingerprint(self) -> str:
        """Return a hash of the hashes of all partitions."""
        return hashlib.sha256("".join(self._ask("fingerprint")).encode()).hexdigest()

    def zero_unobserved(self, W: Any, H: FloatArray) -> tuple[Any, FloatArray]:
        """Return two factors with 0 for columns without an observed entry.

        A row of W that begins at 0 stays 0 where nothing is observed.
        """
        H = H.copy()
        H[:, self.column_counts == 0] = 0
        return W, H

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise ValueError(
            "this needs all entries of X in one place, and they lie on the workers of a cluster: "
            "give X as an array, or leave client= out."
        )

    reader = transformed = observed = observed_blocks = entries = centred = _refuse
    select = of_rows = csr_rows = to_array = with_values = stored_positions = _refuse


def facts_of_partition(X: Observations) -> tuple[Any, ...]:
    """Return what the client has to know of the rows of a partition."""
    weights = getattr(X.weight_reader(), "dtype", None)
    alike = X.dtype, X.pattern is not None, X.absent_are_zeros
    return *alike, X.n_stored, X.n_observed, weights, *X.range(), X.counts(0)


def allowed_rows(
    observations: Observations, W: FloatArray, solved: slice, constraint: Any
) -> FloatArray:
    """Return the nearest rows that are allowed to those of a start."""
    W = W.copy()
    observations.allow(W, solved, constraint, observations.empty_rows_and_columns()[0])
    return W


@split.register
def _(
    observations: ClusterObservations, test_size: Any, rng: np.random.Generator
) -> tuple[ClusterObservations, ClusterObservations]:
    """Hold out a fraction of each partition: each row, and each column in each, keeps an entry."""

    def of_partition(X: Observations, seed: int) -> tuple[Observations, Observations]:
        return split(X, test_size, np.random.default_rng(seed)) if X.n_observed else (X, X)

    seeds = rng.integers(2**63, size=len(observations.partitions)).tolist()
    return observations.divided(of_partition, seeds)


@without.register
def _(
    observations: ClusterObservations, held_out: Observations
) -> tuple[ClusterObservations, ClusterObservations]:
    """Let each partition hold out its rows of a matrix."""
    ranges = observations.partitions.ranges
    return observations.divided(without, [held_out.of_rows(rows) for rows in ranges])


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
    with needs_library("a fit on a cluster needs Dask: pip install dask distributed."):
        from distributed import Client, default_client
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
    return np.unique(row_borders(ends, partitions))


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
