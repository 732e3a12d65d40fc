"""Products with a large matrix and a constant added to it, and its largest singular values.

The matrix may be sparse, or in a file.  The singular values come from Lanczos iterations, with the
same digits for the same start.  ARPACK, which SciPy calls, continues after a breakdown with random
vectors of its own.  They are other ones at each call in a process.  Here a breakdown is an
exception instead, and the caller chooses a method that does not break down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse.linalg import ArpackError, LinearOperator, svds

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import BLOCK
from nmd_lab.data.sparse import is_sparse


class RowBlocks:
    """The matrix R + fill, of which blocks of rows are in double precision at a time."""

    def __init__(self, R: Any, fill: float, size: int | None = None) -> None:
        self.R, self.fill, self.size = R, fill, size

    def product(self, V: FloatArray) -> FloatArray:
        """Return (R + fill) V."""
        products = np.concatenate([block @ V for block, _ in self._blocks(V.dtype)])
        return np.asarray(products + self.fill * np.sum(V, axis=0))

    def transposed_product(self, V: FloatArray) -> FloatArray:
        """Return (R + fill)ᵀ V."""
        products: Any = sum(block.T @ V[rows] for block, rows in self._blocks(V.dtype))
        return np.asarray(products + self.fill * np.sum(V, axis=0))

    def both_products(self, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return y = (R + fill) v and (R + fill)ᵀ y, with the bits of both methods.

        A block of rows is read from the memory once, since it is in the cache for the second.
        """
        pieces, total, constant = [], 0.0, self.fill * np.sum(v, axis=0)
        for block, _ in self._blocks(v.dtype):
            pieces.append(block @ v + constant)
            total = total + block.T @ pieces[-1]
        y = np.concatenate(pieces)
        return y, total + self.fill * np.sum(y, axis=0)

    def operator(self) -> LinearOperator:
        """Return the matrix as an operator of SciPy."""

        def times(V: FloatArray) -> FloatArray:
            return self.product(np.ascontiguousarray(V))

        def transposed_times(V: FloatArray) -> FloatArray:
            return self.transposed_product(np.ascontiguousarray(V))

        both = {"matvec": times, "rmatvec": transposed_times}
        more = {"matmat": times, "rmatmat": transposed_times}
        return LinearOperator(self.R.shape, **both, **more, dtype=np.float64)

    def gram(self) -> FloatArray:
        """Return (R + fill)ᵀ (R + fill)."""
        m, n = self.R.shape
        if is_sparse(self.R):
            sums: Any = self.fill * np.asarray(self.R.sum(axis=0), np.float64).ravel()
            products: FloatArray = (self.R.T @ self.R).toarray().astype(np.float64)
            return np.asarray(products + sums + sums[:, None] + m * self.fill**2)
        total = np.zeros((n, n))
        for block, _ in row_blocks(self.R):
            centred = np.asarray(block, np.float64) + self.fill
            total += centred.T @ centred
        return total

    def _blocks(self, dtype: DTypeLike) -> Iterator[tuple[Any, slice]]:
        """Yield blocks of rows with their positions; a sparse R is one of them."""
        if is_sparse(self.R):
            yield self.R, slice(None)
            return
        for block, rows in row_blocks(self.R, self.size):
            yield np.asarray(block, dtype), rows


def row_blocks(R: Any, size: int | None = None) -> Iterator[tuple[Any, slice]]:
    """Yield blocks of rows with their positions."""
    size = size or max(1, BLOCK // R.shape[1])
    for first in range(0, R.shape[0], size):
        rows = slice(first, first + size)
        yield R[rows], rows


def singular_factors(W: FloatArray, H: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return U √D, √D Vᵀ and the numbers in D of the singular value decomposition U D Vᵀ of WH.

    Of all factors of WH these have the smallest ‖W‖² + ‖H‖².  WH itself is not computed.
    """
    Q, R = np.linalg.qr(W)
    P, S = np.linalg.qr(H.T)
    U, sizes, Vt = np.linalg.svd(R @ S.T)
    root, count = np.sqrt(sizes), sizes.size
    return Q @ (U[:, :count] * root), (root[:, None] * Vt[:count]) @ P.T, sizes


class LanczosBreakdown(ArithmeticError):
    """The vectors so far span a space that the matrix maps to itself."""


def largest_singular(
    A: Any,
    k: int,
    first: FloatArray,
    both: Callable[[FloatArray], tuple[FloatArray, FloatArray]] | None = None,
) -> tuple[FloatArray, FloatArray, Any]:
    """Return U (m, k), the k largest singular values, descending, and Vᵀ (k, n).

    `both` returns A v and Aᵀ A v of a tall A for a vector v, if a function is faster than two.
    """
    if not 0 < k < min(A.shape):
        raise LanczosBreakdown(f"k={k} of {min(A.shape)} singular values")
    tall = A.shape[0] >= A.shape[1]
    forward, back = (A.matvec, A.rmatvec) if tall else (A.rmatvec, A.matvec)
    watched = _Watched(both or (lambda v: ((y := forward(v)), back(y))))
    matvec, rmatvec = (watched.forward, watched.back) if tall else (watched.back, watched.forward)
    operator: Any = LinearOperator(A.shape, matvec, rmatvec, A.matmat, np.float64, A.rmatmat)
    try:
        U, values, Vt = svds(operator, k=k, v0=first, tol=1e-3)
    except ArpackError as error:
        raise LanczosBreakdown(str(error)) from error
    order = np.argsort(-values)
    return U[:, order], values[order], Vt[order]


class _Watched:
    """The products with a matrix, which raise an exception when Lanczos iterations break down.

    A step of the iterations is AᵀA v, or AAᵀ v for a wide matrix.  Each vector v has length 1 and
    is what the step before it adds to the earlier vectors, so that it overlaps with that step.  A
    random vector that follows a breakdown has another length, or is orthogonal to all steps; which
    of the two depends on the version of SciPy.
    """

    def __init__(self, both: Callable[[FloatArray], tuple[FloatArray, FloatArray]]) -> None:
        self.both = both
        self.step: Any = None

    def forward(self, v: FloatArray) -> Any:
        """Return A v after comparing v with the step before, and take the step."""
        if self.step is not None:
            length, step = float(np.linalg.norm(v)), float(np.linalg.norm(self.step))
            overlap = abs(float(np.vdot(self.step, v)))
            # The length of the vector is not 1, or the step hardly overlaps with it.
            if abs(length - 1) > 1e-6 or overlap <= 1e-13 * step:
                raise LanczosBreakdown("a vector does not follow from the steps before it")
        product, self.step = self.both(v)
        if not np.any(self.step):
            raise LanczosBreakdown("a vector is mapped to zero")
        return product

    def back(self, _: FloatArray) -> Any:
        """Return the step, which is Aᵀ times the last product."""
        return self.step
