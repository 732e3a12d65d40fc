"""The labelled result of a prepared fit, and a fit that can pause and resume."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ._threads import one_thread
from .model.losses import Frobenius
from .result.decomposition import Decomposition
from .result.serialization import provenance
from .solver.constraints.text import constraints_in_parameters
from .solver.prepared import Prepared
from .solver.problem import Problem
from .solver.refinement.stages import optimality
from .solver.restarts import Solution
from .solver.run import Run
from .solver.starts import run_from
from .solver.state import State
from .solver.stopping import StopPolicy


def package(prepared: Prepared, solution: Solution) -> Decomposition:
    """Return the labelled result of a fit."""
    outcome = solution.outcome
    problem = prepared.problem.of(outcome.state)
    state, units = outcome.state, problem.units
    observations = units.given_observations(problem.observations)
    elsewhere = observations.elsewhere
    W = state.W.copy() if elsewhere is None else elsewhere.result(state.W)
    H = state.H.copy()
    if not problem.is_constrained:  # a constraint says what a row without an entry is
        W, H = observations.zero_unobserved(W, H)
    offsets = state.offsets
    if offsets.rows is not None:
        offsets = offsets._replace(rows=np.asarray(offsets.rows))
    nonlinearity, loss = units.model.shown
    selection = prepared.spec.selection
    return Decomposition.from_matrices(
        observations.labels,
        W,
        H,
        outcome.history,
        offsets=offsets,
        nonlinearity=nonlinearity,
        loss=loss,
        kinds=None if units.model.single else units.model,
        stop_reason=outcome.stop_reason,
        parameters={
            "rank": W.shape[1],
            "iteration": state.iteration,
            **prepared.spec.describe(W.dtype),
            "split": "observed" if problem.observed_only else "everywhere",
            **constraints_in_parameters(problem.constraints),
            "optimality": solution.optimality,
            **_limits(prepared),
            **({"absent_are_zeros": True} if observations.absent_are_zeros else {}),
            "starts": solution.starts,
            **({} if selection is None else {"selection": selection | _seen(problem, state)}),
            **provenance(observations),
        },
    )


def _limits(prepared: Prepared) -> dict[str, Any]:
    """Return what a fit with limits knows of them, for `Decomposition.parameters`."""
    model = prepared.problem.units.model
    if prepared.problem.observations.limits is None or model.single is None:
        return {}
    return {"limit_noise": model.limits.sd, "smallest_value": model.limits.smallest}


def _seen(problem: Problem, state: State) -> dict[str, Any]:
    """Return the root mean squared error where a fit has seen X, for `Decomposition.selection`."""
    kind, observations = problem.model.single, problem.observations
    if kind is None or type(kind.loss) is not Frobenius or observations.limits is not None:
        return {}
    (total,) = observations.weighted_sums()
    size = math.ldexp(math.sqrt(2 * problem.reference / total), problem.units.of_X)
    return {"error_where_seen": state.relative_error * size}


class ResumableFit:
    """A prepared fit that can pause after any iteration and resume.

    Its iterates are those of an uninterrupted fit.  With ``tol=0`` and no held-out entries, the
    result after k iterations is that of ``max_iter=k``.
    """

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        self.run: Run | None = None

    def advance(self, iterations: int, callback: Callable[[State], Any]) -> Decomposition:
        """Do at most `iterations` more iterations, and return the result so far."""
        problem = self.prepared.problem
        with one_thread():
            if self.run is None:
                self.run = self._begin()
            outcome = self.run.advance(iterations, callback=callback)
            learned = problem.of(outcome.state)
            distance = optimality(learned, *learned.extended(outcome.state))
            return package(self.prepared, Solution(outcome, distance, []))

    def _begin(self) -> Run:
        """Return the run before its first iteration."""
        prepared, spec = self.prepared, self.prepared.spec.after_choice
        policy = StopPolicy(
            tol=spec.tol,
            patience=spec.solver.patience,
            window=prepared.plan.window,
            last_when_stopped=True,
        )
        return run_from(
            *(prepared.problem, next(prepared.starts), spec, prepared.plan, policy),
            held_out=prepared.held_out,
        )
