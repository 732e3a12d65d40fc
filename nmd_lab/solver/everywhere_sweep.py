"""The factor steps of Algorithm 1, which impose T = WH on every entry."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from nmd_lab._runtime.machine import map_and_add
from nmd_lab.data.entries import FloatArray

from .constraints.steps import ConstrainedColumns, RowSolver
from .product_change import ProductChange
from .storage import Block
from .sweep import RowStep, Sweep, SweepResult


@dataclass(eq=False)
class EverywhereSweep(Sweep):
    """Algorithm 1: T = WH is imposed on every entry, and one r x r matrix serves all rows.

    W ← Z Hᵀ (H Hᵀ + ridge I)⁻¹ and H ← (WᵀW + ridge I)⁻¹ Wᵀ Z.  Where nothing is stored, T = WH at
    all times, so the residuals there follow from the change of WH.
    """

    empty_columns: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))
    product_change: ProductChange | None = None

    def _row_step(
        self, W: FloatArray, H: FloatArray, H_packed: FloatArray, penalty: float, next_W: FloatArray
    ) -> RowStep:
        solved, partners = self.solved_W, H[self.solved_W]
        ridge = self.ridge_W(partners, penalty)
        improve = self._row_solver(self.W_constraint, partners @ partners.T, ridge, penalty)
        ridge, coupled = (
            ridge.astype(H.dtype),
            self.W_constraint is not None and self.W_constraint.couples_rows,
        )

        def row_step(block: Block, S: FloatArray, StW: FloatArray) -> None:
            step = self.storage.times_Ht(block, S, H_packed)[:, solved]
            step -= ridge * W[block.rows, solved]
            if coupled:  # `_couple_rows` needs the gradients of all rows
                next_W[block.rows, solved] = step
                return
            next_W[block.rows, solved] = improve(W[block.rows, solved], step)
            self.storage.add_StW(block, S, next_W, StW)

        return row_step

    def _row_solver(
        self,
        constrained: ConstrainedColumns | None,
        gram: FloatArray,
        ridge: FloatArray,
        penalty: float,
    ) -> RowSolver:
        """Return the solver of rows that share one normal matrix."""
        if constrained is not None:
            return constrained.row_solver(gram, ridge, penalty)
        inverse = regularized_inverse(gram, ridge).astype(gram.dtype)
        return lambda rows, gradient: rows + gradient @ inverse

    def _couple_rows(
        self, result: SweepResult, W: FloatArray, H: FloatArray, penalty: float
    ) -> None:
        """Take the W-step under a constraint that couples the rows, and a pass for Sᵀ W."""
        assert self.W_constraint is not None
        solved, partners = self.solved_W, H[self.solved_W]
        gram = partners @ partners.T
        ridge = self.ridge_W(partners, penalty)
        rows = self.W_constraint.coupled(W[:, solved], result.W[:, solved], gram, ridge)
        result.W[:, solved] = rows
        H_packed = self.storage.pack(H)

        def share(index: int) -> tuple[FloatArray, ...]:
            StW = np.zeros((H.shape[1], H.shape[0]), H.dtype)
            buffers = self.storage.device.empty((2, self.storage.block_size), H.dtype)
            for block in self.storage.blocks(index, self.parts):
                S, _ = self._S_and_change(block, buffers)
                self.storage.products(block, W, H_packed, S)
                self.split_variable.keep(block.entries, S)
                self.storage.add_StW(block, S, result.W, StW)
            return (StW,)

        (result.StW,) = map_and_add(share, self.parts)

    def update_H(
        self, result: SweepResult, W: FloatArray, H: FloatArray, penalty: float
    ) -> FloatArray:
        """Return the next H after the pass that was made with W and H."""
        solved = self.solved_H
        gram, cross, squares = self._products_of_rows(result, W)
        ridge = self._ridge_of_columns(result, penalty)
        step = result.StW.T[solved] - cross[solved] @ H
        step -= ridge[:, None].astype(H.dtype) * H[solved]
        next_H, solved_gram = H.copy(), gram[solved, solved]
        if self.H_constraint is None:
            next_H[solved] += regularized_inverse(solved_gram, ridge).astype(H.dtype) @ step
            next_H[solved, self.empty_columns] = 0
        elif self.H_constraint.couples_rows:
            next_H[solved] = self.H_constraint.coupled(H[solved].T, step.T, solved_gram, ridge).T
        else:
            improve = self.H_constraint.row_solver(solved_gram, ridge, penalty)
            next_H[solved] = improve(H[solved].T, step.T).T
            next_H[solved, self.empty_columns] = H[solved, self.empty_columns]
        if squares is not None:
            self.product_change = ProductChange(gram, cross, squares, H, next_H - H)
        return next_H

    def _products_of_rows(
        self, result: SweepResult, W: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """Return Wᵀ W, Wᵀ D and Dᵀ D for the next W and its change D; None if it is not needed."""
        change = result.W - W
        squares = None if self.storage.complete else change.T @ change
        return result.W.T @ result.W, result.W.T @ change, squares

    def _ridge_of_columns(self, result: SweepResult, penalty: float) -> FloatArray:
        """Return the ridge of the H-step."""
        return self.ridge_H(result.W[:, self.solved_H], penalty)

    def _set_residuals(self, result: SweepResult, CtW: FloatArray | None, sums: FloatArray) -> None:
        if self.product_change is not None:
            sums[2] = max(sums[2] + self.product_change.squared_norm() - sums[3], 0.0)
            CtW = None if CtW is None else CtW + self.product_change.projected().T
        super()._set_residuals(result, CtW, sums)


def regularized_inverse(normal: FloatArray, ridge: FloatArray) -> FloatArray:
    """Return (normal + diag(ridge))⁻¹ in double precision, or NaN where there is none."""
    identity = np.eye(normal.shape[0])
    try:
        return cho_solve(cho_factor(normal + ridge * identity, check_finite=False), identity)
    except (np.linalg.LinAlgError, ValueError):
        return np.full_like(identity, np.nan)
