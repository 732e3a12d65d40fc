"""Descents on the objective itself, where it is simple enough to need no split variable.

A descent has feasible factors.  Each step lowers the objective, or the descent takes it back.
`nmd_lab.solver.engines.constrained` runs descents one after the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from nmd_lab.data.entries import FloatArray
from nmd_lab.model.noise import POISSON
from nmd_lab.solver.problem import Problem

from .factor_constraints import is_nonnegative


class Descended(NamedTuple):
    """Factors after a step of a descent.

    Attributes
    ----------
    W_aug, H_aug : ndarray (m, rank + ...) and (rank + ..., n)
        Factors extended by the offsets; later steps do not change them.
    data_term, objective : float
        Loss without and with ridge and penalties.
    """

    W_aug: FloatArray
    H_aug: FloatArray
    data_term: float
    objective: float


class Descent(Protocol):
    """A descent on the objective of a problem."""

    def begin(self, W_aug: FloatArray, H_aug: FloatArray) -> Any:
        """Return the state of a descent that begins at feasible factors."""

    def step(self, state: Any) -> Descended:
        """Do one step in W and in H, and return the factors of lowest objective since `begin`."""


def kind_of_descent(problem: Problem) -> str | None:
    """Return which descent goes with a problem: "squares", "divergence" or None.

    Squares need complete data without weights, and constraints that hold row by row; the divergence
    needs nonnegative factors and no offsets.  A nonlinearity that is the identity for nonnegative
    WH counts as one.
    """
    kind, constraints = problem.model.single, problem.constraints
    if kind is None:
        return None
    f, loss = kind.nonlinearity, kind.loss
    both = is_nonnegative(constraints.W) and is_nonnegative(constraints.H)
    positive = both and problem.offset_columns.kind == "none"
    if not (f.form == "identity" or (positive and f.form in ("relu", "modulus"))):
        return None
    sides = problem.constrained_columns(1)
    if any(side is not None and side.couples_rows for side in sides):
        return None
    whole = not problem.sparse and problem.observations.weight_reader() is None
    if loss.squares and whole and not problem.observed_only:
        return "squares"
    entrywise = all(side is not None and side.entrywise is not None for side in sides)
    return "divergence" if loss.noise_model is POISSON and positive and entrywise else None


def with_other_components(
    W: FloatArray, H: FloatArray, chosen: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return factors in which some components are random, of the mean size of the others."""
    W, H = W.copy(), H.copy()
    for factor in (W.T, H):
        size = float(np.mean(np.abs(factor)))
        new = 2 * size * rng.random((len(chosen), factor.shape[1]))
        factor[chosen] = new if factor.min() >= 0 else np.sqrt(3) * (new - size)
    return W, H
