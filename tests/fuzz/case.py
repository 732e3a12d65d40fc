"""One example of a call: plain values, whose repr is enough to repeat it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

import nmd_lab

from .containers import DENSE, SPARSE, Given, contained
from .matrices import DTYPES, VALUES, Array, matrix, observed

NONLINEARITIES = ("relu", "square", "minmax(0, 1)", "modulus", "identity")
NAMES = (*NONLINEARITIES, "minmax", "minmax(-1, 2)")
"""What is drawn: also the bounds of the data, and others."""
LOSSES = ("frobenius", "l1", "kl")


@dataclass(frozen=True)
class Case:
    """A call of `decompose` or `complete`, and what is checked about it."""

    check: str = "fit"
    verb: str = "complete"
    shape: tuple[int, int] = (5, 4)
    rank: int = 2
    values: str = "nonnegative"
    missing: float = 0.0
    empty: bool = False
    dtype: str = "float64"
    container: str = "nan"
    other: str = "observed"
    nonlinearity: str = "identity"
    loss: str = "frobenius"
    options: dict[str, Any] = field(default_factory=dict)
    seed: int = 0

    @cached_property
    def matrix(self) -> Array:
        """Values (m, n) in the type of the case."""
        return matrix(self.values, self.shape, self.dtype, self.seed)

    @cached_property
    def seen(self) -> Array:
        """Mask of the observed entries."""
        return observed(self.shape, self.missing, self.empty, self.seed)

    def given(self, container: str | None = None) -> Given:
        """Return X in its container, and the keyword arguments that go with it."""
        return contained(container or self.container, self.matrix, self.seen)

    def call(self, X: Any, **others: Any) -> nmd_lab.Decomposition:
        """Return the fit to X."""
        options = {"max_iter": 5, "random_state": self.seed, "progress": False, "alpha": 0}
        verb = getattr(nmd_lab, self.verb)
        options |= self.resolved | others
        return verb(X, self.rank, self.model, self.loss, **arguments_of(options))

    @property
    def resolved(self) -> dict[str, Any]:
        """The options, with a matrix of entries to hold out instead of the word."""
        if self.options.get("validation") != "matrix":
            return self.options
        return {**self.options, "validation": self.validation}

    @property
    def model(self) -> Any:
        """The nonlinearity; one with bounds as an object."""
        return model_of(self.nonlinearity)

    @cached_property
    def validation(self) -> Any:
        """Entries to hold out for early stopping, dense or sparse: some of all, observed or not."""
        rng = np.random.default_rng([self.seed, 9])
        chosen = rng.random(self.shape) < 0.3
        chosen.flat[rng.integers(chosen.size)] = True
        if self.seed % 2:
            return np.where(chosen, self.matrix.astype(float), np.nan)
        return sparse.csr_array(np.where(chosen, self.matrix.astype(float), 0))

    @property
    def absent_are_zeros(self) -> bool:
        """Whether entries that are not observed count as zeros."""
        return self.verb == "decompose" and self.container in SPARSE


def arguments_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return options with those of the solver in an ADMM, and those of the machine in a Compute."""
    arguments = dict(options)
    settings: dict[str, type[Any]] = {"solver": nmd_lab.ADMM, "compute": nmd_lab.Compute}
    for argument, kind in settings.items():
        names = [each.name for each in fields(kind) if each.name in arguments]
        if names:
            arguments[argument] = kind(**{name: arguments.pop(name) for name in names})
    return arguments


def model_of(nonlinearity: str) -> Any:
    """Return a nonlinearity by its name; one with bounds as an object."""
    name, _, bounds = nonlinearity.partition("(")
    if not bounds:
        return name
    return nmd_lab.MinMax(*(float(bound) for bound in bounds.rstrip(")").split(",")))


OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "init": st.sampled_from(["auto", "svd", "randomized", "nndsvd", "random"]),
    "n_init": st.integers(1, 3),
    "max_iter": st.one_of(st.integers(1, 40), st.integers(1, 10), st.sampled_from([1, 120, 220])),
    "tol": st.sampled_from([0.0, 1e-10, 1e-4, 1e-2, 0.1, 1.0]),
    "rho": st.sampled_from(["auto", "balanced", "paper", 1e-3, 1.0, 1e3]),
    "initial_rho": st.sampled_from([1e-2, 1.0, 50]),
    "refine": st.booleans(),
    "homotopy": st.sampled_from(["auto", True, False]),
    "polish": st.sampled_from(["auto", True, False]),
    "alpha": st.sampled_from([0, 1e-3, 1.0, 100.0]),
    "offsets": st.sampled_from(["none", "global", "rows", "columns", "both"]),
    "split": st.sampled_from(["auto", "everywhere", "observed"]),
    "validation": st.sampled_from([0.1, 0.5, 0.9, "matrix"]),
    "patience": st.integers(1, 12),
    "epsilon": st.sampled_from([0.0, 1e-12, 1e-6]),
    "time_limit": st.sampled_from([0.0, 1e-4, 0.01, 5.0]),
    "random_state": st.integers(0, 3),
    "threads": st.integers(1, 2),
    "dtype": st.sampled_from(["float32", "float64"]),
}
"""Valid values of every option, those of the solver and of the machine beside the others."""

WRONG: tuple[Any, ...] = (
    *(-1, 0, 1, 2.5, True, None, "", "auto ", "svd", float("nan"), float("inf"), 1e400, -0.5),
    *([], [1, 2], (1, 2), {}, b"x", 1j, object, "float16", 10**30),
)
"""Values of which most are wrong for most options."""


def containers(verb: str) -> list[str]:
    """Return the containers in which a verb sees the same observed entries."""
    return [*DENSE, *SPARSE] if verb == "complete" else list(DENSE)


@st.composite
def cases(draw: Any, checks: tuple[str, ...], plain: bool = False) -> Case:
    """Draw a case; a plain one has few options and friendly values.

    Parameters
    ----------
    draw : callable
        Hypothesis' source of choices.
    checks : tuple of str
        Checks to choose from.
    plain : bool, default False
        Whether to leave out options and the values that overflow.
    """
    check = draw(st.sampled_from(checks))
    verb = draw(st.sampled_from(["decompose", "complete"]))
    small = st.tuples(st.integers(1, 8), st.integers(1, 8))
    large = st.tuples(st.integers(1, 40), st.integers(1, 30))
    shape = draw(st.one_of(small, large, st.sampled_from([(1, 1), (1, 6), (7, 1), (2, 2)])))
    options: dict[str, Any] = {}
    if not plain:
        names = draw(st.lists(st.sampled_from(list(OPTIONS)), max_size=5, unique=True))
        options = {name: draw(OPTIONS[name]) for name in names}
    return Case(
        check,
        verb,
        shape,
        rank=draw(st.integers(1, min(*shape, 6))),
        values=draw(st.sampled_from(list(VALUES)[: 6 if plain else None])),
        missing=draw(st.sampled_from([0.0, 0.0, 0.2, 0.5, 0.8])),
        empty=not plain and draw(st.integers(0, 9)) == 0,
        dtype=draw(st.sampled_from(("float64",) * 4 + DTYPES)),
        container=draw(st.sampled_from(containers("complete"))),
        other=draw(st.sampled_from(containers(verb))),
        nonlinearity=draw(st.sampled_from(NAMES)),
        loss=draw(st.sampled_from(LOSSES)),
        options=options,
        seed=draw(st.integers(0, 999)),
    )
