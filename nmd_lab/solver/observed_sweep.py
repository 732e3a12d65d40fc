"""Factor steps that impose T = WH on the observed entries alone.

The loss does not see the other entries, so the problem is the same; but an iteration no longer
moves by only the observed share of the way.  The price is a small least-squares problem for each
row and each column: over the observed entries of row i,

    w⁺ = w + (Σ h_j h_jᵀ + ridge I)⁻¹ (Σ s_ij h_j - ridge w),

and likewise for a column with the new W.  For Identity + Frobenius at ρ = 1 this is alternating
least squares.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from nmd_lab.data.base import FloatArray

from .storage import Block, SparseLayout, sparse_kernel
from .sweep import Pass, Steps, in_parallel


class ObservedSteps(Steps):
    """Small least-squares problems, one for each row and column.

    Parameters
    ----------
    layout : SparseLayout
        Where the observed entries are.
    splitting, ridge, free_W, free_H, threads
        As for `Steps`.
    """

    layout: SparseLayout

    def __post_init__(self) -> None:
        """Prepare the way down the columns."""
        super().__post_init__()
        self.columns, self.positions = self.layout.transposed()
        self.S = np.empty_like(self.splitting.T)

    def _buffers(self, block: Block, buffers: FloatArray) -> FloatArray:
        size = block.entries.stop - block.entries.start
        return (self.S[block.entries], buffers[1, :size])  # type: ignore[return-value]

    def _row_step(
        self, W: FloatArray, H: FloatArray, right: FloatArray, ridge: float, next_W: FloatArray
    ) -> Callable[[Block, FloatArray, FloatArray], None]:
        def take_rows(block: Block, S: FloatArray, StW: FloatArray) -> None:
            solve_rows(self.layout, block, S, right, self.free_W, ridge, next_W)

        return take_rows

    def next_H(self, sweep: Pass, W: FloatArray, H: FloatArray, penalty: float) -> FloatArray:
        """Return the next H from the sweep made with W and H."""
        change, right = sweep.W - W, self.layout.prepare(H)
        ridge = self.ridge(sweep.W[:, self.free_H], penalty)

        def renew(part: int) -> tuple[FloatArray, ...]:  # S with the new W
            buffer = np.empty(self.layout.block_size, dtype=H.dtype)
            for block in self.layout.blocks(part, self.parts):
                moved = buffer[: block.entries.stop - block.entries.start]
                self.layout.products(block, change, right, moved)
                self.S[block.entries] -= moved
            return ()

        in_parallel(renew, self.parts)
        columns = right.copy()

        def solve(part: int) -> tuple[FloatArray, ...]:
            for block in self.columns.blocks(part, self.parts):
                S = self.S[self.positions[block.entries]]
                solve_rows(self.columns, block, S, sweep.W, self.free_H, ridge, columns)
            return ()

        in_parallel(solve, self.parts)
        return np.ascontiguousarray(columns.T)


def solve_rows(
    layout: SparseLayout,
    block: Block,
    S: FloatArray,
    right: FloatArray,
    free: slice,
    ridge: float,
    rows: FloatArray,
) -> None:
    """Solve the least-squares problem of each row of a block, in place.

    Parameters
    ----------
    layout : SparseLayout
        Which entries a row has.
    block : Block
        The rows.
    S : ndarray
        The residuals of the block's entries.
    right : ndarray (n, rank)
        The other factor, a row for each column of the layout.
    free : slice
        The components that are solved for.
    ridge : float
        The ridge.
    rows : ndarray (m, rank)
        The factor to improve.
    """
    first, last, _ = free.indices(rows.shape[1])
    kernel = sparse_kernel(_solve_rows, f"{rows.dtype}_{layout.indices.dtype}")
    pattern = (layout.indptr, layout.indices, block.rows.start, block.rows.stop)
    kernel(*pattern, S, right, first, last, ridge, rows)


def _solve_rows(indptr, indices, start, stop, S, right, first, last, ridge, rows):  # type: ignore[no-untyped-def]
    base, size = indptr[start], last - first
    normal, step = np.empty((size, size)), np.empty(size)
    for i in range(start, stop):
        normal[:] = 0.0
        for a in range(size):
            normal[a, a], step[a] = ridge, -ridge * rows[i, first + a]
        begin, end = indptr[i], indptr[i + 1]
        whole = end - (end - begin) % 4
        for k in range(begin, whole, 4):  # four at a time: each sum is loaded and stored once
            j0, j1, j2, j3 = indices[k], indices[k + 1], indices[k + 2], indices[k + 3]
            s0, s1, s2, s3 = S[k - base], S[k + 1 - base], S[k + 2 - base], S[k + 3 - base]
            for a in range(size):
                h0, h1 = right[j0, first + a], right[j1, first + a]
                h2, h3 = right[j2, first + a], right[j3, first + a]
                step[a] += s0 * h0 + s1 * h1 + s2 * h2 + s3 * h3
                for c in range(first, first + a + 1):
                    normal[a, c - first] += (
                        h0 * right[j0, c]
                        + h1 * right[j1, c]
                        + h2 * right[j2, c]
                        + h3 * right[j3, c]
                    )
        for k in range(whole, end):
            j, s = indices[k], S[k - base]
            for a in range(size):
                h = right[j, first + a]
                step[a] += s * h
                for c in range(a + 1):
                    normal[a, c] += h * right[j, first + c]
        # Cholesky, then forward and backward substitution
        for j in range(size):
            pivot = normal[j, j]
            for k in range(j):
                pivot -= normal[j, k] * normal[j, k]
            pivot = math.sqrt(pivot)
            normal[j, j] = pivot
            for a in range(j + 1, size):
                total = normal[a, j]
                for k in range(j):
                    total -= normal[a, k] * normal[j, k]
                normal[a, j] = total / pivot
            total = step[j]
            for k in range(j):
                total -= normal[j, k] * step[k]
            step[j] = total / pivot
        for j in range(size - 1, -1, -1):
            total = step[j]
            for a in range(j + 1, size):
                total -= normal[a, j] * step[a]
            step[j] = total / normal[j, j]
            rows[i, first + j] += step[j]
