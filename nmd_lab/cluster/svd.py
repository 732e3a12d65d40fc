"""Starting factors from the singular value decomposition of rows that lie on workers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from nmd_lab.data.entries import FloatArray, GivenOffsets, Transform, has_offsets
from nmd_lab.data.observations import Observations
from nmd_lab.kernels.lowrank import RowBlocks
from nmd_lab.model.fitted_values import Offsets
from nmd_lab.problem.initialization import LARGEST_GRAM, Start, nonnegative_parts

from .rows import new_rows


def svd_on_cluster(
    observations: Any,
    to_T: Transform,
    rank: int,
    offsets: Offsets,
    rng: np.random.Generator,
    kind: str,
) -> Start:
    """Return the start of `svd_start`, U √Σ, whose rows stay on the workers, and √Σ Vᵀ.

    They come from the eigenvectors of Aᵀ A, so that only vectors of the length of a row travel.
    """
    partitions, fill = observations.partitions, 0.0
    filled_offsets: GivenOffsets = offsets
    (m, n), dtype = observations.shape, observations.dtype
    if observations.n_observed < m * n and not has_offsets(offsets):
        fill = observations.sum_of(lambda x, _: to_T(x)) / observations.n_observed
        filled_offsets = fill, None, None
    local = observations.parts, observations.each_offsets(filled_offsets)
    A = partitions.map(residual, *local, shared=(to_T, fill))

    def twice(v: FloatArray) -> FloatArray:
        return np.asarray(partitions.sum(twice_multiplied, A, shared=(v.reshape(-1, 1),)).ravel())

    if n <= max(LARGEST_GRAM, 2):
        gram = partitions.sum(RowBlocks.gram, A)
        found: Any = eigh(gram, subset_by_index=[max(n - rank, 0), n - 1])
    else:
        product = LinearOperator((n, n), matvec=twice, dtype=np.float64)
        k = min(rank, n - 1)  # iterations find no more
        found = eigsh(product, k, v0=rng.standard_normal(n), tol=1e-10)
    order = np.argsort(found[0])[::-1]
    root, V = np.maximum(found[0][order], 0) ** 0.25, found[1][:, order]
    H, scaled = np.zeros((rank, n)), np.zeros((n, rank))
    H[: len(root)] = root[:, None] * V.T
    np.divide(V, root, out=scaled[:, : len(root)], where=root > 1e-12 * root.max(initial=0))
    W: Any = new_rows(partitions, partitions.map(times, A, shared=(scaled, dtype)), rank, dtype)
    if kind == "nndsvd":
        W, H = (each.astype(dtype) for each in nonnegative_parts(np.asarray(W), H.astype(dtype)))
    return Start(W, H.astype(dtype), False, offsets, kind=kind)


def residual(
    observations: Observations, offsets: GivenOffsets, transform: Transform, fill: float
) -> RowBlocks:
    """Return the rows of transform(X) minus offsets, as `Observations.centred`."""
    matrix, constant = observations.centred(transform, offsets)
    return RowBlocks(matrix, constant + fill)


def twice_multiplied(A: RowBlocks, V: FloatArray) -> FloatArray:
    """Return Aᵀ (A V) for the rows of a partition."""
    return A.both_products(V)[1]


def times(A: RowBlocks, V: FloatArray, dtype: DTypeLike) -> FloatArray:
    """Return A V for the rows of a partition."""
    return np.ascontiguousarray(A.product(V), dtype=dtype)
