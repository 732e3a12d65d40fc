"""The options of a fit, with their types, defaults and checks."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any, Literal, TypedDict, TypeVar

import numpy as np

from nmd_lab._runtime.checks import (
    as_generator,
    check_integer,
    check_number,
    check_number_or_auto,
    check_option_names,
    check_seed,
    check_word,
    is_auto,
)

from .choice import Choice, as_choice
from .constraints.base import FactorConstraint
from .constraints.factor_constraints import as_constraint
from .penalty import PenaltyRule
from .settings import ADMM, Compute, as_compute, as_solver

INITS = ("auto", "svd", "randomized", "nndsvd", "random", "path")
OFFSETS = ("auto", "none", "global", "rows", "columns", "both")
FACTOR_CONSTRAINTS = ("w_constraint", "h_constraint")

COMPLETION_DEFAULTS: dict[str, Any] = {"alpha": "auto", "offsets": "auto"}
"""Options of `complete` whose defaults differ from those of `decompose`."""

FactorConstraintName = Literal["nonnegative", "simplex", "orthonormal", "sparse"]

Function = TypeVar("Function", bound=Callable[..., Any])


class FitOptions(TypedDict, total=False):
    """The keyword arguments of `decompose` and `complete` that steer the solver.

    `nmd_lab.decompose` documents them.  This class is for editors and type checkers.  `Options` has
    the same names, with the defaults and the checks.
    """

    init: Literal["auto", "svd", "randomized", "nndsvd", "random", "path"] | Any
    n_init: int
    max_iter: int
    tol: float
    alpha: float | Literal["auto"]
    offsets: Literal["auto", "none", "global", "rows", "columns", "both"]
    offset_alpha: float | Literal["auto"]
    w_constraint: FactorConstraintName | FactorConstraint | None
    h_constraint: FactorConstraintName | FactorConstraint | None
    validation: float | Any | Choice | None
    time_limit: float | None
    callback: Callable[..., Any] | None
    progress: bool | None
    random_state: int | np.random.Generator | None
    solver: Literal["auto", "paper"] | ADMM
    compute: Compute | None


@dataclass(frozen=True, kw_only=True)
class Options:
    """Checked options of a fit; `nmd_lab.decompose` documents them."""

    init: Any = "auto"
    n_init: int = 1
    max_iter: int = 500
    tol: float = 0.01
    alpha: float | Any = 0.0
    offsets: str = "none"
    offset_alpha: float | Any = "auto"
    w_constraint: str | FactorConstraint | None = None
    h_constraint: str | FactorConstraint | None = None
    validation: Any = None
    time_limit: float | None = None
    callback: Callable[..., Any] | None = None
    progress: bool | None = None
    random_state: Any = None
    solver: Any = "auto"
    compute: Any = None

    def __post_init__(self) -> None:
        """Check everything that can be checked without the data."""
        for name in ("n_init", "max_iter"):
            check_integer(name, getattr(self, name), 1)
        check_number("tol", self.tol, 0)
        for name in ("alpha", "offset_alpha"):
            check_number_or_auto(name, getattr(self, name))
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
        object.__setattr__(self, "solver", as_solver(self.solver))
        object.__setattr__(self, "compute", as_compute(self.compute))
        _ = self.factor_constraints  # refuses unknown ones
        object.__setattr__(self, "validation", as_choice(self.validation))
        self._check_path()
        check_seed(self.random_state)

    @property
    def factor_constraints(self) -> tuple[FactorConstraint | None, FactorConstraint | None]:
        """Constraints on W and on H."""
        return (
            as_constraint("w_constraint", self.w_constraint),
            as_constraint("h_constraint", self.h_constraint),
        )

    @property
    def follows_path(self) -> bool:
        """Whether the fit begins with a path of ridges."""
        return isinstance(self.init, str) and self.init == "path"

    def _check_path(self) -> None:
        """Raise ValueError if there are no strong ridges to begin with."""
        if not self.follows_path:
            return
        if not (is_auto(self.alpha) or self.alpha > 0):
            raise ValueError("init='path' needs a ridge: give alpha > 0, or another init.")
        if any(self.factor_constraints):
            raise ValueError(
                "init='path' does not go with constraints on the factors: give another init."
            )

    def settled(self) -> Options:
        """Return the options of a fit in which nothing is chosen: no offsets, one ridge."""
        offsets = "none" if self.offsets == "auto" else self.offsets
        offset_alpha = self.alpha if self.offset_alpha == "auto" else self.offset_alpha
        return replace(self, offsets=offsets, offset_alpha=offset_alpha)

    @classmethod
    def of(cls, options: dict[str, Any]) -> Options:
        """Return the options from keyword arguments; raise TypeError for an unknown name."""
        check_option_names(options, [field.name for field in fields(cls)], "a fit")
        return cls(**options)

    def describe(self, dtype: Any) -> dict[str, Any]:
        """Return the options as numbers and strings, for `Decomposition.parameters`.

        An array, a fit or a generator becomes a text such as "given ndarray".  `callback`,
        `progress` and `compute` are left out, because they do not change the result, and those of
        `solver` stand under their own names.
        """
        plain = {f.name: getattr(self, f.name) for f in fields(Options)}
        for name in ("callback", "progress", "solver", "compute"):
            del plain[name]
        plain |= vars(self.solver) | {"epsilon": self.epsilon_for(dtype)}
        del plain["limit_noise"]  # the result has the value that was found
        plain["validation"] = self.validation.describe()
        if not isinstance(self.init, str):
            plain["init"] = f"given {type(self.init).__name__}"
        if isinstance(self.solver.rho, PenaltyRule):
            plain["rho"] = repr(self.solver.rho)
        for name, constraint in zip(FACTOR_CONSTRAINTS, self.factor_constraints, strict=True):
            plain[name] = None if constraint is None else repr(constraint)
        if not isinstance(self.random_state, Integral | None):
            plain["random_state"] = f"given {type(self.random_state).__name__}"
        return {name: v.item() if hasattr(v, "item") else v for name, v in plain.items()}

    def epsilon_for(self, dtype: Any) -> float:
        """Return the relative ridge, but at least the machine epsilon of the working precision."""
        return max(float(self.solver.epsilon), float(np.finfo(dtype).eps))

    def generator(self) -> np.random.Generator:
        """Return a new generator from `random_state`; a given Generator is returned itself."""
        return as_generator(self.random_state)


def with_option_signature(**defaults: Any) -> Callable[[Function], Function]:
    """Return a decorator that shows the options with their defaults in a function's signature."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    options = [
        inspect.Parameter(f.name, keyword, default=defaults.get(f.name, f.default))
        for f in fields(Options)
    ]

    def decorated(function: Function) -> Function:
        signature = inspect.signature(function)
        others = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        function.__signature__ = signature.replace(parameters=[*others, *options])  # type: ignore[attr-defined]
        return function

    return decorated
