"""The options of fits and posteriors, with their types, defaults and checks.

Some can be chosen by held-out entries: a `Setting` has their values, and a `Space` the candidates
that suit the data.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypedDict, TypeVar, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

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
from nmd_lab.checkpoint import Call
from nmd_lab.data.inputs import GivenLimits
from nmd_lab.data.labels import pandas_of
from nmd_lab.data.observations import Observations
from nmd_lab.model.losses import KL, L1, Frobenius, Loss
from nmd_lab.model.nonlinearities import Identity, MinMax, Nonlinearity, ReLU

from .constraints import FactorConstraint, as_constraint
from .penalty import PenaltyRule
from .settings import ADMM, Choice, Compute, as_choice, as_compute, as_solver, stored


class Setting(NamedTuple):
    """Values of the options that can be chosen.

    Attributes
    ----------
    nonlinearity, loss : Nonlinearity, Loss
        Model.
    rank : int
        Number of components.
    alpha : float
        Ridge of the factors, in the units of X.
    offsets : {"none", "global", "rows", "columns", "both"}
        Offsets of the model.
    offset_alpha : float
        Ridge of the offsets, in the units of X.
    """

    nonlinearity: Nonlinearity
    loss: Loss
    rank: int
    alpha: float
    offsets: str
    offset_alpha: float


RANKS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 100)
"""Ranks that a search may try, if the data are large enough."""

KINDS = ("both", "columns", "rows", "global")
"""Kinds of offsets that a search may try."""


@dataclass
class Space:
    """The settings that may be chosen.

    Attributes
    ----------
    nonlinearities : sequence of Nonlinearity
        Nonlinearities, the simplest first.
    losses : sequence of Loss
        Losses.
    largest_rank : int
        Largest rank that may be chosen.
    rank_candidates, alpha_candidates : tuple or None
        Ascending candidates to which rank and ridge are limited, such as the one that was given;
        None for no limit.
    offsets : str or None
        Given kind of offsets, or None.
    offset_alpha : float or None
        Given ridge of the offsets, or None.
    rank, alpha : number or None
        The only rank, and the only ridge, that may be chosen.
    ranks : tuple of int
        Ranks to try, ascending.
    kinds : tuple of str
        Kinds of offsets that may be chosen.
    """

    nonlinearities: Sequence[Nonlinearity]
    losses: Sequence[Loss]
    largest_rank: int
    rank_candidates: tuple[int, ...] | None = None
    alpha_candidates: tuple[float, ...] | None = None
    offsets: str | None = None
    offset_alpha: float | None = None

    def __post_init__(self) -> None:
        """Find what is left to choose."""
        ranks, alphas = self.rank_candidates or (), self.alpha_candidates or ()
        self.rank = ranks[0] if len(ranks) == 1 else None
        self.alpha = alphas[0] if len(alphas) == 1 else None
        self.ranks = ranks or tuple(rank for rank in RANKS if rank <= self.largest_rank)
        self.kinds = KINDS if self.offsets is None else (self.offsets,)

    @property
    def first_model(self) -> tuple[Nonlinearity, Loss]:
        """Model of the first path: Identity + Frobenius, unless the ridge is given or f is even.

        A strong ridge brings WH near zero, where other models may be flat.  If f or the loss has no
        degree, WH may not be in the units of X, and the first path has the model itself.
        """
        f, loss = self.nonlinearities[0], self.losses[0]
        itself = f.even or self.alpha_candidates is not None or None in (f.degree, loss.degree)
        return (f, loss) if itself else (Identity(), Frobenius())

    def rank_near(self, rank: int) -> int:
        """Return the largest rank up to this one that may be chosen, or the smallest of all."""
        if self.rank_candidates is None:
            return min(rank, self.largest_rank)
        smaller = (r for r in self.rank_candidates if r <= rank)
        return max(smaller, default=self.rank_candidates[0])

    def alpha_near(self, alpha: float) -> float:
        """Return the ridge nearest to this one, in proportion, that may be chosen."""
        if self.alpha_candidates is None:
            return alpha
        logs = np.log(np.maximum([*self.alpha_candidates, alpha], 1e-300))  # a ridge may be 0
        return self.alpha_candidates[int(np.argmin(np.abs(logs[:-1] - logs[-1])))]

    def stepped(self, setting: Setting, name: str, factor: float) -> Setting | None:
        """Return a setting with a ridge times a factor, or the next candidate; None without one."""
        number, candidates = getattr(setting, name), self.alpha_candidates
        further: Sequence[float] = [number * factor]
        if name == "alpha" and candidates is not None:
            further = [alpha for alpha in candidates if (alpha - number) * (factor - 1) > 0]
        if not further:
            return None
        changed: dict[str, Any] = {name: max(further) if factor < 1 else min(further)}
        return setting._replace(**changed)


def suitable_functions(observations: Observations) -> list[Nonlinearity]:
    """Return the nonlinearities to try, the simplest first.

    Many zeros in data >= 0 suggest ReLU.  Many values at the smallest and at the largest one, or a
    documented range, suggest MinMax.  Square and Modulus are never among them, since nothing in the
    values tells them from ReLU.
    """
    low, high = observations.range()
    total, at_low, at_high = observations.weighted_sums(lambda x: x == low, lambda x: x == high)
    found: list[Nonlinearity] = [Identity()]
    if low == high:
        return found
    # A bound is the value of at least 0.5 % of the entries, and not of a single one.
    least = max(0.005, 2 / observations.n_observed)
    if low == 0 and at_low / total >= least:
        found.append(ReLU())
    documented = observations.labels.valid_range
    if documented is not None and np.isfinite(documented).all():
        found.append(MinMax(*documented))
    elif min(at_low, at_high) / total >= least:
        found.append(MinMax(low, high))
    return found


def suitable_losses(observations: Observations) -> list[Loss]:
    """Return the losses to try: KL is one of them for counts only."""
    found: list[Loss] = [Frobenius(), L1()]
    not_counts = observations.sum_of(lambda x, weights: weights * ((x < 0) | (x != np.floor(x))))
    return found if not_counts else [*found, KL()]


INITS = ("auto", "svd", "randomized", "nndsvd", "random", "path")
OFFSETS = ("auto", "none", "global", "rows", "columns", "both")
FACTOR_CONSTRAINTS = ("w_constraint", "h_constraint")

KEPT_BYTES = 1 << 30
"""Memory that the kept draws may take by default."""

COMPLETION_DEFAULTS: dict[str, Any] = {"alpha": "auto", "offsets": "auto"}
"""Options of `complete` whose defaults differ from those of `decompose`."""

FactorConstraintName = Literal["nonnegative", "simplex", "orthonormal", "sparse"]

Function = TypeVar("Function", bound=Callable[..., Any])


class DataOptions(TypedDict, total=False):
    """The keyword arguments of a fit or a posterior that belong to X."""

    observed: ArrayLike | None
    weights: ArrayLike | None
    at_most: ArrayLike | None
    at_least: ArrayLike | None
    upper: ArrayLike | None
    dtype: DTypeLike | None
    sample_dims: str | Sequence[str] | None


class RunOptions(TypedDict, total=False):
    """The keyword arguments that a fit and a posterior share, with one meaning for both."""

    offsets: Literal["auto", "none", "global", "rows", "columns", "both"]
    time_limit: float | None
    callback: Callable[..., Any] | None
    progress: bool | None
    random_state: int | np.random.Generator | None
    compute: Compute | None


class FitOptions(RunOptions, total=False):
    """The keyword arguments of `decompose` and `complete` that steer the solver.

    `nmd_lab.decompose` documents them.  This class is for editors and type checkers.  `Options` has
    the same names, with the defaults and the checks.
    """

    init: Literal["auto", "svd", "randomized", "nndsvd", "random", "path"] | Any
    n_init: int
    max_iter: int
    tol: float
    alpha: float | Literal["auto"]
    offset_alpha: float | Literal["auto"]
    w_constraint: FactorConstraintName | FactorConstraint | None
    h_constraint: FactorConstraintName | FactorConstraint | None
    validation: float | Any | Choice | None
    solver: Literal["auto", "paper"] | ADMM


class FitArguments(DataOptions, FitOptions, total=False):
    """All keyword arguments of `decompose` and `complete`."""


class SampleArguments(DataOptions, RunOptions, total=False):
    """All keyword arguments of `sample`."""

    draws: int
    tune: int | None
    chains: int
    keep: int | None
    groups: Literal["auto"] | int
    noise: Literal["auto", "before", "after"]
    noise_by: Literal["auto", "columns", "one"]
    bounds: Mapping[Any, tuple[float, float]] | None
    order: str | Sequence[str] | ArrayLike | None
    init: Literal["auto", "random", "svd"] | Any


OF_DATA = ("observed", "weights", "dtype", "sample_dims")
MODEL = ("rank", "nonlinearity", "loss")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """All that a call asks for but X, with the checks that need no data.

    `nmd_lab.decompose` and `nmd_lab.sample` document the arguments.
    """

    rank: Any = "auto"
    nonlinearity: Any = "auto"
    loss: Any = "frobenius"
    observed: Any = None
    weights: Any = None
    at_most: Any = None
    at_least: Any = None
    upper: Any = None
    dtype: Any = None
    sample_dims: Any = None
    init: Any = "auto"
    offsets: str = "auto"
    time_limit: float | None = None
    callback: Callable[..., Any] | None = None
    progress: bool | None = None
    random_state: Any = None
    compute: Any = None

    arguments: ClassVar[Any]
    owner: ClassVar[str]
    function: ClassVar[str]
    inits: ClassVar[tuple[str, ...]]
    other_inits: ClassVar[str]
    callback_takes: ClassVar[str]

    def __post_init__(self) -> None:
        """Check everything that can be checked without the data; frames become those of pandas."""
        for name, value in list(vars(self).items()):
            object.__setattr__(self, name, pandas_of(value))
        if self.time_limit is not None:
            check_number("time_limit", self.time_limit, 0)
        if self.callback is not None and not callable(self.callback):
            raise TypeError(
                f"callback={self.callback!r} is not callable: give a function of "
                f"{self.callback_takes}."
            )
        check_word("offsets", self.offsets, OFFSETS)
        check_word("progress", self.progress, [None, True, False])
        if isinstance(self.init, str):
            check_word("init", self.init, self.inits, self.other_inits)
        check_seed(self.random_state)
        object.__setattr__(self, "compute", as_compute(self.compute))

    @classmethod
    def of(cls, options: Mapping[str, Any], **others: Any) -> Self:
        """Return the options from keyword arguments; raise TypeError for an unknown name."""
        check_option_names(options, [*MODEL, *cls.arguments.__annotations__], cls.owner)
        return cls(**options, **others)

    @property
    def given_limits(self) -> GivenLimits:
        """Entries of which only limits are known."""
        return GivenLimits(self.at_most, self.at_least, self.upper)

    @property
    def of_data(self) -> dict[str, Any]:
        """The arguments that define how X is read."""
        return {name: getattr(self, name) for name in OF_DATA} | {"limits": self.given_limits}

    @property
    def call(self) -> Call:
        """The call, for its checkpoint."""
        return Call(self.function, vars(self) | {"compute": stored(self.compute)})

    def plain(self, *left_out: str, **others: Any) -> dict[str, Any]:
        """Return the options as numbers and text, for the parameters of a result, and others.

        An array, a fit or a generator becomes a text such as "given ndarray".  Those that do not
        change the result are left out.
        """
        plain = {name: each for name, each in vars(self).items() if name not in NOT_PLAIN}
        simple = {"init": str, "random_state": Integral | None, "order": str | list | None}
        for name, kinds in simple.items():
            if name in plain and not isinstance(plain[name], kinds):
                plain[name] = f"given {type(plain[name]).__name__}"
        plain = {name: each for name, each in (plain | others).items() if name not in left_out}
        return {name: v.item() if hasattr(v, "item") else v for name, v in plain.items()}


NOT_PLAIN = (*MODEL, "callback", "progress", "compute", *DataOptions.__annotations__)
"""What the parameters of a result leave out, or have as numbers of the result."""


@dataclass(frozen=True, kw_only=True)
class Options(Asked):
    """What a fit is asked for."""

    nonlinearity: Any = "relu"
    absent_are_zeros: bool = False
    n_init: int = 1
    max_iter: int = 500
    tol: float = 0.01
    alpha: float | Any = 0.0
    offsets: str = "none"
    offset_alpha: float | Any = "auto"
    w_constraint: str | FactorConstraint | None = None
    h_constraint: str | FactorConstraint | None = None
    validation: Any = None
    solver: Any = "auto"

    arguments = FitArguments
    owner = "a fit"
    function = "complete"
    inits = INITS
    other_inits = ", a pair (W, H) or a fit"
    callback_takes = "state"

    def __post_init__(self) -> None:
        """Check everything that can be checked without the data."""
        for name in ("n_init", "max_iter"):
            check_integer(name, getattr(self, name), 1)
        check_number("tol", self.tol, 0)
        for name in ("alpha", "offset_alpha"):
            check_number_or_auto(name, getattr(self, name))
        super().__post_init__()
        object.__setattr__(self, "solver", as_solver(self.solver))
        object.__setattr__(self, "validation", as_choice(self.validation))
        if self.follows_path and not (is_auto(self.alpha) or self.alpha > 0):
            raise ValueError("init='path' needs a ridge: give alpha > 0, or another init.")
        if any(self.factor_constraints) and self.follows_path:  # and refuses unknown ones
            raise ValueError("init='path' does not go with constraints of factors: give another.")

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

    def settled(self) -> Options:
        """Return the options of a fit in which nothing is chosen: no offsets, one ridge."""
        offsets = "none" if self.offsets == "auto" else self.offsets
        offset_alpha = self.alpha if self.offset_alpha == "auto" else self.offset_alpha
        return replace(self, offsets=offsets, offset_alpha=offset_alpha)

    @property
    def call(self) -> Call:
        """The call, for its checkpoint; `validation` as it was given."""
        arguments = super().call.arguments
        function = "decompose" if arguments.pop("absent_are_zeros") else self.function
        if not self.validation.only_chooses:
            arguments["validation"] = self.validation.splitter
        return Call(function, arguments)

    def describe(self, dtype: Any) -> dict[str, Any]:
        """Return the options as numbers and strings, for `Decomposition.parameters`.

        Those of `solver` stand under their own names.
        """
        others = vars(self.solver) | {"epsilon": self.epsilon_for(dtype)}
        others["validation"] = self.validation.describe()
        if isinstance(self.solver.rho, PenaltyRule):
            others["rho"] = repr(self.solver.rho)
        for name, constraint in zip(FACTOR_CONSTRAINTS, self.factor_constraints, strict=True):
            others[name] = None if constraint is None else repr(constraint)
        # the result has the noise of limits that was found
        return self.plain("solver", "absent_are_zeros", "limit_noise", **others)

    def epsilon_for(self, dtype: Any) -> float:
        """Return the relative ridge, but at least the machine epsilon of the working precision."""
        return max(float(self.solver.epsilon), float(np.finfo(dtype).eps))

    def generator(self) -> np.random.Generator:
        """Return a new generator from `random_state`; a given Generator is returned itself."""
        return as_generator(self.random_state)


@dataclass(frozen=True, kw_only=True)
class SampleOptions(Asked):
    """What a posterior is asked for."""

    draws: int = 300
    tune: int | None = None
    chains: int = 1
    keep: int | None = None
    groups: int | str = "auto"
    noise: str = "auto"
    noise_by: str = "auto"
    bounds: Any = None
    order: Any = None

    arguments = SampleArguments
    owner = "a posterior"
    function = "sample"
    inits = ("auto", "random", "svd")
    other_inits = ", or a fit"
    callback_takes = "one sweep"

    def __post_init__(self) -> None:
        """Check everything that can be checked without the data."""
        for name in ("draws", "chains"):
            check_integer(name, getattr(self, name), 1)
        if self.groups != "auto":
            check_integer("groups", self.groups, 1)
            if self.order is not None and int(self.groups) > 1:
                raise ValueError(f"groups={self.groups} does not go with order=: leave it out.")
        if self.tune is not None:
            check_integer("tune", self.tune, 0)
        if self.keep is not None:
            check_integer("keep", self.keep, 1)
        check_word("noise", self.noise, ("auto", "before", "after"))
        check_word("noise_by", self.noise_by, ("auto", "columns", "one"))
        if not isinstance(self.bounds, Mapping | None):
            raise TypeError(
                f"bounds={self.bounds!r} is no dict: give for example {{'percent': (0, 100)}}."
            )
        for name, ends in (self.bounds or {}).items():
            if np.shape(ends) != (2,) or not ends[0] < ends[1]:
                raise ValueError(
                    f"bounds[{name!r}]={ends!r} is no pair of a smaller and a larger number: give "
                    "for example (0, 100), or (0, np.inf)."
                )
        super().__post_init__()

    def step(self, numbers_a_draw: int) -> int:
        """Return the number of sweeps from one kept draw to the next."""
        # At least 20 draws, even if these need more memory
        keep = self.keep or max(20, KEPT_BYTES // (4 * numbers_a_draw * self.chains))
        return -(-self.draws // min(keep, self.draws))


def with_option_signature(asked: type[Asked], **defaults: Any) -> Callable[[Function], Function]:
    """Return a decorator that shows the options with their defaults in a function's signature."""

    def decorated(function: Function) -> Function:
        signature = inspect.signature(function)
        shown = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        for name, hint in asked.arguments.__annotations__.items():
            default = defaults.get(name, getattr(asked, name))
            option = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
            is_data = name in DataOptions.__annotations__
            shown.append(option.replace(annotation=hint.__forward_arg__) if is_data else option)
        function.__annotations__ |= get_type_hints(asked.arguments)
        function.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
        return function

    return decorated
