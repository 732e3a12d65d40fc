"""Products with a matrix that is large, sparse or in a file, and with a constant added to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import BLOCK
from nmd_lab.data.sparse import is_sparse


class RowBlocks:
    """The matrix R + fill, of which blocks of rows are in double precision at a time."""

    def __init__(self, R: Any, fill: float, size: int | None = None) -> None:
        self.R, self.fill, self.size = R, fill, size

    def product(self, V: FloatArray) -> FloatArray:
        """Return (R + fill) V."""
        products = self.R @ V if is_sparse(self.R) else self._product(V)
        result: FloatArray = products + self.fill * np.sum(V, axis=0)
        return result

    def transposed_product(self, V: FloatArray) -> FloatArray:
        """Return (R + fill)ᵀ V."""
        products = self.R.T @ V if is_sparse(self.R) else self._transposed_product(V)
        result: FloatArray = products + self.fill * np.sum(V, axis=0)
        return result

    def both_products(self, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return y = (R + fill) v and (R + fill)ᵀ y, with the bits of both methods.

        A block of rows is read from the memory once, since it is in the cache for the second.
        """
        if is_sparse(self.R):
            return (y := self.product(v)), self.transposed_product(y)
        pieces, total, constant = [], 0.0, self.fill * np.sum(v, axis=0)
        for block, _ in row_blocks(self.R, self.size):
            wide = np.asarray(block, v.dtype)
            pieces.append(wide @ v + constant)
            total = total + wide.T @ pieces[-1]
        y = np.concatenate(pieces)
        return y, total + self.fill * np.sum(y, axis=0)

    def gram(self) -> FloatArray:
        """Return (R + fill)ᵀ (R + fill)."""
        m, n = self.R.shape
        if is_sparse(self.R):
            sums: Any = self.fill * np.asarray(self.R.sum(axis=0), np.float64).ravel()
            products: FloatArray = (self.R.T @ self.R).toarray().astype(np.float64)
            total: FloatArray = products + sums + sums[:, None] + m * self.fill**2
            return total
        total = np.zeros((n, n))
        for block, _ in row_blocks(self.R):
            centred = np.asarray(block, np.float64) + self.fill
            total += centred.T @ centred
        return total

    def _product(self, V: FloatArray) -> FloatArray:
        blocks = row_blocks(self.R, self.size)
        return np.concatenate([np.asarray(block, V.dtype) @ V for block, _ in blocks])

    def _transposed_product(self, V: FloatArray) -> Any:
        blocks = row_blocks(self.R, self.size)
        return sum(np.asarray(block, V.dtype).T @ V[rows] for block, rows in blocks)


def row_blocks(R: Any, size: int | None = None) -> Iterator[tuple[Any, slice]]:
    """Yield blocks of rows with their positions."""
    size = size or max(1, BLOCK // R.shape[1])
    for first in range(0, R.shape[0], size):
        rows = slice(first, first + size)
        yield R[rows], rows
