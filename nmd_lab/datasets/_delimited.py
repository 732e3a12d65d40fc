"""Read text files with one rating (user, item, rating, ...) in each line."""

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
class RatingsFormat:
    """Format of the files of a data set of ratings.

    Parameters
    ----------
    ratings, titles : tuple of str
        Possible names of the file of ratings, and of the file of titles.
    separator, titles_separator : str
        Separators of the fields in the two files.
    encoding : str, default "utf-8"
        Encoding of the file of titles.
    fields : int, default 4
        Number of fields in a line of ratings.
    header : bool, default False
        Whether the first line of each file is a header.
    scale : (float, float), default (0.5, 5.0)
        Lowest and highest rating.
    """

    ratings: tuple[str, ...]
    titles: tuple[str, ...]
    separator: str
    titles_separator: str
    encoding: str = "utf-8"
    fields: int = 4
    header: bool = False
    scale: tuple[float, float] = (0.5, 5.0)


def read_ratings(file: Traversable, file_format: RatingsFormat) -> pd.DataFrame:
    """Return a table with the columns user, item and rating.

    Parameters
    ----------
    file : Traversable
        File of ratings, gzipped if its name ends in .gz.
    file_format : RatingsFormat
        Format of the file.

    Raises
    ------
    ValueError
        If a line does not have this format. The message holds the number of the first one.
    """
    import pandas as pd

    low, high = file_format.scale
    table: pd.DataFrame | None = None
    cause: Exception | None = None
    try:
        table = _parse(file, file_format)
    except (ValueError, OSError, EOFError, pd.errors.ParserWarning) as error:
        cause = error
    if table is not None:
        nonnegative = (table["user"] >= 0) & (table["item"] >= 0)
        if (nonnegative & table["rating"].between(low, high)).all() and table.notna().all(
            axis=None
        ):
            return table[["user", "item", "rating"]]

    def is_valid(fields: list[str]) -> bool:
        user, item, rating, *rest = (float(field) for field in fields)
        ids_are_valid = user.is_integer() and item.is_integer() and min(user, item) >= 0
        return ids_are_valid and low <= rating <= high and len(rest) == file_format.fields - 3

    expected = (
        f"{file_format.fields} numbers: a user, an item, a rating from {low:g} to {high:g}, ..."
    )
    refuse_first_damaged_line(
        file, file_format.separator, int(file_format.header), is_valid, expected, cause
    )
    raise ValueError(f"{str(file)!r} cannot be read: get the original again.") from cause


def _parse(file: Traversable, file_format: RatingsFormat) -> pd.DataFrame:
    """Parse a file of ratings with the fast parser of pandas.

    The parser takes separators of one character only. A separator of two characters is read as two,
    with an empty column between them.
    """
    import pandas as pd

    names = ["user", "item", "rating", "rest"][: file_format.fields]
    columns = list(names)
    if len(file_format.separator) == 2:
        columns = [column for name in names for column in (name, f"after {name}")][:-1]
    types: Any = {"user": np.int32, "item": np.int32, "rating": float, "rest": float}
    with open_binary(file) as stream, warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # a warning means too many fields
        table = pd.read_csv(
            stream,
            sep=file_format.separator[0],
            header=None,
            names=columns,
            index_col=False,
            skiprows=int(file_format.header),
            dtype={name: types[name] for name in names},
        )
    return table[names]


def read_titles(file: Traversable, file_format: RatingsFormat) -> dict[int, str]:
    """Return the titles by item.

    Parameters
    ----------
    file : Traversable
        File whose lines begin with an item and its title.
    file_format : RatingsFormat
        Format of the file.

    Raises
    ------
    ValueError
        If a line does not have this format. The message holds the number of the first one.
    """
    titles: dict[int, str] = {}
    with open_binary(file) as stream:
        lines = io.TextIOWrapper(stream, file_format.encoding, newline="")
        rows = (
            csv.reader(lines)
            if file_format.titles_separator == ","
            else (line.rstrip("\r\n").split(file_format.titles_separator) for line in lines)
        )
        for number, row in enumerate(rows, start=1):
            if number <= file_format.header or row in ([], [""]):
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
    """Open a file for reading bytes, and decompress it if its name ends in .gz."""
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
    is_valid: Callable[[list[str]], bool],
    expected: str,
    cause: Exception | None,
) -> None:
    """Raise a ValueError with the number of the first damaged line, if there is one.

    Parameters
    ----------
    file : Traversable
        File to check.
    separator : str
        Separator of the fields.
    skip : int
        Number of header lines.
    is_valid : callable
        Function of the fields of a line, which returns whether they are valid or raises
        ValueError.
    expected : str
        Description of a valid line, for the message.
    cause : Exception or None
        Error of the first attempt to read the file.
    """
    number = 0
    for number, line in enumerate(_lines(file), start=1):
        if number <= skip or not line.strip():
            continue
        try:
            valid = is_valid(line.rstrip("\r\n").split(separator))
        except ValueError:
            valid = False
        if not valid:
            raise ValueError(_damage(file, number, line, expected)) from cause
    if isinstance(cause, EOFError | OSError):  # the compressed file is truncated
        raise ValueError(_damage(file, number + 1, "", expected)) from cause


def _lines(file: Traversable) -> Iterator[str]:
    """Yield the lines of a file, up to the first that cannot be read."""
    with open_binary(file) as stream:
        try:
            for line in stream:
                yield line.decode("latin-1")
        except (EOFError, OSError):
            return


def _damage(file: Traversable, number: int, line: Sequence[str], expected: str) -> str:
    """Return the message about a damaged line."""
    return (
        f"{str(file)!r}, line {number} is {str(line).strip()[:60]!r}, not {expected}: the file is "
        "damaged, get the original again."
    )
