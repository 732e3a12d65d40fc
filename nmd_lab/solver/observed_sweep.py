"""Factor steps that impose T = WH on the observed entries alone.

The loss does not depend on the other entries, so the minimum is the same, but the steps are longer:
with the constraint on every entry, a step covers the observed fraction of the distance alone.  The
cost is a small least-squares problem for each row and each column.  With sums over the observed
entries of row i,

    w⁺ = w + (Σ h_j h_jᵀ + ridge I)⁻¹ (Σ s_ij h_j - ridge w),

and likewise for each column, with the new W.  For Identity + Frobenius and ρ = 1 this is
alternating least squares.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nmd_lab._runtime.machine import map_and_add
from nmd_lab.data.entries import FloatArray

from .constraints.steps import RowSolver
from .few_missing import gram_policy, missing_entries
from .gram import chunk_of_rows, chunks_of_columns, per_row, row_sums, shares_of_rows, summed
from .row_updates import shared_solver, update_rows
from .storage import Block, CsrStorage, products_of_blocks
from .sweep import RowStep, Sweep, SweepResult

COUPLINGS = 3  # steps of rows under a constraint that couples them, each a pass over the data


class ObservedSweep(Sweep):
    """Small least-squares problems, one for each row and each column."""

    storage: CsrStorage

    def __post_init__(self) -> None:
        """Prepare the pass over the columns."""
        super().__post_init__()
        now = self.now
        if now.S is None:
            now.S = self.split_variable.device.zeros(now.T.shape, now.T.dtype)
        size, device = len(self.ridge_H.alphas), self.split_variable.device
        self.of_rows = chunk_of_rows(self.storage)
        self.of_columns = chunks_of_columns(self.storage, size, device)
        self.missing = missing_entries(self.storage) if len(self.of_columns) == 1 else None
        self.missing_of_columns = None if self.missing is None else self.missing.transposed()[0]
        self.shares = shares_of_rows(self.of_columns, self.parts)

    def _S_and_change(self, block: Block, buffers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the arrays of a block; S is kept, because the H-step needs it again."""
        size = block.entries.stop - block.entries.start
        return self.now.S[block.entries], buffers[1, :size]

    def _row_step(
        self, W: FloatArray, H: FloatArray, H_packed: FloatArray, penalty: float, next_W: FloatArray
    ) -> RowStep:
        ridge, constrained = self.ridge_W(H[self.solved_W], penalty), self.W_constraint
        partners = np.ascontiguousarray(H_packed[:, self.solved_W])
        policy = gram_policy(self.missing, partners, ridge)

        def row_step(block: Block, S: FloatArray, StW: FloatArray) -> None:
            if constrained is not None and constrained.couples_rows:
                return  # `_couple_rows` takes that step
            gram = policy(self.of_rows, S, base=block.entries.start)
            update_rows(constrained, gram, ridge, penalty, block.rows, self.solved_W, next_W)

        return row_step

    def _couple_rows(
        self, result: SweepResult, W: FloatArray, H: FloatArray, penalty: float
    ) -> None:
        """Take the W-step under a constraint that couples the rows; S stays that of W and H."""
        partners, S, H_packed = H[self.solved_W], self.now.S.copy(), self.storage.pack(H)
        ridge, gram = self.ridge_W(partners, penalty), partners @ partners.T
        improve = shared_solver(self.W_constraint, gram, ridge, penalty)
        result.W[:] = self._coupled(
            *(W, self.solved_W, improve),
            lambda: self._S_times_Ht(S, H_packed),
            lambda change: self._subtract(change, H, S),
        )

    def update_H(
        self, result: SweepResult, W: FloatArray, H: FloatArray, penalty: float
    ) -> FloatArray:
        """Return the next H after the pass that was made with W and H."""
        next_W, solved, constrained = result.W, self.solved_H, self.H_constraint
        partners, Ht = np.ascontiguousarray(next_W[:, solved]), self.storage.pack(H)
        ridge = self.ridge_H(partners, penalty)
        self._subtract(next_W - W, H, self.now.S)
        if constrained is not None and constrained.couples_rows:
            next_Ht = self._coupled(
                *(Ht, solved, shared_solver(constrained, partners.T @ partners, ridge, penalty)),
                lambda: self._St_times_W(self.now.S, next_W),
                lambda change: self._subtract(next_W, change.T, self.now.S),
            )
            return np.ascontiguousarray(next_Ht.T)
        next_Ht, policy = Ht.copy(), gram_policy(self.missing_of_columns, partners, ridge)

        def solve_columns(index: int) -> tuple[FloatArray, ...]:
            columns = self.shares[index]
            grams = [policy(chunk, self.now.S) for chunk in self.of_columns]
            if len(grams) > 1:  # each chunk is in the cache once
                grams = [summed(*row_sums(grams, columns, len(ridge)), columns.start)]
            update_rows(constrained, grams[0], ridge, penalty, columns, solved, next_Ht)
            return ()

        map_and_add(solve_columns, self.parts)
        return np.ascontiguousarray(next_Ht.T)

    def column_sums(self, change: FloatArray, W: FloatArray, H: FloatArray) -> Any:
        """Return the sums over the rows with which the H-step could be solved elsewhere."""
        S, partners = self.now.S[:].copy(), np.ascontiguousarray(W[:, self.solved_H])
        self._subtract(change, H, S)
        grams = [per_row(chunk, S, partners) for chunk in self.of_columns]
        return row_sums(grams, slice(0, H.shape[1]), partners.shape[1])

    def _subtract(self, W: FloatArray, H: FloatArray, S: FloatArray) -> None:
        """Subtract the product of two factors from S."""
        storage, H_packed = self.storage, self.storage.pack(H)

        def subtract(index: int) -> tuple[FloatArray, ...]:
            for block, product in products_of_blocks(storage, W, H_packed, index, self.parts):
                S[block.entries] -= product
            return ()

        map_and_add(subtract, self.parts)

    def _S_times_Ht(self, S: FloatArray, H_packed: FloatArray) -> FloatArray:
        """Return S Hᵀ."""
        out = np.empty((self.storage.shape[0], H_packed.shape[1]), H_packed.dtype)

        def multiply(index: int) -> tuple[FloatArray, ...]:
            for block in self.storage.blocks(index, self.parts):
                out[block.rows] = self.storage.times_Ht(block, S[block.entries], H_packed)
            return ()

        map_and_add(multiply, self.parts)
        return out

    def _St_times_W(self, S: FloatArray, W: FloatArray) -> FloatArray:
        """Return Sᵀ W."""

        def multiply(index: int) -> tuple[FloatArray, ...]:
            out = np.zeros((self.storage.shape[1], W.shape[1]), W.dtype)
            for block in self.storage.blocks(index, self.parts):
                self.storage.add_StW(block, S[block.entries], W, out)
            return (out,)

        return map_and_add(multiply, self.parts)[0]

    def _coupled(
        self,
        rows: FloatArray,
        solved: slice,
        improve: RowSolver,
        gradients: Callable[[], FloatArray],
        subtract: Callable[[FloatArray], None],
    ) -> FloatArray:
        """Return the next rows under a constraint that couples them, and subtract their change.

        Each step puts WH in the place of what is not observed, which lowers the sum over the
        observed entries.
        """
        for _ in range(COUPLINGS):
            following = rows.copy()
            following[:, solved] = improve(rows[:, solved], gradients()[:, solved])
            subtract(following - rows)
            rows = following
        return rows
