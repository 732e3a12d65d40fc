"""Cells of a table that are empty on purpose, such as skipped questions: how they stay so.

A completed copy loses again what `fill` leaves empty.  The conditions of `fill` are found in a
table: nobody answers a question who gave some answer to another one.
"""

from __future__ import annotations

from keyword import iskeyword
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nmd_lab._runtime.checks import check_word, sentence
from nmd_lab.data.entries import as_booleans
from nmd_lab.data.inputs import dense_values
from nmd_lab.data.labels import Labels, is_frame, values_and_mask
from nmd_lab.data.typed_table import plain_label, refuse_repeats


def check_fill(X: Any, fill: Any) -> None:
    """Raise an error if `fill` does not go with X; conditions are tried on its observed values."""

    def without_holes(column: Any) -> Any:
        observed = np.resize(np.flatnonzero(column.notna()), len(column))
        return column.iloc[observed].set_axis(column.index)

    if fill is not None:
        example = X.apply(without_holes) if is_frame(X) else np.zeros(np.shape(X))
        with_skips(example, X, fill)


def with_skips(filled: Any, X: Any, fill: Any) -> Any:
    """Return X as it was filled, or a list of it, without the cells that are not to be filled.

    What was filled is overwritten.  A condition sees the columns that come before it as they are
    returned.
    """
    if isinstance(filled, list):
        return [with_skips(each, X, fill) for each in filled]
    if isinstance(fill, dict) and is_frame(X):
        refuse_repeats(X.columns)
        for name, condition in fill.items():
            check_word("fill", name, X.columns)
            skipped = X[name].isna().to_numpy() & ~_holds(filled, name, condition)
            filled[name] = filled[name].mask(skipped)
    elif fill is not None:
        shape, (values, seen) = np.shape(X), values_and_mask(X)
        labels = Labels(tuple(map(str, range(len(shape)))), shape, ("0",))
        mask = as_booleans(dense_values("fill", fill, X, labels), "fill", "True = to be filled")
        skipped = (~seen | pd.isna(values)) & ~mask.reshape(shape)
        if is_frame(X):
            return filled.mask(skipped)
        filled[...] = np.where(skipped, np.nan, filled)
    return filled


def _holds(filled: Any, name: Any, condition: Any) -> NDArray[np.bool_]:
    """Return in which rows a condition holds, which it does not where its answer is missing."""
    try:
        is_function = callable(condition)
        found = condition(filled.copy()) if is_function else filled.eval(condition, engine="python")
        kind = pd.api.types.infer_dtype(found) if np.shape(found) == (len(filled),) else ""
        if kind not in ("boolean", "empty"):
            raise TypeError("it gives no boolean for each row")
    except Exception as error:
        raise ValueError(
            f"fill={{{name!r}: {condition!r}}} fails ({sentence(error)}): give a condition such as "
            "\"smoker == 'yes'\", or a function of the filled DataFrame that returns booleans."
        ) from error
    return np.asarray(pd.array(found, dtype="boolean").to_numpy(bool, na_value=False))


MIN_ROWS = 10
"""Smallest number of rows with an answer that lets another question be skipped."""

MAX_CHANCE = 1e-3
"""Largest probability that a table whose cells are missing at random seems to skip a question."""


def skips_of(X: Any) -> dict[Any, str]:
    """Return the conditions, for `fill`, of columns that are empty wherever another has some value.

    A value most of whose rows have a more frequent one of these is left out.
    """
    answers = [
        (rows, f"{_quoted(name)} != {plain_label(value)!r}")
        for name, x in X.items()
        for value, rows in x.groupby(x, observed=True).indices.items()
        if isinstance(name, str) and isinstance(plain_label(value), str | int | float)
    ]
    answers = [(rows, text) for rows, text in answers if rows.size >= MIN_ROWS]
    answers.sort(key=lambda answer: -answer[0].size)
    conditions: dict[Any, list[str]] = {}
    for name, x in X.items():
        empty, skipped = x.isna().to_numpy(), np.zeros(len(X), bool)
        for rows, text in answers:
            elsewhere = (empty.sum() - rows.size + 1) / (len(X) - rows.size + 1)
            chance = len(answers) * X.shape[1] * elsewhere**rows.size
            new = rows[~skipped[rows]]
            if chance < MAX_CHANCE and empty[rows].all() and 2 * new.size >= rows.size:
                skipped[new] = True
                conditions.setdefault(plain_label(name), []).append(text)
    return {name: " and ".join(texts) for name, texts in conditions.items()}


def _quoted(name: str) -> str:
    """Return the name of a column as `DataFrame.eval` takes it."""
    return name if name.isidentifier() and not iskeyword(name) else f"`{name}`"
