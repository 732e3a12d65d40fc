"""Algorithm 1.

With A = WH and the scaled dual variable U = Λ/ρ, one iteration is

    W ← Z Hᵀ (H Hᵀ + ridge I)⁻¹                  Z = T + U
    H ← (WᵀW + ridge I)⁻¹ Wᵀ Z
    V = A - U;   T ← prox(V; X, ρ) on Ω, V elsewhere;   U ← T - V
    ρ ← rule(residuals);   U rescaled by ρ_old / ρ_new

The T- and U-update and the next W-step need one block of rows at a time, so that one pass over the
data does both.  A step therefore begins with ρ and the H-step.

Source: A. Awari, N. Gillis and A. Vandaele, "Alternating Direction Method of Multipliers for
Nonlinear Matrix Decompositions", Algorithm 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from nmd_lab._runtime.progress import StopReason
from nmd_lab.data.entries import FloatArray
from nmd_lab.kernels.sweep import Sweep, SweepResult
from nmd_lab.problem.initialization import Start
from nmd_lab.problem.problem import Problem
from nmd_lab.problem.state import Iterate
from nmd_lab.request.penalty import PenaltyControl


@dataclass
class AdmmState:
    """W and H, the pass that was made with them, ρ and its rule, and T and U."""

    W: FloatArray
    H: FloatArray
    result: SweepResult
    penalty: float
    rule: PenaltyControl
    entries: Any
    iteration: int = 0
    objective: float = math.nan


class Admm:
    """Algorithm 1 as an engine."""

    def __init__(self) -> None:
        self._sweep: Sweep | None = None

    def init(self, problem: Problem, start: Start) -> AdmmState:
        """Return the state before the first step: T near X, U = 0, and the first W-step done."""
        self._sweep = None  # its memory is free for the next one
        self._sweep = sweep = problem.sweep(start.W.shape[1])
        rule = problem.rule
        W, H = problem.projected(start)
        if start.from_factors:
            result = sweep.update_T_and_W(W, H, rule.initial)
        else:
            if problem.constraints.W is None:
                W[:, sweep.solved_W] = 0  # so that S = T - offsets, and the W-step solves for W
            result = sweep.update_T_and_W(W, H, rule.initial, update=False)
        return AdmmState(W, H, result, rule.initial, rule.begin(), sweep.state)

    def step(self, problem: Problem, state: AdmmState) -> AdmmState:
        """Return the state after one iteration."""
        sweep = self._sweep_of(problem, state)
        W, H, result, rho = state.W, state.H, state.result, state.penalty
        if state.iteration > 0:
            rho = state.rule(rho, result.primal, rho * result.dual, state.objective)
            if rho != state.penalty:  # the W-step assumed the old ρ: repeat it
                sweep.rescale(state.penalty / rho)
                result = sweep.update_T_and_W(W, H, rho, update=False)

        H = sweep.update_H(result, W, H, rho)
        W = result.W
        result = sweep.update_T_and_W(W, H, rho)

        objective = result.data_term + sweep.ridge_term(W, H)
        number = state.iteration + 1
        return AdmmState(W, H, result, rho, state.rule, state.entries, number, objective)

    def iterate(self, problem: Problem, state: AdmmState) -> Iterate:
        """Return the factors, and the numbers to record."""
        result = state.result
        return Iterate(
            W_aug=state.W,
            H_aug=state.H,
            objective=state.objective,
            relative_error=problem.model.relative_error(result.data_term, problem.reference),
            primal_residual=result.primal,
            dual_residual=state.penalty * result.dual,
            penalty=state.penalty,
            relative_residual=max(result.primal, result.change) / problem.norm_of_initial_T,
        )

    def status(self, state: AdmmState) -> StopReason | None:
        """Return None: the residuals decide."""
        return None

    def _sweep_of(self, problem: Problem, state: AdmmState) -> Sweep:
        """Return the passes over the data, with T and U of a state."""
        if self._sweep is None or self._sweep.state is not state.entries:
            rank = state.W.shape[1] - problem.offset_columns.width
            self._sweep = problem.sweep(rank, state.entries)
        return self._sweep
