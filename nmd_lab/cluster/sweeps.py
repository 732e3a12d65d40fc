"""Sweeps, held-out errors and the distance from optimality on a cluster.

A pass is a step of the partitions, and the client does the H-step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from nmd_lab.data.entries import FloatArray
from nmd_lab.engines.constrained_descents import kind_of_descent, relative_move
from nmd_lab.fit.held_out import HeldOut
from nmd_lab.kernels.constrained_rows import proximal_move
from nmd_lab.kernels.envelope import Evaluation, MoreauEnvelope
from nmd_lab.kernels.row_sums import summed, update_rows
from nmd_lab.kernels.sweep import EverywhereSweep, ObservedSweep, Sweep, SweepResult

from .partition import Cluster, Partition, set_up
from .rows import ClusterRows, Named, Taken, take_sweep


def make_sweep(partition: Partition, name: str, data: str, problem: Any, rank: int) -> tuple[float]:
    """Make the sweep over the rows of a partition, and return the square of the norm of T."""
    sweep: Sweep = problem_of(partition, data, problem).sweep(rank)
    partition.objects[name] = sweep
    return (sweep.now.norm_of_initial_T**2,)


make_sweep.makes_sweep = True  # type: ignore[attr-defined]


def problem_of(partition: Partition, data: str, problem: Any) -> Any:
    """Return the problem for the rows of a partition."""
    there = replace(problem, observations=partition.rows[data], threads=1)
    there.__dict__["empty"] = (np.empty(0, np.intp), np.empty(0, np.intp))  # the client has these
    return there


def sweep_rows(
    partition: Partition,
    name: str,
    W_name: str,
    of_next: str,
    H: FloatArray,
    penalty: float,
    factor: float,
    update: bool,
    projected: bool,
) -> tuple[Any, ...]:
    """Make the pass over the rows of a partition."""
    sweep: Sweep = partition.objects[name]
    W: FloatArray = partition.objects[W_name]
    sweep.split_variable.rescale(factor)
    next_W = W.copy()
    StW, CtW, sums = sweep.over_rows(W, H, penalty, next_W, update=update, projected=projected)
    partition.objects[of_next] = next_W
    if isinstance(sweep, ObservedSweep):
        StW = np.zeros((0, 0), StW.dtype)  # its H-step has sums of its own
    change, value = next_W - W, 0.0
    if sweep.W_constraint is not None:
        value = sweep.W_constraint.value(next_W[:, sweep.solved_W])
    return StW, CtW, sums, next_W.T @ next_W, next_W.T @ change, change.T @ change, value


def column_sums(
    partition: Partition, name: str, W_name: str, next_name: str, H: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the sums for the H-step of `ObservedSweep`; see its method of this name."""
    sweep: ObservedSweep = partition.objects[name]
    W, next_W = partition.objects[W_name], partition.objects[next_name]
    sums: tuple[FloatArray, FloatArray] = sweep.column_sums(next_W - W, next_W, H)
    return sums


class RemoteStorage:
    """The client's part of the positions of the entries."""

    def __init__(self, *, complete: bool) -> None:
        self.complete = complete


class RowProducts(NamedTuple):
    """Sums over the rows of the last two W.

    Attributes
    ----------
    gram, cross, squares : ndarray (rank, rank)
        Wᵀ W, Wᵀ D and Dᵀ D for the next W and its change D.
    value : float
        Penalty of a constraint on the next W.
    """

    gram: FloatArray
    cross: FloatArray
    squares: FloatArray
    value: float


@dataclass
class RemoteEntries:
    """The client's part of T and U, which the partitions hold.

    Attributes
    ----------
    name : str
        Name of the sweeps of the partitions.
    norm_of_initial_T : float
        Norm of T at the start.
    products : dict
        Sums over the rows of the last two W, by their names.
    """

    name: str
    norm_of_initial_T: float
    products: dict[str, RowProducts] = field(default_factory=dict)


class RemoteSplitVariable:
    """The client's part of the update of T and U.

    Attributes
    ----------
    factor : float
        Number by which U is to be multiplied before the next pass.
    """

    def __init__(self, now: RemoteEntries) -> None:
        self.now, self.factor = now, 1.0

    def rescale(self, factor: float) -> None:
        """Multiply U = Λ/ρ by ρ_old / ρ_new, at the next pass."""
        self.factor *= factor


class ClusterPasses(Sweep):
    """The pass over all rows, which lie on workers.

    Attributes
    ----------
    cluster : Cluster
        The workers.
    named : Named
        The sweeps of the partitions.
    """

    cluster: Cluster
    named: Named

    def __post_init__(self) -> None:
        """Threads are those of the workers."""
        self.parts = 1

    def on(self, named: Named) -> None:
        """Set the sweeps of the partitions."""
        self.cluster, self.named = named.cluster, named

    def update_T_and_W(
        self,
        W: Any,
        H: FloatArray,
        penalty: float,
        *,
        update: bool = True,
        projected: bool = False,
    ) -> SweepResult:
        """Update T and U at A = WH, then take the next W-step, on the workers."""
        next_W = ClusterRows.new(self.cluster, len(W.columns), W.dtype)
        split_variable: Any = self.split_variable
        factor, split_variable.factor = split_variable.factor, 1.0
        numbers = (H, penalty, factor, update, projected)
        StW, CtW, sums, *products = self.cluster.sum(
            sweep_rows, self.named.name, W.name, next_W.name, *numbers, changes=True
        )
        before = {name: each for name, each in self.now.products.items() if name == W.name}
        self.now.products = before | {next_W.name: RowProducts(*products)}
        result = SweepResult(next_W, StW)  # type: ignore[arg-type]
        if update:
            self._set_residuals(result, CtW if projected else None, sums)
        return result

    def _of(self, W: Any) -> RowProducts:
        """Return the sums over the rows of W, which the pass that made it has returned."""
        products: dict[str, RowProducts] = self.now.products
        return products[W.name]

    def _ridge_of_rows(self, W: Any) -> float:
        squares = np.diag(self._of(W).gram).astype(np.float64)
        return self.ridge_W.of_squares(squares[self.solved_W]) + self._of(W).value

    def _ridge_of_columns(self, result: SweepResult, penalty: float) -> FloatArray:
        squares = np.diag(self._of(result.W).gram)[self.solved_H]
        total = float(np.sum(squares, dtype=np.float64))
        return self.ridge_H.for_norm(total, squares.dtype, penalty)


class EverywhereOnCluster(ClusterPasses, EverywhereSweep):
    """Algorithm 1, which imposes T = WH on every entry."""

    def _products_of_rows(
        self, result: SweepResult, W: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        gram, cross, squares, _ = self._of(result.W)
        return gram, cross, None if self.storage.complete else squares


class ObservedOnCluster(ClusterPasses, ObservedSweep):
    """Small least-squares problems; those of the columns are solved here, from sums."""

    def update_H(self, result: SweepResult, W: Any, H: FloatArray, penalty: float) -> FloatArray:
        """Return the next H after the pass that was made with W and H."""
        next_W: Any = result.W
        names = (self.named.name, W.name, next_W.name)
        normals, gradients = self.cluster.sum(column_sums, *names, H)
        ridge, next_Ht = self._ridge_of_columns(result, penalty), np.ascontiguousarray(H.T)
        columns, sums = slice(0, H.shape[1]), summed(normals, gradients)
        update_rows(self.H_constraint, sums, ridge, penalty, columns, self.solved_H, next_Ht)
        return np.ascontiguousarray(next_Ht.T)


def sweep_on_cluster(
    problem: Any, cluster: Cluster, data: str, rank: int, now: RemoteEntries | None = None
) -> EverywhereOnCluster | ObservedOnCluster:
    """Return the sweep of a `Problem` whose rows lie on workers.

    T and U are at their start, or as they were read for an earlier sweep.
    """
    W_constraint, H_constraint = problem.constrained_columns(rank)
    for name, each in (("w_constraint", W_constraint), ("h_constraint", H_constraint)):
        coupled = each is not None and each.couples_rows
        if coupled and (each is W_constraint or problem.observed_only):
            raise ValueError(
                f"{name}={each.constraint!r} does not go with rows on a cluster, which it couples: "
                "leave client= out, or take another constraint."
            )
    named = Named(cluster, "sweep")
    without = replace(problem, observations=None)
    (squares,) = cluster.sum(make_sweep, named.name, data, without, rank, changes=True)
    if now is None:
        now = RemoteEntries(named.name, math.sqrt(squares))
    else:
        cluster.map(take_sweep, named.name, now.name, changes=True)
        now.name = named.name
    ridges = problem.ridges(rank)
    kind: Any = ObservedOnCluster if problem.observed_only else EverywhereOnCluster
    sweep: EverywhereOnCluster | ObservedOnCluster = kind(
        *(RemoteStorage(complete=not problem.sparse), RemoteSplitVariable(now)),
        *(*ridges, *problem.offset_columns.solved(rank), 1, W_constraint, H_constraint),
        *(() if problem.observed_only else (problem.empty[1],)),
    )
    sweep.on(named)
    return sweep


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

    As `nmd_lab.engines.stages.optimality`, from sums over the rows.  Without constraints,
    the balanced factors are W M and M⁻¹ H for a matrix M that follows from Wᵀ W and H Hᵀ.  It is
    NaN for nonnegative factors and the divergence, whose gradients would need another pass.
    """
    if problem.is_constrained and kind_of_descent(problem) == "divergence":
        return math.nan  # the envelope is flat where x = y = 0
    without = replace(problem, observations=None)
    lowest = math.inf
    for units in penalties:
        rho = units * problem.penalty_scale
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
        lowest = min(lowest, max(violation, math.sqrt(primal) / problem.norm_of_initial_T))
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
