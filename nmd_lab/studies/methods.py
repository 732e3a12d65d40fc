"""The methods that a study can compare, and the arguments that each of them takes."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from nmd_lab import baselines
from nmd_lab._checks import check_word
from nmd_lab.fit import complete
from nmd_lab.model.nonlinearities import Identity, MinMax
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.posterior.posterior import Posterior
from nmd_lab.sampling import sample

RESERVED = (
    *("X", "mask", "sample_dims", "random_state", "threads", "callback", "progress"),
    *("checkpoint", "checkpoint_every", "work_dir", "memory_limit", "client"),
)
"""Arguments of a fit that the study sets itself, or that a study cannot have."""

ALIASES = {"svd": "truncated_svd"}
"""Short names of methods."""

Result = Decomposition | Posterior
"""What a method returns."""

WITHOUT_EFFECT = {"mean_fill": {"rank"}, "sample": {"noise", "targets"}}
"""Arguments that a method ignores, or that a study has no use for.

`noise` is that of the study; `sample` finds out itself where the noise of the model is.
"""

COMPILED_FOR = (
    "nonlinearity", "loss", "dtype", "offsets", "constraint", "penalty", "progress",
)  # fmt: skip
"""Arguments of a fit that its compilation repeats.

They decide which kernels Numba compiles, and whether a progress bar is shown.
"""

NONLINEARITIES_TO_CHOOSE = ("identity", "relu", MinMax(0, 1))
LOSSES_TO_CHOOSE = ("frobenius", "l1", "kl")
"""What "auto" may choose, for the compilation."""

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
        Function of (X, ...) that returns a `Decomposition` or a `Posterior`.
    defaults : dict
        Arguments that change the result, with their defaults; `rank` may have none.
    """

    name: str
    function: Callable[..., Result]
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

    @property
    def is_sampler(self) -> bool:
        """Whether the method is `sample`."""
        return self.function is sample

    def accepted(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return those of the arguments that the function takes."""
        parameters = inspect.signature(self.function).parameters
        return {name: value for name, value in arguments.items() if name in parameters}

    def settled(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a fit with its defaults, the same for the same fit."""
        values = self.defaults | dict(arguments)
        if self.function is not complete or values["alpha"] == "auto":
            return values
        if values["nonlinearity"] is None:
            values["nonlinearity"] = Identity.name
        if values["offsets"] == "auto":
            values["offsets"] = "none"
        if values["offset_alpha"] in ("auto", values["alpha"]):
            del values["offset_alpha"]
        return values

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
        common = {name: arguments[name] for name in COMPILED_FOR if name in arguments}
        if "max_iter" in self.defaults:
            common["max_iter"] = 2
        if self.is_sampler:
            common |= {"draws": 2, "tune": 1}
        for chosen in self._possible(common, arguments):
            description = f"{self.name} {chosen!r}"
            if description in _compiled:
                continue
            _compiled.add(description)
            with suppress(Exception):  # an error will show again in the fit itself
                self.function(X, 1, **chosen)

    def _possible(
        self, common: dict[str, Any], arguments: Mapping[str, Any]
    ) -> Iterator[dict[str, Any]]:
        """Yield the arguments of all tiny fits that together compile what a fit needs."""
        if self.function is not complete:
            yield common
            return
        values = self.settled(arguments)
        given = [(values["nonlinearity"],), (values["loss"],)]
        fs, losses = (
            choices if each[0] in ("auto", None) else each
            for each, choices in zip(
                given, (NONLINEARITIES_TO_CHOOSE, LOSSES_TO_CHOOSE), strict=True
            )
        )
        offsets = "both" if values["offsets"] == "auto" else values["offsets"]
        for f, loss in itertools.product(fs, losses):
            yield common | {"nonlinearity": f, "loss": loss, "alpha": 0, "offsets": offsets}


def named_methods() -> dict[str, Callable[..., Result]]:
    """Return the methods that have a name: `complete`, `sample`, the baselines, short names."""
    public = {name: getattr(baselines, name) for name in baselines.__all__}
    functions = {name: value for name, value in public.items() if inspect.isfunction(value)}
    short = {alias: functions[name] for alias, name in ALIASES.items()}
    own: dict[str, Callable[..., Result]] = {"admm": complete, "sample": sample}
    return own | functions | short
