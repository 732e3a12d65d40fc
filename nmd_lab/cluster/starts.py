"""Where a fit on a cluster begins: starting factors, or a checkpoint.

Each partition writes its own file of a checkpoint into the folder ``NAME.parts`` beside that of the
client, one folder of them for each checkpoint, and the workers must be able to write there.
"""

from __future__ import annotations

import shutil
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from nmd_lab.checkpoint import file
from nmd_lab.checkpoint.encoding import Classes, Decoder, Encoder, Recipe
from nmd_lab.data.observations import FloatArray, Observations, Transform
from nmd_lab.solver.constraints.steps import ConstrainedColumns
from nmd_lab.solver.lowrank import RowBlocks

from .cluster import Cluster
from .partition import READ, Partition, restore, set_arrays, state_of
from .rows import ClusterRows, Column, Named


class ClusterMatrix:
    """A matrix A whose rows lie on workers."""

    def __init__(self, named: Named, shape: tuple[int, int], dtype: Any) -> None:
        self.named, self.shape, self.dtype = named, shape, dtype

    @property
    def cluster(self) -> Cluster:
        """The workers."""
        return self.named.cluster

    def factors(
        self, rank: int, rng: np.random.Generator, largest_gram: int
    ) -> tuple[ClusterRows, FloatArray]:
        """Return U √Σ, whose rows stay on the workers, and √Σ Vᵀ.

        They come from the eigenvectors of Aᵀ A, so that only vectors of the length of a row travel.
        """
        n = self.shape[1]
        k = min(rank, n - 1)  # iterations find no more
        if n <= max(largest_gram, 2):
            (gram,) = self.cluster.sum(gram_of, self.named.name)
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
        result: FloatArray = product.ravel()
        return result


def make_residual(
    partition: Partition,
    data: str,
    name: str,
    transform: Transform,
    mean: float,
    columns: FloatArray | None,
    fill: float,
    rows: FloatArray | None = None,
) -> tuple[()]:
    """Make the rows of transform(X) minus offsets, as `Observations.centred`."""
    observations: Observations = partition.rows[data]
    matrix, constant = observations.centred(transform, mean, rows, columns)
    partition.objects[name] = RowBlocks(matrix, constant + fill)
    return ()


def centred_sums(
    partition: Partition,
    data: str,
    transform: Transform,
    mean: float,
    columns: FloatArray | None,
    axis: int,
    rows: FloatArray | None = None,
) -> tuple[FloatArray]:
    """Return the sums of rows or columns of transform(X) minus offsets."""
    observations: Observations = partition.rows[data]
    return (observations.centred_sums(transform, mean, rows, columns, axis=axis),)


def gram_of(partition: Partition, name: str) -> tuple[FloatArray]:
    """Return Aᵀ A for the rows of a partition."""
    A: RowBlocks = partition.objects[name]
    return (A.gram(),)


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


def allow_rows(
    partition: Partition,
    data: str,
    name: str,
    solved: slice,
    W_constraint: ConstrainedColumns | None,
) -> tuple[()]:
    """Put the nearest rows that are allowed in the place of those of a start."""
    W = partition.objects[name].copy()
    W[partition.rows[data].counts(1) == 0, solved] = 0
    if W_constraint is not None:
        W[:, solved] = W_constraint.project(W[:, solved])
    partition.objects[name] = W
    return ()


PLAIN = Classes()
"""The file of a partition has arrays and numbers alone."""


class PartitionFiles:
    """The files of the partitions beside the checkpoints of a run."""

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
    file.write(_path(partition, folder), {"state": state}, encoder.arrays)
    return ()


def stored_state(partition: Partition, folder: str) -> dict[str, Any]:
    """Return what the file of a partition holds."""
    header, arrays = file.read(_path(partition, folder))
    state: dict[str, Any] = Decoder(PLAIN, arrays).decode(header["state"])
    return state


def read_partition(partition: Partition, folder: str) -> tuple[()]:
    """Take the matrices of a file into a partition, and keep T and U for the sweeps to come."""
    state = stored_state(partition, folder)
    partition.objects.update(state["arrays"])
    partition.objects |= {READ + name: arrays for name, arrays in state["sweeps"].items()}
    return ()


def take_sweep(partition: Partition, name: str, before: str) -> tuple[()]:
    """Set T and U of a sweep to those that were read for an earlier one."""
    set_arrays(partition.objects[name], partition.objects.pop(READ + before))
    return ()


def read_again(partition: Partition, folder: str) -> None:
    """Set the state of a partition that was made again to that of its file."""
    restore(partition, stored_state(partition, folder))


def _path(partition: Partition, folder: str) -> Path:
    return Path(folder) / f"{partition.place.number}.part"
