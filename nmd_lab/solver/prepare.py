"""From the arguments of a fit to what `solve` runs: observe, describe, decide, formulate.

This module alone imports `nmd_lab.cluster`, which observes data on other machines.
"""

from __future__ import annotations

import copy
import math
import time
from dataclasses import replace
from typing import Any

import numpy as np

from nmd_lab._runtime.checks import is_auto, new_stream
from nmd_lab._runtime.disk import Scratch
from nmd_lab._runtime.machine import SHARE, free_memory
from nmd_lab._runtime.progress import Interruption
from nmd_lab.data import inputs
from nmd_lab.data.inputs import Form
from nmd_lab.data.observations import Observations, float_dtype
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.data.units import refuse_table

from .devices import device_of
from .formulation import STREAMED_ARRAYS, make_problem, needed_memory, refuse_fit
from .holding_out import hold_out, refuse_empty, score_of
from .initialization import rank_of_init
from .limit_noise import with_estimated_sd
from .loop import state_and_save
from .options import Options
from .problem import Problem
from .refinement.plan import RefinementPlan, make_plan
from .request import Decided, Known, describe, stand_in
from .run import FitState
from .scaling import scaling_for
from .selection.choice import choose
from .starts import all_starts
from .support import features_of_data, features_of_fit, form_of_data, refuse


def prepare(X: Any, form: Form, asked: Options, signals: Interruption | None = None) -> Decided:
    """Return the fit that was asked for, ready to be solved, with a choice for what is "auto"."""
    began = time.perf_counter()
    if asked.compute.device is None:
        asked = replace(asked, compute=replace(asked.compute, device=form.device))
    device_of(asked.compute.device)  # refuses an unknown one
    rank = _rank(asked)
    observations = observe(X, form, rank, asked)
    known = describe(observations, rank, asked, is_table=form.is_frame)
    rng = asked.generator()
    state, rng, save = state_and_save(
        FitState(copy.deepcopy(rng)), rng, asked, observations, known.model.kinds
    )
    known = hold_out(known, X, asked, rng)
    signals = Interruption() if signals is None else signals
    options, known = decide(known, asked, rng, state, signals=signals, began=began)
    problem, plan = formulate(known, options)
    if math.isnan(known.limits.sd):
        problem = with_estimated_sd(problem, options)
    starts = all_starts(problem, options.rank, options, plan, rng, known.start)
    held_out = score_of(known.held_out, problem.units.model)
    ready = options, known.observations, problem, starts, plan, held_out, state, save
    return Decided(*ready, known.selection, known.spent)


def observe(X: Any, form: Form, rank: int | None, asked: Options) -> Observations:
    """Return the observations of any input, if all that the call has goes together."""
    stand_in(asked.nonlinearity, asked.loss)  # refuses unknown ones
    client, zeros, scratch = asked.compute.client, asked.absent_are_zeros, None
    if client is not None or form.is_dask:
        from nmd_lab.cluster.observations import checked_client, observe_on_cluster

        client = checked_client(X, client)
    elif form.in_files and not (zeros and form.is_sparse):
        scratch = _scratch(X, asked)  # a fit to implicit zeros has no arrays of the size of X
    places = {"on_cluster": client is not None, "by_blocks": scratch is not None}
    present = form_of_data(form, zeros=zeros, **places) | features_of_data(form, asked)
    refuse(present | features_of_fit(rank, asked))
    if client is not None:
        data = {name: each for name, each in asked.of_data.items() if name != "limits"}
        observations: Observations = observe_on_cluster(X, client, absent_are_zeros=zeros, **data)
    else:
        data = asked.of_data | {"absent_are_zeros": zeros, "scratch": scratch}
        observations = inputs.observe(X, **data, form=form)
    if zeros:
        refuse_empty(observations)
    elif form.is_frame:
        refuse_table(observations, X)
    return observations


def decide(
    known: Known, asked: Options, rng: np.random.Generator, state: FitState, **hooks: Any
) -> tuple[Options, Known]:
    """Return the options of the fit, chosen where they were "auto", and what the trials found.

    A fit that resumes has what was chosen, if the choice had ended.
    """
    settled = replace(asked.settled(), rank=known.rank or 1)  # 1 stands for an open one
    if not known.is_open(asked):
        return settled, known
    smallest = replace(asked, rank=settled.rank, alpha=0.0, offsets="none", init="auto").settled()
    formulate(known, smallest)  # refuses what does not fit into memory
    stream = new_stream(rng)
    if state.decided is None:
        options, found = choose(known, asked, stream, **hooks)
        changes = (vars(asked), vars(options)), (known._asdict(), found._asdict())
        state.decided = [
            {name: each for name, each in after.items() if each is not before[name]}
            for before, after in changes
        ]
    of_options, of_known = state.decided
    return replace(asked, **of_options), known._replace(**of_known)


def formulate(known: Known, options: Options) -> tuple[Problem, RefinementPlan]:
    """Return problem and refinements, if the fit would fit into memory."""
    scaling = scaling_for(known.model.with_limits(known.limits), known.size)
    problem = make_problem(known.observations, scaling, options, known.observed_only)
    plan = make_plan(problem, options.rank, options)
    observations, limit = problem.observations, options.compute.memory_limit
    if not observations.remote:  # workers have memory of their own
        needed, on_disk = needed_memory(problem, options.rank, options, plan), observations.scratch
        refuse_fit(observations.shape, needed, limit, on_disk=on_disk is not None)
    return problem, plan


def _rank(asked: Options) -> int | None:
    """Return the rank by a number or by starting factors; None if it is to be chosen."""
    rank = asked.rank
    if rank is None or (isinstance(rank, str) and not is_auto(rank)):
        raise TypeError(f"rank={rank!r} is not a number: give a whole number >= 1, or 'auto'.")
    if is_auto(rank):
        return None if isinstance(asked.init, str) else rank_of_init(asked.init)
    number: int = rank
    return number


def _scratch(X: Any, options: Options) -> Scratch | None:
    """Return a folder for arrays of the size of X, which is in a file, if it is read by blocks.

    It is if there is a `work_dir`, or if T and U would not fit with X into the free memory, or
    into `memory_limit`.
    """
    limit = options.compute.memory_limit
    free = free_memory() if limit is None else limit * 2**30
    size = X.n_stored if isinstance(X, SparseObservations) else X.size
    fits = STREAMED_ARRAYS * size * float_dtype(X, None).itemsize < SHARE * free
    return None if options.compute.work_dir is None and fits else Scratch(options.compute.work_dir)
