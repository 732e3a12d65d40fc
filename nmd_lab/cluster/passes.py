"""The steps of a fit that run on the partitions: each works on rows and returns sums over them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nmd_lab.data.entries import FloatArray
from nmd_lab.solver.constraints.steps import proximal_move
from nmd_lab.solver.held_out import HeldOut
from nmd_lab.solver.observed_sweep import ObservedSweep
from nmd_lab.solver.refinement.moreau_envelope import Evaluation, MoreauEnvelope
from nmd_lab.solver.storage import storage_of
from nmd_lab.solver.sweep import Sweep

from .partition import Partition, set_up
from .rows import Taken


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
    storage = storage_of(there.observations)
    envelope = MoreauEnvelope(there.observations, there.model, storage, there.threads)
    rows = np.ascontiguousarray(W.of(partition))
    return envelope.evaluate(rows, H, penalty), rows
