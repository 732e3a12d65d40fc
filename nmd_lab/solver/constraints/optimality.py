"""How far constrained factors are from the first-order conditions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nmd_lab.data.base import FloatArray
from nmd_lab.solver.problem import Problem
from nmd_lab.solver.refinement.moreau_envelope import MoreauEnvelope
from nmd_lab.solver.storage import storage_of

from .steps import ConstrainedColumns


def constrained_optimality(
    problem: Problem, W_aug: FloatArray, H_aug: FloatArray, penalties: Sequence[float]
) -> float:
    """Return the distance of constrained factors from the first-order conditions.

    As `nmd_lab.solver.refinement.stages.optimality`, with the step of a proximal gradient iteration
    in the place of the gradient: it is zero where a constraint holds the factor.

    Parameters
    ----------
    problem : Problem
        Problem that was solved.
    W_aug, H_aug : ndarray (m, rank + ...) and (rank + ..., n)
        Factors extended by the offsets.
    penalties : sequence of float
        Penalties, in units of the natural one.
    """
    observations = problem.observations
    envelope = MoreauEnvelope(observations, problem.pair, storage_of(observations), problem.threads)
    rank = W_aug.shape[1] - problem.offset_columns.width
    solved, alphas = problem.offset_columns.solved(rank), problem.alphas(rank)
    constrained = problem.constrained_columns(rank)
    rows = W_aug[:, solved[0]], H_aug[solved[1]].T
    partners = H_aug[solved[0]], W_aug[:, solved[1]]
    lowest = np.inf
    for natural_units in penalties:
        rho = natural_units * problem.natural_penalty
        result = envelope.evaluate(W_aug, H_aug, rho)
        gradients = result.gradient_W[:, solved[0]], result.gradient_H[solved[1]].T
        size = 2 * max(result.data_term, problem.reference) or 1.0
        violation = result.primal / problem.size_of_T
        for side in (0, 1):
            gradient = gradients[side] + alphas[side] * rows[side]
            violation = max(violation, _move(rows[side], gradient, size, constrained[side]))
        lowest = min(lowest, violation)
    return float(lowest)


def _move(
    rows: FloatArray, gradient: FloatArray, size: float, constrained: ConstrainedColumns | None
) -> float:
    """Return the relative length of a proximal gradient step.

    Without a constraint it is ‖gradient‖ ‖rows‖ / size.
    """
    norm = float(np.linalg.norm(rows)) or 1.0
    length = norm**2 / size
    moved = rows.astype(np.float64) - length * gradient
    if constrained is not None:
        own = constrained.components
        step = np.full((len(rows), 1), length)
        moved[:, own] = constrained.constraint.prox(moved[:, own], step)
    return float(np.linalg.norm(rows - moved)) / norm
