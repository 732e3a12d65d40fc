"""Cells of a table: what a posterior predicts there, how sure it is, and how wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.typed_table import TypedColumn
from nmd_lab.result.entries import entries_at, entries_of

from .imputation import Positions, PosteriorImputation
from .kernels import Array

if TYPE_CHECKING:
    import pandas as pd


def cells_by_doubt(posterior: PosteriorImputation, X: Any) -> pd.DataFrame:
    """Return the observed cells of test data, surest first; see `Posterior.reliability`."""
    cells = held_out_cells(posterior, X).sort_values("unsure", kind="stable", ignore_index=True)
    by_kind = cells.assign(one=1.0, square=cells["wrong"] ** 2).groupby("kind")
    count = by_kind["one"].cumsum()
    error = (by_kind["square"].cumsum() / count) ** 0.5
    error = error.where(cells["kind"] == "number", by_kind["wrong"].cumsum() / count)
    cells = cells.assign(share=count / by_kind["one"].transform("sum"), error=error)
    return with_labels(posterior, cells)


def held_out_cells(posterior: PosteriorImputation, X: Any) -> pd.DataFrame:
    """Return the observed cells of test data, as `cells_at` does."""
    entries = entries_of(posterior.labels, X, None, None, "the posterior")
    assert entries.data is not None
    values = entries.data.observations.entries()[2].astype(np.float64)
    return cells_at(posterior, entries.i, entries.j, values)


def cells_at(
    posterior: PosteriorImputation, i: Positions, j: Positions, values: Array | None = None
) -> pd.DataFrame:
    """Return the cells of the table at entries of the matrix, with what is observed if given.

    Columns `row` and `column` are positions in the matrix, of the first indicator for a category.
    """
    import pandas as pd

    unknown = posterior.unknown_row()
    columns = [] if posterior.labels.table is None else list(posterior.labels.table.blocks())
    classes = [(c, at) for c, at in columns if c.kind in ("boolean", "categories")]
    of_classes = np.concatenate([np.empty(0, np.intp), *(at for _, at in classes)])
    numbers = np.flatnonzero(~np.isin(j, of_classes))
    groups = [_numbers(posterior, unknown, i, j, values, numbers)]
    groups += [_classes(posterior, unknown, i, j, values, column) for column in classes]
    return pd.concat([group for group in groups if len(group)] or groups[:1], ignore_index=True)


def _numbers(
    posterior: PosteriorImputation,
    unknown: PosteriorImputation,
    i: Positions,
    j: Positions,
    values: Array | None,
    at: Positions,
) -> pd.DataFrame:
    """Return cells of numbers and levels: their error is in units of the spread of the column."""
    import pandas as pd

    entries = entries_at(i[at], j[at])
    spread = unknown.predict_std(entries_at(0, np.arange(posterior.shape[1])))[j[at]]
    predicted = posterior.predict(entries)
    cells = pd.DataFrame({"row": i[at], "column": j[at], "kind": "number"})
    cells["predicted"] = predicted.astype(object)
    cells["unsure"] = _ratio(posterior.predict_std(entries), spread)
    if values is not None:
        cells["observed"] = values[at].astype(object)
        cells["wrong"] = _ratio(values[at] - predicted, spread)
    return cells


def _classes(
    posterior: PosteriorImputation,
    unknown: PosteriorImputation,
    i: Positions,
    j: Positions,
    values: Array | None,
    column: tuple[TypedColumn, NDArray[np.intp]],
) -> pd.DataFrame:
    """Return cells of booleans or categories: a wrong class is an error of one."""
    import pandas as pd

    typed, positions = column
    at, classes = np.flatnonzero(j == positions[0]), np.array([*typed.classes, None], dtype=object)
    p = posterior.mean_shares(i[at], positions)
    of_unknown = unknown.mean_shares(np.zeros(1, np.intp), positions).max()
    cells = pd.DataFrame({"row": i[at], "column": j[at], "kind": "class"})
    cells["predicted"] = classes[p.argmax(axis=1)]
    cells["probability"] = p.max(axis=1)
    cells["unsure"] = _ratio(1 - p.max(axis=1), np.full(at.size, 1 - of_unknown))
    if values is not None:
        codes = values[at]
        if typed.has_indicators:  # the indicators of a cell follow one another
            codes = values[at[:, None] + np.arange(positions.size)].argmax(axis=1)
        cells["observed"] = classes[codes.astype(np.intp)]
        cells["wrong"] = (p.argmax(axis=1) != codes).astype(np.float64)
    return cells


def _ratio(numbers: Array, of: Array) -> Array:
    """Return a quotient, 0 where nothing is unsure."""
    return np.divide(numbers, of, out=np.zeros(numbers.shape), where=of > 1e-12)


def with_labels(posterior: PosteriorImputation, cells: pd.DataFrame) -> pd.DataFrame:
    """Return cells with labels of rows and columns in the place of their positions."""
    labels = posterior.labels
    names = labels.flat(labels.columns).astype(object)
    if labels.table is not None:
        each = (column.name for column in labels.table.of_matrix)
        names = np.fromiter(each, dtype=object, count=names.size)
    order = ["row", "column", "kind", "observed", "predicted", "unsure", "wrong", "share", "error"]
    rows = labels.flat(labels.rows)[cells["row"]]
    cells = cells.assign(row=rows, column=names[cells["column"]])
    return cells[[name for name in order if name in cells]]
