"""`check_imputer` hides cells in the shape of the missing ones, and scores imputers there."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from ._runtime.checks import as_generator, check_integer, check_share
from .data.inputs import observe
from .data.labels import is_frame
from .data.split import split
from .data.typed_table import TypedTable, table_of
from .metrics import energy_score
from .sampling import impute
from .solver.selection.folds import moved_holes

Array = NDArray[np.float64]

COPIES = 39
"""Completed copies of ours: between the second smallest and second largest lie 90 %."""

MEASURES = ["error", "correct", "coverage", "score", "seconds"]
"""Columns of the result after the number of cells."""

TAILS = 0.05, 0.95
"""Ends of an interval."""


def check_imputer(
    imputer: Any, frame: Any, *, test_size: float = 0.1, repeats: int = 1, random_state: Any = None
) -> pd.DataFrame:
    """Hide observed cells, fill them by imputers, and return the errors and the coverage.

    The hidden cells have the shape of the missing ones: a row loses the cells that another row
    misses, at most half of its own.  In a complete table they are random cells.

    Parameters
    ----------
    imputer : object, callable, dict of them, or None
        Object with the method `fit_transform` of scikit-learn, or function of a DataFrame.  Both
        return the filled table, as a DataFrame or array with all columns, or a list of completed
        copies.  Several imputers have names in a dict, and see the same tables.  `nmd_lab.impute`,
        or None: ours with its defaults, and 39 copies.
    frame : DataFrame
        Table with its missing cells.
    test_size : float, default 0.1
        Fraction of the observed cells to hide, at most.
    repeats : int, default 1
        Number of times that other cells are hidden; the result has means over them.
    random_state : int, Generator or None
        Seed of the hidden cells, and of our draws.

    Returns
    -------
    pandas.DataFrame
        One line for each imputer and column with hidden cells, in this index, and "all", the mean
        over the columns.  `cells` is their number.  `error` is the root mean squared error of
        numbers and levels in standard deviations of the column, `correct` the fraction of right
        classes.  `coverage` is the fraction of numbers and levels in 90 % intervals of the copies
        (of fewer than 19, it falls short even if they are right), and `score` the energy score,
        for "all" that of all hidden cells of a row.  The imputer "median" fills in the median, or
        the most frequent class.

    Raises
    ------
    ValueError, TypeError
        If `frame` is no DataFrame, an argument is out of range, or an imputer leaves out a column
        or a cell.

    See Also
    --------
    Posterior.report : The same for hidden cells of your own.

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
    if not is_frame(frame):
        raise TypeError(f"frame is a {type(frame).__name__}: give a DataFrame.")
    check_share("test_size", test_size, zero=False)
    if not isinstance(imputer, Mapping):
        imputer = {"ours" if _is_ours(imputer) else type(imputer).__name__: imputer}
    rng, typed, tables = as_generator(random_state), table_of(frame, numbers_too=True), []
    assert typed is not None
    for _ in range(check_integer("repeats", repeats, 1)):
        seen, seed = _with_hidden_cells(frame, typed, test_size, rng), int(rng.integers(2**31))
        cells = _Cells(typed, _numbers(typed, frame), _numbers(typed, seen))
        tables.append(cells.scores("median", cells.middle[None]))
        for name, each in imputer.items():
            began = time.perf_counter()
            filled = _filled(each, seen, seed)
            seconds = time.perf_counter() - began
            numbers = np.stack([_all_filled(name, one, seen, typed) for one in filled])
            tables.append(cells.scores(name, numbers, seconds, ours=_is_ours(each)))
    lines = pd.concat(tables).groupby(["imputer", "column"], sort=False)
    return lines.mean().assign(cells=lines["cells"].sum().astype(int))


def _with_hidden_cells(
    frame: Any, typed: TypedTable, share: float, rng: np.random.Generator
) -> Any:
    """Return a table without some of its cells."""
    missing = frame.isna().to_numpy()
    cells = observe(np.where(missing, np.nan, 1.0))
    if missing.any():
        rest = cells.select(~moved_holes(cells, share, rng))
    else:
        rest = split(cells, share, rng)[0]
    return typed.with_holes(frame, typed.cells(~np.isnan(rest.to_array())))


def _is_ours(imputer: Any) -> bool:
    """Return whether an imputer stands for ours, whose copies have a best guess before them."""
    return imputer is None or imputer is impute


def _filled(imputer: Any, seen: Any, seed: int) -> list[Any]:
    """Return the filled table, or completed copies, which follow the best guess of ours."""
    if _is_ours(imputer):
        best, posterior = impute(seen, return_posterior=True, random_state=seed)
        return [best, *posterior.impute(seen, COPIES, random_state=seed)]
    if hasattr(imputer, "fit_transform"):
        imputer = clone(imputer, safe=False).fit_transform
    filled = imputer(seen)
    return filled if isinstance(filled, list) else [filled]


def _all_filled(name: Any, filled: Any, seen: Any, typed: TypedTable) -> Array:
    """Return a filled table as numbers."""
    if is_frame(filled) and set(filled.columns) == set(seen.columns):
        filled = filled[list(seen.columns)]
    values = np.asarray(filled)
    if values.shape != seen.shape:
        raise ValueError(
            f"imputer {name!r} returned the shape {values.shape}: return all rows and columns, "
            f"{seen.shape}."
        )
    numbers = _numbers(typed, pd.DataFrame(values, seen.index, seen.columns))
    if np.isnan(numbers).any():
        raise ValueError(f"imputer {name!r} left cells missing: fill all, or drop their columns.")
    return numbers


def _numbers(typed: TypedTable, frame: Any) -> Array:
    """Return a table as numbers, with the indicators of its categories."""
    return np.asarray(typed.encode(frame), dtype=np.float64)


class _Cells:
    """The hidden cells of a table, and scores of what fills them."""

    def __init__(self, typed: TypedTable, truth: Array, known: Array) -> None:
        self.typed, self.truth = typed, truth
        self.hidden = np.isnan(known) & ~np.isnan(truth)
        classes = [column.has_indicators for column in typed.of_matrix]
        self.middle = np.where(classes, np.nanmean(known, axis=0), np.nanmedian(known, axis=0))
        self.middle = np.broadcast_to(self.middle, truth.shape)
        self.size = np.nanstd(known, axis=0)
        self.size[self.size == 0] = 1

    def scores(
        self, name: Any, filled: Array, seconds: float = np.nan, *, ours: bool = False
    ) -> pd.DataFrame:
        """Return a line for each column with hidden cells, and their mean."""
        point, copies = (filled[0], filled[1:]) if ours else (filled.mean(axis=0), filled)
        lines = []
        for column, at in self.typed.blocks():
            rows = np.flatnonzero(self.hidden[:, at[0]])
            if not rows.size:
                continue
            line = {"imputer": name, "column": column.name, "cells": rows.size}
            x, guess = self.truth[rows][:, at], point[rows][:, at]
            if column.kind in ("boolean", "categories"):
                line["correct"] = np.mean(column.nearest(guess) == column.nearest(x))
            else:
                line["error"] = np.sqrt(np.mean((guess - x) ** 2)) / self.size[at[0]]
                if len(copies) > 1:
                    drawn = copies[:, rows][:, :, at]
                    low, high = np.quantile(drawn, TAILS, axis=0, method="weibull")
                    line["coverage"] = np.mean((low <= x) & (x <= high))
            lines.append(line | self._energy(copies, at))
        means = pd.DataFrame(lines, columns=MEASURES).mean()
        whole: dict[str, Any] = dict(zip(MEASURES, means, strict=True))
        whole |= {"imputer": name, "column": "all", "cells": sum(line["cells"] for line in lines)}
        whole |= {"seconds": seconds} | self._energy(copies, np.arange(self.size.size))
        return pd.DataFrame([*lines, whole], columns=["imputer", "column", "cells", *MEASURES])

    def _energy(self, copies: Array, at: NDArray[np.intp]) -> dict[str, float]:
        """Return the energy score of copies in columns of the matrix, if there are several."""
        if len(copies) < 2:
            return {}
        truth = np.where(self.hidden, self.truth, np.nan)[:, at] / self.size[at]
        return {"score": energy_score(truth, copies[:, :, at] / self.size[at])}
