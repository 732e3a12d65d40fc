"""From the arguments of `decompose` and `complete` to their labelled result."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from ._fit_warnings import messages_after, messages_before, warn
from ._interruption import interruptible
from ._labelled import label
from ._threads import one_thread
from .checkpoint.call import Call
from .data.labels import is_dask
from .data.limits import GivenLimits
from .data.stored import is_stored
from .result.decomposition import Decomposition
from .solver.prepare import prepare
from .solver.restarts import solve
from .solver.settings import Compute, as_compute, as_solver, stored


def run_fit(
    function: Callable[..., Any],
    X: Any,
    model: tuple[Any, Any, Any],
    data: dict[str, Any],
    limits: GivenLimits,
    options: Any,
    *,
    absent_are_zeros: bool,
) -> Decomposition:
    """Prepare, solve, label and warn."""
    call, compute = None, as_compute(options.get("compute"))
    if compute.checkpoint is not None:
        call = _call(function, model, data, limits, options, compute)
    try:
        return _fitted(X, model, options | data, absent_are_zeros, limits, call)
    finally:
        if is_stored(X) or compute.client is not None or is_dask(X):
            gc.collect()  # T and U are on a disk, or on workers, until nothing holds them


def _fitted(
    X: Any,
    model: tuple[Any, Any, Any],
    options: dict[str, Any],
    absent_are_zeros: bool,
    limits: GivenLimits,
    call: Call | None,
) -> Decomposition:
    """Return the result of a fit."""
    own = options | {"absent_are_zeros": absent_are_zeros, "limits": limits, "call": call}
    with interruptible() as interruption, one_thread():
        prepared = prepare(X, *model, interruption=interruption, **own)
        warn(messages_before(prepared), stacklevel=4)
        solution = solve(prepared)
        fit = label(prepared, solution)
        elsewhere = prepared.problem.observations.elsewhere
        with nullcontext() if elsewhere is None else elsewhere.computing():
            warn(messages_after(fit, prepared), stacklevel=4)
        if interruption and not interruption.reported:
            fit = label(prepared, solution.after(interruption))
        if (scratch := prepared.problem.observations.scratch) is not None:
            scratch.close()
    return fit


def _call(
    function: Callable[..., Any],
    model: tuple[Any, Any, Any],
    data: dict[str, Any],
    limits: GivenLimits,
    options: dict[str, Any],
    compute: Compute,
) -> Call:
    """Return the call of a fit, for its checkpoint."""
    arguments = dict(zip(("rank", "nonlinearity", "loss"), model, strict=True))
    arguments |= data | options | vars(limits)
    arguments |= {"solver": as_solver(options.get("solver", "auto")), "compute": stored(compute)}
    parameters = inspect.signature(function).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    return Call(function.__name__, arguments, defaults)
