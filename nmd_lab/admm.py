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

import itertools
import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .layouts import SparseLayout, layout_of
from .observations import FloatArray
from .observed import ObservedSteps
from .offsets import NO_OFFSETS, Extension, Offsets
from .penalty import BALANCED, PenaltyRule
from .proximal import Pair
from .sparse_observations import AnyObservations, SparseObservations
from .splitting import Splitting
from .starts import Start
from .sweeps import EverywhereSteps, Ridge, Steps
from .validation import Validation


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


RECORDED = (
    "objective",
    "relative_error",
    "primal_residual",
    "dual_residual",
    "penalty",
    "seconds",
)
"""The numbers of a state that a history keeps."""

STANDSTILL = 200
"""A run ends when the objective has changed by no more than `tol` of it for so many iterations."""

CYCLING = 1000
"""A run ends when the objective moves, but has not been lower for so many iterations."""

VALIDATION = "validation_rmse"
"""What a history keeps besides, if there is a validation."""


@dataclass(frozen=True)
class Problem:
    """Everything that an iteration needs to know, except where it starts.

    Attributes
    ----------
    observations : Observations or SparseObservations
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
        Whether T = WH is imposed on the observed entries alone (`nmd_lab.observed`).
    threads : int
        How many shares of sparse data are worked on at the same time.
    """

    observations: AnyObservations
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
        observations = self.observations
        return isinstance(observations, SparseObservations) and not observations.absent_are_zeros


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


class Outcome(NamedTuple):
    """What a run ends with.

    Attributes
    ----------
    state : State
        The chosen iteration.
    history : dict of list of float
        The recorded numbers of all iterations.
    stop_reason : str
        Why the run ended.
    complete : bool
        Whether it ended by itself.
    score : float
        Objective, or validation error, of the chosen iteration.
    """

    state: State
    history: dict[str, list[float]]
    stop_reason: str
    complete: bool
    score: float


@dataclass(frozen=True)
class Stopping:
    """When a run ends, and what happens to its states on the way.

    Parameters
    ----------
    max_iter : int
        Most iterations.
    tol : float
        Ends the run when `State.stillness` is at most this, or when the objective has changed by
        no more than this share of it over the last `STANDSTILL` iterations, or has not been lower
        for `CYCLING` iterations; 0 never does.
    time_limit : float or None
        Seconds.
    callback : callable or None
        Called with each state; a true value ends the run.
    validation : Validation or None
        Held-out entries; the state with their lowest error is the one returned.
    patience : int
        Ends the run after so many iterations without a lower validation error.
    """

    max_iter: int
    tol: float = 0.0
    time_limit: float | None = None
    callback: Callable[[State], Any] | None = None
    validation: Validation | None = None
    patience: int = 10

    def verdict(self, state: State) -> tuple[bool, str]:
        """Return whether the run is complete with this state, and why it ends ("": it does not)."""
        stop = self.callback is not None and self.callback(state)
        if self.tol > 0 and state.stillness <= self.tol:
            return True, f"converged: residuals at or below tol={self.tol:g}"
        if self.tol > 0 and state.settled:
            return True, state.settled
        if state.iteration >= self.max_iter:
            return True, f"max_iter: {self.max_iter} iterations done"
        if stop:
            return False, f"callback: stopped after {state.iteration} iterations"
        if self.time_limit is not None and state.seconds >= self.time_limit:
            return False, f"time_limit: {self.time_limit:g} s passed"
        return False, ""

    def patience_is_over(self, state: State, best: State, recent: deque[float]) -> str:
        """Return why the run ends because too little has been gained of late, or ""."""
        if self.validation is not None:
            waited = state.iteration - best.iteration >= self.patience
            return f"validation: no lower error for {self.patience} iterations" if waited else ""
        if self.tol > 0 and len(recent) > STANDSTILL:
            lowest, highest = min(recent), max(recent)
            if highest - lowest <= self.tol * abs(lowest):
                return f"converged: the objective stood still for {STANDSTILL} iterations"
        if self.tol > 0 and state.iteration - best.iteration >= CYCLING:
            return f"converged: no lower objective for {CYCLING} iterations"
        return ""


def run(states: Iterator[State], stopping: Stopping) -> Outcome:
    """Follow the iteration until a rule ends it.

    What comes back is the state of lowest objective, or of lowest validation error; with ``tol=0``
    a run that does all its iterations gives the last one, as the plain algorithm does.

    Raises
    ------
    FloatingPointError
        If the first iterate already is not finite.
    KeyboardInterrupt
        If Ctrl-C comes before the first iterate.
    """
    watched = stopping.validation
    history: dict[str, list[float]] = {name: [] for name in RECORDED}
    if watched is not None:
        history[VALIDATION] = []
    best = last = None
    lowest = math.inf
    recent: deque[float] = deque(maxlen=STANDSTILL + 1)
    try:
        for state in _quietly(states):
            if not state.is_finite:
                why = f"not finite: iteration {state.iteration} overflowed"
                if best is None:
                    raise FloatingPointError(f"{why}: scale X down, or raise alpha or epsilon.")
                return Outcome(best, history, why, True, lowest)
            for name in RECORDED:
                history[name].append(getattr(state, name))
            score = state.objective
            if watched is not None:
                score = watched.rmse(state.left, state.right)
                history[VALIDATION].append(score)
            last = state
            if best is None or score < lowest:
                best, lowest = state, score
            complete, why = stopping.verdict(state)
            recent.append(score)
            if not why and (waited := stopping.patience_is_over(state, best, recent)):
                complete, why = True, waited
            if complete and stopping.tol == 0 and watched is None:
                return Outcome(state, history, why, complete, score)
            if why:
                return Outcome(best, history, why, complete, lowest)
    except KeyboardInterrupt:
        if last is None or best is None:
            raise
        why = f"interrupted: Ctrl-C after {last.iteration} iterations"
        return Outcome(best, history, why, False, lowest)
    raise AssertionError("the iteration never ends by itself")


def _quietly(states: Iterator[State]) -> Iterator[State]:
    """Pass states on without NumPy's warnings: an overflow ends the run, with its own sentence."""
    while True:
        with np.errstate(over="ignore", invalid="ignore"):
            state = next(states)
        yield state
