"""Columns of a DataFrame without numbers or classes, and the lines of code that mend them.

>>> import pandas as pd
>>> frame = pd.DataFrame({"sex": ["f", "m", "f"], "name": ["a", "b", "c"], "cm": ["1", "3", "2"]})
>>> refused_columns(frame)
{'identifiers': ['name'], 'numbers': ['cm']}
>>> lines_that_mend(frame)
"X = X.drop(columns=['name']); X[['cm']] = X[['cm']].apply(pd.to_numeric)"
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

PHRASES = {
    "identifiers": "identifiers or free text",
    "limits": "limits such as {example!r}",
    "numbers": "numbers as text or objects",
    "dates": "dates",
    "mixed": "values of several types",
    "empty": "no value",
    "others": "neither numbers nor text",
}
"""What a refused column holds, by its kind."""

CASTS = {
    "numbers": ".apply(pd.to_numeric)",
    "dates": ".apply(lambda when: (when - when.min()).dt.days)",
}
"""Code that turns some columns into ones that are taken."""

DROPPED = ("identifiers", "mixed", "empty", "others")
"""Kinds of columns that nothing can be made of."""

SIGNS = {"at_most": "<≤", "at_least": ">≥"}
"""Signs before an upper and before a lower limit."""

OTHER_OBJECTS = ("PeriodDtype", "IntervalDtype")
"""Types of objects that pandas turns into numbers, which say little."""

LEAST_REPEATS = 1.25  # lines for each distinct text; below, categories would have almost one line
MOST_TEXTS = 50  # distinct texts that are taken for classes; more are names or free text


def refused_columns(frame: Any, typed: Collection[Any] = ()) -> dict[str, list[Any]]:
    """Return the labels of the columns that are refused, by their kind; `typed` ones are taken."""
    kinds = {
        name: _kind(frame.iloc[:, k]) for k, name in enumerate(frame.columns) if name not in typed
    }
    return {
        kind: names
        for kind in PHRASES
        if (names := [name for name, other in kinds.items() if other == kind])
    }


def refuse_columns(frame: Any, typed: Collection[Any] = ()) -> None:
    """Raise TypeError if columns are refused, with the lines that mend them."""
    refused = refused_columns(frame, typed)
    if refused:
        said, remedy = description(frame, refused), lines_that_mend(frame, typed)
        limits = [f"{name}={name}" for name in SIGNS if f"{name} = " in remedy]
        give = f", and give {' and '.join(limits)}" if limits else ""
        raise TypeError(f"X has {said}: run `{remedy}`{give}.")


def description(frame: Any, refused: dict[str, list[Any]]) -> str:
    """Return what the refused columns hold, in words."""
    said = []
    for kind, names in refused.items():
        phrase = PHRASES[kind]
        if kind == "limits":
            phrase = phrase.format(example=_with_sign(frame, names)[0])
        said.append(f"{phrase} in column{'s' * (len(names) > 1)} {', '.join(map(repr, names))}")
    return " and ".join([", ".join(said[:-1]), said[-1]] if said[1:] else said)


def lines_that_mend(frame: Any, typed: Collection[Any] = ()) -> str:
    """Return the code that makes X, which is the frame, a table that is taken."""
    refused, lines = refused_columns(frame, typed), []
    if dropped := [name for kind in DROPPED for name in refused.get(kind, [])]:
        lines.append(f"X = X.drop(columns={dropped!r})")
    lines += [
        f"X[{names!r}] = X[{names!r}]{CASTS[kind]}"
        for kind, names in refused.items()
        if kind in CASTS
    ]
    if names := refused.get("limits", []):
        signs_seen = set("".join(_with_sign(frame, names)))
        lines.append(f"limits = X[{names!r}].astype(str)")
        lines += [
            f"{argument} = limits.apply(lambda c: c.str.contains('[{signs}]'))"
            ".reindex(columns=X.columns, fill_value=False)"
            for argument, signs in SIGNS.items()
            if signs_seen & set(signs)
        ]
        number = "pd.to_numeric(c.str.strip('<>≤≥= '), errors='coerce')"
        lines.append(f"X[{names!r}] = limits.apply(lambda c: {number})")
    return "; ".join(lines)


def class_kind(column: Any) -> str | None:
    """Return "text" or "booleans" for a column of objects that are classes, None for others."""
    kind = _kind_of_objects(column) if getattr(column.dtype, "kind", "O") == "O" else None
    return kind if kind in ("text", "booleans") else None


def _kind(column: Any) -> str | None:
    """Return the kind of a refused column, None for one that is taken."""
    dtype_kind = getattr(column.dtype, "kind", "O")
    if hasattr(column.dtype, "categories") or dtype_kind in "buif":
        return None
    if dtype_kind != "O" or type(column.dtype).__name__ in OTHER_OBJECTS:
        return "dates" if dtype_kind == "M" else "others"
    kind = _kind_of_objects(column)
    return None if kind in ("text", "booleans") else kind


def _kind_of_objects(column: Any) -> str:
    """Return the kind of a column of objects or text."""
    values = column.dropna()
    if values.empty:
        return "empty"
    if all(isinstance(value, bool | np.bool_) for value in values):
        return "booleans"
    text = values.astype(str)
    if _are_numbers(values):
        return "numbers"
    if _are_numbers(text.str.strip("<>≤≥= ")):
        return "limits"
    if not all(isinstance(value, str) for value in values):
        return (
            "mixed" if all(isinstance(value, str | float | int) for value in values) else "others"
        )
    distinct = text.nunique()
    return "text" if distinct <= min(len(text) / LEAST_REPEATS, MOST_TEXTS) else "identifiers"


def _are_numbers(values: Any) -> bool:
    """Return whether all values of a Series can be turned into numbers."""
    import pandas as pd

    return bool(pd.to_numeric(values, errors="coerce").notna().all())


def _with_sign(frame: Any, names: Collection[Any]) -> list[str]:
    """Return the limits among the values of some columns, with their signs."""
    columns = [frame.iloc[:, k] for k, name in enumerate(frame.columns) if name in names]
    texts = (text for column in columns for text in column.dropna().astype(str))
    return [text for text in texts if set("<>≤≥") & set(text)]
