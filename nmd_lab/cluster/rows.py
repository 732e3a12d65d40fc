"""Matrices whose rows lie with the partitions of X: a W, what an SVD starts from, and the SVD."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import getitem
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from nmd_lab.data.entries import FloatArray, GivenOffsets, Transform, has_offsets
from nmd_lab.data.observations import Observations
from nmd_lab.kernels.lowrank import RowBlocks
from nmd_lab.model.fitted_values import Offsets
from nmd_lab.problem.initialization import LARGEST_GRAM, Start, nonnegative_parts

from .partitions import Partitions


class RowProducts(NamedTuple):
    """Sums over the rows of a W and of its change D in the pass that made it.

    Attributes
    ----------
    gram, cross, squares : ndarray (rank, rank)
        Wᵀ W, Wᵀ D and Dᵀ D.
    value : float
        Penalty of a constraint on W.
    """

    gram: FloatArray
    cross: FloatArray
    squares: FloatArray
    value: float


class ClusterRows:
    """A matrix (m, k), or one column of it (m,), whose rows lie on the workers.

    Attributes
    ----------
    blocks : list of Future
        Rows of each partition, which never change.
    columns : ndarray (width + 1, k)
        Columns of the matrix in those of the blocks and a column of ones: it is [block | 1] times
        this.
    products : RowProducts or None
        Sums over its rows, if a pass has made it.
    """

    def __init__(
        self,
        partitions: Partitions,
        blocks: list[Any],
        columns: FloatArray,
        dtype: DTypeLike,
        ndim: int = 2,
        products: RowProducts | None = None,
    ) -> None:
        self.partitions, self.blocks, self.columns = partitions, blocks, columns
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.ndim, self.products = ndim, products

    def with_columns(self, columns: FloatArray, ndim: int = 2) -> ClusterRows:
        """Return other columns of the same blocks."""
        return ClusterRows(self.partitions, self.blocks, columns, self.dtype, ndim)

    @property
    def parts(self) -> list[Any]:
        """Futures of the rows of each partition."""
        if np.array_equal(self.columns, unit_columns(len(self.columns) - 1)):
            return self.blocks
        return self.partitions.map(columns_of, self.blocks, shared=(self.columns,))

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows and columns."""
        return (len(self), self.columns.shape[1]) if self.ndim == 2 else (len(self),)

    @property
    def size(self) -> int:
        """Number of entries."""
        return int(np.prod(self.shape))

    def __len__(self) -> int:
        return self.partitions.n_rows

    def __getitem__(self, where: Any) -> Any:
        """Return columns, which stay where they are, or rows as an array."""
        if isinstance(where, tuple) and len(where) == 2 and where[0] == slice(None):
            if isinstance(where[1], slice):
                return self.with_columns(self.columns[where])
            return self.with_columns(self.columns[:, [where[1]]], ndim=1)
        if isinstance(where, np.ndarray) and where.dtype.kind in "iu" and where.ndim == 1:
            return self.at(where)
        return np.asarray(self)[where]

    def __setitem__(self, where: tuple[slice, slice], value: float) -> None:
        """Set columns to a number."""
        assert where[0] == slice(None)
        self.columns = self.columns.copy()
        self.columns[:-1, where[1]], self.columns[-1, where[1]] = 0, value

    def __mul__(self, number: float) -> ClusterRows:
        """Return a multiple, which stays where the rows are."""
        return self.with_columns(self.columns * number, self.ndim)

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
        rows = np.concatenate(self.partitions.results(self.parts))
        rows = rows if self.ndim == 2 else rows[:, 0]
        return rows if dtype is None else rows.astype(dtype, copy=False)

    def at(self, positions: NDArray[np.integer]) -> FloatArray:
        """Return rows at some positions."""
        positions = np.where(positions < 0, positions + len(self), positions)
        ranges = self.partitions.ranges
        here = [(positions >= each.start) & (positions < each.stop) for each in ranges]
        local = [positions[at] - each.start for at, each in zip(here, ranges, strict=True)]
        out = np.empty((positions.size, self.columns.shape[1]), self.dtype)
        answers = self.partitions.answers(getitem, self.parts, local)
        for at, rows in zip(here, answers, strict=True):
            out[at] = rows
        return out if self.ndim == 2 else out[:, 0]

    def for_result(self) -> Any:
        """Return an array, or one of Dask if it is large, whose blocks stay on the workers."""
        if self.size * self.dtype.itemsize <= MAX_RESULT_BYTES:
            return np.array(self)
        import dask.array
        from dask.delayed import delayed

        arrays = []
        for rows, block in zip(self.partitions.ranges, self.parts, strict=True):
            shape = (rows.stop - rows.start, self.columns.shape[1])
            arrays.append(dask.array.from_delayed(delayed(block), shape, self.dtype))
        return dask.array.concatenate(arrays)

    def copy(self) -> ClusterRows:
        """Return the matrix itself, whose rows never change."""
        return self


MAX_RESULT_BYTES = 1 << 28
"""Size of a factor up to which a result has it as an array."""


def new_rows(
    partitions: Partitions,
    blocks: list[Any],
    width: int,
    dtype: DTypeLike,
    products: RowProducts | None = None,
) -> ClusterRows:
    """Return the matrix of all columns of some blocks."""
    return ClusterRows(partitions, blocks, unit_columns(width), dtype, products=products)


def unit_columns(width: int) -> FloatArray:
    """Return the columns of blocks as they are."""
    return np.eye(width + 1, width)


def columns_of(block: FloatArray, columns: FloatArray) -> FloatArray:
    """Return [block | 1] times columns."""
    columns = columns.astype(block.dtype)
    return np.asarray(block @ columns[:-1] + columns[-1])


def stacked(partitions: Partitions, pieces: Sequence[Any], dtype: DTypeLike) -> ClusterRows:
    """Return a matrix of adjacent pieces: matrices on the workers, arrays, numbers."""
    matrices = [each for each in pieces if isinstance(each, ClusterRows)]
    arrays = any(isinstance(each, np.ndarray) for each in pieces)
    if len({id(each.blocks) for each in matrices}) == 1 and not arrays:
        ones = np.eye(len(matrices[0].columns))[:, -1:]
        columns = [each * ones if isinstance(each, float) else each.columns for each in pieces]
        return matrices[0].with_columns(np.hstack(columns))
    local: list[Any] = []
    for each in pieces:
        if isinstance(each, ClusterRows):
            local.append(each.parts)
        elif isinstance(each, np.ndarray):
            local.append([each[rows].astype(dtype, copy=False) for rows in partitions.ranges])
        else:
            local.append([each] * len(partitions))
    blocks = partitions.map(partial(stack, np.dtype(dtype)), *local)
    width = sum(each.shape[1] if np.ndim(each) == 2 else 1 for each in pieces)
    return new_rows(partitions, blocks, width, dtype)


def stack(dtype: Any, *pieces: Any) -> FloatArray:
    """Return the pieces of a partition side by side."""
    return np.ascontiguousarray(Observations.stacked(pieces, dtype))


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
