"""The methods that a study can compare, and which of a fit's arguments each of them obeys."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nmd_lab import baselines
from nmd_lab._checks import check_word
from nmd_lab.fit import complete
from nmd_lab.result.decomposition import Decomposition

OWN = ("X", "mask", "sample_dims", "random_state", "threads", "callback", "progress")
"""Arguments of a fit that a study gives itself, or cannot give."""

ALIASES = {"svd": "truncated_svd"}
"""Short names."""

WITHOUT_EFFECT = {"mean_fill": {"rank"}}
"""Arguments that a method takes for its calling form only."""


@dataclass(frozen=True)
class Method:
    """A function in the calling form of `complete`.

    Attributes
    ----------
    name : str
        What the study calls it.
    function : callable
        Takes (X, ...) and returns a `Decomposition`.
    defaults : dict
        The arguments that change its result, with their defaults; `rank` may have none.
    """

    name: str
    function: Callable[..., Decomposition]
    defaults: dict[str, Any]

    @classmethod
    def of(cls, method: Any) -> Method:
        """Return the method that a name or a function stands for.

        Raises
        ------
        ValueError, TypeError
            If there is none.
        """
        if isinstance(method, str):
            known = known_methods()
            check_word("method", method, known)
            function = known[method]
            name = method
        elif callable(method) and getattr(method, "__name__", "<lambda>") != "<lambda>":
            function, name = method, method.__name__
        else:
            raise TypeError(
                f"method={method!r} is neither a name nor a function that has one: choose from "
                f"{sorted(known_methods())}, or give a function of (X, rank)."
            )
        parameters = inspect.signature(function).parameters
        idle = WITHOUT_EFFECT.get(ALIASES.get(name, name), set())
        named = {n: p for n, p in parameters.items() if p.kind is not p.VAR_KEYWORD}
        defaults = {n: p.default for n, p in list(named.items())[1:] if n not in idle.union(OWN)}
        return cls(name, function, defaults)


def known_methods() -> dict[str, Callable[..., Decomposition]]:
    """Return the functions that can be chosen by name."""
    named = {name: getattr(baselines, name) for name in baselines.__all__}
    named = {name: function for name, function in named.items() if inspect.isfunction(function)}
    return {"admm": complete} | named | {short: named[name] for short, name in ALIASES.items()}
