"""One pass over the data, block of rows by block of rows.

Within a block everything happens while it is in the cache: A = WH, the T- and U-update, the next
rows of W, and the block's contribution to the sums of the H-step.

All steps are written with S = T + U - WH, the part of Z = T + U that is not low-rank.  Then

    Z Hᵀ = W (H Hᵀ) + S Hᵀ,    so    W⁺ = W + (S Hᵀ - ridge W) (H Hᵀ + ridge I)⁻¹,

and likewise for H.  S is zero at missing entries, so the same steps serve dense, masked and sparse
data.  In this form a small change of W has no rounding error from the size of W.

`EverywhereSweep` imposes T = WH on every entry, as the paper does.
`nmd_lab.solver.observed_sweep` imposes it on the observed entries alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from nmd_lab._threads import map_and_add
from nmd_lab.data.base import FloatArray

from .constraints.steps import ConstrainedColumns, RowSolver
from .product_change import ProductChange
from .split_variable import SplitVariable
from .storage import BLOCKS, Block, Storage

RowStep = Callable[[Block, FloatArray, FloatArray], None]
"""Function of a block, its S and StW.  It computes the block's rows of the next W.  If the H-step
needs Sᵀ W, it adds the contribution of the block to StW."""


@dataclass
class SweepResult:
    """The sums of one pass over the rows.

    Attributes
    ----------
    W : ndarray (m, rank)
        Next W.
    StW : ndarray (n, rank)
        Sᵀ times the next W, if the H-step needs it; zeros otherwise.
    data_term : float
        Weighted loss of f(WH).
    primal : float
        ‖T - WH‖.
    change : float
        ‖T - T_previous‖.
    projected_change : float
        ‖Wᵀ(T - T_previous)‖, NaN unless it was asked for.
    """

    W: FloatArray
    StW: FloatArray
    data_term: float = math.nan
    primal: float = math.nan
    change: float = math.nan
    projected_change: float = math.nan


@dataclass(frozen=True)
class Ridge:
    """The ridge of a factor step, epsilon ‖other factor‖² + alphas / ρ, for each solved column.

    Parameters
    ----------
    epsilon : float
        Part relative to the other factor, which keeps the steps solvable.
    alphas : ndarray (n_solved,)
        Twice the coefficient of the squared norm of each column of W (or row of H) in the
        objective: alpha for the components, and another number for the offsets.
    """

    epsilon: float
    alphas: FloatArray

    def __call__(self, other: FloatArray, penalty: float) -> FloatArray:
        """Return the ridge (n_solved,); it is positive even if the other factor is zero."""
        norm = float(np.sum(other * other, dtype=np.float64))
        smallest = float(np.finfo(other.dtype).tiny) * 16
        total: FloatArray = self.epsilon * norm + self.alphas / penalty + smallest
        return total

    def objective(self, factor: FloatArray) -> float:
        """Return the term of the objective for the solved columns, (m, n_solved)."""
        norms = np.einsum("ij,ij->j", factor, factor, dtype=np.float64)
        return 0.5 * float(self.alphas @ norms)


@dataclass(eq=False)
class Sweep:
    """The pass over all rows; subclasses add the factor steps.

    Parameters
    ----------
    storage : Storage
        Positions of the stored entries.
    split_variable : SplitVariable
        T and U at these entries.
    ridge_W, ridge_H : Ridge
        Ridges of the factor steps.
    solved_W, solved_H : slice
        Columns of W and rows of H that are solved for; the others hold offsets and stay.
    threads : int
        Largest number of threads.  Each works on its own part of the rows.
    of_W, of_H : ConstrainedColumns, optional
        Constraints on the solved columns of W and rows of H.
    """

    storage: Storage
    split_variable: SplitVariable
    ridge_W: Ridge
    ridge_H: Ridge
    solved_W: slice
    solved_H: slice
    threads: int = 1
    of_W: ConstrainedColumns | None = None
    of_H: ConstrainedColumns | None = None

    def __post_init__(self) -> None:
        """Set the number of parts of the rows."""
        self.parts = number_of_shares(self.storage, self.threads)

    def update_T_and_W(
        self, W: FloatArray, H: FloatArray, penalty: float, *, projected: bool = False
    ) -> SweepResult:
        """Update T and U at A = WH, then take the next W-step.

        Parameters
        ----------
        W, H : ndarray (m, rank) and (rank, n)
            Factors.
        penalty : float
            ρ of this iteration.  The W-step assumes that ρ stays the same.
        projected : bool
            Whether to compute ‖Wᵀ(T - T_previous)‖.
        """
        return self._pass(W, H, penalty, update=True, projected=projected)

    def update_W(self, W: FloatArray, H: FloatArray, penalty: float) -> SweepResult:
        """Take the W-step alone, with T and U as they are."""
        return self._pass(W, H, penalty, update=False, projected=False)

    def update_H(
        self, result: SweepResult, W: FloatArray, H: FloatArray, penalty: float
    ) -> FloatArray:
        """Return the next H after the pass that was made with W and H."""
        raise NotImplementedError

    def kept(self) -> dict[str, Any]:
        """Return what the next steps need beside W, H and the last result, for a checkpoint."""
        return self.split_variable.kept()

    def restore(self, kept: dict[str, Any]) -> None:
        """Set what `kept` has returned."""
        self.split_variable.restore(kept)

    def ridge_term(self, W: FloatArray, H: FloatArray) -> float:
        """Return ridge and penalties of what is solved for in W and H, a term of the objective."""
        rows, columns = W[:, self.solved_W], H[self.solved_H].T
        total = self.ridge_W.objective(rows) + self.ridge_H.objective(columns)
        for constrained, factor in ((self.of_W, rows), (self.of_H, columns)):
            total += 0.0 if constrained is None else constrained.value(factor)
        return total

    def _pass(
        self, W: FloatArray, H: FloatArray, penalty: float, *, update: bool, projected: bool
    ) -> SweepResult:
        H_packed, next_W = self.storage.pack(H), W.copy()
        row_step = self._row_step(W, H, H_packed, penalty, next_W)

        def share(part: int) -> tuple[FloatArray, FloatArray, FloatArray]:
            rank, n = H.shape
            StW = np.zeros((n, rank), H.dtype)
            CtW = np.zeros((n if projected else 0, rank), H.dtype)
            sums = np.zeros(4)
            buffers = self.storage.device.empty((2, self.storage.block_size), H.dtype)
            for block in self.storage.blocks(part, self.parts):
                S, change = self._S_and_change(block, buffers)
                self.storage.products(block, W, H_packed, S)
                if update:
                    output = change if projected else None
                    sums += self.split_variable.update(block.entries, S, penalty, output)
                    if projected:
                        self.storage.add_StW(block, change, W, CtW)
                else:
                    self.split_variable.keep(block.entries, S)
                row_step(block, S, StW)
            return StW, CtW, sums

        StW, CtW, sums = map_and_add(share, self.parts)
        result = SweepResult(next_W, StW)
        if update:
            self.split_variable.dual_scale = 1.0
            self._set_residuals(result, CtW if projected else None, sums)
        if self.of_W is not None and self.of_W.couples_rows:
            self._couple_rows(result, W, H, penalty)
        return result

    def _couple_rows(
        self, result: SweepResult, W: FloatArray, H: FloatArray, penalty: float
    ) -> None:
        """Take the W-step under a constraint that couples the rows, after the pass."""
        raise NotImplementedError

    def _row_step(
        self, W: FloatArray, H: FloatArray, H_packed: FloatArray, penalty: float, next_W: FloatArray
    ) -> RowStep:
        raise NotImplementedError

    def _S_and_change(self, block: Block, buffers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the arrays to hold S and T - T_previous of a block."""
        size = block.entries.stop - block.entries.start
        return buffers[0, :size], buffers[1, :size]

    def _set_residuals(self, result: SweepResult, CtW: FloatArray | None, sums: FloatArray) -> None:
        """Compute the residuals from the sums of all blocks."""
        result.data_term = float(sums[0])
        result.primal, result.change = math.sqrt(sums[1]), math.sqrt(sums[2])
        if CtW is not None:
            result.projected_change = float(np.linalg.norm(CtW))


@dataclass(eq=False)
class EverywhereSweep(Sweep):
    """Algorithm 1: T = WH is imposed on every entry, and one r x r matrix serves all rows.

    W ← Z Hᵀ (H Hᵀ + ridge I)⁻¹ and H ← (WᵀW + ridge I)⁻¹ Wᵀ Z.  Where nothing is stored, T = WH at
    all times, so the residuals there follow from the change of WH.

    Parameters
    ----------
    storage, split_variable, ridge_W, ridge_H, solved_W, solved_H, threads
        As for `Sweep`.
    empty_columns : ndarray of int
        Columns without an observed entry, whose H is 0.  Otherwise H would hold the old T there
        against a change of the row offsets.  A row of W that is 0 stays 0 by itself.
    """

    empty_columns: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))
    product_change: ProductChange | None = None

    def _row_step(
        self, W: FloatArray, H: FloatArray, H_packed: FloatArray, penalty: float, next_W: FloatArray
    ) -> RowStep:
        solved, partners = self.solved_W, H[self.solved_W]
        ridge = self.ridge_W(partners, penalty)
        improve = self._row_solver(self.of_W, partners @ partners.T, ridge, penalty)
        ridge, coupled = ridge.astype(H.dtype), self.of_W is not None and self.of_W.couples_rows

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
        assert self.of_W is not None
        solved, partners = self.solved_W, H[self.solved_W]
        gram, ridge = partners @ partners.T, self.ridge_W(partners, penalty)
        rows = self.of_W.coupled(W[:, solved], result.W[:, solved], gram, ridge)
        result.W[:, solved] = rows
        H_packed = self.storage.pack(H)

        def share(part: int) -> tuple[FloatArray, ...]:
            StW = np.zeros((H.shape[1], H.shape[0]), H.dtype)
            buffers = self.storage.device.empty((2, self.storage.block_size), H.dtype)
            for block in self.storage.blocks(part, self.parts):
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
        solved, change = self.solved_H, result.W - W
        gram, cross = result.W.T @ result.W, result.W.T @ change
        ridge = self.ridge_H(result.W[:, solved], penalty)
        step = result.StW.T[solved] - cross[solved] @ H
        step -= ridge[:, None].astype(H.dtype) * H[solved]
        next_H, own = H.copy(), gram[solved, solved]
        if self.of_H is None:
            next_H[solved] += regularized_inverse(own, ridge).astype(H.dtype) @ step
            next_H[solved, self.empty_columns] = 0
        elif self.of_H.couples_rows:
            next_H[solved] = self.of_H.coupled(H[solved].T, step.T, own, ridge).T
        else:
            improve = self.of_H.row_solver(own, ridge, penalty)
            next_H[solved] = improve(H[solved].T, step.T).T
            next_H[solved, self.empty_columns] = H[solved, self.empty_columns]
        if not self.storage.complete:
            self.product_change = ProductChange(gram, cross, change.T @ change, H, next_H - H)
        return next_H

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


def number_of_shares(storage: Storage, threads: int) -> int:
    """Return the number of parts of the rows: at most one for each thread, and none too small."""
    threads = storage.device.threads(threads)
    return max(1, min(threads, storage.n_entries // BLOCKS.share_entries))
