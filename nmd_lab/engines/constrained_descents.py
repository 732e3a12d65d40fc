"""Descents of factors under constraints, where the objective is simple enough to need no split.

A descent has feasible factors.  Each step lowers the objective, or the descent takes it back.
`nmd_lab.engines.constrained` runs descents one after the other.

Least squares: alternating steps in W and H with extrapolation.  With Identity + Frobenius, complete
data and ρ = 1, Algorithm 1 has Z = T + U = X: it is alternating least squares, or, with nonnegative
factors, hierarchical alternating least squares (HALS).  Then T and U are not needed, and an
iteration costs two products with X.  Each factor is extrapolated along its last change; a step that
does not lower the objective is taken back (A. M. S. Ang and N. Gillis, "Accelerating nonnegative
matrix factorization algorithms using extrapolation", 2019).

The Kullback-Leibler divergence with nonnegative factors: descent number by number.  As a function
of one number z of W, the divergence of a row has the slope C - Σ x_j h_j / y_j(z), with y = WH and
C = Σ h_j.  The sum is a sum of poles.  Each step replaces it by one pole, S / (z + β), with its
value and its slope, and solves for z: a step longer than that of Newton's method where z grows, and
shorter where z shrinks.  It is exact if one entry of X depends on the number.  Only positive x
enter the sum, so zeros cost nothing.  Compare C.-J. Hsieh and I. S. Dhillon, "Fast coordinate
descent methods with variable selection for non-negative matrix factorization", 2011, who take
Newton steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nmd_lab._runtime.compiler import cached_kernel
from nmd_lab.data.entries import FloatArray
from nmd_lab.kernels.constrained_rows import ConstrainedColumns, penalty_of, proximal_move
from nmd_lab.kernels.products import CsrStorage
from nmd_lab.kernels.row_sums import shared_solver
from nmd_lab.model.loss import POISSON
from nmd_lab.model.positive import KL_FLOOR
from nmd_lab.problem.problem import Problem
from nmd_lab.problem.state import Iterate
from nmd_lab.request.constraints import is_nonnegative


class Descent(Protocol):
    """A descent on the objective of a problem."""

    def begin(self, W_aug: FloatArray, H_aug: FloatArray) -> Any:
        """Return the state of a descent that begins at feasible factors."""

    def step(self, state: Any) -> Iterate:
        """Do one step in W and in H, and return the factors of lowest objective since `begin`."""


def kind_of_descent(problem: Problem) -> str | None:
    """Return which descent goes with a problem: "squares", "divergence" or None.

    Both need data without limits.  Squares need complete data without weights, and constraints
    that hold row by row; the divergence needs nonnegative factors and no offsets.  A nonlinearity
    that is the identity for nonnegative WH counts as one.
    """
    model, constraints = problem.model, problem.constraints
    if model.is_mixed or problem.observations.limits is not None:
        return None
    f, loss = model.nonlinearity, model.loss
    both = is_nonnegative(constraints.W) and is_nonnegative(constraints.H)
    positive = both and problem.offset_columns.kind == "none"
    if not (f.form == "identity" or (positive and f.form in ("relu", "modulus"))):
        return None
    sides = problem.constrained_columns(1)
    if any(side is not None and side.couples_rows for side in sides):
        return None
    whole = not problem.sparse and problem.observations.weight_reader() is None
    if loss.squares and whole and not problem.observed_only:
        return "squares"
    entrywise = all(side is not None and side.entrywise is not None for side in sides)
    return "divergence" if loss.noise_model is POISSON and positive and entrywise else None


FIRST_FRACTION = 0.5  # first fraction of the last change that is added


@dataclass
class LeastSquaresState:
    """Factors, extrapolated factors, X Hᵀ, and how far the next step goes ahead."""

    W: FloatArray
    H: FloatArray
    ahead_W: FloatArray
    ahead_H: FloatArray
    XHt: FloatArray
    best: Iterate | None = None
    share: float = 0.0
    limit: float = 1.0
    steps: int = 0
    last_good: float = FIRST_FRACTION


class LeastSquaresDescent:
    """Alternating constrained least squares for a complete matrix; see `Descent`."""

    def __init__(self, problem: Problem, rank: int) -> None:
        observations, self.problem = problem.observations, problem
        self.envelope = problem.envelope()
        zeros = observations.absent_are_zeros
        self.X = observations.as_sparse().to_csr() if zeros else observations.values
        self.half_square = observations.sum_of(lambda x, weights: 0.5 * np.square(x))
        self.constrained, self.ridges = problem.constrained_columns(rank), problem.ridges(rank)
        self.solved = problem.offset_columns.solved(rank)
        eps = float(np.finfo(observations.dtype).eps)
        self.least_exact = 1e5 * eps  # of ‖X‖² / 2; below, residuals give the objective

    def begin(self, W_aug: FloatArray, H_aug: FloatArray) -> LeastSquaresState:
        """Return the state of a descent that begins at feasible factors."""
        return LeastSquaresState(W_aug, H_aug, W_aug, H_aug, self._times_Ht(H_aug))

    def step(self, state: LeastSquaresState) -> Iterate:
        """Do one step in W and in H, and return the factors of lowest objective."""
        state.steps += 1
        if state.steps == 3:  # the first ones find the scale of a random start
            state.share = FIRST_FRACTION
        W = self._next(0, state.ahead_W, state.ahead_H.T, state.XHt)
        ahead_W = self._ahead(0, state.W, W, state.share)
        XtW = self.X.T @ ahead_W
        Ht = self._next(1, state.ahead_H.T, ahead_W, XtW[:, self.solved[1]])
        H = np.ascontiguousarray(Ht.T)
        reached = self._descended(ahead_W, H, XtW)
        if state.best is not None and reached.objective > state.best.objective:
            state.limit, state.share = state.last_good, state.share / 1.5
            state.ahead_W, state.ahead_H = state.W, state.H
            state.XHt = self._times_Ht(state.H)
            return state.best
        state.ahead_H = np.ascontiguousarray(self._ahead(1, state.H.T, Ht, state.share).T)
        state.W, state.H, state.ahead_W = ahead_W, H, ahead_W
        state.XHt = self._times_Ht(state.ahead_H)
        if state.share:
            state.last_good = state.share
            state.share = min(state.limit, 1.05 * state.share)
            state.limit = min(1.0, 1.01 * state.limit)
        state.best = reached
        return reached

    def _next(
        self, side: int, rows: FloatArray, others: FloatArray, products: FloatArray
    ) -> FloatArray:
        """Return W (side 0) or Hᵀ after a step, given the other one and X times that."""
        solved, following = self.solved[side], np.array(rows, order="C")
        partners = others[:, solved]
        gram, ridge = others.T @ partners, self.ridges[side](partners, 1.0)
        improve = shared_solver(self.constrained[side], gram[solved], ridge, 1.0, sweeps=1)
        following[:, solved] = improve(following[:, solved], products - rows @ gram)
        return following

    def _ahead(self, side: int, before: FloatArray, after: FloatArray, share: float) -> FloatArray:
        """Return rows that are extrapolated along their change, and allowed."""
        if not share:
            return after
        ahead = after + after.dtype.type(share) * (after - before)
        constrained, solved = self.constrained[side], self.solved[side]
        if constrained is not None:
            ahead[:, solved] = constrained.project(ahead[:, solved])
        return ahead

    def _times_Ht(self, H: FloatArray) -> FloatArray:
        return np.asarray(self.X @ np.ascontiguousarray(H[self.solved[0]].T))

    def _descended(self, W: FloatArray, H: FloatArray, XtW: FloatArray) -> Iterate:
        """Return the factors with their objective."""
        mixed = np.einsum("ij,ji->", XtW, H, dtype=np.float64)
        gram_W, gram_H = (each.astype(np.float64) for each in (W.T @ W, H @ H.T))
        data_term = self.half_square - float(mixed) + 0.5 * float(np.sum(gram_W * gram_H))
        if data_term < self.least_exact * self.half_square:
            data_term = self.envelope.evaluate(W, H, 1.0).data_term  # without cancellation
        rows = W[:, self.solved[0]], H[self.solved[1]].T
        penalties = map(penalty_of, rows, self.ridges, self.constrained)
        error = self.problem.model.relative_error(data_term, self.problem.reference)
        penalty = self.problem.rule.initial
        return Iterate(W, H, data_term + sum(penalties), error, penalty=penalty)


@dataclass
class DivergenceState:
    """W and Hᵀ in double precision."""

    W: NDArray[np.float64]
    Ht: NDArray[np.float64]


class DivergenceDescent:
    """Descent on the divergence, number by number; see `Descent`."""

    def __init__(self, problem: Problem, rank: int) -> None:
        self.problem, observations = problem, problem.observations.as_sparse()
        self.dtype, of_entries = observations.dtype, observations.weights
        x = observations.values.astype(np.float64)
        values = observations.to_csr(x)
        weights = observations.to_csr(np.ones(x.size) if of_entries is None else of_entries)
        positive = values > 0
        X, factors = values * positive, weights * positive
        complete = observations.n_observed == math.prod(observations.shape)
        everywhere = complete and bool(np.all(weights.data == 1))
        self.weights = None if everywhere else (weights, weights.T.tocsr())
        self.constant = float(np.sum(factors.data * (X.data * np.log(X.data) - X.data)))
        self.sides = (_Side(X, factors), _Side(X.T.tocsr(), factors.T.tocsr()))
        self.constrained, self.ridges = problem.constrained_columns(rank), problem.ridges(rank)

    def begin(self, W_aug: FloatArray, H_aug: FloatArray) -> DivergenceState:
        """Return the state of a descent that begins at feasible factors."""
        W = np.array(W_aug, dtype=np.float64, order="C")
        return DivergenceState(W, np.array(H_aug.T, dtype=np.float64, order="C"))

    def step(self, state: DivergenceState) -> Iterate:
        """Do one step in W and in H, and return the factors."""
        factors = W, Ht = state.W, state.Ht
        for side, of in enumerate(self.constrained):
            assert of is not None
            partners, alphas = factors[1 - side], self.ridges[side].alphas
            weight = (of.entrywise.weight if of.entrywise else 0.0) or 0.0
            slopes = self._slopes(side, partners) + weight
            logs = self.sides[side].improve(factors[side], partners, slopes, alphas)
        data_term = self.constant - logs + float(np.sum(Ht * self._slopes(1, W)))
        total = data_term + sum(map(penalty_of, factors, self.ridges, self.constrained))
        H = np.ascontiguousarray(Ht.T, dtype=self.dtype)
        error = self.problem.model.relative_error(max(data_term, 0.0), self.problem.reference)
        penalty = self.problem.rule.initial
        return Iterate(W.astype(self.dtype), H, total, error, penalty=penalty)

    def gradients(self, W: FloatArray, H: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradients of the divergence in W (m, rank) and in Hᵀ (n, rank)."""
        W, Ht, side = W.astype(np.float64), H.T.astype(np.float64), self.sides[0]
        pattern = CsrStorage((len(W), len(Ht)), side.indptr, side.indices)
        y = np.maximum(pattern.all_products(W, Ht.T), KL_FLOOR * side.x)
        ratios = csr_array((side.weighted / y, side.indices, side.indptr), shape=pattern.shape)
        return self._slopes(0, Ht) - ratios @ Ht, self._slopes(1, W) - ratios.T @ W

    def _slopes(self, side: int, partners: FloatArray) -> NDArray[np.float64]:
        """Return the weighted sums of the other factor, for each row or for all at once."""
        if self.weights is None:
            return np.asarray(partners.sum(axis=0)[None, :])
        return np.asarray(self.weights[side] @ partners)


class _Side:
    """The positive entries of X by rows (or by columns), and the steps of these rows."""

    def __init__(self, X: Any, weights: Any) -> None:
        integer = np.int32 if max(X.data.size, *X.shape) < 2**31 else np.int64
        self.indptr, self.indices = X.indptr.astype(integer), X.indices.astype(integer)
        self.x, self.weighted = X.data, X.data * weights.data

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
