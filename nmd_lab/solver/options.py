"""The options of a fit: their one list, with defaults and checks."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any

import numpy as np

from nmd_lab._checks import (
    as_generator,
    check_integer,
    check_number,
    check_option_names,
    check_word,
)

from .penalty import PenaltyRule, as_penalty_rule

INITS = ("auto", "svd", "randomized", "nndsvd", "random")
OFFSETS = ("none", "global", "rows", "columns", "both")
CONSTRAINTS = ("auto", "everywhere", "observed")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Every option of `decompose` and `complete` that is not data; see `decompose`."""

    init: Any = "auto"
    n_init: int = 1
    max_iter: int = 500
    tol: float = 1e-10
    penalty: str | float | PenaltyRule = "auto"
    initial_penalty: float | None = None
    acceleration: str | None = "auto"
    homotopy: str | bool = "auto"
    polish: str | bool = "auto"
    alpha: float = 0.0
    offsets: str = "none"
    constraint: str = "auto"
    validation: Any = None
    patience: int = 10
    epsilon: float = 1e-12  # the paper's 1e-6 would floor the error at about 1e-5
    time_limit: float | None = None
    callback: Callable[..., Any] | None = None
    progress: bool | None = None
    random_state: Any = None
    threads: int | None = None

    def __post_init__(self) -> None:
        """Check everything that can be checked without the data."""
        check_integer("n_init", self.n_init, 1)
        check_integer("max_iter", self.max_iter, 1)
        check_number("tol", self.tol, 0)
        check_number("alpha", self.alpha, 0)
        check_number("epsilon", self.epsilon, 0)
        if self.time_limit is not None:
            check_number("time_limit", self.time_limit, 0)
        if self.callback is not None and not callable(self.callback):
            raise TypeError(
                f"callback={self.callback!r} is not callable: give a function of state."
            )
        check_word("progress", self.progress, [None, True, False])
        if isinstance(self.init, str):
            check_word("init", self.init, INITS, ", a pair (W, H) or a fit")
        check_word("offsets", self.offsets, OFFSETS)
        check_word("constraint", self.constraint, CONSTRAINTS)
        check_integer("patience", self.patience, 1)
        if self.threads is not None:
            check_integer("threads", self.threads, 1)
        as_penalty_rule(self.penalty)
        self._check_initial_penalty()
        check_word("acceleration", self.acceleration, ["auto", None])
        for name in ("homotopy", "polish"):
            check_word(name, getattr(self, name), ["auto", True, False])
        self.generator()

    def _check_initial_penalty(self) -> None:
        if self.initial_penalty is None:
            return
        if not isinstance(self.penalty, str):
            raise ValueError(
                f"initial_penalty={self.initial_penalty!r} goes with a rule that has a name: "
                "leave it out, or give penalty='auto', 'balanced' or 'paper'."
            )
        check_number("initial_penalty", self.initial_penalty, above=0)

    @classmethod
    def of(cls, options: dict[str, Any]) -> Settings:
        """Return the settings from keyword arguments, naming a misspelt one's nearest."""
        check_option_names(options, [field.name for field in fields(cls)], "a fit")
        return cls(**options)

    def describe(self, dtype: Any) -> dict[str, Any]:
        """Return what a result remembers of the settings, in plain numbers and words."""
        words = {f.name: getattr(self, f.name) for f in fields(self)}
        for name in ("callback", "progress", "threads"):
            del words[name]
        if not isinstance(self.validation, float | None):
            words["validation"] = f"given {type(self.validation).__name__}"
        words["epsilon"] = self.epsilon_for(dtype)
        if not isinstance(self.init, str):
            words["init"] = f"given {type(self.init).__name__}"
        if isinstance(self.penalty, PenaltyRule):
            words["penalty"] = repr(self.penalty)
        if not isinstance(self.random_state, Integral | None):
            words["random_state"] = f"given {type(self.random_state).__name__}"
        return {name: w.item() if hasattr(w, "item") else w for name, w in words.items()}

    def epsilon_for(self, dtype: Any) -> float:
        """Return epsilon, raised to the rounding unit of the precision."""
        return max(float(self.epsilon), float(np.finfo(dtype).eps))

    def generator(self) -> np.random.Generator:
        """Return the source of all random numbers of a fit."""
        return as_generator(self.random_state)


def with_settings_signature(function: Callable[..., Any]) -> Callable[..., Any]:
    """Show the options, with their defaults, in a function's signature."""
    signature = inspect.signature(function)
    named = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    options = [
        inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default)
        for f in fields(Settings)
    ]
    function.__signature__ = signature.replace(parameters=[*named, *options])  # type: ignore[attr-defined]
    return function
