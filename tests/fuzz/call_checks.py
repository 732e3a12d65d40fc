"""What must hold after every call of `decompose` and `complete`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .case import Case
from .containers import SPARSE, contents
from .faults import Fault
from .recompute import check_scores, fitted_data


def fit_is_sound(case: Case) -> None:
    """A finite result, whose numbers are those of W and H; the input is as it was."""
    X, others = case.given()
    before = contents([X, *others.values()])
    try:
        fit = case.call(X, **others)
    finally:
        if contents([X, *others.values()]) != before:
            raise Fault("an input is changed")
    W, H = fit.factors
    if not (np.isfinite(W).all() and np.isfinite(H).all()):
        raise Fault("factors are not finite")
    if not np.isfinite(fit.reconstruct().values).all():
        raise Fault("reconstruct() is not finite")
    if not np.isfinite([fit.objective, fit.relative_error]).all():
        raise Fault("a score is not finite", f"{fit.objective}, {fit.relative_error}")
    expected = np.dtype("float32" if case.dtype in ("float16", "float32") else "float64")
    if case.container not in ("list", "nullable"):  # which are of double precision
        expected = np.dtype(case.options.get("dtype", expected))
        kept = {W.dtype, H.dtype, fit.reconstruct().dtype}
        if kept != {expected} and case.dtype != "float16":
            raise Fault("the precision is not kept", f"{expected} became {kept}")
    data = fitted_data(case, fit)
    if data is not None:
        with np.errstate(all="ignore"):
            check_scores(fit, *data)


def same_seed_same_bits(case: Case) -> None:
    """Two equal calls give equal bits, unless the clock ends one of them."""
    case = untimed(case)
    X, others = case.given()
    one, two = case.call(X, **others), case.call(X, **others)
    for name in ("W", "H"):
        if getattr(one, name).values.tobytes() != getattr(two, name).values.tobytes():
            raise Fault("the same seed gives other bits", name)
    history = [fit.history.drop_vars("seconds") for fit in (one, two)]
    if "time_limit" not in case.options and not history[0].identical(history[1]):
        raise Fault("the same seed gives another history")


def containers_agree(case: Case) -> None:
    """Two containers of the same observed entries give the same fit.

    Bit for bit where both are dense or both are sparse.  Dense and sparse data are summed in
    another order, so these are compared after two iterations from given factors, within rounding.
    """
    case = untimed(case)
    if case.absent_are_zeros:
        case = replace(case, container="nan")
    if "dia" in (case.container, case.other) and (case.matrix[case.seen] == 0).any():
        return  # this format drops zeros
    if "list" in (case.container, case.other) or "longdouble" in case.dtype:
        case = replace(case, dtype="float64")
    if "float16" in case.dtype or "nullable" in (case.container, case.other):
        case = replace(case, dtype="float64")
    (X, x_options), (Y, y_options) = case.given(), case.given(case.other)
    if X is Y or "observations" in (case.container, case.other):
        shapes = {np.shape(X) or X.shape, np.shape(Y) or Y.shape}
        if len(shapes) > 1 or case.empty:
            return  # a long table does not know empty rows
    alike = (case.container in SPARSE) == (case.other in SPARSE)
    weighted = "weights" in (case.container, case.other)
    extra = {} if alike and not weighted else short_run(case)
    one = case.call(X, **x_options | extra).reconstruct().values.reshape(-1)
    two = case.call(Y, **y_options | extra).reconstruct()
    if case.other == "three dimensions" or case.container == "three dimensions":
        one = case.call(X, **x_options | extra)
        one, two = _plain(one), _plain(case.call(Y, **y_options | extra))
    else:
        two = two.values.reshape(-1)
    if alike and not weighted:
        if one.tobytes() != two.tobytes():
            raise Fault("equal containers give other bits", f"{case.container}, {case.other}")
    elif not close(one, two, case):
        raise Fault(
            "equal containers give other fits", f"{case.container}, {case.other}: {gap(one, two)}"
        )


def permuted_data_permute_the_fit(case: Case) -> None:
    """Rows and columns in another order give the same fit in that order, within rounding.

    Only for two iterations from given factors: later, a kink or a choice between two minima can
    turn a difference of rounding into one of the fit.
    """
    if case.container in ("three dimensions", "observations", "dia"):
        case = replace(case, container="nan")
    rng = np.random.default_rng([case.seed, 3])
    p, q = rng.permutation(case.shape[0]), rng.permutation(case.shape[1])
    X, others = case.given()
    extra = {"alpha": 0} | case.options | short_run(case)  # a choice holds out other entries
    W, H = extra["init"]
    one = case.call(X, **others | extra).reconstruct().values[np.ix_(p, q)]
    other = _Permuted(case, p, q)
    Y, others = other.given()
    two = case.call(Y, **others | extra | {"init": (W[p], H[:, q])}).reconstruct().values
    if not close(one.ravel(), two.ravel(), case):
        raise Fault("permuted data do not permute the fit", f"{gap(one, two)}")


class _Permuted(Case):
    """The case with its rows and columns in another order."""

    def __init__(self, case: Case, rows: np.ndarray, columns: np.ndarray) -> None:
        super().__init__(**vars(replace(case)))
        self.__dict__["matrix"] = case.matrix[np.ix_(rows, columns)]
        self.__dict__["seen"] = case.seen[np.ix_(rows, columns)]


def untimed(case: Case) -> Case:
    """Return the case without a time limit that a fit may reach."""
    options = {n: v for n, v in case.options.items() if n != "time_limit" or v not in (1e-4, 0.01)}
    return replace(case, options=options)


def short_run(case: Case) -> dict[str, object]:
    """Return options of two iterations from given factors, without anything drawn at random.

    The ridge bounds the condition of both factor steps by about 1e4.  Without it, few entries leave
    some predictions undetermined, and rounding decides them.
    """
    rng = np.random.default_rng([case.seed, 4])
    (m, n), r = case.shape, case.rank
    scale = np.sqrt(np.abs(case.matrix.astype(float)[case.seen]).mean() + 1e-300)
    factors = scale * (0.5 + rng.random((m, r))), scale * (0.5 + rng.random((r, n)))
    plain = {"init": factors, "n_init": 1, "max_iter": 2, "refine": False, "epsilon": 1e-3}
    return plain | {"homotopy": False, "polish": False, "validation": None, "time_limit": None}


def close(one: np.ndarray, two: np.ndarray, case: Case) -> bool:
    """Return whether two reconstructions are equal within rounding.

    Two iterations solve four systems of condition 1e4 at most: so 1e-8 in double precision, and
    0.02 in single.
    """
    single = one.dtype == np.float32 or two.dtype == np.float32
    size = max(np.abs(one).max(), float(np.abs(case.matrix.astype(float)[case.seen]).max()))
    return bool(np.abs(one - two).max() <= (0.02 if single else 1e-8) * size)


def gap(one: np.ndarray, two: np.ndarray) -> str:
    """Return the largest difference and the largest value, as text."""
    return f"{np.abs(one - two).max():.3g} of {np.abs(one).max():.3g}"


def _plain(fit) -> np.ndarray:  # type: ignore[no-untyped-def]
    """Return the reconstruction as a flat matrix, rows first."""
    return fit.labels.flatten(fit.reconstruct().values).reshape(-1)
