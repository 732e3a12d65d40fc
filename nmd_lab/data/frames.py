"""Facts from tables and tensors: labels, a documented range, long tables, refused columns.

Columns that hold neither numbers nor classes are refused, with what to do.

>>> import pandas as pd
>>> frame = pd.DataFrame({"sex": ["f", "m", "f"], "name": ["a", "b", "c"], "cm": ["1", "3", "2"]})
>>> refused_columns(frame)
{'identifiers': ['name'], 'numbers': ['cm']}
>>> description(frame, {"numbers": ["cm"]})
"numbers as text or objects in column 'cm'"
"""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy import sparse

from nmd_lab.warnings import NMDWarning


def index_labels(index: Any, axis: str, taken: Collection[Any]) -> tuple[str, Any]:
    """Return the name of the dimension of a pandas index, and its coordinates."""

    def free_name(name: Any, default: str) -> str:
        name = default if name is None else str(name)
        return f"{name}_{axis}" if name in taken else name

    if index.nlevels == 1:
        dim = free_name(index.name, axis)
        return dim, {dim: index.rename(dim)}
    taken = {*taken, axis}
    levels = [free_name(name, f"{axis}_level_{i}") for i, name in enumerate(index.names)]
    return axis, xr.Coordinates.from_pandas_multiindex(index.set_names(levels), axis)


USUAL_COLUMNS = {
    "row": ("user", "userid", "reader", "readerid", "customer", "customerid"),
    "column": (
        *("item", "itemid", "movie", "movieid", "book", "bookid", "product", "productid"),
        *("film", "filmid", "title"),
    ),
    "value": ("rating", "ratings", "score", "stars", "value"),
}
"""Usual names of the columns with the labels and the values, in lower case and without "_", "-"
and spaces."""

COLUMNS_BESIDE = ("timestamp", "time", "date", "when", "t", "title", "expected")
"""Names of further columns that a long table may have."""


def long_table_columns(
    names: Iterable[Any], named: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any] | None:
    """Return the columns of a long table by "row", "column" and "value", None if it is none."""
    by_key = {_key(name): name for name in names}
    found = {
        role: named.get(role, next((by_key[key] for key in usual if key in by_key), None))
        for role, usual in USUAL_COLUMNS.items()
    }
    if None in found.values() or not set(found.values()) <= set(by_key.values()):
        return None
    beside = {key for key, name in by_key.items() if name not in found.values()}
    return found if named or beside <= set(COLUMNS_BESIDE) else None


def _key(name: Any) -> str:
    """Return the name of a column in lower case and without "_", "-" and spaces."""
    return re.sub("[-_ ]", "", str(name).lower())


def has_repeats(labels: Any) -> bool:
    """Return whether a label comes more than once, as those of the rows of a long table do."""
    return bool(pd.Index(labels).has_duplicates)


MOST_COLUMNS = 6  # of a long table whose columns have names of their own
LEAST_LABELS = 20  # distinct labels of its rows, and of its columns
MOST_VALUES = 20  # distinct values of it; numbers in units are more
FEWEST_REPEATS = 20  # pairs expected twice by chance, of which a long table has hardly one
ALMOST_ALL = 0.9  # fraction of all pairs in a table of an experiment, or of days


def _columns_of_pairs(frame: Any) -> dict[str, Any] | None:
    """Return the columns of a long table by what they hold, None if it is none.

    Two columns of labels come in pairs that hardly repeat, though they would by chance.  A third
    has few values, and others are times.
    """
    n, names = len(frame), list(frame.columns)
    if not 3 <= len(names) <= MOST_COLUMNS or has_repeats(names):
        return None
    counts = frame[[name for name in names if _may_be_labels(frame[name])]].nunique()
    labels = [name for name, count in counts.items() if LEAST_LABELS <= count <= n / 2]
    others = [name for name in names if name not in labels]
    beside = [
        name for name in others if _key(name) in COLUMNS_BESIDE or counts.get(name, 0) > n / 2
    ]
    values = [name for name in others if name not in beside]
    if len(labels) != 2 or len(values) != 1 or n > ALMOST_ALL * counts[labels].prod():
        return None
    value = frame[values[0]]
    if getattr(value.dtype, "kind", "O") not in "iuf" or value.nunique() > MOST_VALUES:
        return None
    chance = [np.square(frame[name].value_counts(normalize=True)).sum() for name in labels]
    expected, repeated = n**2 / 2 * np.prod(chance), frame.duplicated(labels).sum()
    if expected < FEWEST_REPEATS * (1 + repeated):
        return None
    return dict(zip(USUAL_COLUMNS, [*labels, *values], strict=True))


def _may_be_labels(column: Any) -> bool:
    """Return whether a column holds whole numbers, categories or text, and no missing cell."""
    if getattr(column.dtype, "kind", "O") == "O" and not hasattr(column.dtype, "categories"):
        return pd.api.types.infer_dtype(column, skipna=False) == "string"
    return getattr(column.dtype, "kind", "O") in "iuO" and not column.isna().any()


def check_no_long_table(frame: Any) -> None:
    """Raise ValueError if a DataFrame is a long table by its names or content, and no matrix."""
    found = long_table_columns(frame.columns)
    if found and not has_repeats(frame.iloc[:, list(frame.columns).index(found["row"])]):
        return
    if found := found or _columns_of_pairs(frame):
        arguments = ", ".join(f"{role}={name!r}" for role, name in found.items())
        raise ValueError(
            f"X has the columns {', '.join(map(repr, found.values()))}, one observation in each "
            f"line: give nmd.observations_from_table(X, {arguments}), or X.to_numpy() if it is a "
            "matrix."
        )


PHRASES = {
    "identifiers": "identifiers or free text",
    "limits": "limits such as {examples}",
    "numbers": "numbers as text or objects",
    "words": "numbers together with {examples}",
    "dates": "dates",
    "durations": "durations",
    "mixed": "values of several types",
    "empty": "no value",
    "others": "neither numbers nor text",
}
"""What a refused column holds, by its kind."""

DROPPED = ("identifiers", "mixed", "empty", "others")
"""Kinds of columns that nothing can be made of."""

DROP = "give X.drop(columns={names})"

REMEDIES = {
    **dict.fromkeys(DROPPED, DROP),
    "identifiers": f"{DROP}, or nmd.observations_from_table() if each line is one observation",
    "limits": "give the numbers without signs, with at_most= True for '<' and at_least= for '>'",
    "numbers": "give X[{names}].apply(pd.to_numeric)",
    "words": "give pd.to_numeric(X[name], errors='coerce'); where a word means below a limit, give "
    "the limit with at_most= True",
    "dates": "give the days since the first one",
    "durations": "give X[name].dt.total_seconds()",
}
"""What to do with such columns."""

OTHER_OBJECTS = ("PeriodDtype", "IntervalDtype")
"""Types of objects that pandas turns into numbers of little meaning."""

SIGNS = "<>≤≥"  # before an upper or a lower limit
LEAST_REPEATS = 1.25  # lines for each distinct text; below, categories would have almost one line
MOST_TEXTS = 50  # distinct texts that are taken for classes; more are names or free text
FEWEST_NUMBERS = 5  # distinct numbers of a column of numbers that has words, too
MOST_NAMED = 5  # classes of a column that a warning names
MOST_WORDS = 3  # distinct words among numbers, such as "ND" or "trace"
BELOW_A_LIMIT = {"nd", "n.d.", "n.d", "n/d", "trace", "traces", "lod", "loq", "bdl", "bql"}


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
    """Raise TypeError if columns are refused, with what to do with each of them."""
    if refused := refused_columns(frame, typed):
        check_no_long_table(frame)
        remedies = [
            f"{description(frame, {kind: names})}: {REMEDIES[kind].format(names=names)}"
            for kind, names in refused.items()
        ]
        raise TypeError(f"X has {'; '.join(remedies)}.")


def description(frame: Any, refused: dict[str, list[Any]]) -> str:
    """Return what the refused columns hold, in words."""
    said = []
    for kind, names in refused.items():
        phrase = PHRASES[kind]
        if kind in ("limits", "words"):
            phrase = phrase.format(examples=" and ".join(map(repr, _examples(frame, names))))
        said.append(f"{phrase} in column{'s' * (len(names) > 1)} {', '.join(map(repr, names))}")
    return " and ".join([", ".join(said[:-1]), said[-1]] if said[1:] else said)


def _examples(frame: Any, names: Collection[Any]) -> list[str]:
    """Return a limit with its sign among the values of some columns, and all words."""
    columns = [frame.iloc[:, k] for k, name in enumerate(frame.columns) if name in names]
    text = pd.concat(columns).dropna().astype(str)
    is_word = _without_signs(text).isna()
    limits = text[~is_word & text.str.contains(f"[{SIGNS}]")]
    return [*limits[:1], *sorted(set(text[is_word]))]


def warn_of_classes(unseen: Mapping[Any, list[Any]]) -> None:
    """Warn of classes of columns that the fitted table does not show."""
    if texts := [
        f"{classes[:MOST_NAMED]} in column {name!r}" for name, classes in unseen.items() if classes
    ]:
        text = f"X has {' and '.join(texts)}, which the fitted table does not show: such a cell "
        text += "says nothing about its row, and stays as it is; fit with all classes."
        warnings.warn(text, NMDWarning, stacklevel=2)


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
        return {"M": "dates", "m": "durations"}.get(dtype_kind, "others")
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
    if pd.to_numeric(values, errors="coerce").notna().all():
        return "numbers"
    numbers, signed = _without_signs(text), text.str.contains(f"[{SIGNS}]")
    limits = signed & numbers.notna()  # "<LOD" is a word
    if numbers.notna().all():
        return "limits"
    all_text, distinct = all(isinstance(value, str) for value in values), text.nunique()
    are_classes = all_text and distinct <= min(len(text) / LEAST_REPEATS, MOST_TEXTS)
    plain, words = numbers[~signed].dropna(), text[numbers.isna()]
    mostly = 2 * plain.size >= len(text) and plain.nunique() >= FEWEST_NUMBERS
    measured = signed.any() or words.map(_is_below).any()
    if mostly and words.nunique() <= MOST_WORDS and (measured or not are_classes):
        return "limits" if limits.any() else "words"
    if all_text:
        return "text" if are_classes else "identifiers"
    return "mixed" if all(isinstance(value, str | float | int) for value in values) else "others"


def _is_below(word: str) -> bool:
    """Return whether a word among numbers is a usual one for "below a limit"."""
    return word.lower() in BELOW_A_LIMIT or word.startswith(("<", "≤"))


def _without_signs(text: Any) -> Any:
    """Return the numbers of a Series of texts, without the signs of limits, and NaN for words."""
    return pd.to_numeric(text.str.strip(f"{SIGNS}= "), errors="coerce")


GREY_LEVELS = 255
"""Largest grey level of a picture of 8 bits."""


def valid_range(X: Any, column: str | None = None) -> tuple[float, float] | None:
    """Return the smallest and the largest value that X can have, None if they are unknown.

    Attributes are those of the CF conventions: `valid_range`, or `valid_min` and `valid_max`.
    Integers of 8 bits without a sign are grey levels from 0 to 255 if one of them is above 127;
    smaller ones may as well be counts or ratings.
    """
    sources = [X] if column is None else [X[column], X]
    for source in sources:
        attrs = getattr(source, "attrs", None)
        documented = _of_attributes(attrs) if isinstance(attrs, dict) else None
        if documented is not None:
            return documented
    dtype = getattr(sources[0], "dtype", None)
    if isinstance(dtype, np.dtype) and dtype == np.uint8:  # a frame may have a column "dtype"
        values = sources[0].tocoo().data if sparse.issparse(X) else np.asarray(sources[0])
        if values.size and int(values.max()) > GREY_LEVELS // 2:
            return 0.0, float(GREY_LEVELS)
    return None


def _of_attributes(attrs: dict[Any, Any]) -> tuple[float, float] | None:
    """Return the range that attributes give, None if they give none that makes sense."""
    ends = attrs.get("valid_range", (attrs.get("valid_min"), attrs.get("valid_max")))
    try:
        low, high = (float(end) for end in ends)
    except (TypeError, ValueError):
        return None
    return (low, high) if -math.inf < low < high < math.inf else None


def without_tensors(X: Any) -> Any:
    """Return a tensor as an array, which shares its memory where it can, and others as they are.

    PyTorch is not imported.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(X, torch.Tensor):
        return X
    try:
        X = X.detach().cpu()
        X = X.float() if str(X.dtype) == "torch.bfloat16" else X  # NumPy has no such type
        if str(X.layout) == "torch.strided":
            return X.numpy()
        compressed = X.to_sparse_csr()  # entries that are there twice are added
        parts = (compressed.values(), compressed.col_indices(), compressed.crow_indices())
        return sparse.csr_array(tuple(array.numpy() for array in parts), shape=tuple(X.shape))
    except (NotImplementedError, RuntimeError, TypeError) as error:
        raise TypeError(
            f"a tensor of {X.dtype} on {X.device} has no array of its entries: convert it to "
            "torch.float32 on a device with data."
        ) from error
