"""The augmented Lagrangian with T eliminated, a smooth function of W and H alone.

For fixed multipliers U and penalty ρ the best T is the T-update, T = prox(WH - U), so

    L(W, H) = Σ min over t of d(x, f(t)) + ρ/2 (t - v)²  + alpha/2 (‖W‖² + ‖H‖²),    V = WH - U,

is the Moreau envelope of the loss, entry by entry.  Its gradient with respect to WH is ρ (V - T):
whatever f and d are, kinks, flat pieces and poles included, the exact T-update is also an exact
gradient, so that methods for smooth functions serve every pair.  Where the loss is flat in WH (a
clipped entry, a dead ReLU) a small ρ still pulls it the right way.

With U = 0 and a large ρ, L is the objective itself; U makes it exact at any ρ (the method of
multipliers).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nmd_lab._numba import compile_kernel, compile_scalar
from nmd_lab.data.base import FloatArray, Observations
from nmd_lab.model.proximal import Pair, Structure, compile_t_update
from nmd_lab.solver.storage import DenseLayout, SparseLayout
from nmd_lab.solver.stored_entries import Entries
from nmd_lab.solver.sweep import in_parallel, shares


class Evaluation(NamedTuple):
    """One pass over the data, at some W and H.

    Attributes
    ----------
    value : float
        L less the ridge.
    data_term : float
        Weighted loss of f(WH).
    primal : float
        ‖T - WH‖.
    gradient_W, gradient_H : ndarray (m, rank), (rank, n)
        Of L less the ridge.
    """

    value: float
    data_term: float
    primal: float
    gradient_W: FloatArray
    gradient_H: FloatArray


class Envelope(Entries):
    """L and its gradient, one block of rows after the other.

    Parameters
    ----------
    observations : Observations
        The data.
    pair : Pair
        The nonlinearity and the loss.
    layout : DenseLayout or SparseLayout
        Where the entries are.
    threads : int
        Shares of the rows that are worked on at the same time.
    """

    def __init__(
        self,
        observations: Observations,
        pair: Pair,
        layout: DenseLayout | SparseLayout,
        threads: int = 1,
    ) -> None:
        super().__init__(observations, pair)
        self.layout = layout
        self.parts = shares(layout, threads)
        self.U = np.zeros(layout.n_entries, dtype=observations.values.dtype)
        self.kernel = envelope_kernel(pair, self.kind)
        self.curvature_kernel = curvature_kernel(pair, self.kind)

    def evaluate(
        self, W: FloatArray, H: FloatArray, penalty: float, update_from: float = 0.0
    ) -> Evaluation:
        """Return L and its gradient.

        Parameters
        ----------
        W, H : ndarray (m, rank), (rank, n)
            Where.
        penalty : float
            ρ.
        update_from : float
            If positive, the multipliers are first updated at W and H with this penalty,
            U ← T - V.
        """
        right, gradient_W = self.layout.prepare(H), np.empty_like(W)

        def share(part: int) -> tuple[FloatArray, FloatArray]:
            gradient, sums = np.zeros((H.shape[1], H.shape[0]), H.dtype), np.zeros(3)
            buffer = np.empty(self.layout.block_size, H.dtype)
            for block in self.layout.blocks(part, self.parts):
                entries = block.entries
                G = buffer[: entries.stop - entries.start]
                self.layout.products(block, W, right, G)
                data = (self.x[entries], G, self.weights_of(entries), self.U[entries])
                sums += self.kernel(*data, penalty, update_from, *self.arguments)
                gradient_W[block.rows] = self.layout.times_Ht(block, G, right)
                self.layout.add_StW(block, G, W, gradient)
            return gradient, sums

        gradient_H, (value, data_term, squares) = in_parallel(share, self.parts)
        numbers = (float(value), float(data_term), float(np.sqrt(squares)))
        return Evaluation(*numbers, gradient_W, np.ascontiguousarray(gradient_H.T))

    def normal_matrices(
        self, W: FloatArray, H: FloatArray, penalty: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the blocks on the diagonal of the Hessian of L, as far as L is quadratic in WH.

        Returns
        -------
        tuple of ndarray (m, rank, rank), (n, rank, rank)
            Σ c_ij h_j h_jᵀ for each row and Σ c_ij w_i w_iᵀ for each column, where c_ij, between 0
            and ρ, is how L curves in (WH)_ij.
        """
        rank = H.shape[0]
        right, outer_H = self.layout.prepare(H), _outer_products(H.T)
        outer_right, outer_W = self.layout.prepare(outer_H.T), _outer_products(W)
        rows = np.empty((W.shape[0], rank * rank), W.dtype)

        def share(part: int) -> tuple[FloatArray, ...]:
            columns = np.zeros((H.shape[1], rank * rank), H.dtype)
            buffer = np.empty(self.layout.block_size, H.dtype)
            for block in self.layout.blocks(part, self.parts):
                entries = block.entries
                C = buffer[: entries.stop - entries.start]
                self.layout.products(block, W, right, C)
                data = (self.x[entries], C, self.weights_of(entries), self.U[entries])
                self.curvature_kernel(*data, penalty, *self.arguments)
                rows[block.rows] = self.layout.times_Ht(block, C, outer_right)
                self.layout.add_StW(block, C, outer_W, columns)
            return (columns,)

        (columns,) = in_parallel(share, self.parts)
        return rows.reshape(-1, rank, rank), columns.reshape(-1, rank, rank)

    def forget(self) -> None:
        """Set the multipliers back to zero."""
        self.U[:] = 0


def envelope_kernel(pair: Pair, kind: str) -> Callable[..., tuple[float, float, float]]:
    """Return the compiled pass over a flat block, for arguments of one kind.

    It takes (x, a, weights, u, penalty, update_from, *pair.arguments, floor), turns `a` into the
    gradient of L and returns the sums of L, of the loss of f(a) and of (t - a)².
    """
    return _envelope_kernel(pair.structure, f"envelope_{pair.name}_{kind}", pair.is_ours)


@cache
def _envelope_kernel(structure: Structure, name: str, cached: bool) -> Callable[..., Any]:
    solve = compile_t_update(structure)
    loss = compile_scalar(structure[1].value)
    forward = compile_scalar(structure[0].forward)

    def evaluate(  # type: ignore[no-untyped-def]
        x, a, weights, u, penalty, update_from, pieces, pf, pd, floor
    ):
        value, data_term, squares = 0.0, 0.0, 0.0
        for i in range(x.size):
            weight = 1.0 if weights is None else 1.0 * weights[i]
            if weight == 0.0:
                a[i] = 0.0
                continue
            if update_from > 0.0:
                v = a[i] - u[i]
                t = solve(v, x[i], update_from / weight, pieces, pf, pd)
                u[i] = (t - v) * (update_from / penalty)
            v = a[i] - u[i]
            t = solve(v, x[i], penalty / weight, pieces, pf, pd)
            data_term += weight * loss(x[i], max(forward(a[i], pf), floor), pd)
            value += weight * loss(x[i], max(forward(t, pf), floor), pd)
            value += 0.5 * penalty * (t - v) * (t - v)
            squares += (t - a[i]) * (t - a[i])
            a[i] = penalty * (v - t)
        return value, data_term, squares

    return compile_kernel(evaluate, name, cached=cached)


def curvature_kernel(pair: Pair, kind: str) -> Callable[..., None]:
    """Return the compiled map of a flat block to how L curves, for arguments of one kind.

    It takes (x, a, weights, u, penalty, *pair.arguments, floor) and overwrites `a`.
    """
    return _curvature_kernel(pair.structure, f"curvature_{pair.name}_{kind}", pair.is_ours)


@cache
def _curvature_kernel(structure: Structure, name: str, cached: bool) -> Callable[..., Any]:
    solve = compile_t_update(structure)

    def curvature(x, a, weights, u, penalty, pieces, pf, pd, floor):  # type: ignore[no-untyped-def]
        for i in range(x.size):
            weight = 1.0 if weights is None else 1.0 * weights[i]
            if weight == 0.0:
                a[i] = 0.0
                continue
            v = float(a[i]) - float(u[i])
            step = 1e-4 * (abs(v) + abs(float(x[i])) + 1e-100)
            rise = solve(v + step, float(x[i]), penalty / weight, pieces, pf, pd) - solve(
                v, float(x[i]), penalty / weight, pieces, pf, pd
            )
            a[i] = penalty * min(max(1.0 - rise / step, 0.0), 1.0)

    return compile_kernel(curvature, name, cached=cached)


def _outer_products(rows: FloatArray) -> FloatArray:
    """Return the outer product of each row with itself, flat."""
    products: FloatArray = (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
    return products


def natural_penalty(observations: Observations, pair: Pair) -> float:
    """Return the ρ at which the loss and the constraint weigh the same in data such as these.

    It compares the loss of X against its mean with half the squared distance of the starting T
    from its mean: 1 for ReLU + Frobenius whatever the scale, 1 over the mean of X for KL, and so
    on.
    """
    x, weights = observations.observed()
    T = np.asarray(pair.nonlinearity.preimage(x), dtype=np.float64)
    loss = float(np.sum(weights * pair.loss(x, np.average(x, weights=weights))))
    spread = 0.5 * float(np.sum(weights * np.square(T - np.average(T, weights=weights))))
    ratio = loss / spread if spread > 0 else 0.0
    return ratio if 0 < ratio < math.inf else 1.0
