"""The loop of the iterative methods: it evaluates, keeps the best and decides when to stop.

A method is a loop of three lines:

    run = BaselineRun(observations, f, loss, max_iter=max_iter, tol=tol)
    while run.record(W, H):
        W, H = ...  # one step
    return run.result(method="name")
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from nmd_lab._runtime.progress import StopReason
from nmd_lab.baselines import Objective, recorded
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import Observations
from nmd_lab.fit.loop import Stopping
from nmd_lab.model.losses import Loss
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.problem.state import State
from nmd_lab.request.options import Options
from nmd_lab.result.decomposition import Decomposition


class BaselineRun:
    """The recorder of an iterative baseline.

    It evaluates each iterate, keeps the best one and decides when to stop.

    Attributes
    ----------
    objective : Objective
        The objective of the iterates.
    best : State or None
        The iterate of lowest objective, None before the first iteration.
    history : list of dict
        Numbers of all iterations.
    stop_reason : StopReason or None
        Code and sentence of the reason why the run stopped, None while it continues.
    """

    def __init__(
        self,
        observations: Observations,
        nonlinearity: Nonlinearity,
        loss: Loss,
        *,
        max_iter: int,
        tol: float = 0.0,
        time_limit: float | None = None,
        callback: Callable[[State], Any] | None = None,
        alpha: float = 0.0,
    ) -> None:
        self.settings = Options(  # which checks them
            max_iter=max_iter, tol=tol, time_limit=time_limit, callback=callback, alpha=alpha
        )
        self.objective = Objective(observations, nonlinearity, loss, alpha)
        self.best: State | None = None
        self.history: list[dict[str, float]] = []
        self.stop_reason: StopReason | None = None
        self._resumed: float | None = None
        self._seconds = 0.0

    def record(self, W: FloatArray, H: FloatArray) -> bool:
        """Record an iterate, and return whether to continue.

        The first call takes the starting factors. It starts the clock and records nothing. The
        factors are copied, so a step may change them in place.
        """
        if self._resumed is not None:
            self._seconds += time.perf_counter() - self._resumed
            with np.errstate(all="ignore"):  # an overflow stops the run with a reason of its own
                iterate = self.objective.evaluate(
                    W, H, iteration=len(self.history) + 1, seconds=self._seconds
                )
            self._keep(iterate)
        self._resumed = time.perf_counter()
        return self.stop_reason is None

    def result(
        self,
        *,
        method: str,
        stop_reason: StopReason | None = None,
        zero_unobserved: bool = True,
        **parameters: Any,
    ) -> Decomposition:
        """Return the iterate of lowest objective as a `Decomposition`."""
        if self.best is None:
            raise RuntimeError("the run has no iterate yet: call record after each step.")
        best = self.best
        if zero_unobserved:
            W, H = self.objective.observations.zero_unobserved(best.W, best.H)
            best = replace(best, W=W, H=H)
        rules = {name: getattr(self.settings, name) for name in ("max_iter", "tol", "time_limit")}
        stop_reason = stop_reason or self.stop_reason or StopReason("other", "")
        parameters = rules | parameters
        return self.objective.result(best, stop_reason, method, self.history, **parameters)

    def _keep(self, iterate: State) -> None:
        """Add an iterate to the history, unless it is not finite, and apply the stopping rules."""
        if not all(np.all(np.isfinite(a)) for a in (iterate.objective, iterate.W, iterate.H)):
            self.stop_reason = StopReason(
                "not finite", f"not finite: iteration {iterate.iteration} overflowed"
            )
            if self.best is None:
                raise FloatingPointError(
                    f"{self.stop_reason}: scale X down, or change the start or the step."
                )
            return
        self.history.append(recorded(iterate))
        if self.best is None or iterate.objective < self.best.objective:
            self.best = iterate
        self.stop_reason = self._stop_reason_at(iterate)

    def _stop_reason_at(self, iterate: State) -> StopReason | None:
        """Return why the run stops at an iterate, or None if it continues."""
        rules = self.settings
        stopping = Stopping(rules.max_iter, rules.time_limit, rules.callback)
        ended = stopping.reason(iterate, iterate.iteration)
        last = [record["objective"] for record in self.history[-2:]]
        if rules.tol > 0 and len(last) == 2 and abs(last[0] - last[1]) <= rules.tol * last[0]:
            text = f"converged: the objective changed by no more than tol={rules.tol:g} of itself"
            return StopReason("converged", text)
        return ended
