"""The descent of a factor under a constraint where the loss is least squares, and its kinds.

Descents on the objective itself, where it is simple enough to need no split variable.

A descent has feasible factors.  Each step lowers the objective, or the descent takes it back.
`nmd_lab.solver.engines.constrained` runs descents one after the other.

Least squares under constraints: alternating steps in W and H with extrapolation.

With Identity + Frobenius, complete data and ρ = 1, Algorithm 1 has Z = T + U = X: it is alternating
least squares, or, with nonnegative factors, hierarchical alternating least squares (HALS).  Then T
and U are not needed, and an iteration costs two products with X.  Each factor is extrapolated along
its last change; a step that does not lower the objective is taken back.

Source of the extrapolation: A. M. S. Ang and N. Gillis, "Accelerating nonnegative matrix
factorization algorithms using extrapolation", 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_array

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import Observations
from nmd_lab.model.loss import POISSON
from nmd_lab.solver.problem import Problem
from nmd_lab.solver.row_updates import shared_solver

from .factor_constraints import is_nonnegative
from .steps import ConstrainedColumns, penalty_of


class Descended(NamedTuple):
    """Factors after a step of a descent.

    Attributes
    ----------
    W_aug, H_aug : ndarray (m, rank + ...) and (rank + ..., n)
        Factors extended by the offsets; later steps do not change them.
    data_term, objective : float
        Loss without and with ridge and penalties.
    """

    W_aug: FloatArray
    H_aug: FloatArray
    data_term: float
    objective: float


class Descent(Protocol):
    """A descent on the objective of a problem."""

    def begin(self, W_aug: FloatArray, H_aug: FloatArray) -> Any:
        """Return the state of a descent that begins at feasible factors."""

    def step(self, state: Any) -> Descended:
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


def with_other_components(
    W: FloatArray, H: FloatArray, chosen: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return factors in which some components are random, of the mean size of the others."""
    W, H = W.copy(), H.copy()
    for factor in (W.T, H):
        size = float(np.mean(np.abs(factor)))
        new = 2 * size * rng.random((len(chosen), factor.shape[1]))
        factor[chosen] = new if factor.min() >= 0 else np.sqrt(3) * (new - size)
    return W, H


PLAIN = 3  # first steps without extrapolation, in which a random start finds its scale
FIRST = 0.5  # first fraction of the last change that is added
GROWTH = 1.05  # factor of the fraction after a good step
GROWTH_OF_LIMIT = 1.01  # factor of its limit after a good step
SHRINKAGE = 1.5  # divisor of the fraction after a bad step
SWEEPS = 1  # sweeps over the coordinates of a row
ROUNDING = 1e5  # objective, in rounding units of ‖X‖² / 2, below which residuals give it


@dataclass
class LeastSquaresState:
    """Factors, extrapolated factors, X Hᵀ, and how far the next step goes ahead."""

    W: FloatArray
    H: FloatArray
    ahead_W: FloatArray
    ahead_H: FloatArray
    XHt: FloatArray
    best: Descended | None = None
    share: float = 0.0
    limit: float = 1.0
    steps: int = 0
    last_good: float = FIRST


class LeastSquaresDescent:
    """Alternating constrained least squares for a complete matrix; see `Descent`."""

    def __init__(self, problem: Problem, rank: int) -> None:
        self.X = _matrix(problem.observations)
        self.half_square = problem.observations.sum_of(lambda x, weights: 0.5 * np.square(x))
        self.W_constraint, self.H_constraint = problem.constrained_columns(rank)
        self.solved_W, self.solved_H = problem.offset_columns.solved(rank)
        self.ridge_W, self.ridge_H = problem.ridges(rank)
        eps = float(np.finfo(problem.observations.dtype).eps)
        self.least_exact = ROUNDING * eps

    def begin(self, W_aug: FloatArray, H_aug: FloatArray) -> LeastSquaresState:
        """Return the state of a descent that begins at feasible factors."""
        return LeastSquaresState(W_aug, H_aug, W_aug, H_aug, self._times_Ht(H_aug))

    def step(self, state: LeastSquaresState) -> Descended:
        """Do one step in W and in H, and return the factors of lowest objective."""
        state.steps += 1
        if state.steps == PLAIN:
            state.share = FIRST
        W = self._next_W(state)
        ahead_W = _ahead(state.W, W, state.share, self.W_constraint, self.solved_W)
        XtW, H = self._next_H(state, ahead_W)
        reached = self._descended(ahead_W, H, XtW)
        if state.best is not None and reached.objective > state.best.objective:
            state.limit, state.share = state.last_good, state.share / SHRINKAGE
            state.ahead_W, state.ahead_H = state.W, state.H
            state.XHt = self._times_Ht(state.H)
            return state.best
        transposed = _ahead(state.H.T, H.T, state.share, self.H_constraint, self.solved_H)
        state.W, state.H, state.ahead_W = ahead_W, H, ahead_W
        state.ahead_H = np.ascontiguousarray(transposed.T)
        state.XHt = self._times_Ht(state.ahead_H)
        if state.share:
            state.last_good = state.share
            state.share = min(state.limit, GROWTH * state.share)
            state.limit = min(1.0, GROWTH_OF_LIMIT * state.limit)
        state.best = reached
        return reached

    def _next_W(self, state: LeastSquaresState) -> FloatArray:
        """Return W after a step from the extrapolated factors."""
        W, solved = state.ahead_W.copy(), self.solved_W
        partners = state.ahead_H[solved]
        ridge, gram = self.ridge_W(partners, 1.0), partners @ partners.T
        gradient = state.XHt - W @ (state.ahead_H @ partners.T)
        improve = shared_solver(self.W_constraint, gram, ridge, 1.0, sweeps=SWEEPS)
        W[:, solved] = improve(W[:, solved], gradient)
        return W

    def _next_H(self, state: LeastSquaresState, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Xᵀ W and the next H."""
        H, solved = state.ahead_H.copy(), self.solved_H
        XtW = self.X.T @ W
        partners = W[:, solved]
        ridge, gram = self.ridge_H(partners, 1.0), W.T @ partners
        gradient = XtW[:, solved] - H.T @ gram
        improve = shared_solver(self.H_constraint, gram[solved], ridge, 1.0, sweeps=SWEEPS)
        H[solved] = improve(np.ascontiguousarray(H[solved].T), gradient).T
        return XtW, H

    def _times_Ht(self, H: FloatArray) -> FloatArray:
        return np.asarray(self.X @ np.ascontiguousarray(H[self.solved_W].T))

    def _descended(self, W: FloatArray, H: FloatArray, XtW: FloatArray) -> Descended:
        """Return the factors with their objective."""
        mixed = np.einsum("ij,ji->", XtW, H, dtype=np.float64)
        gram_W, gram_H = (each.astype(np.float64) for each in (W.T @ W, H @ H.T))
        data_term = self.half_square - float(mixed) + 0.5 * float(np.sum(gram_W * gram_H))
        if data_term < self.least_exact * self.half_square:
            data_term = self._from_residuals(W, H)
        total = data_term + penalty_of(W[:, self.solved_W], self.ridge_W, self.W_constraint)
        total += penalty_of(H[self.solved_H].T, self.ridge_H, self.H_constraint)
        return Descended(W, H, data_term, total)

    def _from_residuals(self, W: FloatArray, H: FloatArray) -> float:
        """Return ‖X - WH‖² / 2 without cancellation, block by block."""
        m, n = self.X.shape
        size, total = max(1, (1 << 18) // n), 0.0
        for first in range(0, m, size):
            rows = slice(first, min(first + size, m))
            X = self.X[rows]
            X = X if isinstance(X, np.ndarray) else X.toarray()
            total += 0.5 * float(np.sum(np.square(X - W[rows] @ H, dtype=np.float64)))
        return total


def _matrix(observations: Observations) -> Any:
    """Return X, in compressed rows if absent entries are zeros."""
    if not observations.absent_are_zeros:
        return observations.values
    rows = observations.csr_rows(slice(0, observations.shape[0]))
    values = rows.values.astype(observations.dtype)
    return csr_array((values, rows.indices, rows.indptr), shape=observations.shape)


def _ahead(
    before: FloatArray,
    after: FloatArray,
    share: float,
    constrained: ConstrainedColumns | None,
    solved: slice,
) -> FloatArray:
    """Return rows that are extrapolated along their change, and allowed."""
    if not share:
        return after
    ahead = after + after.dtype.type(share) * (after - before)
    if constrained is not None:
        ahead[:, solved] = constrained.project(ahead[:, solved])
    return ahead
