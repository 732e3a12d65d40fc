"""The augmented Lagrangian of a problem as a function of one flat vector, with its metric.

Descent (`nmd_lab.solver.refinement.lbfgs`) knows vectors, the data pass (`nmd_lab.solver.refinement.moreau_envelope`) knows factors.
This is what lies between: the ridge, the columns that offsets hold, and the metric of the steps,
in which each row of W and each column of H has the small matrix of its own least-squares problem.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nmd_lab.data.base import FloatArray
from nmd_lab.solver.admm import Problem
from nmd_lab.solver.storage import layout_of

from .lbfgs import Metric, Point, no_pairs
from .moreau_envelope import Envelope, natural_penalty

REGULAR = 0.01
"""How much an entry at which the Lagrangian is flat counts in the metric."""

FEW = 1 << 22
"""Numbers that may be remembered, however few the data are: 32 MiB of doubles."""

LASTS = 20
"""A metric serves so many steps, or fewer where ρ has doubled; but never fewer than the rank, in
proportion to which it costs."""


class Candidate(NamedTuple):
    """Factors that a step arrived at.

    Attributes
    ----------
    left, right : ndarray
        The factors with the offsets beside them.
    data_term : float
        Weighted loss of f(left @ right).
    objective : float
        With the ridge.
    """

    left: FloatArray
    right: FloatArray
    data_term: float
    objective: float


class Lagrangian:
    """The augmented Lagrangian of a problem as a function of one flat vector.

    Parameters
    ----------
    problem : Problem
        What is to be solved.
    left, right : ndarray
        Where to start; the columns of offsets that are not solved for stay.
    """

    def __init__(self, problem: Problem, left: FloatArray, right: FloatArray) -> None:
        observations = problem.observations
        self.envelope = Envelope(
            observations, problem.pair, layout_of(observations), problem.threads
        )
        self.alpha, self.loss = problem.alpha, problem.pair.loss
        self.free_W, self.free_H = problem.free(left, right)
        left, right = _balanced(left, right, problem.extension.components(left.shape[1]))
        self.left, self.right = left, right
        self.cut = left[:, self.free_W].size
        self.natural = natural_penalty(observations, problem.pair)
        self.penalty = math.nan
        self.metric: Metric | None = None
        self.metric_for, self.uses = math.nan, 0
        m, n = observations.shape
        self.density = observations.n_observed / (m * n)
        self.one_matrix = (m + n) * left.shape[1] ** 2 > max(4 * self.envelope.U.size, FEW)
        self.candidate = Candidate(left, right, math.inf, math.inf)

        values, weights = observations.observed()
        T = problem.pair.nonlinearity.preimage(values)
        self.size_of_T = math.sqrt(float(np.sum(weights * np.square(T)))) or 1.0
        self.reference = self.loss.reference(values, weights)
        self.x = self.best = _flat(left[:, self.free_W], right[self.free_H])
        self.lowest = math.inf
        self.pairs = no_pairs()

    def point(self, penalty: float, update_from: float = 0.0) -> Point:
        """Return where descent begins under another ρ, with U updated if `update_from` is given."""
        self.penalty = penalty
        return Point(self.x, *self.evaluate(self.x, update_from))

    def forget(self) -> None:
        """Forget the multipliers and what was learnt of the function, for quite another ρ."""
        self.envelope.forget()
        self.pairs.clear()
        self.metric = None

    @property
    def relative_error(self) -> float:
        """Relative error of the candidate."""
        return self.loss.relative_error(self.candidate.data_term, self.reference)

    def evaluate(self, x: FloatArray, update_from: float = 0.0) -> tuple[float, FloatArray]:
        """Return value and gradient at x, which becomes the candidate."""
        left, right = self._with_offsets(x)
        found = self.envelope.evaluate(left, right, self.penalty, update_from)
        ridge = 0.5 * self.alpha * float(np.sum(x * x, dtype=np.float64))
        self.candidate = Candidate(left, right, found.data_term, found.data_term + ridge)
        self.primal = found.primal
        if self.candidate.objective < self.lowest:
            self.lowest, self.best = self.candidate.objective, x
        gradient = _flat(found.gradient_W[:, self.free_W], found.gradient_H[self.free_H])
        if self.alpha:
            gradient += x.dtype.type(self.alpha) * x
        return found.value + ridge, gradient

    def violation(self, penalty: float) -> float:
        """Return how far the first-order conditions are from being met, free of units."""
        point = self.point(penalty)
        size = 2 * max(self.candidate.objective, self.reference) or 1.0
        W, H = self._factors(self.x.astype(np.float64))
        gradient_W, gradient_H = self._factors(point.gradient.astype(np.float64))
        norm = np.linalg.norm
        slopes = (norm(gradient_W) * norm(W), norm(gradient_H) * norm(H))
        return max(float(max(slopes)) / size, self.primal / self.size_of_T)

    def metric_at(self, x: FloatArray) -> Metric:
        """Return the metric of alternating least squares, made anew now and then."""
        rank = self.left.shape[1]
        old = self.uses >= max(LASTS, rank)
        outgrown = self.penalty > 2 * self.metric_for and self.uses >= rank
        if self.metric is None or old or outgrown:
            self.metric, self.uses, self.metric_for = self._metric(x), 0, self.penalty
        self.uses += 1
        return self.metric

    def _metric(self, x: FloatArray) -> Metric:
        """Make one matrix for each line, or one for all where so many would outgrow the data."""
        left, right = self._with_offsets(x)
        beside_W, beside_H = right[self.free_W], left[:, self.free_H]
        for_rows, for_columns = np.zeros((2, 1, 1, 1), x.dtype)
        if not self.one_matrix:
            for_rows, for_columns = self.envelope.normal_matrices(left, right, self.penalty)
            for_rows = for_rows[:, self.free_W, self.free_W]
            for_columns = for_columns[:, self.free_H, self.free_H]
        for_W = self._inverses(for_rows, beside_W @ beside_W.T)
        for_H = self._inverses(for_columns, beside_H.T @ beside_H)

        def metric(gradient: FloatArray) -> FloatArray:
            gradient_W, gradient_H = self._factors(gradient)
            return _flat(
                np.matmul(for_W, gradient_W[:, :, None])[:, :, 0],
                np.matmul(for_H, gradient_H.T[:, :, None])[:, :, 0].T,
            )

        return metric

    def _factors(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        m, n = self.left.shape[0], self.right.shape[1]
        return x[: self.cut].reshape(m, -1), x[self.cut :].reshape(-1, n)

    def _with_offsets(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        left, right = self.left.copy(), self.right.copy()
        left[:, self.free_W], right[self.free_H] = self._factors(x)
        return left, right

    def _inverses(self, normal: FloatArray, gram: FloatArray) -> FloatArray:
        share = self.penalty * (self.density if self.one_matrix else REGULAR)
        ridge = self.alpha + 1e-10 * share * float(np.trace(gram)) + 1e-300
        total = normal + share * gram + ridge * np.eye(len(gram))
        return (0.5 * np.linalg.inv(total.astype(np.float64))).astype(gram.dtype)


def _balanced(
    left: FloatArray, right: FloatArray, components: slice
) -> tuple[FloatArray, FloatArray]:
    """Return factors of the same product among which its scale is split evenly."""
    left, right = left.copy(), right.copy()
    Q, R = np.linalg.qr(left[:, components])
    P, S = np.linalg.qr(right[components].T)
    U, values, Vt = np.linalg.svd(R @ S.T)
    root = np.sqrt(values)
    left[:, components] = Q @ (U * root)
    right[components] = (root[:, None] * Vt) @ P.T
    return left, right


def _flat(W: FloatArray, H: FloatArray) -> FloatArray:
    return np.concatenate([W.ravel(), H.ravel()])
