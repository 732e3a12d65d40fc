"""Part `calls`: fits of all kinds of data with all kinds of options, and what must hold of them."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from hypothesis import strategies as st
from scipy import sparse

import nmd_lab

from . import uses
from .faults import answered
from .matrices import DENSE, DTYPES, SPARSE, VALUES, Array, Given, contained, contents, matrix
from .matrices import observed as mask_of
from .recompute import check_scores

PATIENCE = 120
"""Seconds after which a call hangs; the slowest takes about two."""

NAMES = ("relu", "square", "modulus", "identity", "minmax", "minmax(0, 1)", "minmax(-1, 2)")
LOSSES = ("frobenius", "l1", "kl")

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
"""Valid values of every option, with those of the solver and of the machine."""

WRONG: tuple[Any, ...] = (
    *(-1, 0, 1, 2.5, True, None, "", "auto ", "svd", float("nan"), float("inf"), -0.5),
    *([], [1, 2], (1, 2), {}, b"x", 1j, object, "float16", 10**30),
)
"""Values of which most are wrong for most options."""


def arguments_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return options with those of the solver in an ADMM, and those of the machine in a Compute."""
    arguments = dict(options)
    settings: dict[str, type[Any]] = {"solver": nmd_lab.ADMM, "compute": nmd_lab.Compute}
    for argument, kind in settings.items():
        names = [each.name for each in fields(kind) if each.name in arguments]
        if names:
            arguments[argument] = kind(**{name: arguments.pop(name) for name in names})
    return arguments


@dataclass(frozen=True)
class Case:
    """A call of `decompose` or `complete`, and what is checked about it."""

    about: str = "fit"
    verb: str = "complete"
    shape: tuple[int, int] = (5, 4)
    most: int = 2
    values: str = "nonnegative"
    scale: float = 1.0
    missing: float = 0.0
    empty: bool = False
    dtype: str = "float64"
    container: str = "nan"
    other: str = "observed"
    nonlinearity: str = "identity"
    loss: str = "frobenius"
    options: dict[str, Any] = field(default_factory=dict)
    seed: int = 0

    @property
    def part(self) -> str:
        """The check."""
        return f"calls: {self.about}"

    def check(self) -> None:
        """Raise if the call breaks a promise, or takes too long."""
        before = signal.signal(signal.SIGALRM, _hangs)
        signal.alarm(PATIENCE)
        try:
            with answered():
                CHECKS[self.about](self)
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)

    @property
    def rank(self) -> int:
        """Number of components."""
        return min(self.most, *self.shape)

    @cached_property
    def matrix(self) -> Array:
        """Values (m, n) in the type of the case."""
        with np.errstate(all="ignore"):
            return matrix(self.values, self.scale, self.shape, self.dtype, self.seed)

    @cached_property
    def floats(self) -> Array:
        """The values in double precision."""
        with np.errstate(all="ignore"):
            return self.matrix.astype(float)

    @cached_property
    def seen(self) -> Array:
        """Mask of the observed entries."""
        return mask_of(self.shape, self.missing, self.empty, self.seed)

    @property
    def drops_zeros(self) -> bool:
        """Whether observed zeros are lost by the format of a container."""
        return "dia" in (self.container, self.other) and bool((self.matrix[self.seen] == 0).any())

    def rng(self, stream: int) -> np.random.Generator:
        """Return one of the random generators of the case."""
        return np.random.default_rng([self.seed, stream])

    def given(self, container: str | None = None) -> Given:
        """Return X in its container, and the keyword arguments that go with it."""
        return contained(container or self.container, self.matrix, self.seen)

    def call(self, X: Any, **others: Any) -> nmd_lab.Decomposition:
        """Return the fit to X."""
        options = {"max_iter": 5, "random_state": self.seed, "progress": False, "alpha": 0}
        options |= self.resolved | others
        verb = getattr(nmd_lab, self.verb)
        fit: nmd_lab.Decomposition = verb(
            X, self.rank, self.model, self.loss, **arguments_of(options)
        )
        return fit

    @property
    def resolved(self) -> dict[str, Any]:
        """The options, with a matrix of entries to hold out in place of the word."""
        if self.options.get("validation") != "matrix":
            return self.options
        chosen = self.rng(9).random(self.shape) < 0.3
        chosen.flat[self.seed % chosen.size] = True
        dense = np.where(chosen, self.floats, np.nan)
        stored = sparse.csr_array(np.where(chosen, self.floats, 0))
        return {**self.options, "validation": dense if self.seed % 2 else stored}

    @property
    def model(self) -> Any:
        """The nonlinearity; one with bounds as an object."""
        name, _, bounds = self.nonlinearity.partition("(")
        return nmd_lab.MinMax(*map(float, bounds[:-1].split(","))) if bounds else name


def _hangs(*_: Any) -> None:
    raise AssertionError(f"a call takes more than {PATIENCE} s")


def fit_is_sound(case: Case) -> None:
    """A finite result, whose numbers are those of W and H; the input is as it was."""
    X, others = case.given()
    before = contents([X, *others.values()])
    try:
        fit = case.call(X, **others)
    finally:
        assert contents([X, *others.values()]) == before, "an input is changed"
    W, H = fit._factors
    model = fit.reconstruct()
    assert all(np.isfinite(factor).all() for factor in (W, H)), "factors are not finite"
    assert np.isfinite(model.values).all(), "reconstruct() is not finite"
    assert np.isfinite([fit.objective, fit.relative_error]).all(), "a score is not finite"
    expected = np.dtype("float32" if case.dtype in ("float16", "float32") else "float64")
    if case.container not in ("list", "nullable") and case.dtype != "float16":
        expected = np.dtype(case.options.get("dtype", expected))
        kept = {W.dtype, H.dtype, model.dtype} == {expected}
        assert kept, f"the precision is not kept: {expected} became {W.dtype}"
    if "validation" in case.options or fit._shape != case.shape or case.drops_zeros:
        return
    if fit.nonlinearity.name == "mixed":
        return
    zeros = case.verb == "decompose" and case.container in SPARSE
    values = np.where(case.seen, case.matrix, 0) if zeros else case.matrix
    with np.errstate(all="ignore"):
        check_scores(fit, values, np.ones(case.shape) if zeros else case.seen.astype(float))


def same_seed_same_bits(case: Case) -> None:
    """Two equal calls give equal bits, unless the clock ends one of them."""
    case = untimed(case)
    X, others = case.given()
    one, two = case.call(X, **others), case.call(X, **others)
    for a, b in zip(one._factors, two._factors, strict=True):
        assert a.tobytes() == b.tobytes(), "the same seed gives other bits"
    if "time_limit" not in case.options:
        histories = [fit.history.drop_vars("seconds") for fit in (one, two)]
        assert histories[0].identical(histories[1]), "the same seed gives another history"


def containers_agree(case: Case) -> None:
    """Two containers of the same observed entries give the same fit.

    Bit for bit where both are dense or both are sparse.  Dense and sparse data are summed in
    another order, so these are compared after two iterations from given factors, within rounding.
    """
    case = untimed(case)
    if case.verb == "decompose":  # for which entries that are not stored are zeros
        names = {name: "nan" for name in ("container", "other") if getattr(case, name) in SPARSE}
        case = replace(case, **names)
    both = {case.container, case.other}
    if both & {"list", "nullable"} or case.dtype in ("bool", "longdouble", "float16"):
        case = replace(case, dtype="float64")  # booleans of a DataFrame are classes
    if case.drops_zeros or ("observations" in both and not _is_full(case.seen)):
        return  # a long table has no empty rows
    exact = (case.container in SPARSE) == (case.other in SPARSE) and "weights" not in both
    extra = {} if exact else short_run(case)
    fits = [case.call(X, **others | extra) for X, others in map(case.given, both)]
    models = [fit._labels.flatten(fit.reconstruct().values) for fit in fits]
    one, two = models[0], models[-1]
    if exact:
        assert one.tobytes() == two.tobytes(), f"equal containers give other bits: {both}"
    else:
        assert close(one, two, case), f"equal containers give other fits: {both}"


def _is_full(seen: Array) -> bool:
    return bool(seen.any(0).all() and seen.any(1).all())


def permuted_data_permute_the_fit(case: Case) -> None:
    """Rows and columns in another order give the same fit in that order, within rounding.

    Only for two iterations from given factors: later, a kink or a choice between two minima can
    turn a difference of rounding into one of the fit.
    """
    if case.container in ("three dimensions", "observations", "dia"):
        case = replace(case, container="nan")
    p, q = (case.rng(3).permutation(size) for size in case.shape)
    extra = case.options | short_run(case)
    (X, others), (W, H) = case.given(), extra["init"]
    one = case.call(X, **others | extra).reconstruct().values[np.ix_(p, q)]
    X, others = contained(case.container, case.matrix[np.ix_(p, q)], case.seen[np.ix_(p, q)])
    two = case.call(X, **others | extra | {"init": (W[p], H[:, q])}).reconstruct().values
    assert close(one, two, case), "permuted data do not permute the fit"


def untimed(case: Case) -> Case:
    """Return the case without a time limit, which a fit that compiles may reach."""
    return replace(case, options={n: v for n, v in case.options.items() if n != "time_limit"})


def short_run(case: Case) -> dict[str, Any]:
    """Return options of two iterations from given factors, without anything drawn at random.

    The ridge bounds the condition of both factor steps by about 1e4.  Without it, few entries leave
    some predictions undetermined, and rounding decides them.
    """
    rng, (m, n), r = case.rng(4), case.shape, case.rank
    scale = np.sqrt(np.abs(case.floats[case.seen]).mean() + 1e-300)
    factors = scale * (0.5 + rng.random((m, r))), scale * (0.5 + rng.random((r, n)))
    plain = {"init": factors, "n_init": 1, "max_iter": 2, "refine": False, "epsilon": 1e-3}
    return plain | {"homotopy": False, "polish": False, "validation": None, "time_limit": None}


def close(one: Array, two: Array, case: Case) -> bool:
    """Return whether two reconstructions are equal within rounding.

    Two iterations solve four systems of condition 1e4 at most: so 1e-8 in double precision, and
    0.02 in single.
    """
    single = one.dtype == np.float32 or two.dtype == np.float32
    size = max(np.abs(one).max(), float(np.abs(case.floats[case.seen]).max()))
    return bool(np.abs(one - two).max() <= (0.02 if single else 1e-8) * size)


def wrong_option_is_refused(case: Case) -> None:
    """A wrong value of an option gives a fit or one sentence, never anything else."""
    rng, (X, others) = case.rng(7), case.given()
    names = [*OPTIONS, "rank", "nonlinearity", "loss", "observed", "weights", "sample_dims"]
    names += ["callback", "progress", "typo", "solver", "compute"]
    name, value = names[rng.integers(len(names))], WRONG[rng.integers(len(WRONG))]
    if (name in ("max_iter", "n_init", "threads") and value == 10**30) or (
        name == "callback" and value is object
    ):
        return  # right, and long; it can be called, and its own error goes through
    arguments = {"rank": case.rank, "nonlinearity": case.model, "loss": case.loss}
    arguments |= {"max_iter": 3, "progress": False, "random_state": 0} | others | {name: value}
    fit = getattr(nmd_lab, case.verb)(X, arguments.pop("rank"), **arguments_of(arguments))
    assert np.isfinite(fit.reconstruct().values).all(), "reconstruct() is not finite"


def wrong_data_are_refused(case: Case) -> None:
    """Data of a wrong kind give one sentence, never anything else."""
    rng, good = case.rng(8), case.floats
    bad = good.copy()
    bad[*(int(rng.integers(size)) for size in good.shape)] = rng.choice(
        [np.inf, -np.inf, 1e308, np.nan]
    )
    csr, _ = case.given("csr")
    with np.errstate(all="ignore"):
        kinds = [
            *(bad, good.astype(object), good.astype(str), good.astype(complex), good[0]),
            *(good[:0], good[:, :0], good[None], None, "X", 3.0, [], [[1.0], [1.0, 2.0]]),
            *({"a": good}, [None], [[None]], np.array(5.0), pd.Series(good[0]), pd.DataFrame()),
            *(pd.DataFrame(good).astype(str), pd.DataFrame(good).astype(object)),
            *(pd.DataFrame({"a": ["x", "y"]}), xr.DataArray(good).to_dataset(name="x")),
            *(xr.DataArray(good, dims=("component", "b")), np.ma.masked_all(good.shape)),
            *(np.full(good.shape, np.nan), good.astype("M8[ns]"), good.astype("m8[s]")),
            *(csr * np.nan, csr[:0], csr * 0, csr.astype(complex), csr.tocoo() * 1e300),
        ]
    fit = case.call(kinds[rng.integers(len(kinds))])
    assert np.isfinite(fit.reconstruct().values).all(), "reconstruct() is not finite"


CHECKS: dict[str, Callable[[Case], None]] = {
    "fit": fit_is_sound,
    "repeat": same_seed_same_bits,
    "containers": containers_agree,
    "permuted": permuted_data_permute_the_fit,
    "use": uses.fit_is_used,
    "estimator": uses.estimators_agree,
    "table": uses.tables_are_read,
    "file": uses.files_keep_their_values,
    "study": uses.small_study_runs,
    "wrong option": wrong_option_is_refused,
    "wrong data": wrong_data_are_refused,
}
"""The checks by name."""

OFTEN = {"fit": 6, "use": 4, "containers": 4, "permuted": 3, "wrong option": 3, "estimator": 2}
"""How often a check is drawn, if more than once."""

cases = st.builds(
    Case,
    about=st.sampled_from([name for name in CHECKS for _ in range(OFTEN.get(name, 1))]),
    verb=st.sampled_from(["decompose", "complete"]),
    shape=st.one_of(
        st.tuples(st.integers(1, 8), st.integers(1, 8)),
        st.tuples(st.integers(1, 40), st.integers(1, 30)),
        st.sampled_from([(1, 1), (1, 6), (7, 1), (2, 2)]),
    ),
    most=st.integers(1, 6),
    values=st.sampled_from(list(VALUES)),
    scale=st.one_of(
        st.just(1.0),
        st.sampled_from([1e-12, 1e8, 1e-100, 1e100]),
        st.floats(-100, 100).map(lambda power: float(10**power)),
    ),
    missing=st.sampled_from([0.0, 0.0, 0.2, 0.5, 0.8]),
    empty=st.integers(0, 9).map(lambda number: number == 9),
    dtype=st.sampled_from(("float64",) * 4 + DTYPES),
    container=st.sampled_from(DENSE + SPARSE),
    other=st.sampled_from(DENSE + SPARSE),
    nonlinearity=st.sampled_from(NAMES),
    loss=st.sampled_from(LOSSES),
    options=st.lists(st.sampled_from(list(OPTIONS)), max_size=5, unique=True).flatmap(
        lambda names: st.fixed_dictionaries({name: OPTIONS[name] for name in names})
    ),
    seed=st.integers(0, 999),
)
"""Calls of all kinds."""
