"""Tables in text files: what is header, what is data, and long tables."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from nmd_lab.data.frames import errors_of

from ._separators import FIRST_BYTES, Notation, find_notation, ungrouped
from .frames import has_repeats, long_table_columns
from .long_table import observations_from_table

INDEX_NAMES = ("index", "id", "row")
"""Names of a first column of whole numbers that holds row labels."""

TIMES = (5e8, 5e9)
"""Range of times in seconds since 1970, in the last column of a long table without names."""


@dataclass(frozen=True)
class Layout:
    """Which cells of a table are data.

    Attributes
    ----------
    header : bool
        Whether the first line holds the column labels.
    index : bool
        Whether the first column holds the row labels.
    """

    header: bool
    index: bool


def read_table(
    path: Path, columns: dict[str, str | None], header: bool | str, index: bool | str
) -> tuple[Any, str]:
    """Return a table as a matrix or observations, and a line that says what was read."""
    ending = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    notation = find_notation(_beginning(path), ending)
    named = columns if set(columns.values()) != {None} else None
    head = _parse(path, notation, header=None, nrows=20, dtype=object)
    _refuse_grouped(path, head.iloc[int(header is True) :, int(index is True) :], notation)
    layout = find_layout(head, True if named and header == "auto" else header, index)
    if layout.index and head.shape[1] > 2 and head.iloc[0, :2].isna().all():
        raise ValueError(
            f"file={str(path)!r} has two columns without a name, as row labels of several levels "
            "are written: join these into one, or use index=False."
        )
    names = named or _long_columns(head, layout, header, index)
    if names is not None:
        lines = _parse(path, notation, header=0 if layout.header else None)
        if named or not layout.header or has_repeats(lines[names["row"]]):
            return _long_table(path, lines, names, layout.header)
    frame = _matrix(path, notation, layout)
    used = ["first column taken as row labels"] * layout.index
    used += ["first line taken as column labels"] * layout.header
    used += filter(None, [notation.differs_from(ending)])
    m, n = frame.shape
    labels = "" if layout.index or layout.header else ", no labels"
    return frame, ", ".join([f"{m} rows x {n} columns from {path.name}{labels}", *used])


def _beginning(path: Path) -> bytes:
    """Return the first bytes of a text file, maybe compressed."""
    with errors_of(path), gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
        return stream.read(FIRST_BYTES)


def _matrix(path: Path, notation: Notation, layout: Layout) -> Any:
    """Return a table with its labels as a DataFrame."""
    places = {
        "header": 0 if layout.header else None,
        "index_col": 0 if layout.index else None,
    }
    frame = _parse(path, notation, **places)
    _refuse_grouped(path, frame, notation)
    if layout.header:
        frame.columns = _whole_numbers(frame.columns)
    elif layout.index:
        frame.columns = range(frame.shape[1])
    return frame


def _refuse_grouped(path: Path, cells: Any, notation: Notation) -> None:
    """Raise ValueError if text among some cells is a number with a thousands separator."""
    for position in range(cells.shape[1]):
        column = cells.iloc[:, position]
        for cell in () if column.dtype.kind in "biufc" else column:
            plain = ungrouped(cell, notation.separator)
            if plain is not None:
                raise ValueError(
                    f"file={str(path)!r} has the cell {cell!r}, whose thousands separator is not "
                    f"understood: write it as {plain!r}."
                )


def find_layout(head: Any, header: bool | str = "auto", index: bool | str = "auto") -> Layout:
    """Return which of the first line and the first column of a table hold labels.

    Text that is no number is a label.  Numbers are labels where a table with an unnamed index was
    written (its first cell is empty, and whole numbers follow along the first line), where a name
    of the index stands before them, or where whole numbers stand above a table of fractions.
    """
    has_header = _has_header(head) if header == "auto" else bool(header)
    return Layout(has_header, _has_index(head, has_header) if index == "auto" else bool(index))


def _has_header(head: Any) -> bool:
    """Return whether the first line of a table holds labels."""
    if head.shape[1] == 1:
        return _has_text(head.iloc[0])
    corner, names = head.iloc[0, :1], head.iloc[0, 1:]
    labels, values = head.iloc[1:, 0], head.iloc[1:, 1:]
    if _has_text(names):
        return True
    if corner.isna().all():
        return _are_labels(names) and (_has_text(labels) or _number_a_table(names, labels))
    if _has_text(corner):
        if labels.empty:
            return False  # one line holds data
        return not _has_text(labels) or (_count_up(names) and _are_fractions(values))
    return head.shape[0] > 1 and _count_up(head.iloc[0]) and _are_fractions(head.iloc[1:])


def _number_a_table(names: Any, labels: Any) -> bool:
    """Return whether whole numbers along both sides of a table are labels rather than data."""
    if not _are_labels(labels):
        return False
    if min(len(names), len(labels)) < 3:
        return _count_up(names) and _count_up(labels)
    return _count_up(names) or _count_up(labels)


def _has_index(head: Any, header: bool) -> bool:
    """Return whether the first column of a table holds labels."""
    if head.shape[1] == 1:
        return False
    labels = head.iloc[int(header) :, 0]
    if _has_text(labels.astype(str).str.lstrip("<>≤≥= ")):  # a limit such as <0.5 is no label
        return True
    if not header or labels.isna().any() or labels.duplicated().any():
        return False
    corner, names = head.iloc[0, 0], head.iloc[0, 1:]
    named = str(corner).strip().lower() in INDEX_NAMES and _are_whole(labels)
    return bool(corner != corner or named or (_is_text(corner) and not _has_text(names)))


def _has_text(cells: Any) -> bool:
    """Return whether some of the cells are not numbers."""
    return any(_is_text(cell) for cell in cells.dropna())


def _is_text(cell: Any) -> bool:
    """Return whether a cell holds text that is neither a number nor true or false."""
    try:
        float(str(cell).replace(",", "."))
    except ValueError:
        return str(cell).strip().lower() not in ("true", "false")
    return False


def _are_whole(cells: Any) -> bool:
    """Return whether all cells hold whole numbers, written without a point."""
    return all(str(cell).strip().lstrip("-").isdecimal() for cell in cells)


def _are_labels(cells: Any) -> bool:
    """Return whether cells hold increasing whole numbers."""
    if not _are_whole(cells):
        return False
    numbers = [int(cell) for cell in cells]
    return all(after > before for before, after in pairwise(numbers))


def _count_up(cells: Any) -> bool:
    """Return whether cells hold 0, 1, 2, ... or 1, 2, 3, ..."""
    if not len(cells) or not _are_whole(cells):
        return False
    numbers = [int(cell) for cell in cells]
    return numbers[0] in (0, 1) and numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _are_fractions(cells: Any) -> bool:
    """Return whether all filled cells are written with a point or an exponent."""
    filled = [str(cell).lower() for cell in cells.to_numpy().ravel() if cell == cell]
    return bool(filled) and all(any(c in cell for c in ".,e") for cell in filled)


def _long_columns(head: Any, layout: Layout, header: Any, index: Any) -> dict[str, Any] | None:
    """Return the columns of a long table of ratings, None if the table is none."""
    if index != "auto" and index:
        return None
    if layout.header:
        return long_table_columns(head.iloc[0].dropna())  # an index has no name
    whole = header == "auto" and head.shape[1] == 4 and _are_whole(head.to_numpy().ravel())
    if whole and head.iloc[:, 3].astype(float).between(*TIMES).all():
        return {"row": 0, "column": 1, "value": 2}
    return None


def _long_table(path: Path, frame: Any, columns: dict[str, Any], header: bool) -> tuple[Any, str]:
    """Return the observations of a table with one in each line, and what was read."""
    for argument, name in columns.items():
        if name is None:
            raise ValueError(f"{argument} is not given: a long table needs row, column and value.")
    if not header:
        frame = frame.rename(columns=dict(enumerate(("user", "item", "rating"))))
        columns = {
            role: ("user", "item", "rating")[int(name)] if str(name) in ("0", "1", "2") else name
            for role, name in columns.items()
        }
    try:
        X = observations_from_table(frame, **columns)
    except TypeError as error:
        name = columns["value"]
        raise ValueError(
            f"file={str(path)!r} holds text in the column {name!r}: give one of numbers."
        ) from error
    m, n = X.shape
    return X, (
        f"{m} rows ({columns['row']}) x {n} columns ({columns['column']}), {X.values.size} values "
        f"({columns['value']}) from {path.name}, a long table with one value in each line"
    )


def _whole_numbers(names: Any) -> Any:
    """Return column labels as numbers if all of them are whole, as `DataFrame.to_csv` wrote."""
    if names.nlevels == 1 and len(names) and _are_whole(names):
        numbers = [int(name) for name in names]
        if max(map(abs, numbers)) < 2**63:
            import pandas as pd

            return pd.Index(numbers, name=names.name)
    return names


def _parse(path: Path, notation: Notation, **options: Any) -> Any:
    """Return a table as a DataFrame."""
    import pandas as pd

    with errors_of(path):
        return pd.read_csv(
            path,
            sep=notation.separator,
            decimal=notation.decimal,
            encoding=notation.encoding,
            low_memory=False,
            **options,
        )
