"""Sequences of calls: what is done with a fit, a table, an estimator and a study."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import nmd_lab

from .case import WRONG, Case
from .containers import contents
from .faults import Fault, is_documented


def fit_is_used(case: Case) -> None:
    """Each method of a fit answers, agrees with `reconstruct`, and changes nothing."""
    X, others = case.given()
    fit = case.call(X, **others)
    model = fit.labels.flatten(fit.reconstruct().values)
    mask = {name: value for name, value in others.items() if name == "mask"}
    before = contents([X, *others.values()])
    rng = np.random.default_rng([case.seed, 5])
    uses = {
        "predict": lambda: _predict(fit, model, rng),
        "predict_labels": lambda: _predict_labels(fit, model),
        "top": lambda: _top(fit, model, rng),
        "residual": lambda: _residual(fit, case, model, X, mask),
        "fold_in": lambda: _fold_in(fit, X, mask),
        "compare": lambda: nmd_lab.compare([fit, fit], X, **mask),
        "save": lambda: _saved(fit),
        "split": lambda: _split(X, case),
        "repr": lambda: (repr(fit), fit._repr_html_(), fit.starts, fit.optimality),
        "again": lambda: case.call(X, **others, **{} if "init" in case.options else {"init": fit}),
    }
    for name in rng.permutation(list(uses))[:4]:
        _documented(uses[name])
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


def _near(one: Any, two: Any, what: str) -> None:
    one, two = np.asarray(one, float), np.asarray(two, float)
    size = np.abs(two).max(initial=1e-300)
    if one.shape != two.shape or np.abs(one - two).max(initial=0) > 1e-4 * size:
        raise Fault(f"{what} disagrees with reconstruct()")


def _predict(fit: nmd_lab.Decomposition, model: np.ndarray, rng: Any) -> None:
    i, j = (rng.integers(-size, size, 5) for size in model.shape)
    _near(fit.predict(i, j), model[i, j], "predict")


def _predict_labels(fit: nmd_lab.Decomposition, model: np.ndarray) -> None:
    (rows, columns), indexes = (fit.labels.rows, fit.labels.columns), fit.labels.coords.indexes
    if len(rows) == len(columns) == 1 and {rows[0], columns[0]} <= set(indexes):
        i, j = indexes[rows[0]], indexes[columns[0]]
        _near(fit.predict_labels(i[0], list(j)), model[0], "predict_labels")


def _top(fit: nmd_lab.Decomposition, model: np.ndarray, rng: Any) -> None:
    row, k = int(rng.integers(model.shape[0])), int(rng.integers(1, 5))
    best = fit.top(row, k, exclude=[0] if model.shape[1] > 1 else None)
    _near(best.values, model[row, best.position.values], "top")
    if not (np.diff(best.values) <= 1e-6 * np.abs(model).max()).all():
        raise Fault("top is not sorted")


def _residual(
    fit: nmd_lab.Decomposition, case: Case, model: np.ndarray, X: Any, mask: dict[str, Any]
) -> None:
    residual = fit.labels.flatten(fit.residual(X, **mask).values)
    if case.container in ("weights", "observations") or residual.shape != case.shape:
        return
    if case.absent_are_zeros:
        return
    if (np.isnan(residual) != ~case.seen).any():
        raise Fault("residual is not NaN where X is missing")
    expected = (case.matrix.astype(float) - model)[case.seen]
    size = np.abs(case.matrix.astype(float)[case.seen]).max() + np.abs(model).max()
    if np.abs(residual[case.seen] - expected).max() > 1e-3 * size:
        raise Fault("residual is not X - reconstruct()")


def _fold_in(fit: nmd_lab.Decomposition, X: Any, mask: dict[str, Any]) -> None:
    W = fit.fold_in(X, **mask)
    if not np.isfinite(W.values).all():
        raise Fault("fold_in is not finite")


def _saved(fit: nmd_lab.Decomposition) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fit.nc"
        fit.save(path)
        loaded = nmd_lab.load(path)
        if len(list(Path(folder).iterdir())) > 1:
            raise Fault("save leaves a file behind")
    for name in ("W", "H", "history"):
        if not getattr(loaded, name).identical(getattr(fit, name)):
            raise Fault("a loaded fit is not the saved one", name)
    if repr(loaded.parameters) != repr(fit.parameters) or loaded.stop_reason != fit.stop_reason:
        raise Fault("a loaded fit has other parameters")
    if not loaded.reconstruct().identical(fit.reconstruct()):
        raise Fault("a loaded fit has another reconstruct()")


def _split(X: Any, case: Case) -> None:
    parts = nmd_lab.split_observed(X, 0.3, random_state=case.seed)
    again = nmd_lab.split_observed(X, 0.3, random_state=case.seed)
    for one, two in zip(parts, again, strict=True):
        if contents(one) != contents(two):
            raise Fault("the same seed splits in another way")
    if case.container in ("nan", "fortran", "strided", "frozen"):
        train, test = (~np.isnan(np.asarray(part, float)) for part in parts)
        whole = ~np.isnan(np.asarray(X, float))
        if (train & test).any() or ((train | test) != whole).any():
            raise Fault("split_observed loses an entry, or keeps one twice")


def estimators_agree(case: Case) -> None:
    """The estimators fit, transform and predict, with finite answers of the right shape."""
    X, _ = case.given("nan")
    options = {"max_iter": 5, "random_state": case.seed, "progress": False} | case.options
    options = {"nonlinearity": case.nonlinearity, "loss": case.loss} | options
    model: Any = nmd_lab.NMD if case.verb == "decompose" else nmd_lab.MatrixCompletion
    given = X.astype(float) if case.dtype in ("bool", "float16", "longdouble") else X
    before = given.tobytes()
    estimator = model(n_components=case.rank, **options).fit(given)
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
    options |= {"nonlinearity": ["identity", case.nonlinearity], "loss": case.loss}
    options |= {"rank": 1, "max_iter": 3, "missing": [0.1, 0.3], "n_splits": 1}
    mask = {name: value for name, value in others.items() if name in ("mask", "sample_dims")}
    noise = {"gaussian": [0, 0.1]} if case.seed % 4 == 0 else None
    runs = [nmd_lab.Study(X, noise=noise, **options, **mask).run(progress=False) for _ in range(2)]
    measured = ["seconds", "peak_memory"]
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
    names = ["rank", "nonlinearity", "loss", "mask", "weights", "sample_dims", "dtype"]
    names += ["init", "n_init", "max_iter", "tol", "penalty", "initial_penalty", "acceleration"]
    names += ["homotopy", "polish", "alpha", "offsets", "constraint", "validation", "patience"]
    names += ["epsilon", "time_limit", "callback", "progress", "random_state", "threads", "typo"]
    name, value = names[rng.integers(len(names))], WRONG[rng.integers(len(WRONG))]
    if name in ("max_iter", "n_init", "threads") and value == 10**30:
        return  # right, and long
    arguments = {"rank": case.rank, "nonlinearity": case.nonlinearity, "loss": case.loss}
    arguments |= {"max_iter": 3, "progress": False, "random_state": 0} | others | {name: value}
    fit = getattr(nmd_lab, case.verb)(X, arguments.pop("rank"), **arguments)
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
