"""How sure the predictions of cells are: missing ones, and held-out ones with their errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nmd_lab.data.labels import Labels
from nmd_lab.data.typed_table import TypedColumn

from .classes import mean_shares
from .draws import Draws, Positions
from .entries import entries_at, entries_of
from .fold_in import unknown_row
from .mixture import Array
from .predict import OWNER, means, stds


def held_out_cells(labels: Labels, draws: Draws, X: Any) -> pd.DataFrame:
    """Return the observed cells of test data, as `cells_at` does."""
    entries = entries_of(labels, X, None, None, OWNER)
    assert entries.data is not None
    values = entries.data.observations.entries()[2].astype(np.float64)
    return cells_at(draws, entries.i, entries.j, values)


def cells_at(draws: Draws, i: Positions, j: Positions, values: Array | None = None) -> pd.DataFrame:
    """Return the cells of the table at entries of the matrix, with what is observed if given.

    Columns `row` and `column` are positions in the matrix, of the first indicator for a category.
    """
    unknown = unknown_row(draws)
    columns = [] if draws.table is None else list(draws.table.blocks())
    classes = [(c, at) for c, at in columns if c.kind in ("boolean", "categories")]
    of_classes = np.concatenate([np.empty(0, np.intp), *(at for _, at in classes)])
    at = np.flatnonzero(~np.isin(j, of_classes))
    spread = stds(unknown, entries_at(0, np.arange(draws.shape[1])))[j[at]]
    groups = [_numbers(draws, i[at], j[at], spread, None if values is None else values[at])]
    for column, positions in classes:
        at, codes = np.flatnonzero(j == positions[0]), None
        if values is not None:
            codes = values[at]
            if column.has_indicators:  # those of a cell follow one another
                codes = values[at[:, None] + np.arange(positions.size)].argmax(axis=1)
        known = mean_shares(unknown, np.zeros(1, np.intp), positions).max()
        cells = _classes(mean_shares(draws, i[at], positions), column, known, codes)
        cells.insert(0, "row", i[at])
        cells.insert(1, "column", j[at])
        groups.append(cells)
    return pd.concat([group for group in groups if len(group)] or groups[:1], ignore_index=True)


def _numbers(
    draws: Draws, i: Positions, j: Positions, spread: Array, x: Array | None
) -> pd.DataFrame:
    """Return cells of numbers and levels: their error is in units of the spread of the column."""
    entries = entries_at(i, j)
    predicted = means(draws, entries)
    cells = pd.DataFrame({"row": i, "column": j, "kind": "number"})
    cells["predicted"] = predicted.astype(object)
    cells["unsure"] = _ratio(stds(draws, entries), spread)
    if x is not None:
        cells["observed"] = x.astype(object)
        cells["wrong"] = _ratio(x - predicted, spread)
    return cells


def _classes(
    p: Array, column: TypedColumn, known: float, codes: NDArray[Any] | None
) -> pd.DataFrame:
    """Return cells of booleans or categories: a wrong class is an error of one.

    `p` are the probabilities of the classes, and `known` the largest one in an unknown row.
    """
    classes, best = np.array([*column.classes, None], dtype=object), p.argmax(axis=1)
    cells = pd.DataFrame({"kind": "class", "predicted": classes[best]})
    cells["probability"] = p.max(axis=1)
    cells["unsure"] = _ratio(1 - p.max(axis=1), np.full(best.size, 1 - known))
    if codes is not None:
        cells["observed"] = classes[codes.astype(np.intp)]
        cells["wrong"] = (best != codes).astype(np.float64)
    return cells


def _ratio(numbers: Array, of: Array) -> Array:
    """Return a quotient, 0 where nothing is unsure."""
    return np.divide(numbers, of, out=np.zeros(numbers.shape), where=of > 1e-12)


def with_labels(labels: Labels, cells: pd.DataFrame) -> pd.DataFrame:
    """Return cells with labels of rows and columns in the place of their positions."""
    names = labels.flat(labels.columns).astype(object)
    if labels.table is not None:
        each = (column.name for column in labels.table.of_matrix)
        names = np.fromiter(each, dtype=object, count=names.size)
    order = ["row", "column", "kind", "observed", "predicted", "unsure", "wrong", "share", "error"]
    rows = labels.flat(labels.rows)[cells["row"]]
    cells = cells.assign(row=rows, column=names[cells["column"]])
    return cells[[name for name in order if name in cells]]


def reliability(posterior: Any, X: Any) -> pd.DataFrame:
    """Return held-out cells with the error of those up to each; see `Posterior.reliability`."""
    cells = held_out_cells(posterior._labels, posterior._draws, X).sort_values(
        "unsure", kind="stable", ignore_index=True
    )
    by_kind = cells.assign(one=1.0, square=cells["wrong"] ** 2).groupby("kind")
    count = by_kind["one"].cumsum()
    error = (by_kind["square"].cumsum() / count) ** 0.5
    error = error.where(cells["kind"] == "number", by_kind["wrong"].cumsum() / count)
    share = count / by_kind["one"].transform("sum")
    return with_labels(posterior._labels, cells.assign(share=share, error=error))
