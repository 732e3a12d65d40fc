"""Products with a matrix that is large, sparse or in a file, and with a constant added to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nmd_lab.data.base import BLOCK, FloatArray
from nmd_lab.data.sparse import is_sparse


class RowBlocks:
    """The matrix R + fill, of which blocks of rows are in double precision at a time.

    Parameters
    ----------
    R : array_like or csr_array (m, n)
        Dense or sparse matrix.
    fill : float
        Number that is added to every entry.
    """

    def __init__(self, R: Any, fill: float) -> None:
        self.R, self.fill = R, fill

    def product(self, V: FloatArray) -> FloatArray:
        """Return (R + fill) V."""
        own = self.R @ V if is_sparse(self.R) else _product(self.R, V)
        result: FloatArray = own + self.fill * np.sum(V, axis=0)
        return result

    def transposed_product(self, V: FloatArray) -> FloatArray:
        """Return (R + fill)ᵀ V."""
        own = self.R.T @ V if is_sparse(self.R) else _transposed_product(self.R, V)
        result: FloatArray = own + self.fill * np.sum(V, axis=0)
        return result

    def gram(self) -> FloatArray:
        """Return (R + fill)ᵀ (R + fill)."""
        m, n = self.R.shape
        if is_sparse(self.R):
            sums: Any = self.fill * np.asarray(self.R.sum(axis=0), np.float64).ravel()
            products: FloatArray = (self.R.T @ self.R).toarray().astype(np.float64)
            total: FloatArray = products + sums + sums[:, None] + m * self.fill**2
            return total
        total = np.zeros((n, n))
        for part, _ in row_blocks(self.R):
            block = np.asarray(part, np.float64) + self.fill
            total += block.T @ block
        return total


def _product(R: Any, V: FloatArray) -> FloatArray:
    return np.concatenate([np.asarray(part, V.dtype) @ V for part, _ in row_blocks(R)])


def _transposed_product(R: Any, V: FloatArray) -> Any:
    return sum(np.asarray(part, V.dtype).T @ V[rows] for part, rows in row_blocks(R))


def row_blocks(R: Any) -> Iterator[tuple[Any, slice]]:
    """Yield blocks of rows with their positions."""
    size = max(1, BLOCK // R.shape[1])
    for first in range(0, R.shape[0], size):
        rows = slice(first, first + size)
        yield R[rows], rows
