"""The loop of Algorithm 1, as an iterator of states.

With A = WH and the scaled dual variable U = Λ/ρ, one iteration is

    W ← Z Hᵀ (H Hᵀ + ridge I)⁻¹                  Z = T + U
    H ← (WᵀW + ridge I)⁻¹ Wᵀ Z
    V = A - U;   T ← prox(V; X, ρ) on Ω, V elsewhere;   U ← T - V
    ρ ← rule(residuals);   U rescaled by ρ_old / ρ_new

A sweep does the last T- and U-update and the next W-step in one go, since both need only the rows
at hand; the loop below is therefore read from the H-step on.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nmd_lab.data.base import FloatArray, Observations
from nmd_lab.model.proximal import Pair

from .initialization import Start
from .observed_sweep import ObservedSteps
from .offsets import NO_OFFSETS, Extension, Offsets
from .penalty import BALANCED, PenaltyRule
from .split_variable import Splitting
from .storage import SparseLayout, layout_of
from .sweep import EverywhereSteps, Ridge, Steps


@dataclass(frozen=True)
class State:
    """One iteration's result; its arrays are never written to again.

    Attributes
    ----------
    iteration : int
        1 for the first.
    W, H : ndarray (m, rank), (rank, n)
        The factors.
    offsets : Offsets
        What stands beside WH inside f.
    left, right : ndarray (m, rank + ...), (rank + ..., n)
        The factors with the offsets beside them, so that ``left @ right`` is what f is applied to.
    objective : float
        Weighted loss of f(WH) on Ω plus alpha/2 (‖W‖² + ‖H‖²).
    relative_error : float
        The data term as the loss's relative error.
    primal_residual : float
        ‖T - WH‖.
    dual_residual : float
        ρ‖T - T_previous‖ (ρ‖Wᵀ(T - T_previous)‖ for the rule "paper").
    penalty : float
        ρ of this iteration.
    stillness : float
        max(‖T - WH‖, ‖T - T_previous‖) over the norm of the starting T: what `tol` bounds.
    seconds : float
        Since the start.
    settled : str
        Why the run may end here; "" if it goes on.
    """

    iteration: int
    W: FloatArray
    H: FloatArray
    offsets: Offsets
    left: FloatArray
    right: FloatArray
    objective: float
    relative_error: float
    primal_residual: float
    dual_residual: float
    penalty: float
    stillness: float
    seconds: float
    settled: str = ""

    @property
    def is_finite(self) -> bool:
        """Whether every number of the iteration is finite."""
        return math.isfinite(self.objective + self.primal_residual + self.dual_residual)


@dataclass(frozen=True)
class Problem:
    """Everything that an iteration needs to know, except where it starts.

    Attributes
    ----------
    observations : Observations
        The data.
    pair : Pair
        Nonlinearity and loss.
    rule : PenaltyRule
        Gives ρ.
    alpha, epsilon : float
        Ridge terms of both factor steps: epsilon ‖other factor‖² + alpha / ρ.
    extension : Extension
        The offsets beside the factors.
    observed_only : bool
        Whether T = WH is imposed on the observed entries alone (`nmd_lab.solver.observed_sweep`).
    threads : int
        How many shares of sparse data are worked on at the same time.
    """

    observations: Observations
    pair: Pair
    rule: PenaltyRule = BALANCED
    alpha: float = 0.0
    epsilon: float = 1e-12
    extension: Extension = NO_OFFSETS
    observed_only: bool = False
    threads: int = 1

    def steps(self, rank: int) -> Steps:
        """Return the sweep and the H-step, with T and U at their start."""
        splitting = Splitting(
            self.observations, self.pair, everywhere=self.sparse and not self.observed_only
        )
        free = self.extension.free(rank)
        ridge = Ridge(self.epsilon, self.alpha)
        layout = layout_of(self.observations)
        if self.observed_only:
            assert isinstance(layout, SparseLayout)
            return ObservedSteps(layout, splitting, ridge, *free, self.threads)
        return EverywhereSteps(layout, splitting, ridge, *free, self.threads)

    def free(self, left: FloatArray, right: FloatArray) -> tuple[slice, slice]:
        """Return which columns and rows of factors with offsets beside them are solved for."""
        return self.extension.free(left.shape[1] - self.extension.width)

    @property
    def sparse(self) -> bool:
        """Whether only the observed entries are stored."""
        return self.observations.pattern is not None


def admm(problem: Problem, start: Start) -> Iterator[State]:
    """Iterate Algorithm 1 for ever.

    Parameters
    ----------
    problem : Problem
        What is solved, and how.
    start : Start
        Starting factors.

    Yields
    ------
    State
        After each iteration.
    """
    began = time.perf_counter()
    rule, loss, extension = problem.rule, problem.pair.loss, problem.extension
    W, H = extension.extend(start.W, start.H, start.offsets)
    steps = problem.steps(start.W.shape[1])
    size = float(np.linalg.norm(steps.splitting.T)) or 1.0
    reference = loss.reference(*problem.observations.observed())
    rho, next_penalty = rule.initial, rule.begin()

    if start.from_factors:
        sweep = steps.sweep(W, H, rho)
    else:
        W[:, steps.free_W] = 0  # Z = T, with no low-rank part but that of offsets
        sweep = steps.sweep(W, H, rho, update=False)

    for iteration in itertools.count(1):
        H = steps.next_H(sweep, W, H, rho)
        W = sweep.W
        sweep = steps.sweep(W, H, rho, projected=rule.projected)

        dual = rho * (sweep.projected_change if rule.projected else sweep.change)
        norms = steps.squared_norm(W, H)
        objective = sweep.data_term + 0.5 * problem.alpha * norms
        yield State(
            iteration,
            *extension.split(W, H),
            left=W,
            right=H,
            objective=objective,
            relative_error=loss.relative_error(sweep.data_term, reference),
            primal_residual=sweep.primal,
            dual_residual=dual,
            penalty=rho,
            stillness=max(sweep.primal, sweep.change) / size,
            seconds=time.perf_counter() - began,
        )

        new_rho = next_penalty(rho, sweep.primal, dual, objective)
        if new_rho != rho:  # the sweep took the next W-step with the old ρ: take it again
            steps.splitting.rescale(rho / new_rho)
            rho = new_rho
            sweep = steps.sweep(W, H, rho, update=False)
