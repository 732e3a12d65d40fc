"""Sequences of calls: fits and what is done with them, tables, estimators and studies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import nmd_lab

from .case import WRONG, Case, arguments_of
from .containers import contents
from .faults import Fault, is_documented
from .fit_uses import USES, Use


def fit_is_used(case: Case) -> None:
    """Some methods of a fit answer, agree with `reconstruct`, and change nothing."""
    X, others = case.given()
    fit = case.call(X, **others)
    model = fit.labels.flatten(fit.reconstruct().values)
    observed = {name: value for name, value in others.items() if name == "observed"}
    before = contents([X, *others.values()])
    rng = np.random.default_rng([case.seed, 5])
    use = Use(fit, case, X, observed, model, rng)
    for name in rng.permutation(list(USES))[:5]:
        _documented(lambda name=name: USES[name](use))
    if contents([X, *others.values()]) != before:
        raise Fault("a use of a fit changes an input")
    if fit.labels.flatten(fit.reconstruct().values).tobytes() != model.tobytes():
        raise Fault("a use of a fit changes the fit")


def _documented(use: Any) -> None:
    try:
        use()
    except Exception as error:
        if not is_documented(error):
            raise


def estimators_agree(case: Case) -> None:
    """The estimators fit, transform and predict, with finite answers of the right shape."""
    X, _ = case.given("nan")
    options = {"max_iter": 5, "random_state": case.seed, "progress": False} | case.resolved
    options = {"nonlinearity": case.model, "loss": case.loss} | options
    model: Any = nmd_lab.NMD if case.verb == "decompose" else nmd_lab.MatrixCompletion
    given = X.astype(float) if case.dtype in ("bool", "float16", "longdouble") else X
    before = given.tobytes()
    estimator = model(n_components=case.rank, **arguments_of(options)).fit(given)
    codes = estimator.transform(given)
    if not np.isfinite(codes).all():
        raise Fault("transform is not finite")
    if not np.isfinite(estimator.score(given)):
        raise Fault("score is not finite")
    if case.verb == "decompose":
        estimator.inverse_transform(codes)
        codes = estimator.fit_transform(given)
    elif (codes[case.seen] != given[case.seen]).any():
        raise Fault("transform changes observed entries")
    if not np.isfinite(estimator.reconstruction_err_):
        raise Fault("reconstruction_err_ is not finite")
    if codes.shape[0] != case.shape[0]:
        raise Fault("transform has another number of rows")
    if given.tobytes() != before:
        raise Fault("an estimator changes its input")


def tables_are_read(case: Case) -> None:
    """A long table gives the fit of the sparse matrix, whatever the order of its lines."""
    rng = np.random.default_rng([case.seed, 6])
    rows, columns = np.nonzero(case.seen)
    ratings = case.matrix[case.seen].astype(case.matrix.dtype.newbyteorder("="))
    table = pd.DataFrame({"user": rows, "item": columns, "rating": ratings})
    if case.seed % 3 == 0:
        table["user"] = "u" + table["user"].astype(str).str.zfill(3)
    if case.seed % 5 == 0:
        name = str(rng.choice(table.columns))
        cells = table[name].astype(object)
        cells.iloc[int(rng.integers(len(table)))] = None
        table[name] = cells.infer_objects()
    elif case.seed % 5 == 1:
        table = pd.concat([table, table.iloc[:1]])
    before = table.to_csv()
    shuffled = table.sample(frac=1, random_state=case.seed)
    one, two = (nmd_lab.observations_from_table(each) for each in (table, shuffled))
    fits = [nmd_lab.complete(X, 1, max_iter=3, random_state=0) for X in (one, two)]
    if fits[0].W.values.tobytes() != fits[1].W.values.tobytes():
        raise Fault("the order of a table's lines counts")
    if case.container == "observations" and case.rank <= min(one.shape):
        case.call(one)
    if table.to_csv() != before:
        raise Fault("a table is changed")


def small_study_runs(case: Case) -> None:
    """A study of a few fits has a result or a status for each, and repeats."""
    X, others = case.given()
    options = {n: v for n, v in case.options.items() if n in ("alpha", "offsets", "init")}
    options |= {"nonlinearity": ["identity", case.model], "loss": case.loss}
    options |= {"rank": 1, "max_iter": 3, "missing": [0.1, 0.3], "n_splits": 1}
    options |= {name: others[name] for name in ("observed", "sample_dims") if name in others}
    noise = {"gaussian": [0, 0.1]} if case.seed % 4 == 0 else None
    runs = [nmd_lab.Study(X, noise=noise, **options).run(progress=False) for _ in range(2)]
    measured = ["seconds"]
    if not runs[0].drop_vars(measured).identical(runs[1].drop_vars(measured)):
        raise Fault("the same study gives other results")
    for reason in np.unique(runs[0]["stop_reason"].values.astype(str)):
        if reason.startswith("failed"):
            error, _, text = reason.removeprefix("failed: ").partition(": ")
            if error not in ("ValueError", "TypeError") or not text.endswith("."):
                raise Fault(f"a fit of a study fails with {error}", text)


def wrong_option_is_refused(case: Case) -> None:
    """A wrong value of an option gives a fit or one sentence, never anything else."""
    rng = np.random.default_rng([case.seed, 7])
    X, others = case.given()
    names = ["rank", "nonlinearity", "loss", "observed", "weights", "sample_dims", "dtype"]
    names += ["init", "n_init", "max_iter", "tol", "rho", "initial_rho", "refine", "homotopy"]
    names += ["polish", "alpha", "offsets", "split", "validation", "patience", "epsilon"]
    names += ["time_limit", "callback", "progress", "random_state", "threads", "typo"]
    names += ["solver", "compute"]
    name, value = names[rng.integers(len(names))], WRONG[rng.integers(len(WRONG))]
    if name in ("max_iter", "n_init", "threads") and value == 10**30:
        return  # right, and long
    if name == "callback" and value is object:
        return  # it can be called, and its own error goes through
    arguments = {"rank": case.rank, "nonlinearity": case.model, "loss": case.loss}
    arguments |= {"max_iter": 3, "progress": False, "random_state": 0} | others | {name: value}
    fit = getattr(nmd_lab, case.verb)(X, arguments.pop("rank"), **arguments_of(arguments))
    if not np.isfinite(fit.reconstruct().values).all():
        raise Fault("reconstruct() is not finite", f"{name}={value!r}")


def wrong_data_are_refused(case: Case) -> None:
    """Data of a wrong kind give one sentence, never anything else."""
    rng = np.random.default_rng([case.seed, 8])
    good = case.matrix.astype(float)
    i, j = (int(rng.integers(size)) for size in good.shape)
    bad = good.copy()
    bad[i, j] = rng.choice([np.inf, -np.inf, 1e308, np.nan])
    csr, _ = case.given("csr")
    with np.errstate(all="ignore"):
        kinds = _wrong_kinds(good, bad, csr)
    X = kinds[rng.integers(len(kinds))]
    fit = case.call(X)
    if not np.isfinite(fit.reconstruct().values).all():
        raise Fault("reconstruct() is not finite", type(X).__name__)


def _wrong_kinds(good: np.ndarray, bad: np.ndarray, csr: Any) -> list[Any]:
    """Return data of which most are wrong."""
    return [
        *(bad, good.astype(object), good.astype(str), good.astype(complex), good[0], good[None]),
        *(good[:0], good[:, :0], None, "X", 3.0, [], [[1.0], [1.0, 2.0]], {"a": good}),
        *(pd.DataFrame(good).astype(str), pd.DataFrame(good).astype(object), pd.Series(good[0])),
        *(xr.DataArray(good, dims=("component", "b")), xr.DataArray(good).to_dataset(name="x")),
        *(
            np.ma.masked_all(good.shape),
            np.full(good.shape, np.nan),
            csr * np.nan,
            csr[:0],
            csr * 0,
        ),
        *(csr.astype(complex), good.astype("M8[ns]"), good.astype("m8[s]"), csr.tocoo() * 1e300),
        *(pd.DataFrame({"a": ["x", "y"]}), pd.DataFrame(), [None], [[None]], np.array(5.0)),
    ]
