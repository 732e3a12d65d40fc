"""Mixed columns: a posterior and a fit of numbers and classes, against all as numbers and others.

Protocol, fixed before the first run:

- Tables that scikit-learn ships: diabetes (10 numbers and the sex), breast cancer (30 numbers and
  the diagnosis), wine (13 numbers and one of 3 cultivars), iris (4 numbers and one of 3 species).
- 20 % of the cells of each table are hidden at random, test cells; a tenth of the others are the
  calibration cells.  No method sees either.  Every column of numbers is divided by the standard
  deviation of its other cells.  Seeds 0 to 4.
- Methods: `sample` and `complete` with their defaults; `complete` with all columns as numbers,
  classes as indicators; IterativeImputer and KNNImputer of scikit-learn with their defaults on the
  same numbers.
- Score of a number: the logarithm of a Gaussian density at the prediction.  Its variance is the
  mean squared error of the column at the calibration cells.
- Score of a class: the logarithm of its probability.  Predictions of indicators are clipped to
  [0.01, 0.99], and divided by their sum; those of the mixed fit have the same bounds.

Run: python benchmarks/mixed.py [--seeds 5] [--tables diabetes wine ...] [--write]
With --write the table of docs/models.md is replaced, after five seeds and all tables.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from common.pages import table, write_tables
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

import nmd_lab as nmd

TEST, CALIBRATION, BOUND = 0.2, 0.1, 0.01


def diabetes() -> pd.DataFrame:
    """Return ten numbers of 442 patients, and their sex."""
    frame = datasets.load_diabetes(as_frame=True, scaled=False).frame
    return frame.assign(sex=frame["sex"] == 2)


def cancer() -> pd.DataFrame:
    """Return thirty numbers of 569 biopsies, and the diagnosis."""
    data = datasets.load_breast_cancer(as_frame=True)
    return data.data.assign(malignant=data.target == 0)


def wine() -> pd.DataFrame:
    """Return thirteen numbers of 178 wines, and their cultivar."""
    return _with_class(datasets.load_wine(as_frame=True), "cultivar")


def iris() -> pd.DataFrame:
    """Return four numbers of 150 flowers, and their species."""
    return _with_class(datasets.load_iris(as_frame=True), "species")


def _with_class(data: Any, name: str) -> pd.DataFrame:
    return data.data.assign(**{name: pd.Categorical.from_codes(data.target, data.target_names)})


TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "diabetes": diabetes, "cancer": cancer, "wine": wine, "iris": iris
}  # fmt: skip

Predictions = tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]
"""Predicted numbers, and probabilities of classes, of all cells by column."""


def codes(column: pd.Series) -> NDArray[np.intp]:
    """Return the class of each row as a number from 0."""
    if column.dtype == bool:
        return column.to_numpy().astype(int)
    return column.cat.codes.to_numpy().astype(int)


def is_class(column: pd.Series) -> bool:
    """Return whether a column holds classes."""
    return str(column.dtype) in ("bool", "boolean", "category")


def bounded(probabilities: NDArray[Any]) -> NDArray[Any]:
    """Return probabilities (m, K) within the bounds, with the sum 1."""
    clipped = np.clip(probabilities, BOUND, 1 - BOUND)
    return clipped / clipped.sum(axis=1, keepdims=True)


def mixed(seen: pd.DataFrame, seed: int) -> Predictions:
    """Fit the columns as what they are."""
    fit = nmd.complete(seen, random_state=seed)
    table = fit.reconstruct().to_pandas()
    numbers = {name: table[name].to_numpy() for name in seen if not is_class(seen[name])}
    classes = {name: fit.probabilities(name).to_numpy() for name in seen if name not in numbers}
    return numbers, classes


def sampled(seen: pd.DataFrame, seed: int) -> Predictions:
    """Draw from the posterior of the columns as what they are."""
    posterior = nmd.sample(seen, random_state=seed)
    filled = posterior.impute(seen)
    numbers = {name: filled[name].to_numpy() for name in seen if not is_class(seen[name])}
    classes = {
        name: np.asarray(posterior.probabilities(name)) for name in seen if name not in numbers
    }
    return numbers, classes


def as_numbers(complete: Callable[[NDArray[Any], int], NDArray[Any]], first: int = 0) -> Any:
    """Return a method that has standardised numbers and indicators, from the `first` class on."""

    def method(seen: pd.DataFrame, seed: int) -> Predictions:
        parts, where = [], {}
        for name in seen:
            column = seen[name]
            if isinstance(column.dtype, pd.CategoricalDtype):
                values = np.eye(len(column.cat.categories))[column.cat.codes][:, first:]
                values[column.isna()] = np.nan
            else:
                values = column.to_numpy(dtype=float, na_value=np.nan)[:, None]
            begin = sum(part.shape[1] for part in parts)
            where[name] = slice(begin, begin + values.shape[1])
            parts.append(values)
        X = np.hstack(parts)
        mean, size = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
        filled = complete((X - mean) / size, seed) * size + mean
        numbers, classes = {}, {}
        for name, at in where.items():
            if not is_class(seen[name]):
                numbers[name] = filled[:, at][:, 0]
            elif str(seen[name].dtype) == "boolean" or first:
                other = 1 - filled[:, at].sum(axis=1, keepdims=True)
                classes[name] = np.hstack([other, filled[:, at]])
            else:
                classes[name] = filled[:, at]
        return numbers, classes

    return method


def own_numbers(X: NDArray[Any], seed: int) -> NDArray[Any]:
    """Complete numbers by this package."""
    return nmd.complete(X, random_state=seed).reconstruct().values


def imputer(X: NDArray[Any], seed: int) -> NDArray[Any]:
    """Complete numbers by scikit-learn."""
    return IterativeImputer(random_state=seed).fit_transform(X)


def neighbours(X: NDArray[Any], seed: int) -> NDArray[Any]:
    """Complete numbers by the nearest neighbours, with scikit-learn."""
    return KNNImputer().fit_transform(X)


METHODS: dict[str, Any] = {
    "sample": sampled,
    "complete": mixed,
    "all as numbers": as_numbers(own_numbers),
    "IterativeImputer": as_numbers(imputer),
    "the same, K-1 indicators": as_numbers(imputer, first=1),
    "KNNImputer": as_numbers(neighbours),
}


def hidden(frame: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, NDArray[Any], NDArray[Any]]:
    """Return the table that the methods see, and the masks of test and calibration cells."""
    rng = np.random.default_rng(seed)
    test = rng.random(frame.shape) < TEST
    calibration = ~test & (rng.random(frame.shape) < CALIBRATION)
    seen = frame.copy()
    for k, name in enumerate(frame):
        if frame[name].dtype == bool:
            seen[name] = seen[name].astype("boolean")
        elif not is_class(frame[name]):
            seen[name] = seen[name].astype(float)
        seen.loc[test[:, k] | calibration[:, k], name] = (
            pd.NA if str(seen[name].dtype) == "boolean" else np.nan
        )
    return seen, test, calibration


def score(
    frame: pd.DataFrame,
    seen: pd.DataFrame,
    test: NDArray[Any],
    calibration: NDArray[Any],
    predicted: Predictions,
) -> dict[str, float]:
    """Return mean log-likelihood of all test cells, of numbers and of classes, and the accuracy."""
    numbers, classes = predicted
    of_numbers, of_classes, right = [], [], []
    for k, name in enumerate(frame):
        at, cal = test[:, k], calibration[:, k]
        if name in classes:
            truth, p = codes(frame[name])[at], bounded(classes[name])[at]
            of_classes.append(np.log(p[np.arange(truth.size), truth]))
            right.append(p.argmax(axis=1) == truth)
            continue
        size = seen[name].std()
        errors = (frame[name].to_numpy(dtype=float) - numbers[name]) / size
        variance = np.mean(errors[cal] ** 2)
        of_numbers.append(-0.5 * (np.log(2 * np.pi * variance) + errors[at] ** 2 / variance))
    whole = np.concatenate([*of_numbers, *of_classes])
    return {
        "all": whole.mean(),
        "numbers": np.concatenate(of_numbers).mean(),
        "classes": np.concatenate(of_classes).mean(),
        "accuracy": np.concatenate(right).mean(),
    }


def run(tables: list[str], seeds: int, methods: dict[str, Any]) -> pd.DataFrame:
    """Return the scores of all methods, tables and seeds."""
    rows = []
    for name in tables:
        for seed in range(seeds):
            frame = TABLES[name]()
            seen, test, calibration = hidden(frame, seed)
            for method, fit in methods.items():
                began = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    scores = score(frame, seen, test, calibration, fit(seen, seed))
                seconds = time.perf_counter() - began
                about = {"table": name, "method": method, "seed": seed, "seconds": seconds}
                rows.append(about | scores)
                print(name, seed, method, scores, flush=True)
    return pd.DataFrame(rows)


def page_table(means: pd.DataFrame) -> str:
    """Return log-likelihood and accuracy of every table and method, as Markdown."""
    methods = means.index.get_level_values("method").unique()
    rows = [
        [name, *(f"{own.loc[m, 'all']:.3f}, {100 * own.loc[m, 'accuracy']:.0f} %" for m in methods)]
        for name, own in ((name, means.loc[name]) for name in means.index.unique("table"))
    ]
    return table(["table", *methods], rows)


def main() -> None:
    """Print the means over the seeds, and in how many seeds the posterior is best."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--write", action="store_true", help="write the table into docs/models.md")
    arguments = parser.parse_args()
    if arguments.write and (arguments.seeds != 5 or arguments.tables != list(TABLES)):
        parser.error("--write takes five seeds and all tables: leave --seeds and --tables out.")
    results = run(arguments.tables, arguments.seeds, METHODS)
    columns = ["all", "numbers", "classes", "accuracy", "seconds"]
    means = results.groupby(["table", "method"], sort=False)[columns].mean()
    print("Means over the seeds; log-likelihoods in nats a cell\n")
    print(means.round(3).to_string())
    own = results[results.method == "sample"].set_index(["table", "seed"])
    for other in list(METHODS)[1:]:
        its = results[results.method == other].set_index(["table", "seed"])
        won = (own[columns[:3]] > its[columns[:3]]).groupby("table", sort=False).sum()
        won["accuracy"] = (own["accuracy"] >= its["accuracy"]).groupby("table", sort=False).sum()
        print(f"\nSeeds, of {arguments.seeds}, in which the posterior is above {other}")
        print("(accuracy: at least as high)")
        print(won.to_string())
    if arguments.write:
        write_tables("models", "mixed", page_table(means))


if __name__ == "__main__":
    main()
