"""The observed entries of a matrix as a completion method sees them: sparse, by rows and columns.

WH is formed at observed entries only.  A step that needs the filled matrix Z, X on Ω and WH
elsewhere, takes it as Z = WH + S with the residual S = X - WH on Ω, so that nothing is as large
as m x n but what the caller already had.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from nmd_lab.data.base import FloatArray, Observations
from nmd_lab.solver.storage import SparseLayout


class Entries:
    """The observed entries, row after row.

    Parameters
    ----------
    values, weights : sparse array (m, n)
        X and the weights, at the same places.
    """

    def __init__(self, values: sparse.csr_array, weights: sparse.csr_array) -> None:
        self.values, self.weights = values, weights
        m, n = values.shape
        self.layout = SparseLayout((m, n), values.indptr, values.indices)

    @classmethod
    def of(cls, observations: Observations, dtype: DTypeLike | None = None) -> Entries:
        """Return the entries of observations whose absent entries are missing.

        Parameters
        ----------
        observations : Observations
            The data.
        dtype : float32 or float64, optional
            The precision to work in; by default that of the observations.
        """
        stored = observations.as_sparse()
        values = stored.values.astype(dtype or stored.values.dtype, copy=False)
        weights = np.ones_like(values) if stored.weights is None else stored.weights
        return cls(stored.to_csr(values), stored.to_csr(weights.astype(values.dtype)))

    @property
    def T(self) -> Entries:
        """The entries of the transpose."""
        return Entries(cast(Any, self.values.T.tocsr()), cast(Any, self.weights.T.tocsr()))

    def model(self, W: FloatArray, H: FloatArray) -> sparse.csr_array:
        """Return WH on Ω."""
        return self.matrix(self.layout.all_products(np.ascontiguousarray(W), H))

    def residual(self, W: FloatArray, H: FloatArray) -> sparse.csr_array:
        """Return X - WH on Ω."""
        return self.matrix(self.values.data - self.model(W, H).data)

    def matrix(self, numbers: FloatArray) -> sparse.csr_array:
        """Return numbers in the entries' places; its product with a factor costs O(|Ω| r)."""
        pattern = (self.values.indices, self.values.indptr)
        return sparse.csr_array((numbers, *pattern), shape=self.values.shape)


def grams(weights: sparse.csr_array, factor: FloatArray) -> NDArray[np.float64]:
    """Return the normal matrix of each row's weighted least-squares problem.

    Parameters
    ----------
    weights : sparse array (m, n)
        The weights of the entries.
    factor : ndarray (n, rank)
        The other factor, a row for each column of X.

    Returns
    -------
    ndarray (m, rank, rank)
        Σ w_ij h_j h_jᵀ over the entries of row i.
    """
    rank = factor.shape[1]
    first, second = np.tril_indices(rank)
    halves = weights @ (factor[:, first] * factor[:, second])
    matrices = np.empty((weights.shape[0], rank, rank))
    matrices[:, first, second] = matrices[:, second, first] = halves
    return matrices


def solve_rows(entries: Entries, factor: FloatArray, ridge: float = 0.0) -> FloatArray:
    """Return the w of each row that minimises Σ w_ij (x_ij - w·h_j)² + ridge ‖w‖².

    What the entries of a row leave open, such as a row without any, is settled by a ridge of the
    size of rounding, that is by (nearly) the shortest w.

    Parameters
    ----------
    entries : Entries
        X and the weights, of shape (m, n).
    factor : ndarray (n, rank)
        The other factor, a row for each column of X.
    ridge : float, default 0
        Ridge of every row.

    Returns
    -------
    ndarray (m, rank)
        Of the factor's dtype.
    """
    matrices, rank = grams(entries.weights, factor), factor.shape[1]
    rounding = np.finfo(factor.dtype).eps * np.trace(matrices, axis1=1, axis2=2)
    ridges = ridge + np.where(rounding > 0, rounding, 1.0)
    matrices[:, range(rank), range(rank)] += ridges[:, None]
    weighted = entries.matrix(entries.weights.data * entries.values.data)
    return solve_each(matrices, weighted @ factor).astype(factor.dtype, copy=False)


def solve_each(matrices: NDArray[np.float64], rows: FloatArray) -> NDArray[np.float64]:
    """Solve one system for each row of right-hand sides."""
    sides = rows.astype(np.float64, copy=False)[:, :, None]
    return np.asarray(np.linalg.solve(matrices, sides)[:, :, 0])
