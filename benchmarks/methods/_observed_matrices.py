"""Sparse matrices of the observed entries, for the completion methods.

WH is computed at observed entries (Ω) only. Some methods need the filled matrix Z, which is X on Ω
and WH elsewhere. They use Z = WH + S with the sparse residual S = X - WH on Ω. So no new array has
the size m x n.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import Observations
from nmd_lab.kernels.products import CsrStorage


class ObservedMatrices:
    """X and its weights at the observed entries, as two sparse matrices."""

    def __init__(self, values: sparse.csr_array, weights: sparse.csr_array) -> None:
        self.values, self.weights = values, weights
        m, n = values.shape
        self.storage = CsrStorage((m, n), values.indptr, values.indices)

    @classmethod
    def of(cls, observations: Observations, dtype: DTypeLike | None = None) -> ObservedMatrices:
        """Return the observed entries of a matrix."""
        stored = observations.as_sparse()
        values = stored.values.astype(dtype or stored.values.dtype, copy=False)
        weights = np.ones_like(values) if stored.weights is None else stored.weights
        return cls(stored.to_csr(values), stored.to_csr(weights.astype(values.dtype)))

    @property
    def T(self) -> ObservedMatrices:
        """The observed entries of the transpose."""
        return ObservedMatrices(cast(Any, self.values.T.tocsr()), cast(Any, self.weights.T.tocsr()))

    def model(self, W: FloatArray, H: FloatArray) -> sparse.csr_array:
        """Return WH on Ω."""
        return self.matrix(self.storage.all_products(np.ascontiguousarray(W), H))

    def residual(self, W: FloatArray, H: FloatArray) -> sparse.csr_array:
        """Return X - WH on Ω."""
        return self.matrix(self.values.data - self.model(W, H).data)

    def matrix(self, numbers: FloatArray) -> sparse.csr_array:
        """Return one number for each observed entry as a sparse matrix."""
        pattern = (self.values.indices, self.values.indptr)
        return sparse.csr_array((numbers, *pattern), shape=self.values.shape)


def normal_matrices(weights: sparse.csr_array, factor: FloatArray) -> NDArray[np.float64]:
    """Return the normal matrix of the weighted least-squares problem of each row."""
    rank = factor.shape[1]
    first, second = np.tril_indices(rank)
    lower_triangles = weights @ (factor[:, first] * factor[:, second])
    matrices = np.empty((weights.shape[0], rank, rank))
    matrices[:, first, second] = matrices[:, second, first] = lower_triangles
    return matrices


def solve_rows(entries: ObservedMatrices, factor: FloatArray, ridge: float = 0.0) -> FloatArray:
    """Return the solution u_i of the weighted least-squares problem of each row i.

    It minimises Σ w_ij (x_ij - u_i·h_j)² + ridge ‖u_i‖² over the observed entries of the row. A
    ridge of the size of rounding is added, so that a row with too few entries gets (nearly) the
    solution of smallest norm.
    """
    matrices, rank = normal_matrices(entries.weights, factor), factor.shape[1]
    rounding = np.finfo(factor.dtype).eps * np.trace(matrices, axis1=1, axis2=2)
    ridges = ridge + np.where(rounding > 0, rounding, 1.0)
    matrices[:, range(rank), range(rank)] += ridges[:, None]
    weighted = entries.matrix(entries.weights.data * entries.values.data)
    return solve_each(matrices, weighted @ factor).astype(factor.dtype, copy=False)


def solve_each(matrices: NDArray[np.float64], right_hand_sides: FloatArray) -> NDArray[np.float64]:
    """Solve one linear system for each row of right-hand sides."""
    columns = right_hand_sides.astype(np.float64, copy=False)[:, :, None]
    return np.asarray(np.linalg.solve(matrices, columns)[:, :, 0])
