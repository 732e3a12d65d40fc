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
            curvature = rho * float(np.linalg.norm(partners[side])) ** 2 + float(alphas[side].max())
            gradient = gradients[side] + alphas[side] * rows[side]
            slope = _slope(rows[side].astype(float), gradient, curvature, constrained[side])
            violation = max(violation, slope * float(np.linalg.norm(rows[side])) / size)
        lowest = min(lowest, violation)
    return float(lowest)


def _slope(
    rows: FloatArray, gradient: FloatArray, curvature: float, constrained: ConstrainedColumns | None
) -> float:
    """Return the norm of a proximal gradient step, divided by its length."""
    if constrained is None or curvature <= 0:
        return float(np.linalg.norm(gradient))
    moved, own = rows - gradient / curvature, constrained.components
    step = np.full((len(rows), 1), 1 / curvature)
    moved[:, own] = constrained.constraint.prox(moved[:, own], step)
    return curvature * float(np.linalg.norm(rows - moved))
