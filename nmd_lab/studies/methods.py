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

RESERVED = ("X", "mask", "sample_dims", "random_state", "threads", "callback", "progress")
"""Arguments of a fit that the study sets itself, or that a study cannot have."""

ALIASES = {"svd": "truncated_svd"}
"""Short names of methods."""

WITHOUT_EFFECT = {"mean_fill": {"rank"}}
"""Arguments that a method takes but ignores."""

COMPILED_FOR = (
    "nonlinearity", "loss", "dtype", "offsets", "constraint", "penalty", "progress",
)  # fmt: skip
"""Arguments of a fit that its compilation repeats.

They decide which kernels Numba compiles, and whether a progress bar is shown.
"""

_compiled: set[str] = set()
"""Descriptions of the fits whose kernels this process has compiled."""


@dataclass(frozen=True)
class Method:
    """A function with the signature of `complete`.

    Attributes
    ----------
    name : str
        Name of the method in the study.
    function : callable
        Function of (X, ...) that returns a `Decomposition`.
    defaults : dict
        Arguments that change the result, with their defaults; `rank` may have none.
    """

    name: str
    function: Callable[..., Decomposition]
    defaults: dict[str, Any]

    @classmethod
    def of(cls, method: Any) -> Method:
        """Return the method for a name or a function.

        Raises
        ------
        ValueError, TypeError
            If there is no such method.
        """
        if isinstance(method, str):
            named = named_methods()
            check_word("method", method, named)
            name, function = method, named[method]
        elif callable(method) and getattr(method, "__name__", "<lambda>") != "<lambda>":
            name, function = method.__name__, method
        else:
            raise TypeError(
                f"method={method!r} is neither a name nor a function that has one: choose from "
                f"{sorted(named_methods())}, or give a function of (X, rank)."
            )
        parameters = inspect.signature(function).parameters
        excluded = WITHOUT_EFFECT.get(ALIASES.get(name, name), set()).union(RESERVED)
        explicit = {n: p for n, p in parameters.items() if p.kind is not p.VAR_KEYWORD}
        defaults = {n: p.default for n, p in list(explicit.items())[1:] if n not in excluded}
        return cls(name, function, defaults)

    def accepted(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return those of the arguments that the function takes."""
        parameters = inspect.signature(self.function).parameters
        return {name: value for name, value in arguments.items() if name in parameters}

    def compile(self, X: Any, arguments: Mapping[str, Any]) -> None:
        """Let Numba compile what a fit needs, so that the time of the fit does not include it.

        Parameters
        ----------
        X : array_like or scipy.sparse matrix
            A tiny matrix of the same type as that of the fit.
        arguments : dict
            Arguments of the fit.
        """
        if self.function not in named_methods().values():
            return
        chosen = {name: arguments[name] for name in COMPILED_FOR if name in arguments}
        if "max_iter" in self.defaults:
            chosen["max_iter"] = 2
        description = f"{self.name} {chosen!r}"
        if description in _compiled:
            return
        _compiled.add(description)
        with suppress(Exception):  # an error will show again in the fit itself
            self.function(X, 1, **chosen)


def named_methods() -> dict[str, Callable[..., Decomposition]]:
    """Return the methods that have a name: `complete`, the baselines and the short names."""
    public = {name: getattr(baselines, name) for name in baselines.__all__}
    functions = {name: value for name, value in public.items() if inspect.isfunction(value)}
    short = {alias: functions[name] for alias, name in ALIASES.items()}
    return {"admm": complete} | functions | short
