"""The descent of a factor under a constraint for a divergence, and how far from optimal one is.

The Kullback-Leibler divergence with nonnegative factors: descent number by number.

As a function of one number z of W, the divergence of a row has the slope C - Σ x_j h_j / y_j(z),
with y = WH and C = Σ h_j.  The sum is a sum of poles.  Each step replaces it by one pole,
S / (z + β), with its value and its slope, and solves for z: a step longer than that of Newton's
method where z grows, and shorter where z shrinks.  It is exact if one entry of X depends on the
number.  Only positive x enter the sum, so zeros cost nothing.

Compare C.-J. Hsieh and I. S. Dhillon, "Fast coordinate descent methods with variable selection for
non-negative matrix factorization", 2011, who take Newton steps.

How far constrained factors are from the first-order conditions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nmd_lab._runtime.compiler import cached_kernel
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import BLOCK
from nmd_lab.model.losses import KL_FLOOR
from nmd_lab.solver.problem import Problem

from .least_squares import Descended
from .steps import ConstrainedColumns, penalty_of, proximal_move


@dataclass
class DivergenceState:
    """W and Hᵀ in double precision."""

    W: NDArray[np.float64]
    Ht: NDArray[np.float64]


class DivergenceDescent:
    """Descent on the divergence, number by number; see `Descent`."""

    def __init__(self, problem: Problem, rank: int) -> None:
        observations = problem.observations
        self.loss, self.dtype, shape = problem.model.loss, observations.dtype, observations.shape
        rows = observations.csr_rows(slice(0, shape[0]))
        self.complete = observations.absent_are_zeros or rows.indices.size == shape[0] * shape[1]
        plain = bool(np.all(rows.weights == 1)) if rows.weights.size else True
        self.everywhere = self.complete and plain
        weights = csr_array((rows.weights, rows.indices, rows.indptr), shape=shape)
        self.weights = None if self.everywhere else (weights, weights.T.tocsr())
        keep = rows.values > 0
        pointers = np.append(0, np.cumsum(keep))[rows.indptr]
        X = csr_array((rows.values[keep], rows.indices[keep], pointers), shape=shape)
        factors = rows.weights[keep]
        self.constant = float(np.sum(factors * (X.data * np.log(X.data) - X.data)))
        of_columns = csr_array((factors, X.indices, X.indptr), shape=shape).T.tocsr().data
        self.sides = (_Side(X, factors), _Side(X.T.tocsr(), of_columns))
        self.W_constraint, self.H_constraint = problem.constrained_columns(rank)
        self.ridge_W, self.ridge_H = problem.ridges(rank)

    def begin(self, W_aug: FloatArray, H_aug: FloatArray) -> DivergenceState:
        """Return the state of a descent that begins at feasible factors."""
        W = np.array(W_aug, dtype=np.float64, order="C")
        return DivergenceState(W, np.array(H_aug.T, dtype=np.float64, order="C"))

    def step(self, state: DivergenceState) -> Descended:
        """Do one step in W and in H, and return the factors."""
        W, Ht = state.W, state.Ht
        for side, rows, partners, ridge, of in (
            (0, W, Ht, self.ridge_W, self.W_constraint),
            (1, Ht, W, self.ridge_H, self.H_constraint),
        ):
            assert of is not None
            slopes = self._slopes(side, partners)
            weight = (of.entrywise.weight if of.entrywise else 0.0) or 0.0
            logs = self.sides[side].improve(rows, partners, slopes + weight, ridge.alphas)
        data_term = self.constant - logs + float(np.sum(Ht * self._slopes(1, W)))
        total = data_term + penalty_of(W, self.ridge_W, self.W_constraint)
        total += penalty_of(Ht, self.ridge_H, self.H_constraint)
        H = np.ascontiguousarray(Ht.T, dtype=self.dtype)
        return Descended(W.astype(self.dtype), H, max(data_term, 0.0), total)

    def gradients(self, W: FloatArray, H: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradients of the divergence in W (m, rank) and in Hᵀ (n, rank)."""
        factors = W.astype(np.float64), H.T.astype(np.float64)
        in_W, in_H = (
            self._slopes(side, factors[1 - side])
            - self.sides[side].ratios(factors[side], factors[1 - side]) @ factors[1 - side]
            for side in (0, 1)
        )
        return in_W, in_H

    def _slopes(self, side: int, partners: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted sums of the other factor, for each row or for all at once."""
        if self.weights is None:
            return np.asarray(partners.sum(axis=0)[None, :])
        return np.asarray(self.weights[side] @ partners)


class _Side:
    """The positive entries of X by rows (or by columns), and the steps of these rows."""

    def __init__(self, X: Any, weights: NDArray[np.float64]) -> None:
        integer = np.int32 if max(X.data.size, *X.shape) < 2**31 else np.int64
        self.indptr, self.indices = X.indptr.astype(integer), X.indices.astype(integer)
        self.x, self.weighted = X.data, X.data * weights

    def ratios(self, rows: FloatArray, partners: FloatArray) -> Any:
        """Return weight x / y at the positive entries, as a sparse matrix."""
        of_entry = np.repeat(np.arange(len(rows)), np.diff(self.indptr))
        y = np.empty(self.x.size)
        for first in range(0, y.size, BLOCK):
            chunk = slice(first, first + BLOCK)
            y[chunk] = np.einsum("ij,ij->i", rows[of_entry[chunk]], partners[self.indices[chunk]])
        ratios = self.weighted / np.maximum(y, KL_FLOOR * self.x)
        shape = len(rows), len(partners)
        return csr_array((ratios, self.indices, self.indptr), shape=shape)

    def improve(
        self,
        rows: NDArray[np.float64],
        partners: NDArray[np.float64],
        slopes: NDArray[np.float64],
        alphas: FloatArray,
    ) -> float:
        """Improve rows in place, and return Σ weight x log y at the end."""
        shared, of_components = len(slopes) == 1, np.ascontiguousarray(partners.T)
        entries = (self.indptr, self.indices, self.x, self.weighted)
        kernel = cached_kernel(_improve, f"divergence_rows_{self.indices.dtype}")
        return float(kernel(*entries, of_components, slopes, shared, alphas, KL_FLOOR, rows))


def _improve(indptr, indices, x, weighted, partners, slopes, shared, alphas, floor, rows):  # type: ignore[no-untyped-def]
    rank, longest = rows.shape[1], 0
    for i in range(rows.shape[0]):
        longest = max(longest, indptr[i + 1] - indptr[i])
    H, model = np.empty((rank, longest)), np.empty(longest)
    logs = 0.0
    for i in range(rows.shape[0]):
        begin, size = indptr[i], indptr[i + 1] - indptr[i]
        y, counts = model[:size], weighted[begin : begin + size]
        y[:] = 0.0
        for c in range(rank):
            w, h = rows[i, c], H[c]
            for k in range(size):
                h[k] = partners[c, indices[begin + k]]
                y[k] += w * h[k]
        for k in range(size):
            y[k] = max(y[k], floor * x[begin + k])
        for c in range(rank):
            slope, alpha, w, h = slopes[0 if shared else i, c], alphas[c], rows[i, c], H[c]
            value, decline = 0.0, 0.0
            for k in range(size):
                t = h[k] / y[k]
                value += counts[k] * t
                decline += counts[k] * t * t
            if value <= 0.0:
                new = 0.0 if slope + alpha > 0.0 else w
            else:
                beta, S = value / decline - w, value * value / decline
                linear, free = slope + alpha * beta, S - slope * beta
                root = math.sqrt(max(linear * linear + 4.0 * alpha * free, 0.0))
                new = 2.0 * free / max(linear + root, 1e-300)
                if new < 0.1 * w:  # an entry that depends on this number alone must not vanish
                    largest = 0.0
                    for k in range(size):
                        largest = max(largest, h[k] / y[k])
                    new = 0.1 * w if largest * w > 0.9 else max(new, 0.0)
            step = new - w
            if step != 0.0:
                rows[i, c] = new
                for k in range(size):
                    y[k] += step * h[k]
        for k in range(size):
            logs += counts[k] * math.log(y[k])
    return logs


def violation(
    factors: tuple[FloatArray, FloatArray],
    gradients: tuple[FloatArray, FloatArray],
    alphas: tuple[FloatArray, FloatArray],
    constrained: tuple[ConstrainedColumns | None, ConstrainedColumns | None],
    size: float,
) -> float:
    """Return the larger relative length of a proximal gradient step in W and in H.

    Factors are the solved columns of W and rows of H, (m, n_solved) and (n, n_solved), `gradients`
    those of the data term, and `size` is twice the size of the objective.
    """
    return max(
        relative_move(rows, gradient + ridge * rows, size or 1.0, of)
        for rows, gradient, ridge, of in zip(factors, gradients, alphas, constrained, strict=True)
    )


def relative_move(
    rows: FloatArray, gradient: FloatArray, size: float, constrained: ConstrainedColumns | None
) -> float:
    """Return the relative length of a proximal gradient step.

    Without a constraint it is ‖gradient‖ ‖rows‖ / size.
    """
    norm = float(np.linalg.norm(rows)) or 1.0
    length = norm**2 / size
    return float(np.linalg.norm(proximal_move(rows, gradient, length, constrained))) / norm
