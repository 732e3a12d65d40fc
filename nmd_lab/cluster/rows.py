"""Matrices whose rows lie with the partitions of X, and the checkpoints of the partitions.

The rows never need to be in one place.  The files of a checkpoint are in the folder ``NAME.parts``
with the file of the client, one folder of them for each checkpoint, and the workers must be able to
write there.
"""

from __future__ import annotations

import shutil
import uuid
import weakref
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from nmd_lab.checkpoint import Classes, Decoder, Encoder, Recipe, read_file, write_file
from nmd_lab.data.entries import FloatArray
from nmd_lab.kernels.lowrank import RowBlocks

from .partition import Cluster, Partition, ask


class Column(NamedTuple):
    """A column of rows on the workers.

    Attributes
    ----------
    position : int or None
        Column of the named matrix; None for a column of ones.
    factor : float
        Number by which it is multiplied.
    """

    position: int | None
    factor: float = 1.0


class Taken(NamedTuple):
    """Some columns of a named matrix of a partition.

    Attributes
    ----------
    name : str
        Name of the matrix.
    columns : tuple of Column
        Its columns that are taken.
    """

    name: str
    columns: tuple[Column, ...]

    def of(self, partition: Partition) -> FloatArray:
        """Return the columns in a partition."""
        rows: FloatArray = partition.objects[self.name]
        if [column.position for column in self.columns] == list(range(rows.shape[1])):
            out = rows
        else:
            ones = np.ones((len(rows), 1), rows.dtype)
            out = np.hstack([ones if p is None else rows[:, p : p + 1] for p, _ in self.columns])
        factors = np.array([column.factor for column in self.columns], rows.dtype)
        return out if np.all(factors == 1) else out * factors


class Named:
    """A matrix on the workers; its rows are dropped when nothing refers to it."""

    def __init__(self, cluster: Cluster, kind: str, *, in_rows: bool = False) -> None:
        self.cluster, self.name = cluster, cluster.new_name(kind)
        self._begin(cluster.dropped_rows if in_rows else cluster.dropped)

    @classmethod
    def again(cls, cluster: Cluster, name: str) -> Named:
        """Return the matrix of a name that was read from files."""
        matrix: Named | None = cluster.named.get(name)
        if matrix is None:
            matrix = object.__new__(cls)
            matrix.cluster, matrix.name = cluster, name
            matrix._begin(cluster.dropped)
        return matrix

    def _begin(self, dropped: list[str]) -> None:
        self.cluster.named[self.name] = self
        weakref.finalize(self, dropped.append, self.name)


class ClusterRows:
    """A matrix (m, k), or one column of it (m,), whose rows lie on the workers."""

    def __init__(
        self, named: Named, columns: Sequence[Column], dtype: DTypeLike, ndim: int = 2
    ) -> None:
        self.named, self.cluster, self.name = named, named.cluster, named.name
        self.columns, self.ndim = tuple(columns), ndim
        self.dtype: np.dtype[Any] = np.dtype(dtype)

    @classmethod
    def new(cls, cluster: Cluster, width: int, dtype: DTypeLike) -> ClusterRows:
        """Return a matrix of some columns, whose rows a step of the partitions will make."""
        return cls(Named(cluster, "rows"), [Column(k) for k in range(width)], dtype)

    @property
    def taken(self) -> Taken:
        """The columns, as steps of the partitions take them."""
        return Taken(self.name, self.columns)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows and columns."""
        m = self.cluster.n_rows
        return (m, len(self.columns)) if self.ndim == 2 else (m,)

    @property
    def size(self) -> int:
        """Number of entries."""
        return self.cluster.n_rows * len(self.columns)

    def __len__(self) -> int:
        return self.cluster.n_rows

    def __getitem__(self, where: Any) -> Any:
        """Return columns, which stay where they are, or rows as an array."""
        if isinstance(where, tuple) and len(where) == 2 and where[0] == slice(None):
            if isinstance(where[1], slice):
                return ClusterRows(self.named, self.columns[where[1]], self.dtype)
            return ClusterRows(self.named, [self.columns[where[1]]], self.dtype, ndim=1)
        if isinstance(where, np.ndarray) and where.dtype.kind in "iu" and where.ndim == 1:
            return self.at(where)
        return np.asarray(self)[where]

    def __setitem__(self, where: tuple[slice, slice], value: float) -> None:
        """Set columns to a number."""
        assert where[0] == slice(None)
        indices = [column.position for column in self.columns[where[1]]]
        self.cluster.map(set_columns, self.name, indices, value, changes=True)

    def __mul__(self, number: float) -> ClusterRows:
        """Return a multiple, which stays where the rows are."""
        columns = [Column(c.position, c.factor * float(number)) for c in self.columns]
        return ClusterRows(self.named, columns, self.dtype, self.ndim)

    __rmul__ = __mul__

    def __truediv__(self, number: float) -> ClusterRows:
        """Return a multiple, likewise."""
        return self * (1 / number)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Multiply by powers of two where the rows are; do everything else with an array."""
        if ufunc is np.ldexp and method == "__call__" and np.ndim(inputs[1]) == 0 and not options:
            return self * float(np.ldexp(1.0, inputs[1]))
        arrays = [np.asarray(each) if isinstance(each, ClusterRows) else each for each in inputs]
        return getattr(ufunc, method)(*arrays, **options)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Bring the rows to the client."""
        rows = np.concatenate([block for (block,) in self.cluster.map(get_rows, self.taken)])
        rows = rows if self.ndim == 2 else rows[:, 0]
        return rows if dtype is None else rows.astype(dtype, copy=False)

    def at(self, positions: NDArray[np.integer]) -> FloatArray:
        """Return rows at some positions."""
        positions = np.where(positions < 0, positions + len(self), positions)
        out = np.empty((positions.size, len(self.columns)), self.dtype)
        of_each, where = {}, {}
        for place in self.cluster.places:
            here = (positions >= place.rows.start) & (positions < place.rows.stop)
            where[place.number] = here
            of_each[place.number] = (positions[here] - place.rows.start,)
        answers = self.cluster.map(get_rows, self.taken, of_each=of_each)
        for number, (rows,) in enumerate(answers):
            out[where[number]] = rows
        return out if self.ndim == 2 else out[:, 0]

    def to_dask(self) -> Any:
        """Return the matrix as a Dask array, whose blocks stay on the workers."""
        import dask.array
        from dask.delayed import delayed

        blocks = self.cluster.keep(get_block, self.taken)
        arrays = []
        for place, block in zip(self.cluster.places, blocks, strict=True):
            shape = (place.rows.stop - place.rows.start, len(self.columns))
            arrays.append(dask.array.from_delayed(delayed(block), shape, self.dtype))
        return dask.array.concatenate(arrays)

    def with_columns(self, pieces: Sequence[ClusterRows | float], dtype: DTypeLike) -> ClusterRows:
        """Return columns of this matrix, and columns of numbers, side by side."""
        columns: list[Column] = []
        for piece in pieces:
            if isinstance(piece, ClusterRows):
                assert piece.named is self.named
                columns.extend(piece.columns)
            else:
                columns.append(Column(None, float(piece)))
        return ClusterRows(self.named, columns, dtype)

    def copy(self) -> ClusterRows:
        """Return the matrix itself, whose rows no step changes again."""
        return self


def get_rows(
    partition: Partition, taken: Taken, positions: NDArray[np.integer] | None = None
) -> Any:
    """Return rows of a partition."""
    rows = taken.of(partition)
    return (np.ascontiguousarray(rows) if positions is None else rows[positions],)


def get_block(partition: Partition, taken: Taken) -> FloatArray:
    """Return the rows of a partition, as an array of their own."""
    return np.array(taken.of(partition))


def set_columns(partition: Partition, name: str, columns: list[int], value: float) -> tuple[()]:
    """Set columns of a matrix to a number."""
    rows = partition.objects[name].copy()
    rows[:, columns] = value
    partition.objects[name] = rows
    return ()


def stack(
    partition: Partition, name: str, pieces: Sequence[Any], dtype: DTypeLike, *arrays: Any
) -> tuple[()]:
    """Make a matrix from adjacent pieces."""
    m, blocks, columns = partition.place.rows.stop - partition.place.rows.start, iter(arrays), []
    for piece in pieces:
        if piece is None:
            columns.append(next(blocks))
        elif isinstance(piece, Taken):
            columns.append(piece.of(partition))
        else:
            columns.append(np.full((m, 1), piece, dtype))
    partition.objects[name] = np.ascontiguousarray(np.hstack(columns), dtype=dtype)
    return ()


def stacked(cluster: Cluster, pieces: Sequence[Any], dtype: DTypeLike) -> ClusterRows:
    """Return a matrix of adjacent pieces: matrices on the workers, arrays, numbers."""
    arrays: list[FloatArray] = []
    plain: list[Any] = []
    width = 0
    for piece in pieces:
        if isinstance(piece, ClusterRows):
            plain.append(piece.taken)
            width += len(piece.columns)
        elif isinstance(piece, np.ndarray):
            arrays.append(piece.reshape(len(piece), -1).astype(dtype, copy=False))
            plain.append(None)
            width += arrays[-1].shape[1]
        else:
            plain.append(float(piece))
            width += 1
    of_each = {p.number: tuple(a[p.rows] for a in arrays) for p in cluster.places}
    result = ClusterRows.new(cluster, width, dtype)
    cluster.map(stack, result.name, plain, np.dtype(dtype), of_each=of_each, changes=True)
    return result


LARGEST_RESULT = 1 << 28
"""Size of a factor up to which a result has it as an array, in bytes."""


def as_result(W: ClusterRows) -> Any:
    """Return a factor for a result: an array, or one of Dask if it is large."""
    if W.size * W.dtype.itemsize <= LARGEST_RESULT:
        return np.array(W)
    return W.to_dask()


class ClusterMatrix:
    """A matrix A whose rows lie on workers."""

    def __init__(self, named: Named, shape: tuple[int, int], dtype: Any) -> None:
        self.named, self.cluster, self.shape, self.dtype = named, named.cluster, shape, dtype

    def factors(
        self, rank: int, rng: np.random.Generator, largest_gram: int
    ) -> tuple[ClusterRows, FloatArray]:
        """Return U √Σ, whose rows stay on the workers, and √Σ Vᵀ.

        They come from the eigenvectors of Aᵀ A, so that only vectors of the length of a row travel.
        """
        n = self.shape[1]
        k = min(rank, n - 1)  # iterations find no more
        if n <= max(largest_gram, 2):
            (gram,) = self.cluster.sum(ask, self.named.name, "gram")
            found: Any = eigh(gram, subset_by_index=[max(n - rank, 0), n - 1])
        else:
            product = LinearOperator((n, n), matvec=self._product, dtype=np.float64)
            found = eigsh(product, k, v0=rng.standard_normal(n), tol=1e-10)
        order = np.argsort(found[0])[::-1]
        root, V = np.maximum(found[0][order], 0) ** 0.25, found[1][:, order]
        H = np.zeros((rank, n))
        H[: len(root)] = root[:, None] * V.T
        scaled = np.zeros((n, rank))
        np.divide(V, root, out=scaled[:, : len(root)], where=root > 1e-12 * root.max(initial=0))
        W = ClusterRows.new(self.cluster, rank, self.dtype)
        names = (self.named.name, W.name)
        self.cluster.map(multiply_rows, *names, scaled, np.dtype(self.dtype), changes=True)
        return W, H.astype(self.dtype)

    def _product(self, v: FloatArray) -> FloatArray:
        """Return Aᵀ (A v)."""
        (product,) = self.cluster.sum(twice_multiplied, self.named.name, v.reshape(-1, 1))
        return np.asarray(product.ravel())


def twice_multiplied(partition: Partition, name: str, V: FloatArray) -> tuple[FloatArray]:
    """Return Aᵀ (A V) for the rows of a partition."""
    A: RowBlocks = partition.objects[name]
    return (A.both_products(V)[1],)


def multiply_rows(
    partition: Partition, name: str, result: str, V: FloatArray, dtype: Any
) -> tuple[()]:
    """Make A V for the rows of a partition."""
    A: RowBlocks = partition.objects[name]
    partition.objects[result] = np.ascontiguousarray(A.product(V), dtype=dtype)
    return ()


READ = "read "
"""Beginning of the name of a state that was read for a sweep to come."""


def state_of(partition: Partition) -> dict[str, Any]:
    """Return T, U and the like of the sweeps, the matrices, and the names of all objects."""
    objects = partition.objects
    sweeps = {name: arrays_of(each) for name, each in objects.items() if hasattr(each, "now")}
    arrays = {name: each for name, each in objects.items() if isinstance(each, np.ndarray)}
    read = {name: each for name, each in objects.items() if name.startswith(READ)}
    return {"sweeps": sweeps, "arrays": arrays, "read": read, "names": list(objects)}


def arrays_of(sweep: Any) -> dict[str, Any]:
    """Return T, U and the like of a sweep."""
    get = sweep.split_variable.device.get
    numbers = {name: each for name, each in vars(sweep.now).items() if isinstance(each, float)}
    arrays = {name: each for name, each in vars(sweep.now).items() if name not in numbers}
    return numbers | {name: None if each is None else get(each) for name, each in arrays.items()}


def set_arrays(sweep: Any, arrays: dict[str, Any]) -> None:
    """Set what `arrays_of` has returned."""
    vars(sweep.now).update(arrays)
    sweep.now.on(sweep.split_variable.device)


def restore(partition: Partition, state: dict[str, Any]) -> None:
    """Set what `state_of` has returned."""
    for name, arrays in state["sweeps"].items():
        set_arrays(partition.objects[name], arrays)
    partition.objects |= state["arrays"] | state["read"]
    partition.objects = {
        name: partition.objects[name] for name in state["names"] if name in partition.objects
    }


PLAIN = Classes()
"""The file of a partition has arrays and numbers alone."""


class PartitionFiles:
    """The files of the partitions that belong to the checkpoints of a run."""

    def __init__(self, cluster: Cluster, checkpoint: Path) -> None:
        self.cluster = cluster
        self.folder = checkpoint.resolve().with_name(f"{checkpoint.name}.parts")
        self._written: list[str] = []
        self._read: str | None = None

    @property
    def recipes(self) -> dict[type, Recipe]:
        """How a checkpoint stores matrices whose rows are in the files of the partitions."""
        return {ClusterRows: (_settings, self._rows)}

    def _rows(self, name: str, columns: Any, dtype: str, ndim: int) -> ClusterRows:
        """Return a matrix whose rows have been read."""
        all_columns = [Column(position, float(factor)) for position, factor in columns]
        return ClusterRows(Named.again(self.cluster, name), all_columns, np.dtype(dtype), ndim)

    def write(self) -> str:
        """Let each partition write its file, and return the name of their folder."""
        name = uuid.uuid4().hex
        folder = self.folder / name
        folder.mkdir(parents=True)
        self.cluster.map(write_partition, str(folder))
        self.cluster.settle(partial(read_again, folder=str(folder)))
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
        if found != len(self.cluster):
            raise ValueError(
                f"checkpoint= has {found} partitions in {str(folder)!r}, and X has "
                f"{len(self.cluster)}: give a cluster of as many workers as before."
            )
        self._written.append(name)
        self.cluster.map(read_partition, str(folder), changes=True)


def _settings(rows: ClusterRows) -> tuple[Any, ...]:
    """Return what makes a matrix again whose rows have been read."""
    columns = [[column.position, column.factor] for column in rows.columns]
    return rows.name, columns, rows.dtype.str, rows.ndim


def write_partition(partition: Partition, folder: str) -> tuple[()]:
    """Write the file of a partition."""
    encoder = Encoder(PLAIN)
    state = encoder.encode(state_of(partition))
    write_file(_path(partition, folder), {"state": state}, encoder.arrays)
    return ()


def stored_state(partition: Partition, folder: str) -> dict[str, Any]:
    """Return what the file of a partition holds."""
    header, arrays = read_file(_path(partition, folder))
    state: dict[str, Any] = Decoder(PLAIN, arrays).decode(header["state"])
    return state


def read_partition(partition: Partition, folder: str) -> tuple[()]:
    """Take the matrices of a file into a partition, and keep T and U for the sweeps to come."""
    state = stored_state(partition, folder)
    partition.objects.update(state["arrays"])
    partition.objects |= {READ + name: arrays for name, arrays in state["sweeps"].items()}
    return ()


def read_again(partition: Partition, folder: str) -> None:
    """Set the state of a partition that was made again to that of its file."""
    restore(partition, stored_state(partition, folder))


def _path(partition: Partition, folder: str) -> Path:
    return Path(folder) / f"{partition.place.number}.part"


def take_sweep(partition: Partition, name: str, before: str) -> tuple[()]:
    """Set T and U of a sweep to those that were read for an earlier one."""
    set_arrays(partition.objects[name], partition.objects.pop(READ + before))
    return ()
