"""What stands between the cells of a table in a text file, and in its decimal numbers."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

WHITE_SPACE = r"\s+"

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": WHITE_SPACE, ".data": WHITE_SPACE}
"""Column separator that a file ending promises, as a regular expression of white space for two."""

NAMES = {";": "semicolons", ",": "commas", "\t": "tabs", "|": "bars", WHITE_SPACE: "white space"}

ENCODINGS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
"""Encoding by the first two bytes of a text; any other text is UTF-8."""

GROUPED = re.compile(
    r"(?P<whole>[-+]?\d{1,3}(?P<group>[.,'’ \u00a0\u202f])\d{3}((?P=group)\d{3})*)"
    r"(?!(?P=group))(?P<decimal>[.,])(?P<fraction>\d+)"
)
"""A number with digits in groups of three and a decimal sign, such as 1.000,5.  Without the latter
it may be anything: 1,000 is a thousand or one."""

FIRST_BYTES = 100_000
"""Length of the beginning of a file, which shows how its cells are written."""


class Notation(NamedTuple):
    """How the cells of a text file are written.

    Attributes
    ----------
    separator : str
        What stands between two cells.
    decimal : str
        What stands between the whole part of a number and its fraction.
    encoding : str
        Encoding of the text.
    """

    separator: str
    decimal: str = "."
    encoding: str = "utf-8"

    def differs_from(self, ending: str) -> str:
        """Return what is not as the file ending promises, "" if all is."""
        found = []
        if self.separator != SEPARATORS[ending]:
            found.append(f"columns separated by {NAMES[self.separator]}")
        if self.decimal == ",":
            found.append("decimal commas")
        return ", ".join(found)


def find_notation(text: bytes, ending: str) -> Notation:
    """Return how the cells of a text file are written.

    The separator is the first that stands equally often in each of the first lines, or else that
    of the file ending. Semicolons come before commas, which may belong to the numbers.
    """
    encoding = ENCODINGS.get(text[:2], "utf-8")
    beginning = text.decode(encoding, errors="replace")
    lines = [line for line in re.sub(r'"[^"]*"', "", beginning).splitlines() if line.strip()][:20]
    separator = next((one for one in _candidates(lines, ending) if _is_regular(lines, one)), None)
    if separator is None:
        numbers = ending == ".csv" and _are_numbers_between_spaces(lines)
        separator = WHITE_SPACE if numbers else SEPARATORS[ending]
    decimal = "," if separator == ";" and _have_decimal_commas(lines) else "."
    return Notation(separator, decimal, encoding)


def _candidates(lines: list[str], ending: str) -> tuple[str, ...]:
    """Return the separators to try, in order; those of .txt and .data stand without spaces."""
    if SEPARATORS[ending] == WHITE_SPACE:
        return () if _have_inner_space(lines) else (";", ",")
    return ("\t", ";", ",", "|") if ending == ".tsv" else (";", ",", "\t", "|")


def _is_regular(lines: list[str], separator: str) -> bool:
    """Return whether a separator stands equally often in each line."""
    counts = {line.count(separator) for line in lines}
    return len(counts) == 1 and counts != {0}


def _have_inner_space(lines: list[str]) -> bool:
    """Return whether white space alone stands between two cells of a line."""
    return any(re.search(r"[^\s,]\s+[^\s,]", line) for line in lines)


def _are_numbers_between_spaces(lines: list[str]) -> bool:
    """Return whether each line has equally many cells between white space, numbers in the last."""
    cells = [line.split() for line in lines]
    return (
        len({len(line) for line in cells}) == 1
        and len(cells[0]) > 1
        and all(re.fullmatch(r"[-+.\deE]+|nan", cell, re.IGNORECASE) for cell in cells[-1][1:])
    )


def _have_decimal_commas(lines: list[str]) -> bool:
    """Return whether some cells between semicolons are numbers with a comma, none with a point."""
    cells = [cell.strip() for line in lines for cell in line.split(";")]
    with_comma = any(re.fullmatch(r"[-+]?\d*,\d+([eE][-+]?\d+)?", cell) for cell in cells)
    return with_comma and not any(re.fullmatch(r"[-+]?\d*\.\d+([eE][-+]?\d+)?", c) for c in cells)


def ungrouped(cell: Any, separator: str) -> str | None:
    """Return how to write a number with a thousands separator, or None if a cell holds none."""
    found = GROUPED.fullmatch(cell.strip()) if isinstance(cell, str) else None
    if found is None:
        return None
    decimal = found["decimal"] if separator == ";" else "."
    return found["whole"].replace(found["group"], "") + decimal + found["fraction"]
