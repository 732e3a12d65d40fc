"""The factor steps of Algorithm 1, which impose T = WH on every entry."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.machine import map_and_add
from nmd_lab.data.entries import FloatArray

from .constraints.steps import RowSolver
from .row_updates import regularized_inverse, shared_solver
from .storage import Block
from .sweep import RowStep, Sweep, SweepResult


class ProductChange(NamedTuple):
    """The change of WH on all entries since the last pass.

    The change is ΔW H + W⁺ ΔH.  Its norm follows from r x r matrices, without WH itself.

    Attributes
    ----------
    gram, cross, step : ndarray (rank, rank)
        W⁺ᵀW⁺, W⁺ᵀΔW and ΔWᵀΔW.
    H, H_change : ndarray (rank, n)
        H before the change, and ΔH.
    """

    gram: FloatArray
    cross: FloatArray
    step: FloatArray
    H: FloatArray
    H_change: FloatArray

    def squared_norm(self) -> float:
        """Return ‖W⁺H⁺ - WH‖²."""
        mixed = np.sum(self.cross.T * (self.H @ self.H_change.T))
        ends = np.sum(self.step * (self.H @ self.H.T))
        ends += np.sum(self.gram * (self.H_change @ self.H_change.T))
        return float(ends + 2 * mixed)

    def projected(self) -> FloatArray:
        """Return W⁺ᵀ(W⁺H⁺ - WH)."""
        return self.cross @ self.H + self.gram @ self.H_change


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
        solved, improve = self.solved_W, self._solver_of_rows(H, penalty)
        coupled = self.W_constraint is not None and self.W_constraint.couples_rows

        def row_step(block: Block, S: FloatArray, StW: FloatArray) -> None:
            gradient = self.storage.times_Ht(block, S, H_packed)[:, solved]
            if coupled:  # `_couple_rows` needs the gradients of all rows
                next_W[block.rows, solved] = gradient
                return
            next_W[block.rows, solved] = improve(W[block.rows, solved], gradient)
            self.storage.add_StW(block, S, next_W, StW)

        return row_step

    def _solver_of_rows(self, H: FloatArray, penalty: float) -> RowSolver:
        """Return the finish of the W-step, with the normal matrix of all rows."""
        partners = H[self.solved_W]
        ridge = self.ridge_W(partners, penalty)
        return shared_solver(self.W_constraint, partners @ partners.T, ridge, penalty)

    def _couple_rows(
        self, result: SweepResult, W: FloatArray, H: FloatArray, penalty: float
    ) -> None:
        """Take the W-step under a constraint that couples the rows, and a pass for Sᵀ W."""
        solved, improve = self.solved_W, self._solver_of_rows(H, penalty)
        result.W[:, solved] = improve(W[:, solved], result.W[:, solved])
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
        solved, empty, constrained = self.solved_H, self.empty_columns, self.H_constraint
        gram, cross, squares = self._products_of_rows(result, W)
        ridge = self._ridge_of_columns(result, penalty)
        gradient = result.StW.T[solved] - cross[solved] @ H
        next_H, own_gram = H.copy(), gram[solved, solved]
        if constrained is None:
            gradient -= ridge[:, None].astype(H.dtype) * H[solved]
            next_H[solved] += regularized_inverse(own_gram, ridge).astype(H.dtype) @ gradient
            next_H[solved, empty] = 0
        else:
            improve = shared_solver(constrained, own_gram, ridge, penalty)
            next_H[solved] = improve(H[solved].T, gradient.T).T
            if not constrained.couples_rows:
                next_H[solved, empty] = H[solved, empty]
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
