"""From the arguments of `decompose` and `complete` to their labelled result."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import fields
from typing import Any

from ._checks import check_option_names
from ._fit_warnings import messages_after, messages_before, warn
from ._interruption import Interruption, interruptible
from ._package import package
from ._threads import one_thread
from .checkpoint.call import Call
from .data.labels import is_dask
from .data.stored import is_stored
from .result.decomposition import Decomposition
from .solver.options import COMPLETION_DEFAULTS, Options
from .solver.prepare import prepare
from .solver.prepared import Prepared
from .solver.restarts import solve
from .solver.settings import Compute, as_compute, as_solver, stored


def run_fit(
    function: Callable[..., Any], X: Any, options: Any, *, absent_are_zeros: bool, **named: Any
) -> Decomposition:
    """Prepare, solve, label and warn; `options` has the arguments that are left out of `named`."""
    check_option_names(options, [field.name for field in fields(Options)], "a fit")
    arguments = named | ({} if absent_are_zeros else COMPLETION_DEFAULTS) | options
    call, compute = None, as_compute(arguments.get("compute"))
    if compute.checkpoint is not None:
        call = _call(function, arguments, compute)
    try:
        with interruptible() as signals, one_thread():
            arguments |= {"absent_are_zeros": absent_are_zeros, "interruption": signals}
            return _fitted(prepare(X, call=call, **arguments), signals)
    finally:
        if is_stored(X) or compute.client is not None or is_dask(X):
            gc.collect()  # T and U are on a disk, or on workers, until nothing holds them


def _fitted(prepared: Prepared, signals: Interruption) -> Decomposition:
    """Return the labelled result of a fit, with warnings before and after it."""
    observations = prepared.problem.observations
    warn(messages_before(prepared), stacklevel=4)
    solution = solve(prepared)
    fit = package(prepared, solution)
    with observations.elsewhere.computing() if observations.elsewhere else nullcontext():
        warn(messages_after(fit, prepared), stacklevel=4)
    if signals and not signals.reported:
        fit = package(prepared, solution.after(signals))
    if observations.scratch is not None:
        observations.scratch.close()
    return fit


def _call(function: Callable[..., Any], arguments: dict[str, Any], compute: Compute) -> Call:
    """Return the call of a fit, for its checkpoint."""
    settings = {"solver": as_solver(arguments.get("solver", "auto")), "compute": stored(compute)}
    parameters = inspect.signature(function).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    return Call(function.__name__, arguments | settings, defaults)
