"""The methods that a study can compare, and the arguments that each of them takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from nmd_lab import baselines
from nmd_lab._checks import check_word
from nmd_lab.fit import complete
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.posterior.posterior import Posterior
from nmd_lab.sampling import sample

Result = Decomposition | Posterior
"""What a method returns."""

METHODS: dict[str, Callable[..., Result]] = {"admm": complete, "sample": sample}
METHODS |= {n: f for n, f in vars(baselines).items() if n in baselines.__all__ and callable(f)}
METHODS["svd"] = METHODS["truncated_svd"]

RESERVED = (
    *("X", "mask", "sample_dims", "random_state", "threads", "callback", "progress", "solver"),
    *("checkpoint", "checkpoint_every", "work_dir", "memory_limit", "client"),
)
"""Arguments of a fit that the study sets itself, or that a study cannot have."""

WITHOUT_EFFECT = {METHODS["mean_fill"]: {"rank"}, sample: {"noise", "targets"}}
"""Arguments that a method ignores, or that a study has no use for: `noise` is that of the study."""

_compiled: set[str] = set()
"""Descriptions of the fits whose kernels this process has compiled."""


def named_function(argument: str, value: Any, functions: Mapping[str, Any]) -> tuple[str, Any]:
    """Return name and function for a name, or for a function of the user."""
    if isinstance(value, str):
        check_word(argument, value, functions)
        return value, functions[value]
    if callable(value) and getattr(value, "__name__", "<lambda>") != "<lambda>":
        return value.__name__, value
    raise TypeError(
        f"{argument}={value!r} is neither a name nor a function that has one: choose from "
        f"{sorted(functions)}, or give a function that was made by def."
    )


@dataclass(frozen=True)
class Method:
    """A function of (X, ...) that returns a `Decomposition` or a `Posterior`.

    Attributes
    ----------
    name : str
        Name of the method in the study.
    function : callable
        The function.
    defaults : dict
        Arguments that change the result, with their defaults; `rank` may have none.
    """

    name: str
    function: Callable[..., Result]
    defaults: dict[str, Any]

    def __str__(self) -> str:
        """Return the name."""
        return self.name

    @classmethod
    def of(cls, method: Any) -> Method:
        """Return the method for a name or a function."""
        name, function = named_function("method", method, METHODS)
        parameters = list(inspect.signature(function).parameters.values())[1:]
        excluded = {*RESERVED, *WITHOUT_EFFECT.get(function, ())}
        named = [p for p in parameters if p.kind is not p.VAR_KEYWORD and p.name not in excluded]
        return cls(name, function, {p.name: p.default for p in named})

    def accepted(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return those of the arguments that the function takes."""
        parameters = inspect.signature(self.function).parameters
        return {name: value for name, value in arguments.items() if name in parameters}

    def compile(self, X: Any, arguments: Mapping[str, Any]) -> None:
        """Let Numba compile what a fit needs, once in a process, by a fit of few iterations."""
        few = self.accepted({"max_iter": 2, "draws": 2, "tune": 1})
        decisive = {n: v for n, v in arguments.items() if n not in ("rank", "random_state", *few)}
        description = f"{self.name} {type(X)} {decisive}"
        if self.function in METHODS.values() and few and description not in _compiled:
            _compiled.add(description)
            with suppress(Exception):  # an error will show again in the fit itself
                self.function(X, **{**arguments, **few})
