"""The augmented Lagrangian of a problem as a function of one flat vector, with a preconditioner.

Descent (`lbfgs`) knows vectors, the data pass (`moreau_envelope`) knows factors.  This module lies
between them: it adds the ridge, keeps the columns that offsets hold, and makes the preconditioner,
in which each row of W and each column of H has the small matrix of its own least-squares problem.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nmd_lab.data.base import FloatArray
from nmd_lab.solver.problem import Problem, natural_penalty
from nmd_lab.solver.storage import storage_of

from .lbfgs import Point, Preconditioner, no_pairs
from .moreau_envelope import MoreauEnvelope
from .plan import LIMITS


@dataclass(frozen=True)
class PreconditionerOptions:
    """Constants of the preconditioner.

    Attributes
    ----------
    flat_weight : float
        Weight, relative to ρ, of an entry at which the Lagrangian is flat.
    steps : int
        Number of steps after which it is made anew, or the rank if that is larger, since its cost
        is proportional to the rank.
    outgrown : float
        Growth of ρ after which it is made anew.
    """

    flat_weight: float = 0.01
    steps: int = 20
    outgrown: float = 2.0


PRECONDITIONER = PreconditionerOptions()


class Candidate(NamedTuple):
    """Factors that a refinement has arrived at.

    Attributes
    ----------
    W_aug, H_aug : ndarray
        Factors with the offsets beside them.
    data_term : float
        Weighted loss of f(W_aug H_aug).
    objective : float
        The same with the ridge.
    """

    W_aug: FloatArray
    H_aug: FloatArray
    data_term: float
    objective: float


class Lagrangian:
    """The augmented Lagrangian of a problem as a function of one flat vector.

    Parameters
    ----------
    problem : Problem
        Problem to solve.
    W_aug, H_aug : ndarray
        Starting factors; columns of offsets that are not solved for stay.

    Attributes
    ----------
    x : ndarray (size,)
        Point from which descent starts.
    best, lowest : ndarray (size,), float
        Point of lowest objective so far, and that objective.
    candidate : Candidate
        Factors of the last evaluation.
    natural : float
        Natural penalty of the problem, the unit of ρ.
    pairs : Pairs
        Memory of the descent.
    """

    def __init__(self, problem: Problem, W_aug: FloatArray, H_aug: FloatArray) -> None:
        observations = problem.observations
        self.envelope = MoreauEnvelope(
            observations, problem.pair, storage_of(observations), problem.threads
        )
        self.alpha, self.loss = problem.alpha, problem.pair.loss
        self.solved_W, self.solved_H = problem.solved(W_aug)
        components = problem.offset_columns.components(W_aug.shape[1])
        self.W_aug, self.H_aug = _balanced(W_aug, H_aug, components)
        self.size_of_W = self.W_aug[:, self.solved_W].size
        self.natural = natural_penalty(observations, problem.pair)
        self.penalty = math.nan
        self.preconditioner: Preconditioner | None = None
        self._made_for, self._uses = math.nan, 0
        m, n = observations.shape
        self.density = observations.n_observed / (m * n)
        matrices = (m + n) * W_aug.shape[1] ** 2
        self.one_matrix = not LIMITS.allows(matrices, self.envelope.U.size)
        self.candidate = Candidate(self.W_aug, self.H_aug, math.inf, math.inf)

        values, weights = observations.observed()
        T = problem.pair.nonlinearity.preimage(values)
        self.size_of_T = math.sqrt(float(np.sum(weights * np.square(T)))) or 1.0
        self.reference = self.loss.reference(values, weights)
        self.x = self.best = _flat(self.W_aug[:, self.solved_W], self.H_aug[self.solved_H])
        self.lowest = math.inf
        self.pairs = no_pairs()

    def point(self, penalty: float, update_from: float = 0.0) -> Point:
        """Return the starting point for another ρ; U is updated first if `update_from` is given."""
        self.penalty = penalty
        return Point(self.x, *self.evaluate(self.x, update_from))

    def forget(self) -> None:
        """Reset multipliers, memory and preconditioner, for a ρ of another size."""
        self.envelope.forget()
        self.pairs.clear()
        self.preconditioner = None

    @property
    def relative_error(self) -> float:
        """Relative error of the candidate."""
        return self.loss.relative_error(self.candidate.data_term, self.reference)

    def evaluate(self, x: FloatArray, update_from: float = 0.0) -> tuple[float, FloatArray]:
        """Return value and gradient at x, which becomes the candidate."""
        W_aug, H_aug = self._with_offsets(x)
        found = self.envelope.evaluate(W_aug, H_aug, self.penalty, update_from)
        ridge = 0.5 * self.alpha * float(np.sum(x * x, dtype=np.float64))
        self.candidate = Candidate(W_aug, H_aug, found.data_term, found.data_term + ridge)
        self.primal = found.primal
        if self.candidate.objective < self.lowest:
            self.lowest, self.best = self.candidate.objective, x
        gradient = _flat(found.gradient_W[:, self.solved_W], found.gradient_H[self.solved_H])
        if self.alpha:
            gradient += x.dtype.type(self.alpha) * x
        return found.value + ridge, gradient

    def violation(self, penalty: float) -> float:
        """Return the violation of the first-order conditions, free of units."""
        point = self.point(penalty)
        size = 2 * max(self.candidate.objective, self.reference) or 1.0
        W, H = self._factors(self.x.astype(np.float64))
        gradient_W, gradient_H = self._factors(point.gradient.astype(np.float64))
        norm = np.linalg.norm
        slopes = (norm(gradient_W) * norm(W), norm(gradient_H) * norm(H))
        return max(float(max(slopes)) / size, self.primal / self.size_of_T)

    def preconditioner_at(self, x: FloatArray) -> Preconditioner:
        """Return the preconditioner of alternating least squares, made anew now and then."""
        rank = self.W_aug.shape[1]
        old = self._uses >= max(PRECONDITIONER.steps, rank)
        grown = self.penalty > PRECONDITIONER.outgrown * self._made_for
        if self.preconditioner is None or old or (grown and self._uses >= rank):
            self.preconditioner = self._make_preconditioner(x)
            self._uses, self._made_for = 0, self.penalty
        self._uses += 1
        return self.preconditioner

    def _make_preconditioner(self, x: FloatArray) -> Preconditioner:
        """Make a matrix for each row and column; one for all if so many would outgrow the data."""
        W_aug, H_aug = self._with_offsets(x)
        partners_W, partners_H = H_aug[self.solved_W], W_aug[:, self.solved_H]
        of_rows, of_columns = np.zeros((2, 1, 1, 1), x.dtype)
        if not self.one_matrix:
            of_rows, of_columns = self.envelope.normal_matrices(W_aug, H_aug, self.penalty)
            of_rows = of_rows[:, self.solved_W, self.solved_W]
            of_columns = of_columns[:, self.solved_H, self.solved_H]
        inverse_W = self._inverses(of_rows, partners_W @ partners_W.T)
        inverse_H = self._inverses(of_columns, partners_H.T @ partners_H)

        def precondition(gradient: FloatArray) -> FloatArray:
            gradient_W, gradient_H = self._factors(gradient)
            return _flat(
                np.matmul(inverse_W, gradient_W[:, :, None])[:, :, 0],
                np.matmul(inverse_H, gradient_H.T[:, :, None])[:, :, 0].T,
            )

        return precondition

    def _factors(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        m, n = self.W_aug.shape[0], self.H_aug.shape[1]
        return x[: self.size_of_W].reshape(m, -1), x[self.size_of_W :].reshape(-1, n)

    def _with_offsets(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        W_aug, H_aug = self.W_aug.copy(), self.H_aug.copy()
        W_aug[:, self.solved_W], H_aug[self.solved_H] = self._factors(x)
        return W_aug, H_aug

    def _inverses(self, normal: FloatArray, gram: FloatArray) -> FloatArray:
        weight = self.density if self.one_matrix else PRECONDITIONER.flat_weight
        share = self.penalty * weight
        ridge = self.alpha + 1e-10 * share * float(np.trace(gram)) + 1e-300
        total = normal + share * gram + ridge * np.eye(len(gram))
        return (0.5 * np.linalg.inv(total.astype(np.float64))).astype(gram.dtype)


def _balanced(
    W_aug: FloatArray, H_aug: FloatArray, components: slice
) -> tuple[FloatArray, FloatArray]:
    """Return factors of the same product in which W and H have the same Gram matrix."""
    W_aug, H_aug = W_aug.copy(), H_aug.copy()
    Q, R = np.linalg.qr(W_aug[:, components])
    P, S = np.linalg.qr(H_aug[components].T)
    U, values, Vt = np.linalg.svd(R @ S.T)
    root = np.sqrt(values)
    W_aug[:, components] = Q @ (U * root)
    H_aug[components] = (root[:, None] * Vt) @ P.T
    return W_aug, H_aug


def _flat(W: FloatArray, H: FloatArray) -> FloatArray:
    return np.concatenate([W.ravel(), H.ravel()])
