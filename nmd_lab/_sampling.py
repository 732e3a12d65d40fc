"""From the arguments of `sample` to its labelled result: observe, prepare, decide, run, package."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from ._messages import (
    REMEDY_FOR_UNITS,
    joined,
    message_of_cells,
    message_of_data,
    message_of_limits,
    warn,
)
from ._runtime.checks import as_generator
from ._runtime.machine import refuse_above
from ._runtime.progress import Interruption, StopReason
from .data.inputs import form_of, observe
from .data.observations import Observations
from .data.units import names_of_codes, refuse_table, scale_of, units_of_columns
from .result.decomposition import Decomposition
from .result.draws_dataset import limits_of
from .result.posterior import Posterior
from .result.serialization import provenance
from .solver.loop import state_and_save
from .solver.options import SampleOptions
from .solver.sampler.prepare import prepare_sample
from .solver.sampler.problem import SampledProblem
from .solver.sampler.run import Chains, PosteriorState, ensemble_for, in_units_of_X
from .solver.sampler.sampled_model import with_ends
from .solver.support import DATA, features_of_data, form_of_data, refuse
from .warnings import UnitsWarning

FEW = 50
"""Number of draws that the message about memory proposes."""


def draw_posterior(X: Any, asked: SampleOptions, interruption: Interruption) -> Posterior:
    """Check the arguments of `sample`, run the chains and label the draws.

    A table has columns of its own units.
    """
    form = form_of(X)
    present = form_of_data(form, zeros=False) | features_of_data(form, asked)
    present["sample"] = DATA["sample"]
    present.pop("learned", None)  # the sampler draws it
    if form.is_dask and not isinstance(X, xr.DataArray):
        present["client"] = "X of Dask"
    refuse(present)
    observations = observe(X, **asked.of_data, form=form)
    if form.is_frame:
        refuse_table(observations, X)
    is_table = form.is_frame or observations.labels.table is not None
    problem = prepare_sample(observations, asked, is_table=is_table)
    model = problem.units_of_X.model
    codes = names_of_codes(observations) if is_table else ()
    of_cells = message_of_cells(X, asked.observed, observations) if form.is_frame else {}
    warn(joined(message_of_data(observations, codes), of_cells), stacklevel=4)
    if model.squares and (apart := units_of_columns(observations)) is not None:
        warn({UnitsWarning: apart.sentence(REMEDY_FOR_UNITS)}, stacklevel=4)
    if not isinstance(asked.init, str):
        _refuse_init(asked.init, problem)
    _refuse_large(asked, problem.numbers, problem.values.nbytes, by_column=problem.by_column)
    rng = as_generator(asked.random_state)
    state, rng, save = state_and_save(
        PosteriorState(copy.deepcopy(rng)), rng, asked, observations, model.kinds
    )
    ensemble = ensemble_for(problem, observations, asked, copy.deepcopy(rng))
    drawn, reason = Chains(ensemble, asked, state, rng).run(interruption, save)
    decided = replace(asked, tune=ensemble.warm_up)
    posterior = package(ensemble.problem, observations, decided, drawn, reason, is_table=is_table)
    warn(message_of_limits(posterior, observations), stacklevel=4)
    return posterior


def _refuse_init(init: Any, problem: SampledProblem) -> None:
    """Raise an error if a given start is no fit, or does not go with the model."""
    if not isinstance(init, Decomposition):
        raise TypeError(f"init is a {type(init).__name__}: give a name or a fit.")
    if init._shape != problem.shape or init.rank != problem.rank:
        raise ValueError(
            f"init has shape {init._shape} and rank {init.rank}: give one of shape {problem.shape} "
            f"and rank {problem.rank}."
        )


def _refuse_large(asked: SampleOptions, numbers: int, of_X: int, *, by_column: bool) -> None:
    """Raise MemoryError if draws of so many numbers, and T, do not fit into the free memory.

    `of_X` are the bytes of the stored entries.
    """
    n_draws = -(-asked.draws // asked.step(numbers)) * asked.chains
    # the draws are stacked at the end; members of a table have T, and positions, of their own
    needed = 8 * n_draws * numbers + (30 if by_column else 4) * of_X
    what = f"a posterior with draws={asked.draws} of {numbers} numbers each"
    refuse_above(needed, what, f"keep fewer, for example keep={FEW}")


def package(
    problem: SampledProblem,
    observations: Observations,
    decided: SampleOptions,
    drawn: dict[str, Any],
    reason: StopReason,
    *,
    is_table: bool,
) -> Posterior:
    """Return the labelled posterior, in the units of X."""
    model, by_column = problem.units_of_X.model, problem.by_column
    noises: tuple[str, ...] = problem.noises
    if is_table:
        model, noises = with_ends(model, problem.noises, observations, decided.nonlinearity)
    scale = None
    if not by_column and noises[0] == "gaussian":
        scale = scale_of(*np.unique(observations.observed()[0], return_counts=True))
    nonlinearity, loss = model.shown
    is_ordinal = loss.classes == "ordered"
    return Posterior._from_arrays(
        observations.labels,
        nonlinearity=nonlinearity,
        loss="frobenius" if is_ordinal else loss,
        kinds=model if by_column else None,
        noise=noises if by_column else noises[0],
        levels=loss.level_values if is_ordinal else None,
        stop_reason=reason,
        limits=limits_of(observations),
        parameters={
            "rank": problem.rank,
            **decided.describe(),
            "scale": scale,
            "step": decided.step(problem.numbers),
            "sweeps": (decided.tune or 0) + drawn["log_likelihood"].shape[1],
            **provenance(observations),
        },
        **in_units_of_X(drawn, problem),
    )
