"""Starting factors whose rows lie on workers."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from nmd_lab.data.observations import FloatArray, Observations, Transform
from nmd_lab.solver.constraints.steps import ConstrainedColumns
from nmd_lab.solver.lowrank import RowBlocks

from .cluster import Cluster
from .partition import Partition
from .rows import ClusterRows, Named


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
