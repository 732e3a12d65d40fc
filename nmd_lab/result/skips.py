"""Cells of a table that are empty on purpose, such as skipped questions: how they stay so.

A completed copy loses again what `fill` leaves empty.  The conditions of `fill` are found in a
table: nobody answers a question who gave some answer to another one.
"""

from __future__ import annotations

from keyword import iskeyword
from typing import Any

import numpy as np
import pandas as pd

from nmd_lab._runtime.checks import check_word, sentence
from nmd_lab.data.entries import as_booleans
from nmd_lab.data.inputs import dense_values
from nmd_lab.data.labels import Labels, is_frame, plain_array
from nmd_lab.data.typed_table import plain_label, refuse_repeats


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
            filled[name] = filled[name].where(X[name].notna() | _holds(filled, name, condition))
    elif fill is not None:
        labels = Labels(tuple(map(str, range(np.ndim(X)))), np.shape(X), ("0",))
        mask = as_booleans(dense_values("fill", fill, X, labels), "fill", "True = to be filled")
        keep = pd.notna(plain_array(X)) | mask.reshape(np.shape(X))
        if is_frame(X):
            return filled.where(keep)
        filled[...] = np.where(keep, filled, np.nan)
    return filled


def check_fill(X: Any, fill: Any) -> None:
    """Raise an error if `fill` does not go with X; conditions are tried on its observed values."""

    def observed(x: Any) -> Any:
        return x.iloc[np.resize(np.flatnonzero(x.notna()), len(x))].set_axis(x.index)

    if fill is not None:
        with_skips(X.apply(observed) if is_frame(X) else np.zeros(np.shape(X)), X, fill)


def _holds(filled: Any, name: Any, condition: Any) -> Any:
    """Return in which rows a condition holds, which it does not where its answer is missing."""
    try:
        found = condition(filled.copy()) if callable(condition) else filled.eval(condition)
        if pd.api.types.infer_dtype(np.ravel(found)) not in ("boolean", "empty"):
            raise TypeError("it gives no booleans")
        return pd.Series(found, filled.index, dtype="boolean").fillna(False).to_numpy(bool)
    except Exception as error:
        raise ValueError(
            f"fill={{{name!r}: {condition!r}}} fails ({sentence(error)}): give a condition such as "
            "\"smoker == 'yes'\", or a function of the filled DataFrame that returns booleans."
        ) from error


def skips_of(X: Any) -> dict[Any, str]:
    """Return the conditions, for `fill`, of columns that are empty wherever another has some value.

    A value has ten rows at least, and most of them have no more frequent one of these.  A table
    with cells missing completely at random seems to skip one with a probability of at most 0.1 %.
    """
    answers: list[Any] = []
    for name, x in X.filter(regex=r"\A[^`\n]+\Z").items():  # other names cannot be quoted
        quoted = name if str(name).isidentifier() and not iskeyword(name) else f"`{name}`"
        for value, rows in x.groupby(x, observed=True).indices.items():
            if rows.size >= 10 and isinstance(name, str) and not hasattr(value, "year"):
                answers.append((rows, f"{quoted} != {plain_label(value)!r}"))
    answers.sort(key=lambda answer: -answer[0].size)
    conditions: dict[Any, list[str]] = {name: [] for name in X}
    for name, texts in conditions.items():
        empty, skipped = X[name].isna().to_numpy(), np.zeros(len(X), bool)
        for rows, text in answers:
            elsewhere = (empty.sum() - rows.size + 1) / (len(X) - rows.size + 1)
            chance = len(answers) * X.shape[1] * min(abs(elsewhere), 1.0) ** rows.size
            if chance < 1e-3 and empty[rows].all() and 2 * skipped[rows].sum() <= rows.size:
                skipped[rows] = True
                texts.append(text)
    return {name: " and ".join(texts) for name, texts in conditions.items() if texts}
