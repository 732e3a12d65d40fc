"""Tables whose columns have types of their own: numbers, booleans, levels and categories.

Inside the library X is a matrix of numbers.  A `TypedTable` turns the columns of a DataFrame into
those of the matrix:

- a number stays as it is, and a boolean becomes 0 or 1;
- text with few values is a category, and booleans among objects are booleans;
- a class that no cell shows is impossible, unless the column shows none at all;
- an ordered level becomes its category if all are ascending numbers, and otherwise its position;
- a category becomes a block of indicators, one for each category, with labels such as
  "species=setosa".  Two categories need one indicator, that of the second.

In addition to the columns of a DataFrame a matrix may have the values of a long table, such as
ratings: a block of columns, one for each item, which share one unit.

>>> import pandas as pd
>>> frame = pd.DataFrame({"age": [3.0, 5.0, 1.0], "pet": ["cat", None, "dog"]})
>>> frame = frame.astype({"pet": "category"})
>>> table_of(frame).encode(frame)
   age  pet=dog
0  3.0      0.0
1  5.0      NaN
2  1.0      1.0
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .frames import class_kind, refuse_columns, warn_of_classes

Kind = Literal["number", "boolean", "ordered", "categories", "values"]

MOST_CATEGORIES = 1000  # of a column, since each of them takes a column or a cut point


@dataclass(frozen=True)
class TypedColumn:
    """A column of a DataFrame, or the values of a long table.

    Attributes
    ----------
    name : object
        Label.
    kind : {"number", "boolean", "ordered", "categories", "values"}
        Kind of the values.
    categories : tuple
        Categories that the table shows, in their order; the labels of the columns for "values";
        empty for numbers and booleans.
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
        return self.kind not in ("number", "values")

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
        missing = column.isna().to_numpy()
        if not self.categories:
            if not missing.all() and getattr(column.dtype, "kind", "O") not in "buifO":
                raise TypeError(
                    f"X has values of type {column.dtype} in column {self.name!r}, which are no "
                    "numbers: convert them as those of the fit were."
                )
            numbers = np.full(len(column), np.nan)
            numbers[~missing] = column[~missing].to_numpy(dtype=np.float64)
            return numbers[:, None]
        position = {category: k for k, category in enumerate(self.categories)}
        codes = np.array([position.get(value, -1) for value in column])
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
        if self.kind == "boolean" and column.dtype != object:
            column = column.astype("boolean") if column.dtype != bool else column.copy()
            column[missing] = np.array(chosen, dtype=bool)
            return column
        whole = column.astype(object).to_numpy(copy=True)
        whole[missing] = np.array([*chosen, None], dtype=object)[:-1]
        dtype = column.dtype  # of text, if it has it
        if hasattr(dtype, "categories"):
            dtype = pd.CategoricalDtype(self._with(dtype.categories, set(chosen)), dtype.ordered)
        elif dtype.kind != "O":
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
        """Yield each column of the DataFrame with the positions of its columns of the matrix."""
        source = self.source
        for position, column in enumerate(self.columns):
            yield column, np.flatnonzero(source == position)

    def columns_of(self, frame: Any) -> TypedTable:
        """Return the columns of another DataFrame, those of the same name as they are here."""
        by_name = {column.name: column for column in self.columns if column.kind != "values"}
        refuse_columns(frame, by_name)
        return TypedTable(tuple(by_name.get(name) or _typed(name, x) for name, x in frame.items()))

    def encode(self, frame: Any) -> Any:
        """Return a DataFrame of numbers with the columns of the matrix; it has these columns."""
        parts = [column.encode(frame.iloc[:, k]) for k, column in enumerate(self.columns)]
        unseen = {}
        for column, encoded, (name, x) in zip(self.columns, parts, frame.items(), strict=True):
            if column.categories:
                unseen[name] = x[np.isnan(encoded[:, 0]) & x.notna().to_numpy()].unique().tolist()
        warn_of_classes(unseen)
        labels = self.labels
        indicators = {label for c in self.columns if c.kind == "categories" for label in c.labels}
        for label in indicators:
            if labels.count(label) > 1:
                raise ValueError(
                    f"X has {label!r} twice, once as the indicator of a category: rename a column."
                )
        types = {str(dtype).lower() for dtype in frame.dtypes}
        number = np.float32 if types == {"float32"} else np.float64
        encoded = type(frame)(np.hstack(parts).astype(number), index=frame.index, columns=labels)
        return encoded.rename_axis(columns=frame.columns.name)

    @property
    def of_values(self) -> NDArray[np.bool_]:
        """Which columns of the matrix are those of a long table."""
        return np.array([column.kind == "values" for column in self.columns])[self.source]

    @property
    def of_classes(self) -> NDArray[np.bool_]:
        """Which columns of the matrix hold booleans, levels or indicators."""
        return np.array([column.is_class for column in self.of_matrix])

    @property
    def first_of_unit(self) -> NDArray[np.intp]:
        """Position of the first of the columns of the matrix with one unit, for each column.

        The values of a long table share a unit; each indicator of a category has its own.
        """
        return np.where(self.of_values, self._first_of_source, np.arange(self.source.size))

    @property
    def first_of_cell(self) -> NDArray[np.intp]:
        """Position of the first of the columns of the matrix with one cell, for each column.

        The indicators of a category are one cell of the DataFrame, and are missing together.
        """
        return np.where(self.of_values, np.arange(self.source.size), self._first_of_source)

    @property
    def _first_of_source(self) -> NDArray[np.intp]:
        """Position of the first column of the matrix with the same source, for each column."""
        source = self.source
        return np.searchsorted(source, source)

    def with_holes(self, frame: Any, keep: NDArray[np.bool_]) -> Any:
        """Return a DataFrame without the cells of the matrix at which `keep` is False."""
        result = frame.copy()
        for k, (column, at) in enumerate(self.blocks()):
            series = frame.iloc[:, k]
            series = series.astype("boolean") if column.kind == "boolean" else series
            result.isetitem(k, series.where(keep[:, at[0]]))
        return result

    def cells(self, of_frame: NDArray[Any]) -> NDArray[Any]:
        """Return numbers or booleans in the shape of the DataFrame in that of the matrix."""
        return of_frame[:, self.source]

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


def table_of(frame: Any, *, numbers_too: bool = False) -> TypedTable | None:
    """Return the typed columns of a DataFrame, None if all are numbers."""
    refuse_columns(frame)
    columns = tuple(_typed(name, column) for name, column in frame.items())
    if not numbers_too and all(column.kind == "number" for column in columns):
        return None
    if not numbers_too:
        refuse_repeats(frame.columns)
    if frame.columns.nlevels > 1 and any(column.kind == "categories" for column in columns):
        raise TypeError(
            "X has a column of categories, and column labels of several levels: give labels of one "
            "level."
        )
    return TypedTable(columns)


def refuse_repeats(names: Any) -> None:
    """Raise ValueError if an index of column names has one of them twice."""
    if not names.is_unique:
        twice = _python(names[names.duplicated()][0])
        raise ValueError(f"X has the column {twice!r} twice: make its column names unique.")


def _typed(name: Any, column: Any) -> TypedColumn:
    """Return a column that is not refused, with its kind."""
    dtype = column.dtype
    if hasattr(dtype, "categories"):
        declared = tuple(_python(category) for category in dtype.categories)
        codes = np.unique(column.array.codes)
        categories = tuple(declared[k] for k in codes[codes >= 0]) or declared
        if len(categories) == 0:
            raise ValueError(f"X has no category in column {name!r}: drop the column.")
        if len(categories) > MOST_CATEGORIES:
            raise ValueError(
                f"X has {len(categories)} categories in column {name!r}, of which each takes a "
                f"column or a cut point: merge rare ones until there are {MOST_CATEGORIES} at "
                "most, or drop it."
            )
        kind: Kind = "ordered" if dtype.ordered and len(categories) > 1 else "categories"
        return TypedColumn(name, kind, categories, () if categories == declared else declared)
    among_objects = class_kind(column)
    if among_objects == "text":
        return TypedColumn(name, "categories", tuple(sorted(map(str, column.dropna().unique()))))
    is_boolean = dtype.kind == "b" or among_objects == "booleans"
    return TypedColumn(name, "boolean" if is_boolean else "number")


def _plain(value: Any) -> Any:
    """Return a label as a value that JSON can hold."""
    value = _python(value)
    return value if isinstance(value, str | int | float | bool) else str(value)


def _python(value: Any) -> Any:
    """Return a NumPy scalar as a Python object."""
    return value.item() if isinstance(value, np.generic) else value
