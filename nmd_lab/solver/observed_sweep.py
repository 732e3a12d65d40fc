"""Factor steps that impose T = WH on the observed entries alone.

The loss does not depend on the other entries, so the minimum is the same, but the steps are longer:
with the constraint on every entry, a step covers only the observed share of the distance.  The cost
is a small least-squares problem for each row and each column.  With sums over the observed entries
of row i,

    w⁺ = w + (Σ h_j h_jᵀ + ridge I)⁻¹ (Σ s_ij h_j - ridge w),

and likewise for each column, with the new W.  For Identity + Frobenius and ρ = 1 this is
alternating least squares.
"""

from __future__ import annotations

import numpy as np

from nmd_lab._threads import map_and_add
from nmd_lab.data.base import FloatArray

from .cholesky import factorize, substitute
from .storage import Block, CsrStorage, sparse_kernel
from .sweep import RowStep, Sweep, SweepResult


class ObservedSweep(Sweep):
    """Small least-squares problems, one for each row and each column.

    Parameters
    ----------
    storage : CsrStorage
        Positions of the observed entries.
    split_variable, ridge_W, ridge_H, solved_W, solved_H, threads
        As for `Sweep`.
    """

    storage: CsrStorage

    def __post_init__(self) -> None:
        """Prepare the pass over the columns."""
        super().__post_init__()
        self.columns, self.positions = self.storage.transposed()
        self.S = np.empty_like(self.split_variable.T)

    def _S_and_change(self, block: Block, buffers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the arrays of a block; S is kept, because the H-step needs it again."""
        size = block.entries.stop - block.entries.start
        return self.S[block.entries], buffers[1, :size]

    def _row_step(
        self, W: FloatArray, H: FloatArray, H_packed: FloatArray, penalty: float, next_W: FloatArray
    ) -> RowStep:
        ridge = self.ridge_W(H[self.solved_W], penalty)

        def row_step(block: Block, S: FloatArray, StW: FloatArray) -> None:
            improve_rows(self.storage, block, S, H_packed, self.solved_W, ridge, next_W)

        return row_step

    def update_H(
        self, result: SweepResult, W: FloatArray, H: FloatArray, penalty: float
    ) -> FloatArray:
        """Return the next H after the pass that was made with W and H."""
        change, Ht = result.W - W, self.storage.pack(H)
        ridge = self.ridge_H(result.W[:, self.solved_H], penalty)

        def update_S(part: int) -> tuple[FloatArray, ...]:
            """Subtract the change of WH that the change of W has caused."""
            buffer = np.empty(self.storage.block_size, dtype=H.dtype)
            for block in self.storage.blocks(part, self.parts):
                product = buffer[: block.entries.stop - block.entries.start]
                self.storage.products(block, change, Ht, product)
                self.S[block.entries] -= product
            return ()

        map_and_add(update_S, self.parts)
        next_Ht = Ht.copy()

        def solve_columns(part: int) -> tuple[FloatArray, ...]:
            for block in self.columns.blocks(part, self.parts):
                S = self.S[self.positions[block.entries]]
                improve_rows(self.columns, block, S, result.W, self.solved_H, ridge, next_Ht)
            return ()

        map_and_add(solve_columns, self.parts)
        return np.ascontiguousarray(next_Ht.T)


def improve_rows(
    storage: CsrStorage,
    block: Block,
    S: FloatArray,
    Ht: FloatArray,
    solved: slice,
    ridge: FloatArray,
    rows: FloatArray,
) -> None:
    """Solve the least-squares problem of each row of a block, in place.

    Parameters
    ----------
    storage : CsrStorage
        Positions of the entries.
    block : Block
        Rows to work on.
    S : ndarray (n_block_entries,)
        T + U - WH at the block's entries.
    Ht : ndarray (n, rank)
        Transpose of the other factor: one row for each column of the storage.
    solved : slice
        Components that are solved for.
    ridge : ndarray (n_solved,)
        Ridge of each solved component, the same for all rows.
    rows : ndarray (m, rank)
        Factor to improve.
    """
    first, last, _ = solved.indices(rows.shape[1])
    kernel = sparse_kernel(_improve_rows, f"{rows.dtype}_{storage.indices.dtype}")
    pattern = (storage.indptr, storage.indices, block.rows.start, block.rows.stop)
    kernel(*pattern, S, Ht, first, last, ridge, rows)


def _improve_rows(indptr, indices, start, stop, S, Ht, first, last, ridge, rows):  # type: ignore[no-untyped-def]
    base, size = indptr[start], last - first
    normal, step, no_ridge = np.empty((size, size)), np.empty(size), np.zeros(size)
    for i in range(start, stop):
        normal[:] = 0.0
        for a in range(size):
            normal[a, a], step[a] = ridge[a], -ridge[a] * rows[i, first + a]
        begin, end = indptr[i], indptr[i + 1]
        whole = end - (end - begin) % 4
        for k in range(begin, whole, 4):  # four at a time: each sum is loaded and stored once
            j0, j1, j2, j3 = indices[k], indices[k + 1], indices[k + 2], indices[k + 3]
            s0, s1, s2, s3 = S[k - base], S[k + 1 - base], S[k + 2 - base], S[k + 3 - base]
            for a in range(size):
                h0, h1 = Ht[j0, first + a], Ht[j1, first + a]
                h2, h3 = Ht[j2, first + a], Ht[j3, first + a]
                step[a] += s0 * h0 + s1 * h1 + s2 * h2 + s3 * h3
                for c in range(first, first + a + 1):
                    normal[a, c - first] += (
                        h0 * Ht[j0, c] + h1 * Ht[j1, c] + h2 * Ht[j2, c] + h3 * Ht[j3, c]
                    )
        for k in range(whole, end):
            j, s = indices[k], S[k - base]
            for a in range(size):
                h = Ht[j, first + a]
                step[a] += s * h
                for c in range(a + 1):
                    normal[a, c] += h * Ht[j, first + c]
        factorize(normal, no_ridge, normal)
        substitute(normal, step)
        for a in range(size):
            rows[i, first + a] += step[a]
