"""The loop of Algorithm 1, as an iterator of states, and the rules that end it.

With A = WH and the scaled dual variable U = Λ/ρ, one iteration is

    W ← Z Hᵀ (H Hᵀ + ridge I)⁻¹                  Z = T + U
    H ← (WᵀW + ridge I)⁻¹ Wᵀ Z
    V = A - U;   T ← prox(V; X, ρ) on Ω, V elsewhere;   U ← T - V
    ρ ← rule(residuals);   U rescaled by ρ_old / ρ_new

A sweep does the last T- and U-update and the next W-step in one go, since both need only the rows
at hand; the loop below is therefore read from the H-step on.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .observations import FloatArray, Observations
from .penalty import PenaltyRule
from .proximal import Pair
from .starts import Start
from .sweeps import DenseState, Ridge, next_H


@dataclass(frozen=True)
class State:
    """One iteration's result; its arrays are never written to again.

    Attributes
    ----------
    iteration : int
        1 for the first.
    W, H : ndarray (m, rank), (rank, n)
        The factors.
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
    """

    iteration: int
    W: FloatArray
    H: FloatArray
    objective: float
    relative_error: float
    primal_residual: float
    dual_residual: float
    penalty: float
    stillness: float
    seconds: float

    @property
    def is_finite(self) -> bool:
        """Whether every number of the iteration is finite."""
        return math.isfinite(self.objective + self.primal_residual + self.dual_residual)


RECORDED = (
    "objective",
    "relative_error",
    "primal_residual",
    "dual_residual",
    "penalty",
    "seconds",
)
"""The numbers of a state that a history keeps."""


def admm(
    observations: Observations,
    pair: Pair,
    start: Start,
    *,
    rule: PenaltyRule,
    alpha: float,
    epsilon: float,
) -> Iterator[State]:
    """Iterate Algorithm 1 for ever.

    Parameters
    ----------
    observations : Observations
        The data.
    pair : Pair
        Nonlinearity and loss.
    start : Start
        Starting factors.
    rule : PenaltyRule
        Gives ρ.
    alpha, epsilon : float
        Ridge terms of both factor steps: epsilon ‖other factor‖² + alpha / ρ.

    Yields
    ------
    State
        After each iteration.
    """
    began = time.perf_counter()
    ridge = Ridge(epsilon, alpha)
    state = DenseState(observations, pair, ridge)
    reference = pair.loss.reference(*observations.observed())
    size = float(np.linalg.norm(state.T)) or 1.0
    rho = rule.initial

    W, H = start.W, start.H
    if start.from_factors:
        sweep = state.sweep(W, H, rho)
    else:
        W = np.zeros_like(W)  # Z = T is all there is, with no low-rank part
        sweep = state.sweep(W, H, rho, update=False)

    iteration = 0
    while True:
        iteration += 1
        H = next_H(sweep, W, H, ridge(sweep.W, rho))
        W = sweep.W
        sweep = state.sweep(W, H, rho, projected=rule.projected)

        primal, change = math.sqrt(sweep.primal), math.sqrt(sweep.change)
        dual = rho * (math.sqrt(sweep.projected_change) if rule.projected else change)
        factors = float(np.vdot(W, W)) + float(np.vdot(H, H))
        yield State(
            iteration=iteration,
            W=W,
            H=H,
            objective=sweep.data_term + 0.5 * alpha * factors,
            relative_error=pair.loss.relative_error(sweep.data_term, reference),
            primal_residual=primal,
            dual_residual=dual,
            penalty=rho,
            stillness=max(primal, change) / size,
            seconds=time.perf_counter() - began,
        )

        new_rho = rule(rho, primal, dual)
        if new_rho != rho:  # the sweep took the next W-step with the old ρ: take it again
            state.rescale(rho / new_rho)
            rho = new_rho
            sweep = state.sweep(W, H, rho, update=False)


class Outcome(NamedTuple):
    """What a run ends with: a state, the recorded numbers, why it ended, and if by itself."""

    state: State
    history: dict[str, list[float]]
    stop_reason: str
    complete: bool


@dataclass(frozen=True)
class Stopping:
    """When a run ends, and what happens to its states on the way.

    Parameters
    ----------
    max_iter : int
        Most iterations.
    tol : float
        Ends the run when `State.stillness` is at most this; 0 never does.
    time_limit : float or None
        Seconds.
    callback : callable or None
        Called with each state; a true value ends the run.
    """

    max_iter: int
    tol: float = 0.0
    time_limit: float | None = None
    callback: Callable[[State], Any] | None = None

    def verdict(self, state: State) -> tuple[bool, str]:
        """Return whether the run is complete with this state, and why it ends ("": it does not)."""
        stop = self.callback is not None and self.callback(state)
        if self.tol > 0 and state.stillness <= self.tol:
            return True, f"converged: residuals at or below tol={self.tol:g}"
        if state.iteration >= self.max_iter:
            return True, f"max_iter: {self.max_iter} iterations done"
        if stop:
            return False, f"callback: stopped after {state.iteration} iterations"
        if self.time_limit is not None and state.seconds >= self.time_limit:
            return False, f"time_limit: {self.time_limit:g} s passed"
        return False, ""


def run(states: Iterator[State], stopping: Stopping) -> Outcome:
    """Follow the iteration until a rule ends it.

    A run that converges or does all its iterations returns its last state.  One that is cut short
    (time, callback, Ctrl-C, a non-finite iterate) returns the state of lowest objective so far.

    Raises
    ------
    FloatingPointError
        If the first iterate already is not finite.
    KeyboardInterrupt
        If Ctrl-C comes before the first iterate.
    """
    history: dict[str, list[float]] = {name: [] for name in RECORDED}
    last = best = None
    try:
        for state in states:
            if not state.is_finite:
                reason = f"not finite: iteration {state.iteration} overflowed"
                if best is None:
                    raise FloatingPointError(f"{reason}: scale X down, or raise alpha or epsilon.")
                return Outcome(best, history, reason, True)
            for name, numbers in history.items():
                numbers.append(getattr(state, name))
            last = state
            if best is None or state.objective < best.objective:
                best = state
            complete, why = stopping.verdict(state)
            if why:
                return Outcome(last if complete else best, history, why, complete)
    except KeyboardInterrupt:
        if last is None or best is None:
            raise
        reason = f"interrupted: Ctrl-C after {last.iteration} iterations"
        return Outcome(best, history, reason, False)
    raise AssertionError("the iteration never ends by itself")
