"""The methods that a study can compare, and the arguments that each of them takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from nmd_lab import baselines
from nmd_lab._runtime.checks import check_word
from nmd_lab.fit import complete
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.posterior import Posterior
from nmd_lab.sampling import sample

Result = Decomposition | Posterior | NDArray[Any]  # numbers are a prediction of every entry
Method = Callable[..., Result]  # a function of X and further arguments

METHODS: dict[str, Method] = {"admm": complete, "sample": sample, "svd": baselines.truncated_svd}
METHODS |= {name: getattr(baselines, name) for name in baselines.__all__}

# Arguments that the study sets itself, or that a study cannot have
RESERVED = {
    *("X", "observed", "weights", "at_most", "at_least", "upper", "sample_dims"),
    *("random_state", "compute", "callback", "progress"),
    *("missing", "noise", "seed", "algorithm"),
}

# Arguments that a method ignores, or that a study has no use for
WITHOUT_EFFECT = {METHODS["mean_fill"]: {"rank"}}


def named_function(argument: str, value: Any, functions: Mapping[str, Any]) -> tuple[str, Any]:
    """Return name and function for a name, or for a function of the user."""
    if isinstance(value, str):
        check_word(argument, value, functions)
        return value, functions[value]
    if callable(value) and getattr(value, "__name__", "<lambda>") != "<lambda>":
        return value.__name__, value
    raise TypeError(
        f"{argument}={value!r} has no name: give one made by def, or one of {sorted(functions)}."
    )


def defaults(method: Method) -> dict[str, Any]:
    """Return the arguments that change the result, with their defaults; `rank` may have none."""
    excluded = RESERVED | WITHOUT_EFFECT.get(method, set())
    parameters = list(inspect.signature(method).parameters.values())[1:]
    named = [p for p in parameters if p.kind is not p.VAR_KEYWORD and p.name not in excluded]
    return {p.name: p.default for p in named}


def takes_numbers(method: Method) -> bool:
    """Return whether a method gets a table as standardised numbers, with indicators."""
    ours = method in METHODS.values()
    return method not in (complete, sample) if ours else bool(accepted(method, {"observed": None}))


def accepted(method: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the arguments that a method, or an error, takes."""
    parameters = inspect.signature(method).parameters
    return {name: value for name, value in arguments.items() if name in parameters}
