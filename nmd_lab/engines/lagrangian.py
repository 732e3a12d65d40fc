"""The augmented Lagrangian of a problem as a function of one flat vector, with a preconditioner.

`lbfgs` works on vectors, `moreau_envelope` on factors.  This module connects them: it converts one
into the other, adds the ridge, and keeps the columns of ones and the mean constant.  It also
computes the preconditioner, which has the matrix of a small least-squares problem for each row of W
and each column of H.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from nmd_lab.data.entries import FloatArray
from nmd_lab.kernels.envelope import symmetric
from nmd_lab.kernels.lowrank import singular_factors
from nmd_lab.problem.problem import Problem
from nmd_lab.problem.state import Iterate

from .lbfgs import Pairs, Point, Preconditioner, pairs_for
from .plan import memory_allows, pass_costs

BLOCK = 256  # matrices that are inverted at a time, which bounds the temporary arrays


class Lagrangian:
    """The augmented Lagrangian of a problem as a function of one flat vector.

    Attributes
    ----------
    state : Variables
        All that changes.
    natural : float
        Natural penalty of the problem, the unit of ρ in `stages`.

    `state` is that of an earlier function of the problem, if it continues from there.
    """

    def __init__(
        self,
        problem: Problem,
        W_aug: FloatArray,
        H_aug: FloatArray,
        state: Variables | None = None,
    ) -> None:
        observations, width = problem.observations, W_aug.shape[1]
        m, n = observations.shape
        self.envelope = problem.envelope()
        self.model = problem.model
        rank = width - problem.offset_columns.width
        self.alphas = problem.alphas(rank)
        self.solved_W, self.solved_H = problem.offset_columns.solved(rank)
        self.rank, self.W_shape = width, (m, self.solved_W.stop - self.solved_W.start)
        self.natural = problem.penalty_scale
        self.density = observations.n_observed / (m * n)
        stored = self.envelope.size if observations.scratch is None else 0
        self.one_matrix = not memory_allows((m + n) * width**2, stored)
        self.costs = pass_costs(problem, width, one_matrix=self.one_matrix)
        self.reference = problem.reference
        if state is None:
            components = problem.offset_columns.components(width)
            self.state = self._variables(*balanced(W_aug, H_aug, components))
        else:
            self.state = state
            if state.U is not None:
                state.U = self.envelope.U = self.envelope.device.put(state.U)

    def _variables(self, W_aug: FloatArray, H_aug: FloatArray) -> Variables:
        """Return the variables with which a descent begins at some factors."""
        x = _flat(W_aug[:, self.solved_W], H_aug[self.solved_H])
        candidate = Iterate(W_aug, H_aug, *[math.inf] * 6)
        return Variables(
            *(W_aug, H_aug, x, candidate, Pairs(maxlen=pairs_for(x.size)), x),
            U=self.envelope.U,
            cost=self.costs.start,
        )

    def point(self, penalty: float, update_from: float = 0.0) -> Point:
        """Set ρ and return the starting point; `update_from` as for `MoreauEnvelope.evaluate`."""
        self.state.penalty = penalty
        return Point(self.state.x, *self.evaluate(self.state.x, update_from))

    def forget(self) -> None:
        """Reset multipliers, L-BFGS memory and preconditioner, for a very different ρ."""
        self.envelope.forget()
        self.state.U, self.state.inverses = self.envelope.U, None
        self.state.pairs.clear()

    def evaluate(self, x: FloatArray, update_from: float = 0.0) -> tuple[float, FloatArray]:
        """Return value and gradient at x, which becomes the candidate."""
        state = self.state
        W_aug, H_aug = self._with_offsets(x)
        result = self.envelope.evaluate(W_aug, H_aug, state.penalty, update_from)
        state.U = self.envelope.U
        ridge, slope = self._ridge(x)
        state.cost += self.costs.evaluation
        state.cost += self.costs.update if update_from else 0.0
        gradient = _flat(result.gradient_W[:, self.solved_W], result.gradient_H[self.solved_H])
        gradient = gradient if slope is None else gradient + slope
        state.candidate = Iterate(
            W_aug=W_aug,
            H_aug=H_aug,
            objective=result.data_term + ridge,
            relative_error=self.model.relative_error(result.data_term, self.reference),
            primal_residual=result.primal,
            dual_residual=float(np.linalg.norm(gradient)),
            penalty=state.penalty,
            relative_residual=math.inf,
        )
        if state.candidate.objective < state.lowest:
            state.lowest, state.best = state.candidate.objective, x
        return result.value + ridge, gradient

    def _ridge(self, x: FloatArray) -> tuple[float, FloatArray | None]:
        """Return value and gradient of the ridge at x; (0, None) if there is none."""
        W_alphas, H_alphas = self.alphas
        if not W_alphas.any() and not H_alphas.any():
            return 0.0, None
        W, H = self._factors(x)
        slope = _flat(W_alphas.astype(x.dtype) * W, H_alphas.astype(x.dtype)[:, None] * H)
        return 0.5 * float(np.sum(slope * x, dtype=np.float64)), slope

    def preconditioner_at(self, x: FloatArray) -> Preconditioner:
        """Return the preconditioner, computed again at x if the last one is too old."""
        state, rank = self.state, self.rank
        old = state.uses >= max(20, rank)  # to which the cost of the next one is proportional
        grown = state.penalty > 2 * state.computed_for
        if state.inverses is None or old or (grown and state.uses >= rank):
            state.inverses = None  # so that their memory is free for the new ones
            state.inverses = self._inverses_at(x)
            state.uses, state.computed_for = 0, state.penalty
        state.uses += 1
        return self._precondition

    def _precondition(self, gradient: FloatArray) -> FloatArray:
        """Return the step of a gradient."""
        assert self.state.inverses is not None
        inverse_W, inverse_H = self.state.inverses
        gradient_W, gradient_H = self._factors(gradient)
        return _flat(
            np.matmul(inverse_W, gradient_W[:, :, None])[:, :, 0],
            np.matmul(inverse_H, gradient_H.T[:, :, None])[:, :, 0].T,
        )

    def _inverses_at(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the matrices of the preconditioner at x, for rows and for columns.

        It has one matrix for each row and column, or, if these need too much memory, one for all
        rows and one for all columns.
        """
        self.state.cost += self.costs.preconditioner
        W_aug, H_aug = self._with_offsets(x)
        partners_W, partners_H = H_aug[self.solved_W], W_aug[:, self.solved_H]
        of_rows, of_columns = None, None
        if not self.one_matrix:
            of_rows, of_columns = self.envelope.normal_matrices(W_aug, H_aug, self.state.penalty)
        inverse_W = self._inverses(
            of_rows, self.solved_W, partners_W @ partners_W.T, self.alphas[0]
        )
        of_rows = None  # memory for the inverses of the columns
        inverse_H = self._inverses(
            of_columns, self.solved_H, partners_H.T @ partners_H, self.alphas[1]
        )
        return inverse_W, inverse_H

    def _factors(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        size = self.W_shape[0] * self.W_shape[1]
        return x[:size].reshape(self.W_shape), x[size:].reshape(-1, self.state.H_aug.shape[1])

    def _with_offsets(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        W_aug, H_aug = self.state.W_aug.copy(), self.state.H_aug.copy()
        W_aug[:, self.solved_W], H_aug[self.solved_H] = self._factors(x)
        return W_aug, H_aug

    def _inverses(
        self, normal: FloatArray | None, solved: slice, gram: FloatArray, alphas: FloatArray
    ) -> FloatArray:
        """Return an inverse for each of the normal matrices, or one if there are none."""
        # of an entry at which the Lagrangian is flat, relative to ρ
        weight = self.density if self.one_matrix else 0.01
        share = self.state.penalty * weight
        ridge = alphas + 1e-10 * share * float(np.trace(gram)) + 1e-300
        flat = share * gram
        count = 1 if normal is None else len(normal)
        inverses = np.empty((count, *gram.shape), gram.dtype)
        for first in range(0, count, BLOCK):  # in double precision
            block = slice(first, first + BLOCK)
            total = flat
            if normal is not None:
                matrices = symmetric(normal[block], self.rank)
                total = matrices[:, solved, solved] + flat
            total = (total + ridge * np.eye(len(gram))).astype(np.float64, copy=False)
            inverses[block] = 0.5 * np.linalg.inv(total)
        return inverses


def balanced(
    W_aug: FloatArray, H_aug: FloatArray, components: slice
) -> tuple[FloatArray, FloatArray]:
    """Return factors of the same product in which W and H have the same Gram matrix."""
    W_aug, H_aug = W_aug.copy(), H_aug.copy()
    factors = W_aug[:, components], H_aug[components]
    W_aug[:, components], H_aug[components], _ = singular_factors(*factors)
    return W_aug, H_aug


def _flat(W: FloatArray, H: FloatArray) -> FloatArray:
    return np.concatenate([W.ravel(), H.ravel()])


@dataclass
class Variables:
    """All that evaluations of L and descents on it change.

    Attributes
    ----------
    W_aug, H_aug : ndarray (m, rank + ...) and (rank + ..., n)
        Factors of the beginning, with the columns that no descent changes.
    x : ndarray (size,)
        Point from which the next descent starts.
    candidate : Iterate
        Factors of the last evaluation; its dual residual is the norm of the gradient of L.
    pairs : Pairs
        L-BFGS memory.
    best, lowest : ndarray (size,), float
        Point of lowest objective so far, and that objective.
    penalty : float
        ρ.
    U : array (n_stored,) on the device, or None
        Multipliers of the stored entries.
    inverses, computed_for, uses : tuple of ndarray or None, float, int
        The preconditioner, its ρ, and how often it was used.
    cost : float
        Work that is not accounted for yet, in iterations of Algorithm 1.
    """

    W_aug: FloatArray
    H_aug: FloatArray
    x: FloatArray
    candidate: Iterate
    pairs: Pairs
    best: FloatArray
    lowest: float = math.inf
    penalty: float = math.nan
    U: Any = None
    inverses: tuple[FloatArray, FloatArray] | None = None
    computed_for: float = math.nan
    uses: int = 0
    cost: float = 0.0
