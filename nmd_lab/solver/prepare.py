"""Checks of the arguments, and the problem, starts and refinement plan that follow from them."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike, DTypeLike

from nmd_lab._checks import check_rank, check_size, is_auto, new_stream
from nmd_lab._files import Scratch
from nmd_lab._interruption import Interruption
from nmd_lab._memory import SHARE, free_memory
from nmd_lab.checkpoint.call import Call
from nmd_lab.data.base import Observations, float_dtype
from nmd_lab.data.labels import is_frame
from nmd_lab.data.limits import NO_LIMITS, GivenLimits
from nmd_lab.data.observations import observe
from nmd_lab.data.stored import is_stored
from nmd_lab.data.tensors import device_of_tensor
from nmd_lab.data.units_apart import TABLE, units_of_columns
from nmd_lab.model.losses import Frobenius, Loss
from nmd_lab.model.model import Model, make_model
from nmd_lab.model.offsets import NO_OFFSETS, Offsets

from .bounds import with_bounds
from .checkpointing import state_and_save
from .columns import is_mixed, mixed_model
from .devices.choice import device_of
from .elsewhere import client_for, observe_elsewhere
from .formulation import make_problem, observed_only
from .guard import refuse_wrong_parts
from .holding_out import hold_out, judge_of
from .initialization import given_start, rank_of_init
from .limit_noise import limit_model, with_estimated_sd
from .memory import STREAMED_ARRAYS, check_memory
from .options import Options
from .prepared import Prepared
from .problem import Problem
from .refinement.plan import RefinementPlan, make_plan
from .run_state import FitState
from .scaling import scaling_for
from .selection.choice import choose
from .selection.space import Fixed
from .starts import all_starts
from .stopping import Ending
from .support import data_of, features_of_fit, refuse


def prepare(
    X: Any,
    rank: int | str,
    nonlinearity: Any,
    loss: Any,
    *,
    observed: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    sample_dims: str | Sequence[str] | None = None,
    limits: GivenLimits = NO_LIMITS,
    absent_are_zeros: bool,
    interruption: Interruption | None = None,
    call: Call | None = None,
    **options: Any,
) -> Prepared:
    """Check the arguments of `decompose` or `complete`, and choose what is "auto"."""
    began = time.perf_counter()
    checked = Options.of(options)
    if checked.compute.device is None:
        compute = replace(checked.compute, device=device_of_tensor(X))
        checked = replace(checked, compute=compute)
    device_of(checked.compute.device)  # refuses an unknown one
    pair: Model = make_model(
        "identity" if is_mixed(nonlinearity) or is_auto(nonlinearity) else nonlinearity,
        "frobenius" if is_mixed(loss) or is_auto(loss) else loss,
    )
    client = client_for(X, checked.compute.client)
    scratch = None if client is not None else _scratch(X, checked)
    form = {"on_cluster": client is not None, "from_file": scratch is not None}
    rank_of_call = _rank_of_call(rank, checked)
    refuse(
        data_of(X, absent_are_zeros=absent_are_zeros, **form)
        | features_of_fit(X, rank_of_call, nonlinearity, loss, checked, limits, weights)
    )
    data: dict[str, Any] = {"observed": observed, "weights": weights, "dtype": dtype}
    data |= {"sample_dims": sample_dims, "absent_are_zeros": absent_are_zeros, "limits": limits}
    if client is None:
        observations: Observations = observe(X, **data, scratch=scratch)
    else:
        del data["limits"]
        observations = observe_elsewhere(X, client, **data)
    given_rank = _checked_rank(rank_of_call, observations, checked)
    if is_frame(X) and is_auto(nonlinearity) and checked.compute.device is None:
        loss = _with_units(loss, pair, observations)
    if is_mixed(nonlinearity) or is_mixed(loss) or observations.labels.table is not None:
        pair = mixed_model(nonlinearity, loss, observations)
    smallest, largest = observations.range()
    pair.check_data(smallest, largest)
    pair = _for_data(pair, observations)
    f, d = pair.shown
    if pair.single is not None:
        f = None if is_auto(nonlinearity) else with_bounds(nonlinearity, observations)
        d = None if is_auto(loss) else d
    size = check_size("X", max(-smallest, largest), observations.dtype)
    everywhere = not observed_only(observations, checked.solver.split)
    if absent_are_zeros:
        _refuse_empty_rows_and_columns(observations)
    refuse_wrong_parts(pair, observations)
    rng = checked.generator()
    state, rng, save = state_and_save(
        FitState(copy.deepcopy(rng)), rng, checked.compute, call, observations, pair.kinds
    )
    rest, held_out = hold_out(observations, checked, rng)
    if absent_are_zeros and held_out is not None:
        _refuse_empty_rows_and_columns(rest)

    fixed = Fixed(f, d, given_rank, None if pair.single else pair)
    choice, ending = None, Ending()
    known = limit_model(observations, checked.solver.limit_noise)
    if checked.alpha == "auto" or fixed.is_open:
        without = replace(checked, alpha=0.0, offsets="none").settled()
        _formulate(rest, pair, size, without, everywhere, given_rank or 1)  # refuses what is large
        signals = Interruption() if interruption is None else interruption

        def after_trial() -> None:
            signals.begin()
            save()

        choice = choose(
            *(rest, held_out, fixed, checked, new_stream(rng), known, state.trials),
            interrupted=lambda: bool(signals),
            after=after_trial,
        )
        known = choice.limits
        checked = choice.settle(checked, time.perf_counter() - began)
        f, d, given_rank = choice.setting.nonlinearity, choice.setting.loss, choice.setting.rank
        fixed, ending = fixed._replace(nonlinearity=f, loss=d, rank=given_rank), choice.ending
    checked, chosen_rank = checked.settled(), fixed.rank
    assert chosen_rank is not None
    pair = fixed.model.with_limits(known)
    problem, offsets, plan = _formulate(rest, pair, size, checked, everywhere, chosen_rank)
    if math.isnan(known.sd):
        problem = with_estimated_sd(problem, offsets, chosen_rank, checked)
        pair = problem.units.pair
    start = None if choice is None else choice.start
    starts = all_starts(problem, offsets, chosen_rank, checked, rng, start)
    judge = judge_of(held_out, pair)
    return Prepared(problem, starts, checked, plan, judge, state, save, ending, choice)


def _with_units(loss: Any, pair: Model, observations: Observations) -> Any:
    """Return the loss of a table; {}, each column in its own units, if these are different."""
    squares = not (is_mixed(loss) or is_auto(loss)) and type(pair.loss) is Frobenius
    return {} if squares and units_of_columns(observations, TABLE) else loss


def _scratch(X: Any, options: Options) -> Scratch | None:
    """Return a folder for arrays of the size of X if X is to be read from its file by blocks.

    It is if there is a `work_dir`, or if T and U would not fit beside X into the free memory, or
    into `memory_limit`.
    """
    if not is_stored(X):
        return None
    limit = options.compute.memory_limit
    free = free_memory() if limit is None else limit * 2**30
    fits = STREAMED_ARRAYS * X.size * float_dtype(X, None).itemsize < SHARE * free
    return None if options.compute.work_dir is None and fits else Scratch(options.compute.work_dir)


def _for_data(pair: Model, observations: Observations) -> Model:
    """Return the pair with what the data decide about its loss."""
    kind = pair.single
    if kind is None or type(kind.loss).for_data is Loss.for_data:  # saves an array of the size of X
        return pair
    return make_model(kind.nonlinearity, kind.loss.for_data(*observations.observed()))


def _rank_of_call(rank: Any, options: Options) -> int | None:
    """Return the rank that is given, by a number or by starting factors, or None for "auto"."""
    if rank is None or (isinstance(rank, str) and not is_auto(rank)):
        raise TypeError(f"rank={rank!r} is not a number: give a whole number >= 1, or 'auto'.")
    if is_auto(rank):
        return None if isinstance(options.init, str) else rank_of_init(options.init)
    given: int = rank
    return given


def _checked_rank(rank: Any, observations: Observations, options: Options) -> int | None:
    """Return a rank that suits the data, and check starting factors; None for "auto"."""
    if rank is None:
        return None
    checked = check_rank(rank, observations.shape)
    if not isinstance(options.init, str):
        given_start(observations, checked, options.init, NO_OFFSETS)  # checks it
    return checked


def _formulate(
    observations: Observations,
    pair: Model,
    size: float,
    options: Options,
    everywhere: bool,
    rank: int,
) -> tuple[Problem, Offsets, RefinementPlan]:
    """Return problem, starting offsets and refinements, if the fit would fit into memory."""
    scaling = scaling_for(pair, size)
    problem, offsets = make_problem(observations, scaling, options, not everywhere)
    plan = make_plan(problem, rank, options)
    check_memory(problem, rank, options, plan)
    return problem, offsets, plan


def _refuse_empty_rows_and_columns(observations: Observations) -> None:
    """Raise ValueError if a row or a column has no observed entry (`decompose` only)."""
    both = zip(("row", "column"), observations.empty_rows_and_columns(), strict=True)
    for name, empty in both:
        if empty.size:
            raise ValueError(
                f"X has no observed entry in {name} {empty[0]}: drop it, or use complete(), which "
                "lets it fall back to f of the offsets."
            )
