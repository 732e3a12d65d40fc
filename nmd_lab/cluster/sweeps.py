"""Passes over rows that lie on workers: those of Algorithm 1, and what tells the optimality."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import Observations
from nmd_lab.engines.constrained_descents import kind_of_descent, relative_move
from nmd_lab.fit.held_out import HeldOut
from nmd_lab.kernels.constrained_rows import ConstrainedColumns, proximal_move
from nmd_lab.kernels.envelope import Evaluation, MoreauEnvelope
from nmd_lab.kernels.lowrank import singular_factors
from nmd_lab.kernels.products import Entries
from nmd_lab.kernels.row_sums import summed, update_rows
from nmd_lab.kernels.sweep import EverywhereSweep, ObservedSweep, Sweep, SweepResult

from .partitions import ClusterRows, Partitions, RowProducts


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

    def squares_of_initial_T(self) -> float:
        """Return the square of the norm of T at the start."""
        return float(self.sweep.state.norm_of_initial_T) ** 2

    def over_rows(
        self,
        W: FloatArray,
        H: FloatArray,
        penalty: float,
        factor: float,
        update: bool,
        projected: bool,
    ) -> tuple[Any, ...]:
        """Make a pass, and return its sums and those of `RowProducts`."""
        sweep = self.sweep
        sweep.rescale(factor)
        self.next_W = next_W = W.copy()
        StW, CtW, sums = sweep.over_rows(W, H, penalty, next_W, update=update, projected=projected)
        if isinstance(sweep, ObservedSweep):
            StW = np.zeros((0, 0), StW.dtype)  # its H-step has other sums
        change, value = next_W - W, 0.0
        if sweep.W_constraint is not None:
            value = sweep.W_constraint.value(next_W[:, sweep.solved_W])
        return StW, CtW, sums, next_W.T @ next_W, next_W.T @ change, change.T @ change, value

    def column_sums(
        self, W: FloatArray, next_W: FloatArray, H: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the sums for the H-step of `ObservedSweep`; see its method of this name."""
        assert isinstance(self.sweep, ObservedSweep)
        sums: tuple[FloatArray, FloatArray] = self.sweep.column_sums(next_W - W, next_W, H)
        return sums


def problem_of(observations: Observations, problem: Any) -> Any:
    """Return the problem for the rows of a partition."""
    return replace(problem, observations=observations, threads=1)


class ClusterEntries:
    """T and U on the workers.

    Attributes
    ----------
    norm_of_initial_T : float
        Norm of T at the start.
    sweeps : list of Future or None
        The `PartitionSweep` of each partition, an actor; None if it is not made yet.
    stored : list of Future or None
        Arrays that were read from a checkpoint, for each partition.
    """

    def __init__(self, norm_of_initial_T: float, stored: list[Any] | None = None) -> None:
        self.norm_of_initial_T, self.stored = norm_of_initial_T, stored
        self.sweeps: list[Any] | None = None


class ClusterPasses(Sweep):
    """The pass over all rows, which lie on workers.

    Attributes
    ----------
    partitions : Partitions
        The workers.
    entries : ClusterEntries
        T and U.
    complete : bool
        Whether all entries are stored.
    factor : float
        Number by which U is to be multiplied before the next pass.
    """

    partitions: Partitions
    entries: ClusterEntries
    complete: bool
    factor: float

    def __post_init__(self) -> None:
        """Threads are those of the workers."""

    def on(self, partitions: Partitions, entries: ClusterEntries, *, complete: bool) -> None:
        """Set where the rows are."""
        self.partitions, self.entries, self.complete = partitions, entries, complete
        self.factor = 1.0

    @property
    def state(self) -> ClusterEntries:
        """T and U."""
        return self.entries

    def rescale(self, factor: float) -> None:
        """Multiply U = Λ/ρ by ρ_old / ρ_new, at the next pass."""
        self.factor *= factor

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
        sweeps: Any = self.entries.sweeps
        factor, self.factor = self.factor, 1.0
        shared = (H, penalty, factor, update, projected)
        StW, CtW, sums, *products = self.partitions.sum(
            PartitionSweep.over_rows, sweeps, W.parts, shared=shared
        )
        blocks = self.partitions.map(attrgetter("next_W"), sweeps)
        of_rows = RowProducts(*products)
        next_W: Any = ClusterRows(self.partitions, blocks, W.shape[1], W.dtype, products=of_rows)
        result = SweepResult(next_W, StW)
        if update:
            self._set_residuals(result, CtW if projected else None, sums)
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
        local: Any = self.entries.sweeps, W.parts, next_W.parts
        normals, gradients = self.partitions.sum(PartitionSweep.column_sums, *local, shared=(H,))
        ridge, next_Ht = self._ridge_of_columns(result, penalty), np.ascontiguousarray(H.T)
        columns, sums = slice(0, H.shape[1]), summed(normals, gradients)
        update_rows(self.H_constraint, sums, ridge, penalty, columns, self.solved_H, next_Ht)
        return np.ascontiguousarray(next_Ht.T)


def sweep_on_cluster(
    problem: Any,
    partitions: Partitions,
    parts: list[Any],
    rank: int,
    state: ClusterEntries | None = None,
) -> EverywhereOnCluster | ObservedOnCluster:
    """Return the sweep of a `Problem` whose rows lie on workers; `parts` has those of X.

    T and U are at their start, or as an earlier sweep had them.
    """
    W_constraint, H_constraint = problem.constrained_columns(rank)
    for name, each in (("w_constraint", W_constraint), ("h_constraint", H_constraint)):
        coupled = each is not None and each.couples_rows
        if coupled and (each is W_constraint or problem.observed_only):
            raise ValueError(
                f"{name}={each.constraint!r} does not go with rows on a cluster, which it couples: "
                "leave client= out, or take another constraint."
            )
    entries = ClusterEntries(math.nan) if state is None else state
    if entries.sweeps is None:
        stored = entries.stored or [None] * len(partitions)
        shared = (replace(problem, observations=None), rank)
        entries.sweeps = partitions.map(PartitionSweep, parts, stored, shared=shared, actor=True)
        entries.stored = None
    if state is None:
        squares = partitions.sum(PartitionSweep.squares_of_initial_T, entries.sweeps)
        entries.norm_of_initial_T = math.sqrt(squares)
    kind: Any = ObservedOnCluster if problem.observed_only else EverywhereOnCluster
    sweep: EverywhereOnCluster | ObservedOnCluster = kind(
        *(None, None, *problem.ridges(rank), *problem.offset_columns.solved(rank)),
        *(1, W_constraint, H_constraint),
        *(() if problem.observed_only else (problem.empty[1],)),
    )
    sweep.on(partitions, entries, complete=not problem.sparse)
    return sweep


class HeldOutOnCluster:
    """Observed entries on workers that are not used in the fit; see `HeldOut`."""

    def __init__(self, partitions: Partitions, parts: list[Any], model: Any) -> None:
        self.partitions, self.scores = partitions, partitions.map(HeldOut, parts, shared=(model,))

    def rmse(self, W_aug: ClusterRows, H_aug: FloatArray, model: Any = None) -> float:
        """Return the root mean squared error of the expected values, in the units of X."""
        local, shared = (self.scores, W_aug.parts), (H_aug, model)
        squares, weights = self.partitions.sum(HeldOut.squared_errors, *local, shared=shared)
        return float(np.sqrt(squares / weights))


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
