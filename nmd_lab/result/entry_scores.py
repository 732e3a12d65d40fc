"""How right a fit or a posterior is at single entries, in ways that suit their columns."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.base import FloatArray, Observations
from nmd_lab.data.typed_table import TypedColumn

from .entries import entries_at

CLASS_ERRORS = {"misclassified": "share of wrong classes", "level_error": "mean error of levels"}
"""Errors of classes, yes and no, and errors of ordered levels, with their names for people."""


def error_of(column: TypedColumn) -> str:
    """Return the name of the error of a column of classes."""
    return "level_error" if column.kind == "ordered" else "misclassified"


def class_errors(result: Any, X: Observations, model: FloatArray) -> dict[str, FloatArray]:
    """Return the errors of the most probable classes at the entries of X, by name.

    Each cell of a table has one, at its first entry; other entries have NaN.  A result without
    probabilities has the class that is nearest to `model`, its values at the entries.
    """
    rows, columns, values = X.entries()
    errors: dict[str, FloatArray] = {}
    for column, at in () if X.labels.table is None else X.labels.table.blocks():
        if not column.is_class:
            continue
        inside = (columns >= at[0]) & (columns <= at[-1])
        encoded = np.full((2, X.shape[0], at.size), np.nan)
        encoded[:, rows[inside], columns[inside] - at[0]] = values[inside], model[inside]
        right, most_probable = map(column.nearest, encoded)
        with suppress(KeyError, ValueError):
            most_probable = result.probabilities(column.name).to_numpy().argmax(axis=1)
        name, first, distance = error_of(column), columns == at[0], np.abs(most_probable - right)
        each = errors.setdefault(name, np.full(values.size, np.nan))
        each[first] = (distance if name == "level_error" else distance > 0)[rows[first]]
    return errors


def interval_scores(
    posterior: Any, X: Observations, values: FloatArray, at: NDArray[np.bool_], unit: Any
) -> dict[str, FloatArray]:
    """Return whether 90 % intervals hold some values, and the log-density of these in a unit.

    There is one value for each entry of X.  Where `at` is False, or there is no distribution, the
    scores are NaN.
    """
    rows, columns, _ = X.entries()
    inside, density = np.full((2, values.size), np.nan)
    entries, x = entries_at(rows[at], columns[at]), values[at]
    with suppress(ValueError):  # a loss of the user, or a level that the posterior lacks
        low, high = posterior.predict_interval(entries, level=0.9).T
        inside[at] = (low <= x) & (x <= high)
        density[at] = posterior.log_density(entries, values=x)
    return {"coverage_90": inside, "log_density": density + np.log(unit)}
