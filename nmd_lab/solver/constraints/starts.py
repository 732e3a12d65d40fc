"""Starting factors that constraints allow, or nearly."""

from __future__ import annotations

import numpy as np

from nmd_lab.data.entries import FloatArray
from nmd_lab.solver.initialization import Start
from nmd_lab.solver.problem import Problem

from .base import FactorConstraint, InUnits, Simplex
from .factor_constraints import is_nonnegative


def random_within(problem: Problem, rank: int, start: Start, rng: np.random.Generator) -> Start:
    """Return a random start that suits the constraints of a problem.

    Nonnegative factors are uniform, of such a size that the mean of WH is that of T, so that no
    component begins at 0.  A factor without a bound keeps the numbers of `start`.
    """
    constraints = problem.constraints
    observations, model = problem.starting_data
    pseudo_inverse = model.nonlinearity.pseudo_inverse
    total, size = observations.weighted_sums(lambda x: np.abs(pseudo_inverse(x)))
    mean = size / total
    largest = 2.0 * np.sqrt((mean or 1.0) / rank)
    W, H = start.W, start.H
    if is_nonnegative(constraints.W):
        W = (largest * rng.random(W.shape)).astype(W.dtype)
    if is_nonnegative(constraints.H):
        H = (largest * rng.random(H.shape)).astype(H.dtype)
    return with_simplex(problem, start._replace(W=W, H=H))


def filled(start: Start, rng: np.random.Generator) -> Start:
    """Return a nonnegative start without zeros, which an iteration might not leave."""
    W, H = start.W, start.H
    for factor in (W, H):
        mean = float(np.mean(factor))
        zeros = factor <= 0
        factor[zeros] = (0.02 * mean * rng.random(int(zeros.sum()))).astype(factor.dtype)
    return start


def with_simplex(problem: Problem, start: Start) -> Start:
    """Return a start in which rows that must sum to one do so, at nearly the same product."""
    constraints, size = problem.constraints, 2.0**problem.units.exponent
    W, H = start.W, start.H
    if _is_simplex(constraints.W):
        W, mean = _normalized(W, size)
        H = H * H.dtype.type(mean)
    if _is_simplex(constraints.H):
        columns, mean = _normalized(H.T, size)
        H = np.ascontiguousarray(columns.T)
        W = W * W.dtype.type(mean) if not _is_simplex(constraints.W) else W
    return start._replace(W=np.ascontiguousarray(W), H=np.ascontiguousarray(H))


def _is_simplex(constraint: FactorConstraint | None) -> bool:
    return isinstance(constraint.plain if isinstance(constraint, InUnits) else constraint, Simplex)


def _normalized(rows: FloatArray, size: float) -> tuple[FloatArray, float]:
    """Return rows with sums of 1 / size, and the mean factor that this takes from them."""
    sums = np.abs(rows).sum(axis=1, keepdims=True) * size
    mean = float(np.mean(sums)) or 1.0
    return rows / np.where(sums > 0, sums, 1.0), mean
