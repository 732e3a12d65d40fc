"""The distance of factors from the first-order conditions, from sums over rows on workers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import Observations
from nmd_lab.engines.constrained_descents import kind_of_descent, relative_move
from nmd_lab.kernels.constrained_rows import ConstrainedColumns, proximal_move
from nmd_lab.kernels.envelope import Evaluation, MoreauEnvelope
from nmd_lab.kernels.lowrank import singular_factors

from .partitions import Partitions
from .rows import ClusterRows
from .sweeps import problem_of


def optimality_on_cluster(
    problem: Any,
    partitions: Partitions,
    parts: list[Any],
    W_aug: ClusterRows,
    H_aug: FloatArray,
    penalties: Sequence[float],
) -> float:
    """Return the distance of factors from the first-order conditions.

    As `nmd_lab.engines.stages.optimality`, from sums over the rows.  It is NaN for nonnegative
    factors and the divergence, whose gradients would need another pass.
    """
    if problem.is_constrained and kind_of_descent(problem) == "divergence":
        return math.nan  # the envelope is flat where x = y = 0
    gram = partitions.sum(gram_of, W_aug.parts)
    M, H = np.eye(len(gram)), H_aug.astype(np.float64)
    if not problem.is_constrained:
        columns = problem.offset_columns.components(len(gram))
        M[columns, columns], H[columns] = _balancing(gram[columns, columns], H[columns])
    rows = W_aug.with_columns(W_aug.columns @ M).parts
    solved_W, solved_H = problem.solved(W_aug)
    squares_W = np.diag(M.T @ gram @ M)[solved_W].clip(0)
    columns_of_H, norm_W = H[solved_H].T, math.sqrt(squares_W.sum()) or 1.0
    rank = len(gram) - problem.offset_columns.width
    alphas, constrained = problem.alphas(rank), problem.constrained_columns(rank)
    ridge = 0.0
    if not problem.is_constrained:
        squares_H = np.square(columns_of_H).sum(axis=0)
        ridge = 0.5 * float(alphas[0] @ squares_W + alphas[1] @ squares_H)
    lowest, without = math.inf, replace(problem, observations=None)
    for units in penalties:
        shared = (without, H.astype(H_aug.dtype), units * problem.penalty_scale)
        evaluations = partitions.map(evaluation, parts, rows, shared=shared)
        data_term, squared_primal, slopes_H = partitions.sum(sums_of, evaluations)
        size = 2 * max(data_term + ridge, problem.reference) or 1.0
        step = (solved_W, alphas[0], norm_W**2 / size, constrained[0])
        squared_W = partitions.sum(squared_move, evaluations, rows, shared=step)
        slopes = slopes_H[solved_H].T + alphas[1] * columns_of_H
        move_H = relative_move(columns_of_H, slopes, size, constrained[1])
        primal = math.sqrt(squared_primal) / problem.norm_of_initial_T
        lowest = min(lowest, max(math.sqrt(squared_W) / norm_W, move_H, primal))
    return lowest


def gram_of(W: FloatArray) -> FloatArray:
    """Return Wᵀ W of a partition."""
    rows = W.astype(np.float64)
    return rows.T @ rows


def evaluation(
    observations: Observations, W: FloatArray, problem: Any, H: FloatArray, penalty: float
) -> Evaluation:
    """Return the augmented Lagrangian of a partition at U = 0, and its gradients."""
    entries = problem_of(observations, problem).entries
    return MoreauEnvelope(entries, 1).evaluate(W, H, penalty)


def sums_of(result: Evaluation) -> tuple[float, float, FloatArray]:
    """Return the data term, the squared primal residual and the gradient of H."""
    return result.data_term, result.primal**2, result.gradient_H


def squared_move(
    result: Evaluation,
    W: FloatArray,
    solved: slice,
    alphas: FloatArray,
    length: float,
    constrained: ConstrainedColumns | None,
) -> float:
    """Return the squared length of a proximal gradient step of W with the factor `length`."""
    rows = W[:, solved]
    move = proximal_move(rows, result.gradient_W[:, solved] + alphas * rows, length, constrained)
    return float(np.sum(move * move))


def _balancing(gram: FloatArray, H: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return M and a new H, of the same Gram matrix as W M, so that W M times it is W H."""
    values, vectors = np.linalg.eigh(gram)
    root = np.sqrt(values.clip(0))
    alive = root > 1e-6 * root.max(initial=0)  # other components of W have died
    inverse = np.divide(vectors, root, out=np.zeros_like(vectors), where=alive)
    left, right, _ = singular_factors((vectors * root).T, H)  # gram = Rᵀ R for this R
    return inverse @ left, right
