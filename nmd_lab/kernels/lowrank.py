"""Products with a large matrix and a constant added to it, and small factors of a product.

The matrix may be sparse, or in a file.
"""

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
        self.R, self.fill = R, fill
        self.size = size or max(1, BLOCK // R.shape[1])

    def product(self, V: FloatArray) -> FloatArray:
        """Return (R + fill) V."""
        products = np.concatenate([block @ V for block, _ in self._blocks()])
        return np.asarray(products + self.fill * np.sum(V, axis=0))

    def transposed_product(self, V: FloatArray) -> FloatArray:
        """Return (R + fill)ᵀ V."""
        products: Any = sum(block.T @ V[rows] for block, rows in self._blocks())
        return np.asarray(products + self.fill * np.sum(V, axis=0))

    def gram(self) -> FloatArray:
        """Return (R + fill)ᵀ (R + fill)."""
        m, n = self.R.shape
        if is_sparse(self.R):
            R = self.R.astype(np.float64)
            sums = self.fill * np.ravel(R.sum(axis=0))
            return np.asarray((R.T @ R).toarray() + sums + sums[:, None] + m * self.fill**2)
        filled = (block + self.fill for block, _ in self._blocks())
        return np.asarray(sum((each.T @ each for each in filled), start=np.zeros((n, n))))

    def _blocks(self) -> Iterator[tuple[Any, slice]]:
        """Yield blocks of rows with their positions; a sparse R is one of them."""
        if is_sparse(self.R):
            yield self.R, slice(None)
            return
        for first in range(0, self.R.shape[0], self.size):
            rows = slice(first, first + self.size)
            yield np.asarray(self.R[rows], np.float64), rows


def vectors_of_gram(squares: FloatArray, V: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return V / √D and √D Vᵀ, the largest first, from eigenvalues D² and eigenvectors of AᵀA.

    A V / √D = U √D of the singular value decomposition U D Vᵀ of A.
    """
    root, V = np.maximum(squares[::-1], 0) ** 0.25, V[:, ::-1]
    alive = root > 1e-12 * root.max(initial=0)
    return np.divide(V, root, out=np.zeros(V.shape), where=alive), root[:, None] * V.T


def singular_factors(W: FloatArray, H: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return U √D, √D Vᵀ and the numbers in D of the singular value decomposition U D Vᵀ of WH.

    Of all factors of WH these have the smallest ‖W‖² + ‖H‖².  WH itself is not computed.
    """
    Q, R = np.linalg.qr(W)
    P, S = np.linalg.qr(H.T)
    U, sizes, Vt = np.linalg.svd(R @ S.T, full_matrices=False)
    root = np.sqrt(sizes)
    return Q @ (U * root), (root[:, None] * Vt) @ P.T, sizes
