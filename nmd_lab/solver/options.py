"""The options of a fit: their one list, with defaults and checks."""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any

import numpy as np

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
        _check_integer("n_init", self.n_init, 1)
        _check_integer("max_iter", self.max_iter, 1)
        _check_number("tol", self.tol, 0)
        _check_number("alpha", self.alpha, 0)
        _check_number("epsilon", self.epsilon, 0)
        if self.time_limit is not None:
            _check_number("time_limit", self.time_limit, 0)
        if self.callback is not None and not callable(self.callback):
            raise TypeError(
                f"callback={self.callback!r} is not callable: give a function of state."
            )
        if self.progress not in (None, True, False):
            raise ValueError(f"progress={self.progress!r} is unknown: use None, True or False.")
        if isinstance(self.init, str):
            _check_word("init", self.init, INITS, ", a pair (W, H) or a fit")
        _check_word("offsets", self.offsets, OFFSETS)
        _check_word("constraint", self.constraint, CONSTRAINTS)
        _check_integer("patience", self.patience, 1)
        if self.threads is not None:
            _check_integer("threads", self.threads, 1)
        as_penalty_rule(self.penalty)
        self._check_initial_penalty()
        if self.acceleration not in ("auto", None):
            raise ValueError(f"acceleration={self.acceleration!r} is unknown: use 'auto' or None.")
        for name in ("homotopy", "polish"):
            value = getattr(self, name)
            if not isinstance(value, bool) and not (isinstance(value, str) and value == "auto"):
                raise ValueError(f"{name}={value!r} is unknown: use 'auto', True or False.")
        self.generator()

    def _check_initial_penalty(self) -> None:
        if self.initial_penalty is None:
            return
        if not isinstance(self.penalty, str):
            raise ValueError(
                f"initial_penalty={self.initial_penalty!r} goes with a rule that has a name: "
                "leave it out, or give penalty='auto', 'balanced' or 'paper'."
            )
        _check_number("initial_penalty", self.initial_penalty, 0)
        if self.initial_penalty == 0:
            raise ValueError("initial_penalty=0 is not positive: give a number > 0.")

    @classmethod
    def of(cls, options: dict[str, Any]) -> Settings:
        """Return the settings from keyword arguments, naming a misspelt one's nearest."""
        known = [field.name for field in fields(cls)]
        for name in options:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"the options are {known}."
                raise TypeError(f"{name}= is not an option of a fit: {hint}")
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
        return generator(self.random_state)


def generator(seed: Any) -> np.random.Generator:
    """Return a source of random numbers from what `random_state` may be."""
    if isinstance(seed, np.random.RandomState):  # what scikit-learn hands on
        seed = int(seed.randint(2**31))
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"random_state={seed!r} is not a seed: give None, an integer >= 0 or a Generator."
        ) from error


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


def _check_word(name: str, value: Any, words: tuple[str, ...], more: str = "") -> None:
    if value not in words:
        raise ValueError(f"{name}={value!r} is unknown: choose one of {list(words)}{more}.")


def _check_integer(name: str, value: Any, smallest: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name}={value!r} is not an integer: give a whole number >= {smallest}.")
    if value < smallest:
        raise ValueError(f"{name}={value} is too small: give a whole number >= {smallest}.")


def _check_number(name: str, value: Any, smallest: float) -> None:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}={value!r} is not a number: give one >= {smallest:g}.")
    if not smallest <= float(value) < math.inf:
        raise ValueError(f"{name}={value} is out of range: give a finite number >= {smallest:g}.")


def check_rank(rank: Any, shape: tuple[int, int]) -> int:
    """Return the rank as an int, if it is one that a matrix of this shape can have."""
    _check_integer("rank", rank, 1)
    if rank > min(shape):
        raise ValueError(
            f"rank={rank} exceeds the smaller side of X, {min(shape)}: give a smaller rank."
        )
    return int(rank)
