"""From the arguments of `decompose` and `complete` to their labelled result."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ._messages import messages_after, messages_before, warn
from ._runtime.machine import one_thread
from ._runtime.progress import interruptible
from .data.inputs import form_of
from .result.decomposition import Decomposition
from .result.serialization import provenance
from .solver.constraints.factor_constraints import constraints_in_parameters
from .solver.options import Options
from .solver.prepare import prepare
from .solver.refinement.stages import optimality
from .solver.request import Decided
from .solver.restarts import solve, stopped_by
from .solver.run import Outcome, Run
from .solver.starts import run_from
from .solver.state import State


def run_fit(X: Any, asked: Options) -> Decomposition:
    """Prepare, solve, label and warn."""
    form = form_of(X)
    try:
        with interruptible() as signals, one_thread():
            decided = prepare(X, form, asked, signals)
            observations = decided.problem.observations
            frame = X if form.is_frame else None
            warn(messages_before(decided, frame, asked.observed), stacklevel=4)
            outcome, starts = solve(decided)
            fit = package(decided, outcome, starts)
            with observations.computing():
                warn(messages_after(fit, decided), stacklevel=4)
            if signals and not signals.reported:
                fit = package(decided, stopped_by(signals, outcome), starts)
            if observations.scratch is not None:
                observations.scratch.close()
            return fit
    finally:
        if form.in_files or form.is_dask or asked.compute.client is not None:
            gc.collect()  # T and U are on a disk, or on workers, until nothing holds them


def package(decided: Decided, outcome: Outcome, starts: list[dict[str, Any]]) -> Decomposition:
    """Return the labelled result of a fit, with a row of numbers for each of its starts."""
    problem = decided.problem.of(outcome.state)
    state, units, observations = outcome.state, problem.units, decided.observations
    W, H = observations.gathered(state.W), state.H.copy()
    if not problem.is_constrained:  # a constraint defines a row without an entry
        W, H = observations.zero_unobserved(W, H)
    offsets = state.offsets
    if offsets.rows is not None:
        offsets = offsets._replace(rows=np.asarray(offsets.rows))
    nonlinearity, loss = units.model.shown
    smallest, sd = units.model.limits
    is_limited = observations.limits is not None and not units.model.is_mixed
    limits = {"limit_noise": sd, "smallest_value": smallest} if is_limited else {}
    selection, rms_error = decided.selection, problem.rms_error(state.relative_error)
    seen = {} if math.isnan(rms_error) else {"error_where_seen": rms_error}
    return Decomposition._from_matrices(
        observations.labels,
        W,
        H,
        outcome.history,
        offsets=offsets,
        nonlinearity=nonlinearity,
        loss=loss,
        kinds=units.model if units.model.is_mixed else None,
        stop_reason=outcome.stop_reason,
        parameters={
            "rank": W.shape[1],
            "iteration": state.iteration,
            **decided.options.describe(W.dtype),
            "split": "observed" if problem.observed_only else "everywhere",
            **constraints_in_parameters(problem.constraints),
            "optimality": optimality(problem.observations, problem, *problem.extended(state)),
            **limits,
            **({"absent_are_zeros": True} if observations.absent_are_zeros else {}),
            "starts": starts,
            **({} if selection is None else {"selection": selection | seen}),
            **provenance(observations),
        },
    )


class ResumableFit:
    """A fit that is ready and can pause after any iteration and resume.

    Its iterates are those of an uninterrupted fit.  With ``tol=0`` and no held-out entries, the
    result after k iterations is that of ``max_iter=k``.
    """

    def __init__(self, decided: Decided) -> None:
        self.decided = decided
        self.run: Run | None = None

    def advance(self, iterations: int, callback: Callable[[State], Any]) -> Decomposition:
        """Do at most `iterations` more iterations, and return the result so far."""
        decided, options = self.decided, self.decided.after_choice
        with one_thread():
            if self.run is None:
                rules = replace(decided.rules, last_when_stopped=True)
                fit = decided.problem, next(decided.starts), options, decided.plan, rules
                self.run = run_from(*fit, held_out=decided.held_out)
            outcome = self.run.advance(iterations, callback=callback)
            return package(decided, outcome, [])
