"""One pass over the data, block of rows by block of rows.

Within a block everything happens while it is in the cache: A = WH, the T- and U-update, the next
rows of W, and the block's contribution to the sums of the H-step.

All steps are written with S = T + U - WH, the part of Z = T + U that is not low-rank.  Then

    Z Hᵀ = W (H Hᵀ) + S Hᵀ,    so    W⁺ = W + (S Hᵀ - ridge W) (H Hᵀ + ridge I)⁻¹,

and likewise for H.  S is zero at missing entries, so the same steps serve dense, masked and sparse
data.  In this form a small change of W has no rounding error from the size of W.

`EverywhereSweep` imposes T = WH on every entry, as the paper does, and `ObservedSweep` on the
observed entries alone.  The loss does not depend on the other entries, so the minimum is the same,
but the steps of the latter are longer: with the constraint on every entry, a step covers the
observed fraction of the distance alone.  The cost is a small least-squares problem for each row and
each column.  With sums over the observed entries of row i,

    w⁺ = w + (Σ h_j h_jᵀ + ridge I)⁻¹ (Σ s_ij h_j - ridge w),

and likewise for each column, with the new W.  For Identity + Frobenius and ρ = 1 this is
alternating least squares.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.machine import map_and_add
from nmd_lab.data.entries import FloatArray
from nmd_lab.model.model import Model

from .products import MIN_SHARE_ENTRIES, Block, CsrStorage, Storage, products_of_blocks
from .row_steps import (
    ConstrainedColumns,
    Ridge,
    RowSolver,
    chunk_of_rows,
    chunks_of_columns,
    penalty_of,
    row_sums,
    shares_of_rows,
    solver_for,
    update_rows,
)

RowStep = Callable[[Block, FloatArray, FloatArray], None]
"""Function of a block, its S and StW.  It computes the block's rows of the next W.  If the H-step
needs Sᵀ W, it adds the contribution of the block to StW."""

N_COUPLED = 3  # steps of coupled rows on the observed entries, each a pass over the data


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
    dual : float
        ‖T - T_previous‖, or ‖Wᵀ(T - T_previous)‖ if it is projected.
    """

    W: FloatArray
    StW: FloatArray
    data_term: float = math.nan
    primal: float = math.nan
    change: float = math.nan
    dual: float = math.nan


@dataclass(eq=False)
class Sweep:
    """The pass over all rows; subclasses add the factor steps.

    Attributes
    ----------
    entries : StoredEntries
        The data.
    state : Entries
        State of the next steps in addition to W, H and the last result: T and U.
    projected : bool
        Whether the dual residual is that of the paper (`PenaltyRule`).
    """

    entries: Any
    state: Any
    ridge_W: Ridge
    ridge_H: Ridge
    solved_W: slice
    solved_H: slice
    threads: int = 1
    W_constraint: ConstrainedColumns | None = None
    H_constraint: ConstrainedColumns | None = None
    projected: bool = False

    def __post_init__(self) -> None:
        """Take the passes over the entries, and set the number of parts of the rows."""
        self.storage, self.device = self.entries.storage, self.entries.device
        self.parts = number_of_shares(self.storage, self.threads, self.entries.model)
        limited = self.entries.limits is not None
        self.update_pass = self.device.passes(self.entries.model, limited=limited).update

    def update_T_and_W(
        self, W: FloatArray, H: FloatArray, penalty: float, *, update: bool = True
    ) -> SweepResult:
        """Update T and U at A = WH if they are to be updated, then take the next W-step."""
        next_W = W.copy()
        row_step = self.row_step(W, H, penalty, next_W)
        StW, CtW, sums = self.over_rows(W, H, penalty, row_step, update=update)
        result = SweepResult(next_W, StW)
        if update:
            self._set_residuals(result, CtW, sums)
        if self.W_constraint is not None and self.W_constraint.couples_rows:
            self._couple_rows(result, W, H, penalty)
        return result

    def update_H(
        self, result: SweepResult, W: FloatArray, H: FloatArray, penalty: float
    ) -> FloatArray:
        """Return the next H after the pass that was made with W and H."""
        raise NotImplementedError

    def rescale(self, factor: float) -> None:
        """Multiply U = Λ/ρ by ρ_old / ρ_new."""
        for block in self.storage.blocks():
            self.state.U[block.entries] *= factor

    def ridge_term(self, W: FloatArray, H: FloatArray) -> float:
        """Return ridge and penalties of what is solved for in W and H, a term of the objective."""
        columns = penalty_of(H[self.solved_H].T, self.ridge_H, self.H_constraint)
        return self._ridge_of_rows(W) + columns

    def _ridge_of_rows(self, W: FloatArray) -> float:
        """Return ridge and penalty of what is solved for in W."""
        return penalty_of(W[:, self.solved_W], self.ridge_W, self.W_constraint)

    def over_rows(
        self, W: FloatArray, H: FloatArray, penalty: float, row_step: RowStep, *, update: bool
    ) -> tuple[FloatArray, ...]:
        """Make the pass over the rows: T and U if they are to be updated, and a step of rows.

        Returned are StW, Wᵀ (T - T_previous), transposed, if it is projected, and the sums.
        """
        H_packed = self.storage.pack(H)

        def share(index: int) -> tuple[FloatArray, ...]:
            rank, n = H.shape
            StW, sums = np.zeros((n, rank), H.dtype), np.zeros(4)
            CtW = np.zeros((n if self.projected else 0, rank), H.dtype)
            for block, S in products_of_blocks(self.storage, W, H_packed, index, self.parts):
                if update:
                    found, change = self.update(block.entries, S, penalty)
                    sums += found
                    if self.projected:
                        self.storage.add_StW(block, change, W, CtW)
                else:
                    self.keep(block.entries, S)
                if self.state.S is not None:  # the steps need it again
                    self.state.S[block.entries] = S
                row_step(block, S, StW)
            return StW, CtW, sums

        return share(0) if self.parts == 1 else map_and_add(share, self.parts)

    def update(
        self, entries: slice, A: FloatArray, penalty: float
    ) -> tuple[tuple[float, ...], Any]:
        """Update T and U of a block, and turn A = WH into S = T + U - A.

        Returned are the sums of the loss and of the squares of T - WH, T - T_previous and, if
        T = WH beyond the entries, the change of WH; and, if it is projected, T - T_previous, less
        this change.
        """
        state, T, shift = self.state, self.state.T[entries], 0.0
        before, shifted = 1 * T if self.projected else None, 0.0
        if state.previous_A is not None:
            shift = A - state.previous_A[entries]
            shifted = float(shift @ shift)
            state.previous_A[entries] = A
        data = self.entries.of_block(entries, A)
        sums = self.update_pass(*data, T, state.U[entries], penalty)
        return (*sums, shifted), None if before is None else T - before - shift

    def keep(self, entries: slice, A: FloatArray) -> None:
        """Turn A = WH of a block into S = T + U - A, without an update of T and U.

        Where nothing is observed, T becomes A: at the start, A has the offsets, and T is still 0.
        """
        weights, state, T = self.entries.weights_of(entries), self.state, self.state.T[entries]
        if weights is not None:
            T[weights == 0] = A[weights == 0]
        if state.previous_A is not None:
            state.previous_A[entries] = A
        A *= -1
        A += T
        A += state.U[entries]

    def _couple_rows(
        self, result: SweepResult, W: FloatArray, H: FloatArray, penalty: float
    ) -> None:
        """Take the W-step under a constraint that couples the rows, after the pass."""
        raise NotImplementedError

    def _solver_of_rows(self, H: FloatArray, penalty: float) -> RowSolver:
        """Return the finish of the W-step, with the normal matrix of all rows."""
        partners = H[self.solved_W]
        ridge = self.ridge_W(partners, penalty)
        return solver_for(self.W_constraint, partners @ partners.T, ridge, penalty)

    def row_step(self, W: FloatArray, H: FloatArray, penalty: float, next_W: FloatArray) -> RowStep:
        """Return the function that computes the rows of the next W."""
        raise NotImplementedError

    def _set_residuals(self, result: SweepResult, CtW: FloatArray, sums: FloatArray) -> None:
        """Compute the residuals from the sums of all blocks."""
        result.data_term = float(sums[0])
        result.primal, result.change = math.sqrt(sums[1]), math.sqrt(sums[2])
        result.dual = float(np.linalg.norm(CtW)) if self.projected else result.change


def number_of_shares(storage: Storage, threads: int, model: Model) -> int:
    """Return the number of parts of the rows: at most one for each thread, and none too small."""
    if storage.device.name:  # PyTorch has threads of its own
        return 1
    work = 8 if model.has_classes else 1  # T-updates of classes and levels take longer
    return max(1, min(threads, work * storage.n_entries // MIN_SHARE_ENTRIES))


@dataclass(eq=False)
class EverywhereSweep(Sweep):
    """Algorithm 1: T = WH is imposed on every entry, and one r x r matrix serves all rows.

    W ← Z Hᵀ (H Hᵀ + ridge I)⁻¹ and H ← (WᵀW + ridge I)⁻¹ Wᵀ Z.  Where nothing is stored, T = WH at
    all times, so the residuals there follow from the change of WH.  This is ΔW H + W⁺ ΔH, whose
    norm follows from r x r matrices, without WH itself.

    Attributes
    ----------
    product_change : tuple of float and ndarray (rank, n), or None
        ‖W⁺H⁺ - WH‖² and W⁺ᵀ(W⁺H⁺ - WH) on all entries since the last pass.
    """

    empty_columns: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))
    product_change: tuple[float, FloatArray] | None = None

    def __post_init__(self) -> None:
        """Prepare the changes of WH, where T = WH beyond the stored entries."""
        super().__post_init__()
        if not self.storage.complete and self.state.previous_A is None:
            self.state.previous_A = self.device.zeros(self.state.T.shape, self.entries.dtype)

    def row_step(self, W: FloatArray, H: FloatArray, penalty: float, next_W: FloatArray) -> RowStep:
        """Return the function that computes the rows of the next W."""
        solved, H_packed = self.solved_W, self.storage.pack(H)
        improve = self._solver_of_rows(H, penalty)
        coupled = self.W_constraint is not None and self.W_constraint.couples_rows

        def row_step(block: Block, S: FloatArray, StW: FloatArray) -> None:
            gradient = self.storage.times_Ht(block, S, H_packed)[:, solved]
            if coupled:  # `_couple_rows` needs the gradients of all rows
                next_W[block.rows, solved] = gradient
                return
            next_W[block.rows, solved] = improve(W[block.rows, solved], gradient)
            self.storage.add_StW(block, S, next_W, StW)

        return row_step

    def _couple_rows(
        self, result: SweepResult, W: FloatArray, H: FloatArray, penalty: float
    ) -> None:
        """Take the W-step under a constraint that couples the rows, and a pass for Sᵀ W."""
        solved, improve = self.solved_W, self._solver_of_rows(H, penalty)
        result.W[:, solved] = improve(W[:, solved], result.W[:, solved])

        def row_step(block: Block, S: FloatArray, StW: FloatArray) -> None:
            self.storage.add_StW(block, S, result.W, StW)

        result.StW, *_ = self.over_rows(W, H, penalty, row_step, update=False)

    def update_H(
        self, result: SweepResult, W: FloatArray, H: FloatArray, penalty: float
    ) -> FloatArray:
        """Return the next H after the pass that was made with W and H."""
        solved, empty, constrained = self.solved_H, self.empty_columns, self.H_constraint
        gram, cross, squares = self._products_of_rows(result, W)
        ridge = self._ridge_of_columns(result, penalty)
        gradient = result.StW.T[solved] - cross[solved] @ H
        next_H, own_gram = H.copy(), gram[solved, solved]
        improve = solver_for(constrained, own_gram, ridge, penalty)
        next_H[solved] = improve(H[solved].T, gradient.T).T
        if constrained is None or not constrained.couples_rows:
            next_H[solved, empty] = H[solved, empty]
        if squares is not None:  # of [ΔW, W⁺] and [H; ΔH]
            left, right = np.block([[squares, cross.T], [cross, gram]]), np.vstack([H, next_H - H])
            self.product_change = float(np.sum(left * (right @ right.T))), left[len(H) :] @ right
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

    def _set_residuals(self, result: SweepResult, CtW: FloatArray, sums: FloatArray) -> None:
        if self.product_change is not None:
            squared_norm, change = self.product_change
            sums[2] = max(sums[2] + squared_norm - sums[3], 0.0)
            CtW = CtW + change.T if self.projected else CtW
        super()._set_residuals(result, CtW, sums)


class ObservedSweep(Sweep):
    """Small least-squares problems, one for each row and each column."""

    storage: CsrStorage

    def __post_init__(self) -> None:
        """Prepare the pass over the columns."""
        super().__post_init__()
        state = self.state
        if state.S is None:
            state.S = self.device.zeros(state.T.shape, state.T.dtype)
        self.of_rows = chunk_of_rows(self.storage)
        self.of_columns = chunks_of_columns(self.storage, len(self.ridge_H.alphas), self.device)
        self.shares = shares_of_rows(self.of_columns, self.parts)

    def row_step(self, W: FloatArray, H: FloatArray, penalty: float, next_W: FloatArray) -> RowStep:
        """Return the function that computes the rows of the next W."""
        ridge, constrained = self.ridge_W(H[self.solved_W], penalty), self.W_constraint
        partners = self.storage.pack(H[self.solved_W])

        def row_step(block: Block, S: FloatArray, StW: FloatArray) -> None:
            if constrained is not None and constrained.couples_rows:
                return  # `_couple_rows` takes that step
            where = ridge, penalty, block.rows, self.solved_W, next_W
            update_rows(constrained, [self.of_rows], self.state.S, partners, *where)

        return row_step

    def _couple_rows(
        self, result: SweepResult, W: FloatArray, H: FloatArray, penalty: float
    ) -> None:
        """Take the W-step under a constraint that couples the rows; S stays that of W and H.

        Each step puts WH in the place of what is not observed, which lowers the sum over the
        observed entries.
        """
        W, solved, storage, S = result.W, self.solved_W, self.storage, self.state.S[:].copy()
        partners, improve = storage.pack(H[solved]), self._solver_of_rows(H, penalty)
        for _ in range(N_COUPLED):
            before, blocks = W.copy(), storage.blocks()
            slopes = [storage.times_Ht(each, S[each.entries], partners) for each in blocks]
            W[:, solved] = improve(W[:, solved], np.concatenate(slopes))
            self._subtract(W - before, H, S)

    def update_H(
        self, result: SweepResult, W: FloatArray, H: FloatArray, penalty: float
    ) -> FloatArray:
        """Return the next H after the pass that was made with W and H."""
        next_W, solved, constrained = result.W, self.solved_H, self.H_constraint
        partners, next_Ht = np.ascontiguousarray(next_W[:, solved]), self.storage.pack(H).copy()
        ridge = self.ridge_H(partners, penalty)
        self._subtract(next_W - W, H, self.state.S)
        if constrained is not None and constrained.couples_rows:
            improve = solver_for(constrained, partners.T @ partners, ridge, penalty)
            for _ in range(N_COUPLED):
                before, slopes = next_Ht.copy(), np.zeros((len(next_Ht), ridge.size), H.dtype)
                for block in self.storage.blocks():
                    self.storage.add_StW(block, self.state.S[block.entries], partners, slopes)
                next_Ht[:, solved] = improve(next_Ht[:, solved], slopes)
                self._subtract(next_W, (next_Ht - before).T, self.state.S)
            return np.ascontiguousarray(next_Ht.T)

        def solve_columns(index: int) -> tuple[FloatArray, ...]:
            where = ridge, penalty, self.shares[index], solved, next_Ht
            update_rows(constrained, self.of_columns, self.state.S[:], partners, *where)
            return ()

        map_and_add(solve_columns, self.parts)
        return np.ascontiguousarray(next_Ht.T)

    def column_sums(
        self, change: FloatArray, W: FloatArray, H: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the sums over the rows with which the H-step could be solved elsewhere."""
        S, partners = self.state.S[:].copy(), np.ascontiguousarray(W[:, self.solved_H])
        self._subtract(change, H, S)
        return row_sums(self.of_columns, S, partners, slice(0, H.shape[1]))

    def _subtract(self, W: FloatArray, H: FloatArray, S: FloatArray) -> None:
        """Subtract the product of two factors from S."""
        storage, H_packed = self.storage, self.storage.pack(H)

        def subtract(index: int) -> tuple[FloatArray, ...]:
            for block, product in products_of_blocks(storage, W, H_packed, index, self.parts):
                S[block.entries] -= product
            return ()

        map_and_add(subtract, self.parts)
