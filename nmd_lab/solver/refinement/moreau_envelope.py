"""The augmented Lagrangian with T eliminated, a continuous function of W and H alone.

For fixed multipliers U and penalty ρ the best T is the T-update, T = prox(WH - U), so

    L(W, H) = Σ min over t of d(x, f(t)) + ρ/2 (t - v)²  + alpha/2 (‖W‖² + ‖H‖²),    V = WH - U,

is the Moreau envelope of the loss, entry by entry.  Its gradient with respect to WH is ρ (V - T).
The exact T-update therefore gives an exact gradient, even if f and d have kinks, flat pieces and
poles, except where two minimisers T tie: there L has a kink that points upwards, which a descent
leaves (ReLU + Frobenius, x = ρ = 1: the slope jumps from 0 to -0.707 at v = 1 - √2).  Where the
loss is flat in WH (a clipped entry, a dead ReLU), a small ρ still gives a gradient in the right
direction.

With U = 0 and a large ρ, L is close to the objective itself.  With the right U, both have the same
stationary points at any ρ (the method of multipliers).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from nmd_lab._runtime.machine import map_and_add
from nmd_lab.data.entries import FloatArray
from nmd_lab.model.model import Model
from nmd_lab.solver.split_variable import StoredEntries
from nmd_lab.solver.storage import products_of_blocks
from nmd_lab.solver.sweep import number_of_shares


class Evaluation(NamedTuple):
    """The result of one pass over the data at some W and H.

    Attributes
    ----------
    value : float
        L without the ridge.
    data_term : float
        Weighted loss of f(WH).
    primal : float
        ‖T - WH‖.
    gradient_W, gradient_H : ndarray (m, rank) and (rank, n)
        Gradient of L without the ridge.
    """

    value: float
    data_term: float
    primal: float
    gradient_W: FloatArray
    gradient_H: FloatArray


class MoreauEnvelope:
    """The function L and its gradient, computed block by block of rows.

    Attributes
    ----------
    entries : StoredEntries
        The data.
    size : int
        Number of stored entries.
    U : array (n_stored,) on the device, or None
        Multipliers; None as long as they are all zero.
    """

    def __init__(self, entries: StoredEntries, threads: int = 1) -> None:
        self.entries, self.storage, self.device = entries, entries.storage, entries.device
        self.size = self.storage.n_entries
        self.parts = number_of_shares(self.storage, threads, entries.model)
        self.U: Any = None
        self._none = self.device.empty((self.storage.block_size,), entries.dtype)
        self._none[:] = 0
        self.envelope_pass = self.device.envelope_pass(entries.model, entries.kind)

    def evaluate(
        self, W: FloatArray, H: FloatArray, penalty: float, update_from: float = 0.0
    ) -> Evaluation:
        """Return L and its gradient."""
        H_packed, gradient_W = self.storage.pack(H), np.empty_like(W)
        if update_from and self.U is None:
            self.U = self.device.zeros((self.size,), self.entries.dtype)

        def share(index: int) -> tuple[FloatArray, FloatArray]:
            gradient, sums = np.zeros((H.shape[1], H.shape[0]), H.dtype), np.zeros(3)
            for block, G in products_of_blocks(self.storage, W, H_packed, index, self.parts):
                numbers = (penalty, update_from, self.entries.numbers)
                sums += self.envelope_pass(*self._data(block.entries, G), *numbers)
                gradient_W[block.rows] = self.storage.times_Ht(block, G, H_packed)
                self.storage.add_StW(block, G, W, gradient)
            return gradient, sums

        gradient_H, (value, data_term, squares) = map_and_add(share, self.parts)
        numbers = (float(value), float(data_term), float(np.sqrt(squares)))
        return Evaluation(*numbers, gradient_W, np.ascontiguousarray(gradient_H.T))

    def normal_matrices(
        self, W: FloatArray, H: FloatArray, penalty: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the diagonal blocks of the Gauss-Newton matrix of L, without the ridge."""
        H_packed, outer_H = self.storage.pack(H), outer_products(H.T)
        outer_H_packed, outer_W = self.storage.pack(outer_H.T), outer_products(W)
        rows = np.empty(outer_W.shape, W.dtype)

        def share(index: int) -> tuple[FloatArray, ...]:
            columns = np.zeros(outer_H.shape, H.dtype)
            for block, C in products_of_blocks(self.storage, W, H_packed, index, self.parts):
                self._to_curvature(block.entries, C, penalty)
                rows[block.rows] = self.storage.times_Ht(block, C, outer_H_packed)
                self.storage.add_StW(block, C, outer_W, columns)
            return (columns,)

        (columns,) = map_and_add(share, self.parts)
        return rows, columns

    def _to_curvature(self, entries: slice, A: FloatArray, penalty: float) -> None:
        """Turn A = WH of a block into the second derivative of L."""
        x, _, weights, *marks, U = self._data(entries, A)
        numbers = (penalty, 0.0, self.entries.numbers)
        size = abs(A - U) + size_of_T(x, self.entries.model)
        if weights is not None:
            self.device.fill(size, abs(A), weights == 0)  # x may be anything there

        def to_gradient(A: FloatArray) -> None:
            self.envelope_pass(x, A, weights, *marks, U, *numbers)

        to_curvature(to_gradient, A, size, penalty)

    def _data(self, entries: slice, A: FloatArray) -> tuple[Any, ...]:
        """Return the arrays of a block, as passes take them."""
        U = self._none[: len(A)] if self.U is None else self.U[entries]
        return *self.entries.of_block(entries, A), U

    def forget(self) -> None:
        """Set the multipliers back to zero."""
        self.U = None


def to_curvature(
    to_gradient: Callable[[FloatArray], Any], A: FloatArray, size: Any, penalty: float
) -> None:
    """Turn A into the slope of a gradient, and `size` into the step: small beside what it was."""
    size += 1e-30
    size *= 1e-4
    there = A + size
    size[:] = there
    size -= A
    to_gradient(A)
    to_gradient(there)
    there -= A
    there /= size
    A[:] = there.clip(0.0, penalty)


def size_of_T(x: FloatArray, model: Model) -> Any:
    """Return the size that T has at entries x, 1 where each kind has a unit of its own."""
    return 1.0 if model.is_mixed else abs(x) ** (1.0 / (model.degrees[0] or 1))


def outer_products(rows: FloatArray) -> FloatArray:
    """Return the lower triangle of the outer product of each row with itself, flat."""
    i, j = np.tril_indices(rows.shape[1])
    return np.asarray(np.take(rows, i, axis=1) * np.take(rows, j, axis=1))


def symmetric(triangles: FloatArray, size: int) -> FloatArray:
    """Return the symmetric matrices (..., size, size) whose lower triangles these rows hold."""
    i, j = np.tril_indices(size)
    position = np.empty((size, size), dtype=np.intp)
    position[i, j] = position[j, i] = np.arange(i.size)
    return np.asarray(np.take(triangles, position, axis=1))
