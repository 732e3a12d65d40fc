"""Columns of a DataFrame that hold no numbers, and the lines of code that mend them.

>>> import pandas as pd
>>> frame = pd.DataFrame({"age": [31, 50, 44], "sex": ["f", "m", "f"], "name": ["a", "b", "c"]})
>>> refused_columns(frame)
{'text': ['sex'], 'identifiers': ['name']}
>>> lines_that_mend(frame)
"X = X.drop(columns=['name']); X[['sex']] = X[['sex']].astype('category')"
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

PHRASES = {
    "text": "text",
    "identifiers": "identifiers or free text",
    "limits": "limits such as {example!r}",
    "booleans": "booleans among objects",
    "numbers": "numbers as text or objects",
    "others": "neither numbers nor text",
}
"""What a refused column holds, by its kind."""

CASTS = {
    "text": ".astype('category')",
    "booleans": ".astype('boolean')",
    "numbers": ".apply(pd.to_numeric)",
}
"""Code that turns some columns into ones that are taken."""

SIGNS = {"at_most": "<≤", "at_least": ">≥"}
"""Signs before an upper and before a lower limit."""

LEAST_REPEATS = 1.25  # lines for each distinct text; below, categories would have almost one line


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
        give = f", and give {' and '.join(limits)} to nmd.complete" if limits else ""
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
    if dropped := [*refused.get("identifiers", []), *refused.get("others", [])]:
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


def _kind(column: Any) -> str | None:
    """Return the kind of a refused column, None for one that is taken."""
    if hasattr(column.dtype, "categories") or getattr(column.dtype, "kind", "O") in "buif":
        return None
    values = column.dropna()
    if getattr(column.dtype, "kind", "O") != "O" or values.empty:
        return "others"
    if all(isinstance(value, bool) for value in values):
        return "booleans"
    text = values.astype(str)
    if _are_numbers(values):
        return "numbers"
    if _are_numbers(text.str.strip("<>≤≥= ")):
        return "limits"
    if not all(isinstance(value, str | float | int) for value in values):
        return "others"
    return "text" if len(text) >= LEAST_REPEATS * text.nunique() else "identifiers"


def _are_numbers(values: Any) -> bool:
    """Return whether all values of a Series can be turned into numbers."""
    import pandas as pd

    return bool(pd.to_numeric(values, errors="coerce").notna().all())


def _with_sign(frame: Any, names: Collection[Any]) -> list[str]:
    """Return the limits among the values of some columns, with their signs."""
    columns = [frame.iloc[:, k] for k, name in enumerate(frame.columns) if name in names]
    texts = (text for column in columns for text in column.dropna().astype(str))
    return [text for text in texts if set("<>≤≥") & set(text)]
