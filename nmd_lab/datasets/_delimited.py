"""Read text files with one rating (user, item, rating, ...) in each line."""

from __future__ import annotations

import csv
import gzip
import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

import numpy as np

from nmd_lab.data.frames import errors_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class RatingsFormat:
    """Format of the files of a data set of ratings."""

    ratings: tuple[str, ...]
    titles: tuple[str, ...]
    separator: str
    titles_separator: str
    encoding: str = "utf-8"
    fields: int = 4
    header: bool = False
    scale: tuple[float, float] = (0.5, 5.0)


def read_ratings(file: Traversable, file_format: RatingsFormat) -> pd.DataFrame:
    """Return a table with the columns user, item and rating."""
    with errors_of(file):
        table = _parse(file, file_format)
        low, high = file_format.scale
        ids = table["user"].ge(0) & table["item"].ge(0)
        valid = ids & table["rating"].between(low, high) & table.notna().all(axis=1)
        if not valid.all():
            line = int(valid.argmin()) + int(file_format.header) + 1
            raise ValueError(
                f"line {line} is no user, item and rating from {low:g} to {high:g} of "
                f"{file_format.fields} numbers"
            )
    return table[["user", "item", "rating"]]


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
    """Return the titles by item."""
    separator = file_format.titles_separator
    with errors_of(file), open_binary(file) as stream:
        lines = io.TextIOWrapper(stream, file_format.encoding, newline="")
        split = (line.rstrip("\r\n").split(separator) for line in lines)
        rows = csv.reader(lines) if separator == "," else split
        body = list(rows)[int(file_format.header) :]
        return {int(row[0]): row[1] for row in body if row not in ([], [""])}


@contextmanager
def open_binary(file: Traversable) -> Iterator[Any]:
    """Open a file for reading bytes, and decompress it if its name ends in .gz."""
    with file.open("rb") as stream:
        if file.name.endswith(".gz"):
            with gzip.open(stream) as unpacked:
                yield unpacked
        else:
            yield stream
