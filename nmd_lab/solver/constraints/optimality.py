"""How far constrained factors are from the first-order conditions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nmd_lab.data.entries import FloatArray
from nmd_lab.solver.problem import Problem
from nmd_lab.solver.refinement.moreau_envelope import MoreauEnvelope
from nmd_lab.solver.storage import storage_of

from .descent import kind_of_descent
from .divergence import DivergenceDescent
from .steps import ConstrainedColumns, proximal_move


def constrained_optimality(
    problem: Problem, W_aug: FloatArray, H_aug: FloatArray, penalties: Sequence[float]
) -> float:
    """Return the distance of constrained factors from the first-order conditions.

    As `nmd_lab.solver.refinement.stages.optimality`, with the step of a proximal gradient iteration
    in the place of the gradient: it is zero where a constraint holds the factor.
    """
    if kind_of_descent(problem) == "divergence":  # the envelope is flat where x = y = 0
        gradients = DivergenceDescent(problem, W_aug.shape[1]).gradients(W_aug, H_aug)
        return _violation(problem, W_aug, H_aug, gradients, 2 * problem.reference)
    observations, model = problem.observations, problem.model
    envelope = MoreauEnvelope(observations, model, storage_of(observations), problem.threads)
    rank = W_aug.shape[1] - problem.offset_columns.width
    solved_W, solved_H = problem.offset_columns.solved(rank)
    lowest = np.inf
    for natural_units in penalties:
        rho = natural_units * problem.natural_penalty
        result = envelope.evaluate(W_aug, H_aug, rho)
        gradients = result.gradient_W[:, solved_W], result.gradient_H[solved_H].T
        size = 2 * max(result.data_term, problem.reference)
        violation = _violation(problem, W_aug, H_aug, gradients, size)
        lowest = min(lowest, max(violation, result.primal / problem.size_of_T))
    return float(lowest)


def _violation(
    problem: Problem,
    W_aug: FloatArray,
    H_aug: FloatArray,
    gradients: tuple[FloatArray, FloatArray],
    size: float,
) -> float:
    """Return the larger relative length of a proximal gradient step in W and in H.

    `gradients` are those of the data term for the solved columns of W and rows of H, (m, n_solved)
    and (n, n_solved); `size` is twice the size of the objective.
    """
    rank = W_aug.shape[1] - problem.offset_columns.width
    solved_W, solved_H = problem.offset_columns.solved(rank)
    constrained, alphas = problem.constrained_columns(rank), problem.alphas(rank)
    moves = [
        _move(rows, gradient + ridge * rows, size or 1.0, of)
        for rows, gradient, ridge, of in zip(
            (W_aug[:, solved_W], H_aug[solved_H].T), gradients, alphas, constrained, strict=True
        )
    ]
    return max(moves)


def _move(
    rows: FloatArray, gradient: FloatArray, size: float, constrained: ConstrainedColumns | None
) -> float:
    """Return the relative length of a proximal gradient step.

    Without a constraint it is ‖gradient‖ ‖rows‖ / size.
    """
    norm = float(np.linalg.norm(rows)) or 1.0
    length = norm**2 / size
    return float(np.linalg.norm(proximal_move(rows, gradient, length, constrained))) / norm
