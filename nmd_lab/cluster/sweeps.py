"""What a fit does with rows on workers: the SVD of its start, passes, held-out errors, optimality.

Each is the form of a function of the library for `ClusterObservations`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from nmd_lab.data.entries import FloatArray, GivenOffsets, has_offsets
from nmd_lab.data.observations import Observations
from nmd_lab.engines.constrained import kind_of_descent, relative_move
from nmd_lab.engines.stages import OPTIMALITY_PENALTIES, optimality
from nmd_lab.fit.held_out import HeldOut, score_of
from nmd_lab.kernels.envelope import Evaluation, MoreauEnvelope
from nmd_lab.kernels.products import Entries, RowBlocks, singular_factors, vectors_of_gram
from nmd_lab.kernels.row_steps import proximal_move, solver_for
from nmd_lab.kernels.sweep import EverywhereSweep, ObservedSweep, Sweep, SweepResult
from nmd_lab.model.fitted_values import Offsets
from nmd_lab.model.model import Model
from nmd_lab.problem.initialization import MAX_GRAM, Start, nonnegative_parts, svd_start
from nmd_lab.problem.problem import sweep_of

from .observations import ClusterObservations
from .partitions import ClusterEntries, ClusterRows, Partitions, RowProducts


class PartitionSweep:
    """T and U of a partition on a worker, and the passes over its rows.

    Attributes
    ----------
    sweep : Sweep
        Sweep over the rows.
    next_W : ndarray
        Rows of W that the last pass has made.
    """

    def __init__(
        self, observations: Observations, stored: dict[str, Any] | None, problem: Any, rank: int
    ) -> None:
        state = None if stored is None else Entries(**stored)
        self.sweep = problem_of(observations, problem).sweep(rank, state)
        self.next_W: FloatArray = np.empty((0, 0))

    def over_rows(
        self, W: FloatArray, H: FloatArray, penalty: float, factor: float, update: bool
    ) -> tuple[Any, ...]:
        """Make a pass, and return its sums and those of `RowProducts`."""
        sweep = self.sweep
        if factor != 1.0:
            sweep.rescale(factor)
        self.next_W = next_W = W.copy()
        row_step = sweep.row_step(W, H, penalty, next_W)
        StW, CtW, sums = sweep.over_rows(W, H, penalty, row_step, update=update)
        if isinstance(sweep, ObservedSweep):
            StW = np.zeros((0, 0), StW.dtype)  # its H-step has other sums
        change, value = next_W - W, 0.0
        if sweep.W_constraint is not None:
            value = sweep.W_constraint.value(next_W[:, sweep.solved_W])
        return StW, CtW, sums, next_W.T @ next_W, next_W.T @ change, change.T @ change, value


def problem_of(observations: Observations, problem: Any) -> Any:
    """Return the problem for the rows of a partition."""
    return replace(problem, observations=observations, threads=1)


class ClusterPasses(Sweep):
    """The pass over all rows, which lie on workers.

    Attributes
    ----------
    partitions : Partitions
        The workers.
    complete : bool
        Whether all entries are stored.
    factor : float
        Number by which U is to be multiplied before the next pass.
    """

    partitions: Partitions
    complete: bool
    factor: float

    def __post_init__(self) -> None:
        """Threads are those of the workers."""

    def rescale(self, factor: float) -> None:
        """Multiply U = Λ/ρ by ρ_old / ρ_new, at the next pass."""
        self.factor *= factor

    def update_T_and_W(
        self, W: Any, H: FloatArray, penalty: float, *, update: bool = True
    ) -> SweepResult:
        """Update T and U at A = WH, then take the next W-step, on the workers."""
        sweeps: Any = self.entries.sweeps
        factor, self.factor = self.factor, 1.0
        StW, CtW, sums, *products = self.partitions.sum(
            PartitionSweep.over_rows, sweeps, W.parts, shared=(H, penalty, factor, update)
        )
        blocks = self.partitions.map(attrgetter("next_W"), sweeps)
        of_rows = RowProducts(*products)
        columns = np.eye(W.shape[1])
        next_W: Any = ClusterRows(self.partitions, blocks, columns, W.dtype, products=of_rows)
        result = SweepResult(next_W, StW)
        if update:
            self._set_residuals(result, CtW, sums)
        return result

    def _ridge_of_rows(self, W: Any) -> float:
        squares = np.diag(W.products.gram).astype(np.float64)
        return self.ridge_W.of_squares(squares[self.solved_W]) + float(W.products.value)

    def _ridge_of_columns(self, result: Any, penalty: float) -> FloatArray:
        squares = np.diag(result.W.products.gram)[self.solved_H]
        total = float(np.sum(squares, dtype=np.float64))
        return self.ridge_H.for_norm(total, squares.dtype, penalty)


class EverywhereOnCluster(ClusterPasses, EverywhereSweep):
    """Algorithm 1, which imposes T = WH on every entry."""

    def _products_of_rows(
        self, result: Any, W: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        gram, cross, squares, _ = result.W.products
        return gram, cross, None if self.complete else squares


class ObservedOnCluster(ClusterPasses, ObservedSweep):
    """Small least-squares problems; those of the columns are solved here, from sums."""

    def update_H(self, result: SweepResult, W: Any, H: FloatArray, penalty: float) -> FloatArray:
        """Return the next H after the pass that was made with W and H."""
        next_W: Any = result.W

        def sums_of(each: Any, W: FloatArray, next_W: FloatArray, H: FloatArray) -> Any:
            return each.sweep.column_sums(next_W - W, next_W, H)

        local: Any = self.entries.sweeps, W.parts, next_W.parts
        normals, gradients = self.partitions.sum(sums_of, *local, shared=(H,))
        ridge, next_Ht = self._ridge_of_columns(result, penalty), np.ascontiguousarray(H.T)
        columns = next_Ht[:, self.solved_H]
        columns[:] = solver_for(self.H_constraint, normals, ridge, penalty)(columns, gradients)
        return np.ascontiguousarray(next_Ht.T)


@sweep_of.register
def _(observations: ClusterObservations, problem: Any, rank: int, state: Any = None) -> Any:
    partitions = observations.partitions
    W_constraint, H_constraint = problem.constrained_columns(rank)
    for name, each in (("w_constraint", W_constraint), ("h_constraint", H_constraint)):
        coupled = each is not None and each.couples_rows
        if coupled and (each is W_constraint or problem.observed_only):
            raise ValueError(
                f"{name}={each.constraint!r} does not go with rows on a cluster, which it couples: "
                "leave client= out, or take another constraint."
            )
    entries = ClusterEntries() if state is None else state
    # before workers of this process ask the same: on Python 3.11 one would wait for the other
    empty = () if problem.observed_only else (problem.empty[1],)
    if entries.sweeps is None:
        shared = (replace(problem, observations=None), rank)
        local = observations.parts, entries.stored or [None] * len(partitions)
        entries.sweeps = partitions.map(PartitionSweep, *local, shared=shared, actor=True)
        entries.stored = None
    kind: Any = ObservedOnCluster if problem.observed_only else EverywhereOnCluster
    sweep = kind(
        *(entries, entries, *problem.ridges(rank), *problem.offset_columns.solved(rank)),
        *(1, W_constraint, H_constraint, problem.rule.projected),
        *empty,
    )
    sweep.partitions, sweep.complete, sweep.factor = partitions, not problem.sparse, 1.0
    return sweep


@score_of.register(ClusterObservations)
class HeldOutOnCluster:
    """Observed entries on workers that are not used in the fit; see `HeldOut`."""

    def __init__(self, held_out: ClusterObservations, model: Any) -> None:
        self.partitions = held_out.partitions
        self.scores = self.partitions.map(HeldOut, held_out.parts, shared=(model,))

    def rmse(self, W_aug: ClusterRows, H_aug: FloatArray, model: Any = None) -> float:
        """Return the root mean squared error of the expected values, in the units of X."""
        local, shared = (self.scores, W_aug.parts), (H_aug, model)
        squares, weights = self.partitions.sum(HeldOut.squared_errors, *local, shared=shared)
        return float(np.sqrt(squares / weights))


@optimality.register
def _(observations: ClusterObservations, problem: Any, W_aug: Any, H_aug: FloatArray) -> float:
    """Return the distance of factors from the first-order conditions, from sums over the rows.

    It is NaN for nonnegative factors and the divergence, whose gradients would need another pass.
    """
    partitions = observations.partitions
    if problem.is_constrained and kind_of_descent(problem) == "divergence":
        return math.nan  # the envelope is flat where x = y = 0
    gram = partitions.sum(lambda W: W.T.astype(np.float64) @ W, W_aug.parts)
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

    def squared_move(result: Evaluation, W: FloatArray, length: float) -> float:
        slopes = result.gradient_W[:, solved_W] + alphas[0] * W[:, solved_W]
        return float(np.sum(proximal_move(W[:, solved_W], slopes, length, constrained[0]) ** 2))

    lowest, without = math.inf, replace(problem, observations=None)
    for units in OPTIMALITY_PENALTIES:
        shared = (without, H.astype(H_aug.dtype), units * problem.penalty_scale)
        evaluations = partitions.map(evaluation, observations.parts, rows, shared=shared)
        data_term, squared_primal, slopes_H = partitions.sum(
            lambda each: (each.data_term, each.primal**2, each.gradient_H), evaluations
        )
        size = 2 * max(data_term + ridge, problem.reference) or 1.0
        squared_W = partitions.sum(squared_move, evaluations, rows, shared=(norm_W**2 / size,))
        slopes = slopes_H[solved_H].T + alphas[1] * columns_of_H
        move_H = relative_move(columns_of_H, slopes, size, constrained[1])
        primal = math.sqrt(squared_primal) / problem.norm_of_initial_T
        lowest = min(lowest, max(math.sqrt(squared_W) / norm_W, move_H, primal))
    return lowest


def evaluation(
    observations: Observations, W: FloatArray, problem: Any, H: FloatArray, penalty: float
) -> Evaluation:
    """Return the augmented Lagrangian of a partition at U = 0, and its gradients."""
    entries = problem_of(observations, problem).entries
    return MoreauEnvelope(entries, 1).evaluate(W, H, penalty)


def _balancing(gram: FloatArray, H: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return M and a new H, of the same Gram matrix as W M, so that W M times it is W H."""
    values, vectors = np.linalg.eigh(gram)
    root = np.sqrt(values.clip(0))
    alive = root > 1e-6 * root.max(initial=0)  # other components of W have died
    inverse = np.divide(vectors, root, out=np.zeros_like(vectors), where=alive)
    left, right, _ = singular_factors((vectors * root).T, H)  # gram = Rᵀ R for this R
    return inverse @ left, right


@svd_start.register
def _(
    observations: ClusterObservations,
    model: Model,
    rank: int,
    offsets: Offsets,
    rng: np.random.Generator,
    kind: str = "svd",
) -> Start:
    """Return U √Σ, whose rows stay on the workers, and √Σ Vᵀ.

    They come from the eigenvectors of Aᵀ A, so that only vectors of the length of a row travel.
    """
    partitions, to_T, fill = observations.partitions, model.pseudo_inverse, 0.0
    filled_offsets: GivenOffsets = offsets
    (m, n), dtype = observations.shape, observations.dtype
    if observations.n_observed < m * n and not has_offsets(offsets):
        fill = observations.sum_of(lambda x, _: to_T(x)) / observations.n_observed
        filled_offsets = fill, None, None

    def residual(X: Observations, here: GivenOffsets) -> RowBlocks:
        matrix, constant = X.centred(to_T, here)
        return RowBlocks(matrix, constant + fill)

    A = partitions.map(residual, observations.parts, observations.each_offsets(filled_offsets))

    def twice(v: FloatArray) -> Any:
        return partitions.sum(lambda A, v: A.transposed_product(A.product(v)), A, shared=(v,))

    if n <= max(MAX_GRAM, rank):
        gram = partitions.sum(RowBlocks.gram, A)
        found: Any = eigh(gram, subset_by_index=[n - rank, n - 1])
    else:
        product = LinearOperator((n, n), matvec=twice, dtype=np.float64)
        found = eigsh(product, rank, v0=rng.standard_normal(n), tol=1e-10)
    scaled, H = vectors_of_gram(*found)
    blocks = partitions.map(
        lambda A, V: np.ascontiguousarray(A.product(V), dtype), A, shared=(scaled,)
    )
    W: Any = ClusterRows(partitions, blocks, np.eye(rank), dtype)
    if kind == "nndsvd":
        W, H = (each.astype(dtype) for each in nonnegative_parts(np.asarray(W), H.astype(dtype)))
    return Start(W, H.astype(dtype), False, offsets, kind=kind)
