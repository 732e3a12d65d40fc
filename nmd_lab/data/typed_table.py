"""Tables whose columns have types of their own: numbers, booleans, levels and categories.

Inside the library X is a matrix of numbers.  A `TypedTable` turns the columns of a DataFrame into
those of the matrix:

- a number stays as it is, and a boolean becomes 0 or 1;
- a date becomes the number of days since 1970, and a number of days a date of the same time zone;
- text with few values is a category, and booleans among objects are booleans;
- a class that no cell shows is impossible, unless the column shows none at all;
- an ordered level becomes its category if all are ascending numbers, and otherwise its position;
- a category becomes a block of indicators, one for each category, with labels such as
  "species=setosa".  Two categories need one indicator, that of the second.

In addition to the columns of a DataFrame a matrix may have the values of a long table, such as
ratings: a block of columns, one for each item, which share one unit.

>>> import pandas as pd
>>> frame = pd.DataFrame({"age": [3.0, 5.0, 1.0, 2.0], "pet": ["cat", None, "dog", "cat"]})
>>> table_of(frame).encode(frame)
   age  pet=dog
0  3.0      0.0
1  5.0      NaN
2  1.0      1.0
3  2.0      0.0

Columns that hold neither numbers nor classes are refused, with what to do.

>>> refused_columns(pd.DataFrame({"name": ["a", "b", "c"], "cm": ["1", "3", "2"]}))
{'identifiers': ['name'], 'numbers': ['cm']}
"""

from __future__ import annotations

import datetime as dt
import re
import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nmd_lab.warnings import NMDWarning

from .cell_numbers import dates_of, days_of, read_numbers

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
    frame: Any, named: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any] | None:
    """Return the columns of a long table by "row", "column" and "value", None if it is none.

    Without `named` ones, the labels of the rows come more than once.
    """
    by_key = {_key(name): name for name in frame.columns}
    found = {
        role: named.get(role, next((by_key[key] for key in usual if key in by_key), None))
        for role, usual in USUAL_COLUMNS.items()
    }
    if None in found.values() or not set(found.values()) <= set(by_key.values()):
        return None
    beside = {key for key, name in by_key.items() if name not in found.values()}
    row = frame.iloc[:, list(frame.columns).index(found["row"])]
    is_usual = beside <= set(COLUMNS_BESIDE) and not row.is_unique
    return found if named or is_usual else None


def _key(name: Any) -> str:
    """Return the name of a column in lower case and without "_", "-" and spaces."""
    return re.sub("[-_ ]", "", str(name).lower())


def columns_of_pairs(frame: Any, *, sure: bool = True) -> dict[str, Any] | None:
    """Return the columns of a long table by what they hold, None if it is none.

    Two columns of labels come in pairs that hardly repeat, though they would by chance.  A third
    has few values, and others are times.  If this need not be `sure`, pairs with texts may repeat.
    """
    n, names = len(frame), list(frame.columns)
    # A wider table is none, and labels repeat, but not without number.
    if not 3 <= len(names) <= 6 or not frame.columns.is_unique:
        return None
    counts = {name: frame[name].nunique() for name in names if _may_be_labels(frame[name])}
    labels = [name for name, count in counts.items() if 20 <= count <= n / 2]
    others = [name for name in names if name not in labels and counts.get(name, 0) <= n / 2]
    values = [name for name in others if _key(name) not in COLUMNS_BESIDE]
    pairs = np.prod([counts[name] for name in labels])
    # With almost all pairs, it is a table of an experiment, or of days.
    if len(labels) != 2 or len(values) != 1 or n > 0.9 * pairs:
        return None
    value = frame[values[0]]  # numbers in units have more distinct values than 20
    if getattr(value.dtype, "kind", "O") not in "iuf" or value.nunique() > 20:
        return None
    if sure or all(getattr(frame[name].dtype, "kind", "O") != "O" for name in labels):
        chance = [np.square(frame[name].value_counts(normalize=True)).sum() for name in labels]
        expected, repeated = n**2 / 2 * np.prod(chance), frame.duplicated(labels).sum()
        if expected < 20 * (1 + repeated):  # pairs that come twice: a long table has hardly one
            return None
    return dict(zip(USUAL_COLUMNS, [*labels, *values], strict=True))


def _may_be_labels(column: Any) -> bool:
    """Return whether a column holds whole numbers, categories or text, and no missing cell."""
    if getattr(column.dtype, "kind", "O") == "O" and not hasattr(column.dtype, "categories"):
        return pd.api.types.infer_dtype(column, skipna=False) == "string"
    return getattr(column.dtype, "kind", "O") in "iuO" and not column.isna().any()


def check_no_long_table(frame: Any) -> None:
    """Raise ValueError if a DataFrame is a long table by its names or content, and no matrix."""
    if found := long_table_columns(frame) or columns_of_pairs(frame):
        arguments = ", ".join(f"{role}={name!r}" for role, name in found.items())
        raise ValueError(
            f"X has the columns {', '.join(map(repr, found.values()))}, one observation in each "
            f"line: give nmd.observations_from_table(X, {arguments}), or X.to_numpy() if it is a "
            "matrix."
        )


DROP = "run `X = X.drop(columns={names})`"

KINDS = {
    "identifiers": (
        "identifiers or free text",
        f"{DROP}, or nmd.observations_from_table() if each line is one observation",
    ),
    "words": (
        "numbers together with {examples}",
        "run `X, limits = nmd.censored(X)`, and give **limits with X",
    ),
    "numbers": ("numbers as text or objects", "run `X[{names}] = X[{names}].apply(pd.to_numeric)`"),
    "date texts": (
        "dates as text",
        "run `X[{names}] = X[{names}].apply(pd.to_datetime, format='ISO8601')`",
    ),
    "durations": ("durations", "run `X[{names}] = X[{names}] / pd.Timedelta(seconds=1)`"),
    "mixed": ("values of several types", DROP),
    "empty": ("no value", DROP),
    "others": ("neither numbers nor text", DROP),
}
"""What refused columns hold, by their kind, and what to do with them."""

OTHER_OBJECTS = ("PeriodDtype", "IntervalDtype")
"""Types of objects that pandas turns into numbers of little meaning."""

MAX_WORDS = 3  # distinct words among numbers, such as "ND" or "trace"
DATE = r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?"


def refused_columns(frame: Any, typed: Collection[Any] = ()) -> dict[str, list[Any]]:
    """Return the labels of the columns that are refused, by their kind; `typed` ones are taken."""
    kinds = {name: kind_of_objects(x) for name, x in frame.items() if name not in typed}
    return {
        kind: names
        for kind in KINDS
        if (names := [name for name, other in kinds.items() if other == kind])
    }


def description(frame: Any, refused: dict[str, list[Any]]) -> str:
    """Return what the refused columns hold, in words."""
    said = []
    for kind, names in refused.items():
        phrase = KINDS[kind][0]
        if kind == "words":
            phrase = phrase.format(examples=" and ".join(map(repr, _examples(frame, names))))
        said.append(f"{phrase} in column{'s' * (len(names) > 1)} {', '.join(map(repr, names))}")
    return " and ".join([", ".join(said[:-1]), said[-1]] if said[1:] else said)


def _examples(frame: Any, names: Collection[Any]) -> list[str]:
    """Return the first texts of some columns that are no numbers."""
    columns = [frame.iloc[:, k] for k, name in enumerate(frame.columns) if name in names]
    text = pd.concat(columns).dropna().astype(str)
    is_word = pd.to_numeric(text, errors="coerce").isna()
    return list(text[is_word].unique()[:MAX_WORDS])


def kind_of_objects(column: Any) -> str | None:
    """Return what a column holds that is neither of numbers nor of categories.

    "text" and "booleans" are classes, "dates" have numbers, and all other kinds are refused.
    Dates as text, such as 2020-01-31 12:00, would be classes or free text.
    """
    dtype_kind = getattr(column.dtype, "kind", "O")
    if hasattr(column.dtype, "categories") or dtype_kind in "buif":
        return None
    if dtype_kind != "O" or type(column.dtype).__name__ in OTHER_OBJECTS:
        return {"M": "dates", "m": "durations"}.get(dtype_kind, "others")
    values = column.dropna()
    if values.empty:
        return "empty"
    if all(isinstance(value, dt.date) for value in values):
        return "dates"
    if all(isinstance(value, bool | np.bool_) for value in values):
        return "booleans"
    text = values.astype(str)
    if pd.to_numeric(values, errors="coerce").notna().all():
        return "numbers"
    all_text, distinct = all(isinstance(value, str) for value in values), text.nunique()
    dates = text.where(text.str.fullmatch(DATE))
    if all_text and pd.to_datetime(dates, format="ISO8601", errors="coerce").notna().all():
        return "date texts"
    # Categories have several lines; more distinct texts are names or free text
    are_classes = all_text and distinct <= min(len(text) / 1.25, 50)
    read = read_numbers(values)
    unknown, is_limit = text[read["is_unknown"]], read["at_most"] | read["at_least"]
    exact = read["number"][~is_limit].dropna()
    has_many = exact.nunique() >= 5
    if unknown.empty:
        are_numbers = has_many or not are_classes or bool((is_limit & ~read["is_word"]).any())
    else:
        mostly = has_many and 2 * exact.size >= len(text) and unknown.nunique() <= MAX_WORDS
        are_numbers = mostly and (bool(is_limit.any()) or not are_classes)
    if are_numbers and exact.size:
        return "words"
    if all_text:
        return "text" if are_classes else "identifiers"
    return "mixed" if all(isinstance(value, str | float | int) for value in values) else "others"


Kind = Literal["number", "date", "boolean", "ordered", "categories", "values"]

MAX_CATEGORIES = 1000  # of a column, since each of them takes a column or a cut point


@dataclass(frozen=True)
class TypedColumn:
    """A column of a DataFrame, or the values of a long table.

    Attributes
    ----------
    name : object
        Label.
    kind : {"number", "date", "boolean", "ordered", "categories", "values"}
        Kind of the values.
    categories : tuple
        Categories that the table shows, in their order; the labels of the columns for "values";
        empty for numbers, dates and booleans.
    declared : tuple
        All categories of the type, if there are more.
    """

    name: Any
    kind: Kind
    categories: tuple[Any, ...] = ()
    declared: tuple[Any, ...] = ()

    @property
    def levels(self) -> tuple[float, ...]:
        """Numbers that stand for the categories of an ordered column."""
        if all(isinstance(c, int | float | np.number) for c in self.categories):
            numbers = np.array(self.categories, dtype=float)
            if np.isfinite(numbers).all() and np.all(np.diff(numbers) > 0):
                return tuple(numbers.tolist())
        return tuple(map(float, range(len(self.categories))))

    @property
    def is_class(self) -> bool:
        """Whether the values are booleans, levels or categories."""
        return self.kind not in ("number", "date", "values")

    @property
    def classes(self) -> list[Any]:
        """Possible values of a column of booleans, levels or categories."""
        return list(self.categories) or [False, True]

    @property
    def has_indicators(self) -> bool:
        """Whether each category has an indicator of its own."""
        return self.kind == "categories" and len(self.categories) != 2

    @property
    def first_shown(self) -> int:
        """Position of the first category with an indicator."""
        return 0 if self.has_indicators else 1

    @property
    def labels(self) -> list[Any]:
        """Labels of its columns of the matrix."""
        if self.kind == "values":
            return list(self.categories)
        if self.kind != "categories":
            return [self.name]
        return [f"{self.name}={category}" for category in self.categories[self.first_shown :]]

    def encode(self, column: Any) -> NDArray[np.float64]:
        """Return a pandas.Series as columns of numbers (m, n_labels), NaN for unknown classes."""
        if self.kind == "date":
            if column.notna().any() and kind_of_objects(column) != "dates":
                raise TypeError(
                    f"X has values of type {column.dtype} in column {self.name!r}, which are no "
                    "dates: convert it with pd.to_datetime."
                )
            return days_of(column)[:, None]
        if not self.categories:
            are_times = getattr(column.dtype, "kind", "O") in "mM"  # numbers to NumPy
            plain = column.astype(object) if are_times else column
            try:
                numbers: NDArray[np.float64] = plain.to_numpy(dtype=np.float64, na_value=np.nan)
            except (TypeError, ValueError) as error:
                raise TypeError(
                    f"X has values of type {column.dtype} in column {self.name!r}, which are no "
                    "numbers: convert them as those of the fit were."
                ) from error
            return numbers[:, None]
        codes = pd.Index(self.categories, dtype=object).get_indexer(column.astype(object))
        if self.kind == "ordered":
            levels: NDArray[np.float64] = np.append(self.levels, np.nan)[codes]
            return levels[:, None]
        shown = np.arange(self.first_shown, len(self.categories))
        indicators: NDArray[np.float64] = (codes[:, None] == shown).astype(np.float64)
        indicators[codes < 0] = np.nan
        return indicators

    def nearest(self, encoded: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the position of the class that is nearest to encoded numbers (m, n_labels)."""
        levels = self.levels if self.kind == "ordered" else (0.0, 1.0)
        near = encoded if self.has_indicators else -np.abs(encoded - levels)
        nearest: NDArray[np.intp] = near.argmax(axis=1)
        return nearest.astype(np.float64)

    def filled(self, column: Any, values: NDArray[np.floating], missing: NDArray[np.bool_]) -> Any:
        """Return a pandas.Series with some of its values replaced."""
        if self.is_class:
            return self._filled_classes(column, missing, values[missing])
        if self.kind == "date":
            return column.where(~missing, dates_of(values, column).set_axis(column.index))
        column = column.copy()
        number = getattr(column.dtype, "numpy_dtype", column.dtype)
        if number.kind in "iu":  # a prediction is no whole number
            values = np.rint(values).clip(np.iinfo(number).min, np.iinfo(number).max)
        column[missing] = values[missing].astype(number)
        return column

    def _filled_classes(
        self, column: Any, missing: NDArray[np.bool_], values: NDArray[np.floating]
    ) -> Any:
        """Return a pandas.Series of classes, some of which are given by their positions."""
        chosen = [self.classes[k] for k in np.rint(values).astype(int)]
        if self.kind == "boolean" and column.dtype not in (object, bool):
            column = column.astype("boolean")
        whole = column.astype(object).to_numpy(copy=True)
        whole[missing] = np.array([*chosen, None], dtype=object)[:-1]
        dtype = column.dtype  # of text, if it has it
        if hasattr(dtype, "categories"):
            dtype = pd.CategoricalDtype(self._with(dtype.categories, set(chosen)), dtype.ordered)
        elif dtype.kind != "O" and self.kind != "boolean":
            dtype = pd.CategoricalDtype(list(self.declared) or self.classes, self.kind == "ordered")
        return pd.Series(whole, column.index, dtype, name=column.name)

    def _with(self, categories: Any, chosen: set[Any]) -> list[Any]:
        """Return categories with further ones, each before the next larger level."""
        found, place = list(categories), {c: k for k, c in enumerate(self.declared or self.classes)}
        for category in sorted(chosen - set(found), key=place.__getitem__):
            larger = (k for k, c in enumerate(found) if place.get(c, -1) > place[category])
            found.insert(next(larger, len(found)), category)
        return found


@dataclass(frozen=True)
class TypedTable:
    """The typed columns of a DataFrame.

    Attributes
    ----------
    columns : tuple of TypedColumn
        All columns, in their order.
    """

    columns: tuple[TypedColumn, ...]

    @property
    def labels(self) -> list[Any]:
        """Labels of the columns of the matrix."""
        return [label for column in self.columns for label in column.labels]

    @property
    def source(self) -> NDArray[np.intp]:
        """Position of the column of the DataFrame of each column of the matrix."""
        counts = [len(column.labels) for column in self.columns]
        return np.repeat(np.arange(len(self.columns)), counts)

    @property
    def of_matrix(self) -> list[TypedColumn]:
        """The typed column of each column of the matrix."""
        return [self.columns[position] for position in self.source]

    @property
    def first_columns(self) -> NDArray[np.intp]:
        """Position of the first column of the matrix of each column of the DataFrame."""
        return np.searchsorted(self.source, np.arange(len(self.columns)))

    def blocks(self) -> Iterator[tuple[TypedColumn, NDArray[np.intp]]]:
        """Return each column of the DataFrame with the positions of its columns of the matrix."""
        positions = np.split(np.arange(self.source.size), self.first_columns[1:])
        return zip(self.columns, positions, strict=True)

    def columns_of(self, frame: Any) -> Any:
        """Return the columns of another DataFrame, those of the same name as they are here."""
        by_name = {column.name: column for column in self.columns if column.kind != "values"}
        return table_of(frame, by_name, numbers_too=True)

    def encode(self, frame: Any) -> Any:
        """Return a DataFrame of numbers with the columns of the matrix; it has these columns."""
        parts = [column.encode(frame.iloc[:, k]) for k, column in enumerate(self.columns)]
        unseen = []
        for column, encoded, (name, x) in zip(self.columns, parts, frame.items(), strict=True):
            classes = x[np.isnan(encoded[:, 0]) & x.notna().to_numpy()].unique().tolist()
            if column.categories and classes:
                unseen.append(f"{classes[:5]} in column {name!r}")
        if unseen:
            text = f"X has {' and '.join(unseen)}, which the fitted table does not show: such a "
            text += "cell says nothing about its row, and stays as it is; fit with all classes."
            warnings.warn(text, NMDWarning, stacklevel=2)
        labels = self.labels
        indicators = [label for c in self.columns if c.kind == "categories" for label in c.labels]
        if twice := [label for label in indicators if labels.count(label) > 1]:
            raise ValueError(
                f"X has {twice[0]!r} twice, once as the indicator of a category: rename a column."
            )
        encoded = type(frame)(np.hstack(parts), index=frame.index, columns=labels)
        return encoded.rename_axis(columns=frame.columns.name)

    @property
    def of_values(self) -> NDArray[np.bool_]:
        """Which columns of the matrix are those of a long table."""
        return np.array([column.kind == "values" for column in self.columns])[self.source]

    @property
    def first_of_unit(self) -> NDArray[np.intp]:
        """Position of the first of the columns of the matrix with one unit, for each column.

        The values of a long table share a unit; each indicator of a category has its own.
        """
        source = self.source
        return np.where(self.of_values, self.first_columns[source], np.arange(source.size))

    @property
    def first_of_cell(self) -> NDArray[np.intp]:
        """Position of the first of the columns of the matrix with one cell, for each column.

        The indicators of a category are one cell of the DataFrame, and are missing together.
        """
        source = self.source
        return np.where(self.of_values, np.arange(source.size), self.first_columns[source])

    def with_holes(self, frame: Any, keep: NDArray[np.bool_]) -> Any:
        """Return a DataFrame without the cells of the matrix at which `keep` is False."""
        result = frame.copy()
        for k, (column, at) in enumerate(self.blocks()):
            series = frame.iloc[:, k]
            series = series.astype("boolean") if column.kind == "boolean" else series
            result.isetitem(k, series.where(keep[:, at[0]]))
        return result

    def describe(self) -> list[list[Any]]:
        """Return the columns as lists, for JSON; categories of other types become text."""
        return [
            [_plain(c.name), c.kind, [*map(_plain, c.categories)], [*map(_plain, c.declared)]]
            for c in self.columns
        ]

    @classmethod
    def read(cls, description: list[list[Any]]) -> TypedTable:
        """Return the table that `describe` described."""
        return cls(tuple(TypedColumn(*each[:2], *map(tuple, each[2:])) for each in description))


def table_of(
    frame: Any,
    typed: Mapping[Any, TypedColumn] = MappingProxyType({}),
    *,
    numbers_too: bool = False,
) -> TypedTable | None:
    """Return the columns of a DataFrame, those of a name that is typed already as they are.

    None if all are numbers, unless these are asked for, too.  Raise TypeError for refused columns,
    with what to do with each of them.
    """
    if refused := refused_columns(frame, typed):
        check_no_long_table(frame)
        remedies = [
            f"{description(frame, {kind: names})}: {KINDS[kind][1].format(names=names)}"
            for kind, names in refused.items()
        ]
        raise TypeError(f"X has {'; '.join(remedies)}.")
    columns = tuple(typed.get(name) or _typed(name, column) for name, column in frame.items())
    if not numbers_too and all(column.kind == "number" for column in columns):
        return None
    if not numbers_too:
        refuse_repeats(frame.columns)
    if frame.columns.nlevels > 1 and any(column.kind == "categories" for column in columns):
        raise TypeError(
            "X has a column of categories, and column labels of several index levels: give "
            "labels of one level."
        )
    return TypedTable(columns)


def refuse_repeats(names: Any) -> None:
    """Raise ValueError if an index of column names has one of them twice."""
    if not names.is_unique:
        twice = plain_label(names[names.duplicated()][0])
        raise ValueError(f"X has the column {twice!r} twice: make its column names unique.")


def _typed(name: Any, column: Any) -> TypedColumn:
    """Return a column that is not refused, with its kind."""
    dtype = column.dtype
    if hasattr(dtype, "categories"):
        declared = tuple(plain_label(category) for category in dtype.categories)
        codes = np.unique(column.array.codes)
        categories = tuple(declared[k] for k in codes[codes >= 0]) or declared
        if len(categories) == 0:
            raise ValueError(f"X has no category in column {name!r}: drop the column.")
        if len(categories) > MAX_CATEGORIES:
            raise ValueError(
                f"X has {len(categories)} categories in column {name!r}, of which each takes a "
                f"column or a cut point: merge rare ones until there are {MAX_CATEGORIES} at "
                "most, or drop it."
            )
        kind: Kind = "ordered" if dtype.ordered and len(categories) > 1 else "categories"
        return TypedColumn(name, kind, categories, () if categories == declared else declared)
    among_objects = kind_of_objects(column)
    if among_objects == "text":
        return TypedColumn(name, "categories", tuple(sorted(map(str, column.dropna().unique()))))
    if among_objects == "dates":
        return TypedColumn(name, "date")
    is_boolean = dtype.kind == "b" or among_objects == "booleans"
    return TypedColumn(name, "boolean" if is_boolean else "number")


def _plain(value: Any) -> Any:
    """Return a label as a value that JSON can hold."""
    value = plain_label(value)
    return value if isinstance(value, str | int | float | bool) else str(value)


def plain_label(label: Any) -> Any:
    """Return a label as a Python object, for a message."""
    if isinstance(label, tuple):
        return tuple(map(plain_label, label))
    return label.item() if isinstance(label, np.generic) else label
