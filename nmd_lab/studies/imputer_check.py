"""`check_imputer` hides cells in the shape of the missing ones, and scores imputers there."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from nmd_lab._runtime.checks import as_generator, check_integer
from nmd_lab.api.posteriors import impute
from nmd_lab.data.folds import draw_folds
from nmd_lab.data.inputs import observe
from nmd_lab.data.labels import is_frame, pandas_of
from nmd_lab.data.typed_table import TypedTable, table_of
from nmd_lab.metrics import energy_score

Array = NDArray[np.float64]

MEASURES = ["error", "correct", "coverage", "score", "seconds"]
"""Columns of the result after the number of cells."""


def check_imputer(
    imputer: Any, frame: Any, *, repeats: int = 1, random_state: Any = None
) -> pd.DataFrame:
    """Hold out observed cells, fill them by imputers, and return the errors and the coverage.

    A tenth of the observed cells is held out, at most 100,000, in the shape of the missing ones: a
    row loses the cells that another row misses, at most half of its own.  In a complete table they
    are random cells.

    Parameters
    ----------
    imputer : object, callable, dict of them, or None
        Object with the method `fit_transform` of scikit-learn, or function of a DataFrame.  Both
        return the filled table, as a DataFrame or array with all columns, or a list of completed
        copies.  Several imputers have names in a dict, and see the same tables.  `nmd_lab.impute`,
        or None: ours with its defaults, and 39 completed copies.
    frame : DataFrame
        Table with its missing cells, of any library; imputers get one of pandas.
    repeats : int, default 1
        Number of times that other cells are held out; the result has means over them.
    random_state : int, Generator or None
        Seed of the held-out cells, and of our draws.

    Returns
    -------
    pandas.DataFrame
        One line for each imputer and column with held-out cells, in this index, and "all", the mean
        over the columns.  `cells` is their number.  `error` is the RMSE of a numeric or ordinal
        column in its standard deviations, `correct` the accuracy of a categorical one.  `coverage`
        is the fraction of numeric and ordinal cells in 90 % intervals of the completed copies (with
        fewer than 19, it is too low even if these are right), and `score` the energy score, for
        "all" that of all held-out cells of a row.  The imputer "median" fills in the median, or
        the most frequent class.

    Raises
    ------
    ValueError, TypeError
        If `frame` is no DataFrame, an argument is out of range, or an imputer leaves out a column
        or a cell.

    See Also
    --------
    Posterior.report : The same for held-out cells of your own.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.impute import KNNImputer
    >>> wine = load_wine(as_frame=True).data
    >>> imputers = {"ours": nmd.impute, "knn": KNNImputer()}
    >>> table = nmd.check_imputer(imputers, wine, random_state=0)
    >>> error = table.xs("all", level="column")["error"]
    >>> bool(error["ours"] < error["knn"] < error["median"])
    True
    """
    frame = pandas_of(frame)
    if not is_frame(frame):
        raise TypeError(f"frame is a {type(frame).__name__}: give a DataFrame.")
    if not isinstance(imputer, Mapping):
        is_ours = imputer is None or imputer is impute
        imputer = {"ours" if is_ours else type(imputer).__name__: imputer}
    rng, typed = as_generator(random_state), table_of(frame, numbers_too=True)
    assert typed is not None
    missing, lines = frame.isna().to_numpy(), list[dict[str, Any]]()
    for _ in range(check_integer("repeats", repeats, 1)):
        cells = observe(np.where(missing, np.nan, 1.0))
        folds, _ = draw_folds(cells, rng, "blocks" if missing.any() else None)
        keep = ~np.isnan(folds[0].rest.to_array())[:, typed.source]
        seen, seed = typed.with_holes(frame, keep), int(rng.integers(2**31))
        truth, known = (typed.encode(one).to_numpy(float) for one in (frame, seen))
        for name, each in {"median": partial(_middle, typed), **imputer}.items():
            began = time.perf_counter()
            filled = _filled(each, seen, seed)
            seconds = time.perf_counter() - began
            best, *draws = (_encoded(name, one, seen, typed) for one in filled)
            scores = _scores(typed, truth, known, best, np.array(draws))
            scores[-1]["seconds"] = seconds
            lines += [{"imputer": name, **line} for line in scores]
    columns = ["imputer", "column", "cells", *MEASURES]
    table = pd.DataFrame(lines, columns=columns).groupby(columns[:2], sort=False)
    return table.mean().assign(cells=table["cells"].sum())


def _middle(typed: TypedTable, seen: Any) -> Any:
    """Return a table filled with the median of numbers, and the most frequent class."""
    values = {
        column.name: seen[column.name].mode()[0] if column.is_class else seen[column.name].median()
        for column in typed.columns
    }
    return seen.fillna(values)


def _filled(imputer: Any, seen: Any, seed: int) -> list[Any]:
    """Return the best guess of a table, and its completed copies if there are several."""
    if imputer is None or imputer is impute:
        best, posterior = impute(seen, return_posterior=True, random_state=seed)
        # Between the second smallest and the second largest of 39 copies lie 90 %.
        return [best, *posterior.impute(seen, 39, random_state=seed)]
    if hasattr(imputer, "fit_transform"):
        imputer = clone(imputer, safe=False).fit_transform
    filled = imputer(seen)
    return [None, *filled] if isinstance(filled, list) else [filled]


def _encoded(name: Any, filled: Any, seen: Any, typed: TypedTable) -> Array | None:
    """Return a filled table as numbers, with the indicators of its categories."""
    if filled is None:
        return None
    values = np.asarray(filled.reindex(columns=seen.columns) if is_frame(filled) else filled)
    if values.shape != seen.shape or pd.isna(values).any():
        raise ValueError(
            f"imputer {name!r} left out cells or columns of the {seen.shape}: fill all cells, or "
            "drop these columns."
        )
    numbers: Array = typed.encode(pd.DataFrame(values, seen.index, seen.columns)).to_numpy(float)
    return numbers


def _scores(
    typed: TypedTable, truth: Array, known: Array, best: Array | None, draws: Array
) -> list[dict[str, Any]]:
    """Return a line for each column with hidden cells, and one for all."""
    best = draws.mean(axis=0) if best is None else best
    size = np.nanstd(known, axis=0)
    size[size == 0] = 1
    hidden = np.where(np.isnan(known), truth / size, np.nan)

    def energy(at: Any) -> float:
        several = len(draws) > 1
        return energy_score(hidden[:, at], (draws / size)[..., at]) if several else np.nan

    lines: list[dict[str, Any]] = []
    for column, at in typed.blocks():
        rows = np.flatnonzero(~np.isnan(hidden[:, at[0]]))
        if not rows.size:
            continue
        x, guess = truth[rows][:, at], best[rows][:, at]
        line = {"column": column.name, "cells": rows.size, "score": energy(at)}
        if column.kind in ("boolean", "categories"):
            line["correct"] = np.mean(column.nearest(guess) == column.nearest(x))
        else:
            line["error"] = np.sqrt(np.mean((guess - x) ** 2)) / size[at[0]]
            if len(draws) > 1:
                here = draws[:, rows][..., at]
                low, high = np.quantile(here, (0.05, 0.95), axis=0, method="weibull")
                line["coverage"] = np.mean((low <= x) & (x <= high))
        lines.append(line)
    whole = dict(pd.DataFrame(lines, columns=MEASURES).mean())
    whole |= {"column": "all", "cells": sum(line["cells"] for line in lines)}
    return [*lines, {**whole, "score": energy(slice(None))}]
