"""From the arguments of a fit to what `solve` runs: observe, describe, decide, formulate.

This module alone imports `nmd_lab.cluster`, which observes data on other machines.
"""

from __future__ import annotations

import copy
import math
import time
from dataclasses import replace
from typing import Any

from nmd_lab._runtime.checks import is_auto, new_stream
from nmd_lab._runtime.machine import MAX_SHARE, Scratch, free_memory
from nmd_lab._runtime.progress import Interruption
from nmd_lab.checkpoint import with_checkpoint
from nmd_lab.data.inputs import Form, observe
from nmd_lab.data.observations import Observations, float_dtype
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.data.units import refuse_table
from nmd_lab.devices import device_of
from nmd_lab.fit.held_out import hold_out, refuse_empty, score_of
from nmd_lab.fit.loop import FitState
from nmd_lab.fit.starts import all_starts, with_estimated_sd
from nmd_lab.fit.summary import Decided, describe, formulate
from nmd_lab.fit.support import features_of_data, features_of_fit, refuse
from nmd_lab.problem.initialization import rank_of_init
from nmd_lab.request.options import Options
from nmd_lab.selection.choice import choose

CHOSEN = ("rank", "alpha", "offsets", "offset_alpha", "max_iter", "tol", "init")
"""Options that a choice may change."""

OF_SOLVER = ("refine", "homotopy", "polish")
"""Settings of the solver that it may change."""

FOUND = ("model", "limits", "start", "selection", "spent")
"""What it finds of the data."""


def prepare(X: Any, form: Form, asked: Options, signals: Interruption | None = None) -> Decided:
    """Return the fit that was asked for, ready to be solved, with a choice for what is "auto"."""
    began = time.perf_counter()
    if asked.compute.device is None:
        asked = replace(asked, compute=replace(asked.compute, device=form.device))
    device_of(asked.compute.device)  # refuses an unknown one
    rank = _rank(asked)
    observations = observed(X, form, rank, asked)
    summary = describe(observations, rank, asked, is_table=form.is_frame)
    rng, kinds = asked.generator(), summary.model.column_models
    state, save = FitState(copy.deepcopy(rng)), lambda: None
    if asked.compute.checkpoint is not None:
        state, save, rng = with_checkpoint(state, asked, observations, kinds, rng)
    if asked.validation.splitter is not None:
        summary = hold_out(summary, X, asked, rng)
    options = replace(asked.settled(), rank=summary.rank or 1)  # 1 stands for an open one
    if summary.is_open(asked):
        smallest = replace(asked, rank=options.rank, alpha=0.0, offsets="none", init="auto")
        formulate(summary, smallest.settled())  # refuses what does not fit into memory
        stream = new_stream(rng)
        if state.decided is None:
            signals = Interruption() if signals is None else signals
            chosen, found = choose(summary, asked, stream, began=began, signals=signals)
            names = CHOSEN if isinstance(chosen.init, str) else CHOSEN[:-1]  # or it was given
            stored = (chosen, names), (chosen.solver, OF_SOLVER), (found, FOUND)
            state.decided = [{n: getattr(record, n) for n in names} for record, names in stored]
        of_options, of_solver, of_data = state.decided
        solver = replace(asked.solver, **of_solver)
        options, summary = replace(asked, **of_options, solver=solver), summary._replace(**of_data)
    problem, plan = formulate(summary, options)
    if math.isnan(summary.limits.sd):
        problem = with_estimated_sd(problem, options)
    starts = all_starts(problem, options.rank, options, plan, rng, summary.start)
    held_out = score_of(summary.held_out, problem.units.model)
    return Decided(options, summary, problem, starts, plan, held_out, state, save)


def observed(X: Any, form: Form, rank: int | None, asked: Options) -> Observations:
    """Return the observations of a fit, if all that the call has goes together."""
    client, zeros, scratch = asked.compute.client, asked.absent_are_zeros, None
    if client is not None or form.is_dask:
        from nmd_lab.cluster.observations import checked_client, observe_on_cluster

        client = checked_client(X, client)
    elif form.in_files and not (zeros and form.is_sparse):
        scratch = _scratch(X, asked)  # a fit to implicit zeros has no arrays of the size of X
    places: dict[str, Any] = {"on_cluster": client is not None, "scratch": scratch}
    refuse(features_of_data(form, asked, zeros=zeros, **places) | features_of_fit(rank, asked))
    data = asked.of_data | {"absent_are_zeros": zeros}
    if client is None:
        observations = observe(X, **data, scratch=scratch, form=form)
    else:
        observations = observe_on_cluster(X, client, **data)
    if zeros:
        refuse_empty(observations)
    elif form.is_frame:
        may_be_empty = "keep_empty_features" in X.attrs
        refuse_table(observations.labels, observations.counts(0), may_be_empty=may_be_empty)
    return observations


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
    # Four arrays of the size of X must fit, or data in files are read by blocks.
    fits = 4 * size * float_dtype(X, None).itemsize < MAX_SHARE * free
    return None if options.compute.work_dir is None and fits else Scratch(options.compute.work_dir)
