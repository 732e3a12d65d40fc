"""From the arguments of a fit to what `solve` runs: observe, describe, decide, formulate.

This module alone imports `nmd_lab.cluster`, which observes data on other machines.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from nmd_lab._runtime.checks import is_auto, new_stream
from nmd_lab._runtime.disk import Scratch
from nmd_lab._runtime.machine import SHARE, free_memory
from nmd_lab._runtime.progress import Interruption
from nmd_lab.data import inputs
from nmd_lab.data.blocks_on_disk import is_stored
from nmd_lab.data.frames import device_of_tensor
from nmd_lab.data.labels import is_dask
from nmd_lab.data.observations import Observations, float_dtype
from nmd_lab.data.sparse import SparseObservations, is_sparse
from nmd_lab.model.fitted_values import Offsets

from .checkpointing import state_and_save
from .devices.device import device_of
from .facts import Facts, describe, stand_in
from .formulation import STREAMED_ARRAYS, check_memory, make_problem
from .holding_out import HeldOutData, check_choice, hold_out, refuse_empty, score_of
from .initialization import rank_of_init
from .limit_noise import with_estimated_sd
from .options import Options
from .problem import Problem
from .refinement.plan import RefinementPlan, make_plan
from .run import FitState
from .scaling import scaling_for
from .selection.choice import choose
from .spec import Prepared, Spec
from .starts import all_starts
from .support import data_of, features_of_fit, refuse


def prepare(X: Any, asked: Options, signals: Interruption | None = None) -> Prepared:
    """Return the fit that was asked for, ready to be solved, with a choice for what is "auto"."""
    began = time.perf_counter()
    asked = _with_device_of(X, asked)
    rank = _rank(asked)
    observations = observe(X, rank, asked)
    facts = describe(X, observations, rank, asked)
    rng = asked.generator()
    state, rng, save = state_and_save(
        FitState(copy.deepcopy(rng)), rng, asked, observations, facts.model.kinds
    )
    check_choice(asked, facts, observations)
    held_out = hold_out(observations, X, asked, rng)
    signals = Interruption() if signals is None else signals
    spec = decide(held_out, facts, asked, rng, state, signals=signals, began=began)
    return formulate(held_out, facts, spec, rng, state, save)


def observe(X: Any, rank: int | None, asked: Options) -> Observations:
    """Return the observations of any input, if all that the call has goes together."""
    stand_in(asked.nonlinearity, asked.loss)  # refuses unknown ones
    client, zeros = client_for(X, asked.compute.client), asked.absent_are_zeros
    scratch = None if client is not None else _scratch(X, asked, zeros)
    form = {"on_cluster": client is not None, "from_file": scratch is not None}
    refuse(data_of(X, absent_are_zeros=zeros, **form) | features_of_fit(X, rank, asked))
    if client is not None:
        data = {name: each for name, each in asked.of_data.items() if name != "limits"}
        observations = observe_elsewhere(X, client, absent_are_zeros=zeros, **data)
    else:
        data = asked.of_data
        observations = inputs.observe(X, **data, absent_are_zeros=zeros, scratch=scratch)
    if zeros:
        refuse_empty(observations)
    return observations


def decide(
    data: HeldOutData,
    facts: Facts,
    options: Options,
    rng: np.random.Generator,
    state: FitState,
    **hooks: Any,
) -> Spec:
    """Return what the fit is to be: as it was asked for, and chosen where that is "auto".

    A fit that resumes has what was chosen, if the choice had ended.
    """
    if not facts.is_open(options):
        return _spec(facts, options)
    _problem(
        data.rest, facts, _spec(facts, replace(options, alpha=0.0, offsets="none", init="auto"))
    )
    asked, stream = vars(options), new_stream(rng)
    if state.decided is None:
        chosen = vars(choose(data, facts, options, stream, **hooks))
        state.decided = {
            name: each for name, each in chosen.items() if each is not asked.get(name, Spec)
        }
    return Spec(**asked | state.decided)


def formulate(
    data: HeldOutData,
    facts: Facts,
    spec: Spec,
    rng: np.random.Generator,
    state: FitState,
    save: Callable[[], None],
) -> Prepared:
    """Return the problem of a specification, its starts, and where the fit stands."""
    problem, offsets, plan = _problem(data.rest, facts, spec)
    if math.isnan(spec.limits.sd):
        problem = with_estimated_sd(problem, offsets, spec.rank, spec)
    starts = all_starts(problem, offsets, spec.rank, spec, rng, spec.start)
    score = score_of(data.held_out, problem.units.model)
    return Prepared(problem, starts, spec, plan, score, state, save)


def _problem(
    observations: Observations, facts: Facts, spec: Spec
) -> tuple[Problem, Offsets, RefinementPlan]:
    """Return problem, starting offsets and refinements, if the fit would fit into memory."""
    scaling = scaling_for(spec.model, facts.size)
    problem, offsets = make_problem(observations, scaling, spec, facts.observed_only)
    plan = make_plan(problem, spec.rank, spec)
    check_memory(problem, spec.rank, spec, plan)
    return problem, offsets, plan


def _spec(facts: Facts, options: Options) -> Spec:
    """Return the specification if nothing is chosen; rank 1 stands for an open one."""
    model = facts.model.with_limits(facts.limits)
    settled = vars(options.settled()) | {"rank": facts.rank or 1}
    return Spec(**settled, model=model, limits=facts.limits)


def _with_device_of(X: Any, asked: Options) -> Options:
    """Return what was asked for, on the device of a tensor X if no other was named."""
    if asked.compute.device is None:
        compute = replace(asked.compute, device=device_of_tensor(X))
        asked = replace(asked, compute=compute)
    device_of(asked.compute.device)  # refuses an unknown one
    return asked


def _rank(asked: Options) -> int | None:
    """Return the rank by a number or by starting factors; None if it is to be chosen."""
    rank = asked.rank
    if rank is None or (isinstance(rank, str) and not is_auto(rank)):
        raise TypeError(f"rank={rank!r} is not a number: give a whole number >= 1, or 'auto'.")
    if is_auto(rank):
        return None if isinstance(asked.init, str) else rank_of_init(asked.init)
    number: int = rank
    return number


def _scratch(X: Any, options: Options, absent_are_zeros: bool) -> Scratch | None:
    """Return a folder for arrays of the size of X if X is to be read from its file by blocks.

    It is if there is a `work_dir`, or if T and U would not fit beside X into the free memory, or
    into `memory_limit`.
    """
    if not is_stored(X) or (absent_are_zeros and is_sparse(X)):
        return None  # a fit to implicit zeros has no arrays of the size of X
    limit = options.compute.memory_limit
    free = free_memory() if limit is None else limit * 2**30
    size = X.n_stored if isinstance(X, SparseObservations) else X.size
    fits = STREAMED_ARRAYS * size * float_dtype(X, None).itemsize < SHARE * free
    return None if options.compute.work_dir is None and fits else Scratch(options.compute.work_dir)


def client_for(X: Any, client: Any) -> Any:
    """Return the client of a fit: that which is given, or the active one if X is of Dask."""
    if client is None and not is_dask(X):
        return None
    from nmd_lab.cluster.inputs import checked_client

    return checked_client(X, client)


def observe_elsewhere(X: Any, client: Any, **data: Any) -> Observations:
    """Return observations on the workers of a client; see `nmd_lab.data.inputs.observe`."""
    from nmd_lab.cluster.inputs import observe_on_cluster

    return observe_on_cluster(X, client, **data)
