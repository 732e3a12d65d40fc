"""From the arguments of `sample` to its labelled result: prepare, run the chains, label, warn."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from ._runtime.checks import as_generator, new_stream
from ._runtime.machine import refuse_above
from ._runtime.progress import Interruption, StopReason
from ._warm_start import begin_at, check_init
from .data.inputs import observe
from .data.labels import is_dask, is_frame
from .data.sparse import is_sparse
from .data.units import sentence_of_units
from .result.posterior import Posterior
from .result.serialization import provenance
from .solver.checkpointing import state_and_save
from .solver.sampler.chain import Chain
from .solver.sampler.first_chain import choose_groups, first_chain
from .solver.sampler.prepare import PreparedSample, prepare_sample
from .solver.sampler.run import Chains, PosteriorState, in_units_of_X
from .solver.sampler.sampled_model import SampleOptions, refuse_table
from .solver.sampler.state import ChainState
from .solver.support import DATA, features_of_data, form_of_data, refuse
from .warnings import NotConvergedWarning, UnitsWarning

TUNE = 100
"""Number of sweeps that are not kept by default."""

FEW = 50
"""Number of draws that the message about memory proposes."""


def draw_posterior(X: Any, options: SampleOptions, interruption: Interruption) -> Posterior:
    """Check the arguments of `sample`, run the chains and label the draws."""
    refuse(_present(X, options))
    observations = observe(X, **options.of_data)
    if is_frame(X):
        refuse_table(observations)
    is_table = is_frame(X) or observations.labels.table is not None
    prepared = prepare_sample(observations, options, is_table=is_table)
    warn_of_units(prepared, stacklevel=3)
    check_init(options.init, prepared.problem)
    _check_memory(prepared, options)
    rng = as_generator(options.random_state)
    state, rng, save = state_and_save(
        *(PosteriorState(copy.deepcopy(rng)), rng, options),
        *(prepared.observations, prepared.problem.model.kinds),
    )
    if options.tune is None:
        options = replace(options, tune=TUNE)
    began = time.perf_counter()
    prepared = choose_groups(prepared, options, copy.deepcopy(rng), interruption)
    if options.time_limit is not None:
        left = max(0.0, options.time_limit - (time.perf_counter() - began))
        options = replace(options, time_limit=left)
    engine = Chain()
    begin = _begin(prepared, engine, options, rng)
    chains = Chains(prepared.problem, engine, begin, options, state)
    drawn, reason = chains.run(interruption, save)
    return _label(prepared, drawn, reason, options)


def _present(X: Any, options: SampleOptions) -> dict[str, str]:
    """Return what a posterior has, by the words of the table of what goes with what."""
    form = form_of_data(is_sparse(X), absent_are_zeros=False)
    present = form | {"sample": DATA["sample"]} | features_of_data(X, options)
    present.pop("learned", None)  # the sampler draws it
    if is_dask(X) and not isinstance(X, xr.DataArray):
        present["client"] = "X of Dask"
    return present


def _begin(
    prepared: PreparedSample,
    engine: Chain,
    options: SampleOptions,
    rng: np.random.Generator,
) -> Callable[[int], ChainState]:
    """Return a function of the number of a chain that returns its first state."""
    problem, scaling = prepared.problem, prepared.scaling
    is_warm = not isinstance(options.init, str)
    streams = [new_stream(rng) for _ in range(options.chains)]

    def begin(chain: int) -> ChainState:
        init = "random" if is_warm else options.init
        state = first_chain(prepared, engine, init, options.tune or 0, streams[chain])
        if is_warm:
            begin_at(options.init, state, problem.mean, scaling)
        return state

    return begin


def _label(
    prepared: PreparedSample,
    drawn: dict[str, Any],
    reason: StopReason,
    options: SampleOptions,
) -> Posterior:
    """Return the labelled posterior, in the units of X."""
    problem, model = prepared.problem, prepared.model
    arrays = in_units_of_X(drawn, prepared.scaling, problem)
    nonlinearity, loss = model.shown
    is_ordinal = loss.classes == "ordered"
    return Posterior._from_arrays(
        prepared.observations.labels,
        nonlinearity=nonlinearity,
        loss="frobenius" if is_ordinal else loss,
        kinds=model if problem.by_column else None,
        noise=prepared.noises if problem.by_column else prepared.noises[0],
        levels=loss.level_values if is_ordinal else None,
        stop_reason=reason,
        parameters={
            "rank": problem.rank,
            **options.describe(),
            "step": options.step(problem.numbers),
            "sweeps": (options.tune or 0) + drawn["log_likelihood"].shape[1],
            **provenance(prepared.observations),
        },
        **arrays,
    )


def _check_memory(prepared: PreparedSample, options: SampleOptions) -> None:
    """Raise MemoryError if the kept draws and T do not fit into the free memory."""
    problem = prepared.problem
    numbers = problem.numbers
    n_draws = -(-options.draws // options.step(numbers)) * options.chains
    needed = 8 * n_draws * numbers + 4 * problem.values.nbytes  # the draws are stacked at the end
    what = f"a posterior with draws={options.draws} of {numbers} numbers each"
    refuse_above(needed, what, f"keep fewer, for example keep={FEW}")


RHAT = 1.2  # split R-hat of a prediction from which it has not converged
SHARE = 0.1  # share of such predictions above which there is a warning
FEWEST = 8  # sweeps below which split R-hat says nothing


REMEDY = "raise tune= and draws="


def unsettled(posterior: Posterior) -> float:
    """Return the share of predictions that have not settled."""
    return float((posterior.rhat["prediction"] > RHAT).mean())


def sentence_of_chains(posterior: Posterior) -> str:
    """Return a sentence that says that the predictions have not settled; empty if they have."""
    sweeps = posterior.trace.sizes["sweep"]
    if sweeps < FEWEST:
        return f"the chains have {sweeps} sweeps after tuning, too few to judge them: {REMEDY}."
    share = unsettled(posterior)
    if share <= SHARE:
        return ""
    return (
        f"the chains have not settled: split R-hat is above {RHAT} for {share:.0%} of "
        f"the predictions, and {float(posterior.rhat['log_likelihood']):.2f} for the "
        f"log-likelihood: {REMEDY}."
    )


def warn_of_units(prepared: PreparedSample, stacklevel: int) -> None:
    """Warn if the columns are in different units."""
    if not prepared.model.squares:
        return
    text = sentence_of_units(
        prepared.observations, "divide the columns by their standard deviations"
    )
    if text:
        warnings.warn(text, UnitsWarning, stacklevel=stacklevel + 1)


def warn_of_chains(posterior: Posterior, stacklevel: int) -> None:
    """Warn if the predictions of the chains have not settled."""
    text = sentence_of_chains(posterior)
    if text:
        warnings.warn(text, NotConvergedWarning, stacklevel=stacklevel + 1)
