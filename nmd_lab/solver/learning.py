"""What is learned of f and of the loss during a fit: a monotone f, a dispersion, cut points.

The objective is minimised over the factors and over the parameters in turn (block coordinate
descent).  Between two rounds of iterations f comes nearer to X, and the parameters become those of
highest likelihood, at the factors of lowest objective.  The next round begins there, so that the
lowest objective never rises.  Rounds become longer.  A round continues without a pause where new
parameters would gain next to nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import Observations
from nmd_lab.model.model import Model

from .problem import Problem
from .state import State
from .storage import CsrStorage, storage_of

LITTLE = 1e-4  # relative fall of the objective by new parameters that is not worth a new round


def learned_state(problem: Problem, last: State, best: State) -> State | None:
    """Return the best state with parameters of higher likelihood, as the last state.

    None if they would gain next to nothing.
    """
    observations = problem.units.given_observations(problem.observations)
    rows, columns, x = observations.entries()
    (_, weights), x = observations.observed(), x.astype(np.float64)
    t = _products(observations, best, rows, columns)
    old = best.model
    assert old is not None
    limits = observations.as_sparse().limits if observations.limits is not None else None
    exact = slice(None) if limits is None else limits.codes == 0
    new = old.learned(x[exact], t[exact], weights[exact], rows[exact], columns[exact])
    before, after = (
        float(np.sum(weights * model.losses(x, t, rows, columns, limits))) for model in (old, new)
    )
    gain = before - after
    if not gain > LITTLE * abs(best.objective):
        return None
    error = best.relative_error
    if observations.limits is None and not problem.units.exponent:
        error = new.relative_error(after, problem.reference)
    return replace(
        last,
        **{name: getattr(best, name) for name in ("W", "H", "offsets", "W_aug", "H_aug")},
        objective=best.objective - gain,
        relative_error=error,
        stop_reason=None,
        model=new,
    )


def _products(observations: Observations, state: State, rows: Any, columns: Any) -> FloatArray:
    """Return WH at entries."""
    storage = storage_of(observations)
    if isinstance(storage, CsrStorage) and rows.size == storage.indices.size:
        products = storage.all_products(state.W_aug, state.H_aug)
    elif isinstance(storage, CsrStorage):
        products = np.einsum("ik,ki->i", state.W_aug[rows], state.H_aug[:, columns])
    else:
        products = (state.W_aug @ state.H_aug)[rows, columns]
    return products.astype(np.float64)


def with_learned(problem: Problem, model: Model, penalty: float) -> Problem:
    """Return the problem with another model, whose ρ begins where the last round ended."""
    learned = problem.with_model(model)
    if problem.units.exponent or problem.rule.initial == penalty:
        return learned
    return learned.changed(rule=replace(learned.rule, initial=penalty))
