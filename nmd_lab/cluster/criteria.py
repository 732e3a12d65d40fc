"""What is measured of a fit on a cluster: held-out errors, and the distance from optimality."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nmd_lab.data.entries import FloatArray
from nmd_lab.solver.constraints.divergence import relative_move
from nmd_lab.solver.constraints.least_squares import kind_of_descent
from nmd_lab.solver.constraints.steps import proximal_move
from nmd_lab.solver.held_out import HeldOut
from nmd_lab.solver.refinement.moreau_envelope import Evaluation, MoreauEnvelope

from .cluster import Cluster
from .partition import Partition, set_up
from .rows import ClusterRows, Named, Taken
from .sweeps import problem_of


class HeldOutOnCluster:
    """Observed entries on workers that are not used in the fit; see `HeldOut`."""

    def __init__(self, cluster: Cluster, data: str, model: Any) -> None:
        self.named = Named(cluster, "score", in_rows=True)
        cluster.map(make_held_out, self.named.name, data, model, changes=True)

    def rmse(self, W_aug: ClusterRows, H_aug: FloatArray, model: Any = None) -> float:
        """Return the root mean squared error of the expected values, in the units of X."""
        step = (squared_errors, self.named.name, W_aug.taken, H_aug, model)
        squares, weights = self.named.cluster.sum(*step)
        return float(np.sqrt(squares / weights))


@set_up
def make_held_out(partition: Partition, name: str, data: str, model: Any) -> tuple[()]:
    """Make what compares the model with the held-out entries of a partition."""
    partition.rows[name] = HeldOut(partition.rows[data], model)
    return ()


def squared_errors(
    partition: Partition, name: str, W: Taken, H: FloatArray, model: Any
) -> tuple[float, float]:
    """Return the weighted sum of squared errors at held-out entries, and that of the weights."""
    score: HeldOut = partition.rows[name]
    return score.squared_errors(np.ascontiguousarray(W.of(partition)), H, model)


def slopes(
    partition: Partition, data: str, problem: Any, W: Taken, H: FloatArray, penalty: float
) -> tuple[Any, ...]:
    """Return the sums of the augmented Lagrangian at U = 0 and of its gradients."""
    result, rows = _evaluated(partition, data, problem, W, H, penalty)
    G, own_rows = result.gradient_W.astype(np.float64), rows.astype(np.float64)
    squares = (G.T @ G, G.T @ own_rows, own_rows.T @ own_rows)
    return result.data_term, result.primal**2, *squares, result.gradient_H


def squared_move(
    partition: Partition,
    data: str,
    problem: Any,
    W: Taken,
    H: FloatArray,
    penalty: float,
    length: float,
) -> tuple[float]:
    """Return the squared length of a proximal gradient step of W with the factor `length`."""
    result, rows = _evaluated(partition, data, problem, W, H, penalty)
    rank = rows.shape[1] - problem.offset_columns.width
    solved, _ = problem.offset_columns.solved(rank)
    (ridge, _), (constrained, _) = problem.alphas(rank), problem.constrained_columns(rank)
    move = proximal_move(
        rows[:, solved], result.gradient_W[:, solved] + ridge * rows[:, solved], length, constrained
    )
    return (float(np.sum(move * move)),)


def _evaluated(
    partition: Partition, data: str, problem: Any, W: Taken, H: FloatArray, penalty: float
) -> tuple[Evaluation, FloatArray]:
    """Return the augmented Lagrangian at U = 0 and its gradients, and the rows of W."""
    there = problem_of(partition, data, problem)
    rows = np.ascontiguousarray(W.of(partition))
    return MoreauEnvelope(there.entries, there.threads).evaluate(rows, H, penalty), rows


def optimality_on_cluster(
    problem: Any,
    cluster: Cluster,
    data: str,
    W_aug: ClusterRows,
    H_aug: FloatArray,
    penalties: Sequence[float],
) -> float:
    """Return the distance of factors from the first-order conditions.

    As `nmd_lab.solver.refinement.stages.optimality`, from sums over the rows.  Without constraints,
    the balanced factors are W M and M⁻¹ H for a matrix M that follows from Wᵀ W and H Hᵀ.  It is
    NaN for nonnegative factors and the divergence, whose gradients would need another pass.
    """
    if problem.is_constrained and kind_of_descent(problem) == "divergence":
        return math.nan  # the envelope is flat where x = y = 0
    without = replace(problem, observations=None)
    lowest = math.inf
    for units in penalties:
        rho = units * problem.natural_penalty
        arguments = (data, without, W_aug.taken, H_aug, rho)
        data_term, primal, *products, gradient_H = cluster.sum(slopes, *arguments)
        if problem.is_constrained:
            size = 2 * max(data_term, problem.reference) or 1.0
            H_move = _move_of_columns(problem, H_aug, gradient_H, size)
            rows = np.diag(products[2])[problem.solved(W_aug)[0]]
            squares = float(rows.sum()) or 1.0
            (moved,) = cluster.sum(squared_move, *arguments, squares / size)
            violation = max(H_move, math.sqrt(moved / squares))
        else:
            violation = _violation(problem, H_aug, data_term, products, gradient_H)
        lowest = min(lowest, max(violation, math.sqrt(primal) / problem.size_of_T))
    return lowest


def _move_of_columns(problem: Any, H_aug: FloatArray, gradient_H: FloatArray, size: float) -> float:
    """Return the relative length of a proximal gradient step of H."""
    rank = H_aug.shape[0] - problem.offset_columns.width
    _, solved = problem.offset_columns.solved(rank)
    (_, ridge), (_, constrained) = problem.alphas(rank), problem.constrained_columns(rank)
    columns = H_aug[solved].T
    return relative_move(columns, gradient_H[solved].T + ridge * columns, size, constrained)


def _violation(
    problem: Any, H_aug: FloatArray, data_term: float, products: Any, gradient_H: FloatArray
) -> float:
    """Return the larger relative norm of the gradients of W and of H, for balanced factors."""
    squares, cross, gram = products
    rank = gram.shape[0] - problem.offset_columns.width
    W_alphas, H_alphas = problem.alphas(rank)
    solved_W, solved_H = problem.offset_columns.solved(rank)
    columns = problem.offset_columns.components(gram.shape[0])
    turn = _balancing(gram[columns, columns], H_aug[columns].astype(np.float64))
    M = np.eye(len(gram))
    M[columns, columns] = turn
    H, G = np.linalg.solve(M, H_aug.astype(np.float64)), M.T @ gradient_H.astype(np.float64)
    gram = M.T @ gram @ M
    inverse = np.linalg.inv(M)  # the gradient of W M is G M⁻ᵀ
    squares, cross = inverse @ squares @ inverse.T, inverse @ cross @ M
    alpha = np.zeros(len(gram))
    alpha[solved_W] = W_alphas
    # the squares of G + W alpha, column by column
    with_ridge = np.diag(squares) + 2 * alpha * np.diag(cross) + alpha**2 * np.diag(gram)
    norm_W = math.sqrt(max(float(np.diag(gram)[solved_W].sum()), 0.0))
    slope_W = math.sqrt(max(float(with_ridge[solved_W].sum()), 0.0))
    slope_H = float(np.linalg.norm(G[solved_H] + H_alphas[:, None] * H[solved_H]))
    ridge = 0.5 * float(W_alphas @ np.diag(gram)[solved_W])
    ridge += 0.5 * float(H_alphas @ np.square(H[solved_H]).sum(axis=1))
    size = 2 * max(data_term + ridge, problem.reference) or 1.0
    return max(slope_W * norm_W, slope_H * float(np.linalg.norm(H[solved_H]))) / size


def _balancing(gram: FloatArray, H: FloatArray) -> FloatArray:
    """Return M with which W M and M⁻¹ H have the same Gram matrix."""
    values, vectors = np.linalg.eigh(gram)
    if values[0] <= 1e-12 * values[-1]:  # a component of W has died
        return np.eye(len(gram))
    root = np.sqrt(values)
    R = root[:, None] * vectors.T  # gram = Rᵀ R
    _, S = np.linalg.qr(H.T)
    U, sizes, _ = np.linalg.svd(R @ S.T)
    if sizes[-1] <= 1e-12 * sizes[0]:
        return np.eye(len(gram))
    return np.asarray(np.linalg.solve(R, U * np.sqrt(sizes)))
