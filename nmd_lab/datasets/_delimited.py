"""Read files of one rating a line: a user, an item, a rating, and what else there may be."""

from __future__ import annotations

import csv
import gzip
import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Layout:
    """How a set of ratings is written down.

    Parameters
    ----------
    ratings, titles : tuple of str
        The names that the file of ratings, and that of titles, may have.
    separator, titles_separator : str
        What separates the fields of a line.
    encoding : str
        That of the titles.
    fields : int
        How many fields a line of ratings has.
    header : bool
        Whether the first line of each file names the fields.
    scale : (float, float)
        The lowest and the highest rating.
    """

    ratings: tuple[str, ...]
    titles: tuple[str, ...]
    separator: str
    titles_separator: str
    encoding: str = "utf-8"
    fields: int = 4
    header: bool = False
    scale: tuple[float, float] = (0.5, 5.0)


def read_ratings(file: Traversable, layout: Layout) -> pd.DataFrame:
    """Return the columns user, item and rating.

    Parameters
    ----------
    file : Traversable
        The file, gzipped if its name says so.
    layout : Layout
        How it is written.

    Raises
    ------
    ValueError
        With the number of the first line that is not what the layout says.
    """
    import pandas as pd

    low, high = layout.scale
    table: pd.DataFrame | None = None
    reason: Exception | None = None
    try:
        table = _parse(file, layout)
    except (ValueError, OSError, EOFError, pd.errors.ParserWarning) as error:
        reason = error
    if table is not None:
        positive = (table["user"] >= 0) & (table["item"] >= 0)
        if (positive & table["rating"].between(low, high)).all() and table.notna().all(axis=None):
            return table[["user", "item", "rating"]]

    def is_whole(parts: list[str]) -> bool:
        user, item, rating, *rest = (float(part) for part in parts)
        names = user.is_integer() and item.is_integer() and min(user, item) >= 0
        return names and low <= rating <= high and len(rest) == layout.fields - 3

    what = f"{layout.fields} numbers: a user, an item, a rating from {low:g} to {high:g}, ..."
    refuse_first_damaged_line(file, layout.separator, int(layout.header), is_whole, what, reason)
    raise ValueError(f"{str(file)!r} cannot be read: get the original again.") from reason


def _parse(file: Traversable, layout: Layout) -> pd.DataFrame:
    """Parse a file by pandas's fast parser.

    It knows separators of one character only; a second one makes empty columns.
    """
    import pandas as pd

    names = ["user", "item", "rating", "rest"][: layout.fields]
    columns = list(names)
    if len(layout.separator) == 2:
        columns = [part for name in names for part in (name, f"after {name}")][:-1]
    types: Any = {"user": np.int32, "item": np.int32, "rating": float, "rest": float}
    with open_binary(file) as stream, warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # it warns of too many fields
        table = pd.read_csv(
            stream,
            sep=layout.separator[0],
            header=None,
            names=columns,
            index_col=False,
            skiprows=int(layout.header),
            dtype={name: types[name] for name in names},
        )
    return table[names]


def read_titles(file: Traversable, layout: Layout) -> dict[int, str]:
    """Return the titles of the items.

    Parameters
    ----------
    file : Traversable
        Lines that begin with an item and its title.
    layout : Layout
        How it is written.

    Raises
    ------
    ValueError
        With the number of the first line that is not like this.
    """
    titles: dict[int, str] = {}
    with open_binary(file) as stream:
        lines = io.TextIOWrapper(stream, layout.encoding, newline="")
        rows = (
            csv.reader(lines)
            if layout.titles_separator == ","
            else (line.rstrip("\r\n").split(layout.titles_separator) for line in lines)
        )
        for number, row in enumerate(rows, start=1):
            if number <= layout.header or row in ([], [""]):
                continue
            try:
                titles[int(row[0])] = row[1]
            except (ValueError, IndexError) as error:
                raise ValueError(
                    _damage(file, number, str(row), "an item and its title")
                ) from error
    return titles


@contextmanager
def open_binary(file: Traversable) -> Iterator[Any]:
    """Open a file, unpacking it if its name ends in .gz."""
    with file.open("rb") as stream:
        if file.name.endswith(".gz"):
            with gzip.open(stream) as unpacked:
                yield unpacked
        else:
            yield stream


def refuse_first_damaged_line(
    file: Traversable,
    separator: str,
    skip: int,
    is_whole: Callable[[list[str]], bool],
    what: str,
    reason: Exception | None,
) -> None:
    """Raise a ValueError that names the first line which is not whole, if there is one.

    Parameters
    ----------
    file : Traversable
        The file.
    separator : str
        What separates the fields.
    skip : int
        Lines at the top that are none of the data.
    is_whole : callable
        Judges the fields of a line; may raise ValueError, too.
    what : str
        What a whole line holds, in words.
    reason : Exception or None
        What was noticed first.
    """
    number = 0
    for number, line in enumerate(_lines(file), start=1):
        if number <= skip or not line.strip():
            continue
        try:
            whole = is_whole(line.rstrip("\r\n").split(separator))
        except ValueError:
            whole = False
        if not whole:
            raise ValueError(_damage(file, number, line, what)) from reason
    if isinstance(reason, EOFError | OSError):  # the archive itself breaks off
        raise ValueError(_damage(file, number + 1, "", what)) from reason


def _lines(file: Traversable) -> Iterator[str]:
    """Yield lines as long as the file can be read."""
    with open_binary(file) as stream:
        try:
            for line in stream:
                yield line.decode("latin-1")
        except (EOFError, OSError):
            return


def _damage(file: Traversable, number: int, line: Sequence[str], what: str) -> str:
    return (
        f"{str(file)!r}, line {number} is {str(line).strip()[:60]!r}, not {what}: the file is "
        "damaged, get the original again."
    )
