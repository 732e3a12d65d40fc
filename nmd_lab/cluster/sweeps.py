"""The sweeps: a pass is a step of the partitions, and the H-step is done by the client."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from nmd_lab.data.entries import FloatArray
from nmd_lab.solver.gram import summed
from nmd_lab.solver.observed_sweep import ObservedSweep
from nmd_lab.solver.row_updates import update_rows
from nmd_lab.solver.sweep import EverywhereSweep, Sweep, SweepResult

from .checkpoints import take_sweep
from .cluster import Cluster
from .partition import Partition
from .rows import ClusterRows, Named


def make_sweep(partition: Partition, name: str, data: str, problem: Any, rank: int) -> tuple[float]:
    """Make the sweep over the rows of a partition, and return the square of the norm of T."""
    sweep: Sweep = problem_of(partition, data, problem).sweep(rank)
    partition.objects[name] = sweep
    return (sweep.now.size_of_T**2,)


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
    StW, CtW, sums = sweep.work_on_rows(W, H, penalty, next_W, update=update, projected=projected)
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
    size_of_T : float
        Norm of T at the start.
    products : dict
        Sums over the rows of the last two W, by their names.
    """

    name: str
    size_of_T: float
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

    def _pass(self, W: Any, H: FloatArray, penalty: float, *, update: bool, projected: bool) -> Any:
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
