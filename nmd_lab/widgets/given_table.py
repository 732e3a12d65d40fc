"""A table as people bring it: the columns that are left out, and what the others become.

Each change of a column is a line of code, which runs here and stands in the copied code.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pandas as pd

from nmd_lab.data.labels import is_frame, pandas_of
from nmd_lab.data.typed_table import MAX_CATEGORIES, kind_of_objects, plain_label

from .printer import expression, given_code
from .subset import Subset, some_rows

FEWEST_IDS = 10  # rows from which whole numbers 0, 1, 2, … or 1, 2, 3, … are those of the rows
ID = re.compile(r"(?i:(^|[_ -])id$)|[a-z]I[dD]$")  # end of the name of such a column
MOST_NAMED = 4  # columns that the line about those that are left out names for each reason

CLASSES = 'X[{}].map(str, na_action="ignore").astype("category")'
KINDS = {  # why a column is left out, and what makes numbers or classes of it, by what it holds
    "numbers": ("", "pd.to_numeric(X[{}])"),
    "date texts": ("", 'pd.to_datetime(X[{}], format="ISO8601")'),
    "durations": ("", "X[{}] / pd.Timedelta(seconds=1)"),
    "empty": ("no value", None),
    "words": ("numbers with words", 'pd.to_numeric(X[{}], errors="coerce")'),
    "identifiers": ("free text", CLASSES),
    "mixed": ("several types", CLASSES),
    "others": ("several types", CLASSES),
}
DIFFERENT = "all different"
TAKE = "take them in", "Fit these columns too: texts as classes, and numbers as they are"
LEAVE = "leave them out", "Fit without these columns"


class GivenTable(NamedTuple):
    """A table of pandas as a fit takes it."""

    frame: Any
    subset: Subset  # all rows, or some of them
    first: str  # code behind the name of the data, such as ".to_pandas()"
    lines: str  # lines that change X after it
    left_out: dict[Any, str]  # why, by the name of the column
    taken: list[Any]  # columns that could be left out, too
    can_take: bool  # whether one of them could be taken in

    def loading(self, source: str | None) -> str:
        """Return the lines that make X of the data with a name; none if these are X already."""
        first = self.first or ".copy()" * bool(self.lines)  # the data of the user stay as they are
        source = source or "X" * bool(first) or None
        if source == "X" and ".drop(" in first:  # so that it runs twice
            first = f'{first[:-1]}, errors="ignore")'
        return given_code("X", source, first) + self.lines

    @property
    def words(self) -> str:
        """What is left out, and why; or what was taken in."""
        by_reason: dict[str, list[str]] = {}
        for name, why in self.left_out.items():
            by_reason.setdefault(why, []).append(str(name))
        said = ", ".join(f"{_named(names)} ({why})" for why, names in by_reason.items())
        words = {"left out: ": said, "taken in: ": _named(self.taken)}
        return "; ".join(word + names for word, names in words.items() if names)


def _named(names: list[Any]) -> str:
    """Return the first of some names."""
    return ", ".join(map(str, names[:MOST_NAMED])) + " …" * (len(names) > MOST_NAMED)


def as_table(X: Any, *, take: bool = False) -> GivenTable | None:
    """Return a table of any library as a fit takes it, None for other data.

    Its columns of names, numbers of rows and free text are left out, unless they are to be taken.
    """
    frame = pandas_of(X)
    if not is_frame(frame):
        return None
    first = "" if frame is X or isinstance(X, pd.DataFrame) else ".to_pandas()"
    whole, subset = frame, some_rows(frame)
    frame, first = subset.data, first + subset.code
    as_it_is = GivenTable(frame, subset, first, "", {}, [], can_take=False)
    if not frame.columns.is_unique or frame.columns.nlevels > 1:
        return as_it_is
    mostly_known = 2 * frame.count().sum() >= frame.size
    left_out, could, lines = dict[Any, str](), list[Any](), list[str]()
    for name, column in frame.items():
        why, change = _reason(column, whole[name], mostly_known=mostly_known)
        could += [plain_label(name)] * bool(why and change is not None)
        if why and (change is None or not take):
            left_out[plain_label(name)] = why
        elif change:
            here = expression(plain_label(name))
            lines.append(f"X[{here}] = {change.format(here)}\n")
    if len(left_out) == frame.shape[1]:
        return as_it_is
    first += f".drop(columns={expression(list(left_out))})" * bool(left_out)
    table = frame.drop(columns=list(left_out)) if left_out or lines else frame
    exec("".join(lines), {"X": table, "pd": pd})  # which quotes all names
    taken = could if take else []
    return GivenTable(table, subset, first, "".join(lines), left_out, taken, can_take=bool(could))


def with_filled(rows: Any, filled: Any) -> Any:
    """Return rows of a table that the user gave with some columns filled."""
    rows = rows.copy()
    rows[filled.columns] = filled
    return rows


def _reason(column: Any, whole: Any, *, mostly_known: bool) -> tuple[str, str | None]:
    """Return why a column is left out, if it is, and the code that takes it; None without any.

    `column` has those rows of the `whole` that are fitted.
    """
    kind = kind_of_objects(column) or ""
    if mostly_known and column.isna().all():
        kind = "empty"
    elif kind == "dates" and column.dtype == object:
        kind = "date texts"
    why, change = KINDS.get(kind, ("", ""))
    if change == CLASSES and column.map(str).nunique() > MAX_CATEGORIES:
        change = None
    numbers = pd.to_numeric(column) if kind == "numbers" else whole
    differs = kind == "identifiers" and column.dropna().is_unique
    return DIFFERENT if differs or _are_ids(whole.name, numbers) else why, change


def _are_ids(name: Any, column: Any) -> bool:
    """Return whether whole numbers are those of the rows, by their values or their name."""
    if getattr(column.dtype, "kind", "O") not in "iu" or not column.is_unique:
        return False
    n, low = len(column), column.min()
    counted = n >= FEWEST_IDS and low in (0, 1) and column.max() - low == n - 1
    return bool(counted or ID.search(str(name)))
