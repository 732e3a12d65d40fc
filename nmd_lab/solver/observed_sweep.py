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

from typing import Any

import numpy as np

from nmd_lab._runtime.machine import map_and_add
from nmd_lab.data.entries import FloatArray

from .column_chunks import Chunk, ColumnChunks, column_sums
from .constraints.steps import ConstrainedColumns
from .row_problems import constrained_rows, improve_rows
from .storage import Block, CsrStorage
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
        self.chunks = None
        if self.H_constraint is None:
            self.chunks = ColumnChunks.of(
                self.storage, len(self.ridge_H.alphas), self.split_variable.device
            )
        if self.chunks is None:
            self.columns, self.positions = self.storage.transposed()

    def _S_and_change(self, block: Block, buffers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the arrays of a block; S is kept, because the H-step needs it again."""
        size = block.entries.stop - block.entries.start
        return self.now.S[block.entries], buffers[1, :size]

    def _row_step(
        self, W: FloatArray, H: FloatArray, H_packed: FloatArray, penalty: float, next_W: FloatArray
    ) -> RowStep:
        ridge = self.ridge_W(H[self.solved_W], penalty)
        partners = np.ascontiguousarray(H_packed[:, self.solved_W])

        def row_step(block: Block, S: FloatArray, StW: FloatArray) -> None:
            if self.W_constraint is None:
                improve_rows(self.storage, block, S, partners, self.solved_W, ridge, next_W)
            elif not self.W_constraint.couples_rows:  # `_couple_rows` takes that step
                constrained_rows(
                    *(self.W_constraint, penalty, self.storage, block, S),
                    *(partners, self.solved_W, ridge, next_W),
                )

        return row_step

    def _couple_rows(
        self, result: SweepResult, W: FloatArray, H: FloatArray, penalty: float
    ) -> None:
        """Take the W-step under a constraint that couples the rows; S stays that of W and H."""
        assert self.W_constraint is not None
        H_packed, S = self.storage.pack(H), self.now.S.copy()
        result.W[:] = self._coupled(
            *(self.W_constraint, self.storage, S, W, H_packed, self.solved_W),
            self.ridge_W(H[self.solved_W], penalty),
        )

    def update_H(
        self, result: SweepResult, W: FloatArray, H: FloatArray, penalty: float
    ) -> FloatArray:
        """Return the next H after the pass that was made with W and H."""
        Ht = self.storage.pack(H)
        ridge = self.ridge_H(result.W[:, self.solved_H], penalty)
        self._subtract(self.storage, result.W - W, Ht, self.now.S)
        if self.H_constraint is not None and self.H_constraint.couples_rows:
            S = self.now.S[self.positions]
            next_Ht = self._coupled(
                self.H_constraint, self.columns, S, Ht, result.W, self.solved_H, ridge
            )
            return np.ascontiguousarray(next_Ht.T)
        next_Ht, partners = Ht.copy(), np.ascontiguousarray(result.W[:, self.solved_H])
        if self.chunks is not None:
            self.chunks.improve(self.now.S, partners, self.solved_H, ridge, next_Ht, self.parts)
            return np.ascontiguousarray(next_Ht.T)

        def solve_columns(number: int) -> tuple[FloatArray, ...]:
            for block in self.columns.blocks(number, self.parts):
                S = self.now.S[self.positions[block.entries]]
                problem = (self.columns, block, S, partners, self.solved_H, ridge, next_Ht)
                if self.H_constraint is None:
                    improve_rows(*problem)
                else:
                    constrained_rows(self.H_constraint, penalty, *problem)
            return ()

        map_and_add(solve_columns, self.parts)
        return np.ascontiguousarray(next_Ht.T)

    def column_sums(self, change: FloatArray, W: FloatArray, H: FloatArray) -> Any:
        """Return the sums over the rows with which the H-step could be solved elsewhere."""
        S = self.now.S[:].copy()
        self._subtract(self.storage, change, self.storage.pack(H), S)
        if self.chunks is None:
            chunks = [Chunk(self.columns.indptr, self.columns.indices, self.positions, 0, 0)]
        else:
            chunks = self.chunks.chunks
        partners = np.ascontiguousarray(W[:, self.solved_H])
        return column_sums(chunks, S, partners, 0, H.shape[1])

    def _subtract(
        self, storage: CsrStorage, change: FloatArray, Ht: FloatArray, S: FloatArray
    ) -> None:
        """Subtract from S the change of WH that a change of W has caused."""

        def subtract(index: int) -> tuple[FloatArray, ...]:
            buffer = np.empty(storage.block_size, dtype=Ht.dtype)
            for block in storage.blocks(index, self.parts):
                product = buffer[: block.entries.stop - block.entries.start]
                storage.products(block, change, Ht, product)
                S[block.entries] -= product
            return ()

        map_and_add(subtract, self.parts)

    def _coupled(
        self,
        constrained: ConstrainedColumns,
        storage: CsrStorage,
        S: FloatArray,
        rows: FloatArray,
        Ht: FloatArray,
        solved: slice,
        ridge: FloatArray,
    ) -> FloatArray:
        """Return the next rows under a constraint that couples them; S is overwritten.

        Each step puts WH in the place of what is not observed, which lowers the sum over the
        observed entries.
        """
        gram, current = Ht[:, solved].T @ Ht[:, solved], rows
        for _ in range(COUPLINGS):
            gradient = np.empty_like(rows[:, solved])

            def multiply(index: int, out: FloatArray = gradient) -> tuple[FloatArray, ...]:
                for block in storage.blocks(index, self.parts):
                    out[block.rows] = storage.times_Ht(block, S[block.entries], Ht)[:, solved]
                return ()

            map_and_add(multiply, self.parts)
            gradient -= ridge.astype(rows.dtype) * current[:, solved]
            following = current.copy()
            following[:, solved] = constrained.coupled(current[:, solved], gradient, gram, ridge)
            self._subtract(storage, following - current, Ht, S)
            current = following
        return current
