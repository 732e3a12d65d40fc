"""A table as people bring it: the columns that are left out, and what the others become.

Each change of a column is a line of code, which runs here and stands in the copied code.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pandas as pd

from nmd_lab.data.labels import is_frame, pandas_of
from nmd_lab.data.typed_table import MOST_CATEGORIES, kind_of_objects, plain_label

from .printer import expression

FEWEST_IDS = 10  # rows from which whole numbers 0, 1, 2, … or 1, 2, 3, … are those of the rows
ID = re.compile(r"(^|[_ -])id$|[a-z]I[dD]$", re.ASCII)  # end of the name of such a column
MOST_NAMED = 4  # columns that the line about those that are left out names for each reason

DATES = 'pd.to_datetime(X[{}], format="ISO8601")'
CLASSES = 'X[{}].map(str, na_action="ignore").astype("category")'
CHANGES = {  # by what a column holds
    "numbers": "pd.to_numeric(X[{}])",
    "durations": "X[{}] / pd.Timedelta(seconds=1)",
}
LEFT_OUT = {"words": "numbers with words", "mixed": "several types", "others": "several types"}
EMPTY = "no value"


class GivenTable(NamedTuple):
    """A table of pandas as a fit takes it."""

    frame: Any
    first: str  # code behind the name of the data, such as ".to_pandas()"
    lines: str  # lines that change X after it
    left_out: dict[Any, str]  # why, by the name of the column
    taken: list[Any]  # columns that could be left out, too
    can_take: bool  # whether one of them could be taken in

    def loading(self, source: str | None) -> str:
        """Return the lines that make X of the data with a name; none if these are X already."""
        first = self.first
        source = "X" if source is None and (first or self.lines) else source
        if source == "X" and ".drop(" in first:  # so that they run twice
            first = f'{first[:-1]}, errors="ignore")'
        if not first and self.lines:  # the data of the user stay as they are
            first = ".copy()"
        given = "X" if not first else ""
        if source == given:
            return ""
        about = "" if (source or "").startswith("nmd.") else "  # your data"
        return f"X = {source or '...'}{first}{about}\n{self.lines}"

    @property
    def words(self) -> str:
        """What is left out, and why; or what was taken in."""
        by_reason: dict[str, list[str]] = {}
        for name, why in self.left_out.items():
            by_reason.setdefault(why, []).append(str(name))
        said = ", ".join(f"{_named(names)} ({why})" for why, names in by_reason.items())
        words = [f"left out: {said}"] * bool(said)
        return "; ".join([*words, *[f"taken in: {_named(self.taken)}"] * bool(self.taken)])


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
    if not frame.columns.is_unique or frame.columns.nlevels > 1:
        return GivenTable(frame, first, "", {}, [], can_take=False)
    mostly_known = 2 * frame.count().sum() >= frame.size
    left_out, could, lines = dict[Any, str](), list[Any](), list[str]()
    for name, column in frame.items():
        why, change = _reason(name, column, mostly_known=mostly_known)
        could += [plain_label(name)] * bool(why and change is not None)
        if why and (change is None or not take):
            left_out[plain_label(name)] = why
        elif change:
            here = expression(plain_label(name))
            lines.append(f"X[{here}] = {change.format(here)}\n")
    if len(left_out) == frame.shape[1]:
        return GivenTable(frame, first, "", {}, [], can_take=False)
    if left_out:
        first += f".drop(columns={expression(list(left_out))})"
    made = frame.drop(columns=list(left_out)) if left_out else frame
    made = made.copy(deep=False) if lines else made
    exec("".join(lines), {"X": made, "pd": pd})  # which quotes all names
    taken = could if take else []
    return GivenTable(made, first, "".join(lines), left_out, taken, can_take=bool(could))


def _reason(name: Any, column: Any, *, mostly_known: bool) -> tuple[str, str | None]:
    """Return why a column is left out, if it is, and the code that takes it; None without any."""
    kind = kind_of_objects(column)
    if kind == "empty" or (mostly_known and column.isna().all()):
        return EMPTY, None
    if kind in ("identifiers", "text") and _are_dates(column):
        return "", DATES
    if kind == "dates":
        return "", DATES.replace(', format="ISO8601"', "") * (column.dtype.kind == "O")
    if kind == "words":
        return LEFT_OUT[kind], 'pd.to_numeric(X[{}], errors="coerce")'
    if kind == "identifiers" or kind in LEFT_OUT:
        why = LEFT_OUT.get(kind) or ("all different" if column.is_unique else "free text")
        return why, CLASSES if column.nunique() <= MOST_CATEGORIES else None
    change = CHANGES.get(kind or "", "")
    numbers = pd.to_numeric(column) if kind == "numbers" else column
    return ("all different" if _are_ids(name, numbers) else ""), change


def _are_dates(texts: Any) -> bool:
    """Return whether texts are dates such as 2020-01-31, with a time or without."""
    known = texts.dropna()
    if not known.str.match(r"\d{4}-\d\d-\d\d").all():
        return False
    try:
        return bool(pd.to_datetime(known, format="ISO8601").notna().all())
    except ValueError:
        return False


def _are_ids(name: Any, column: Any) -> bool:
    """Return whether whole numbers are those of the rows, by their values or their name."""
    if getattr(column.dtype, "kind", "O") not in "iu" or not column.is_unique:
        return False
    n, low = len(column), column.min()
    counted = n >= FEWEST_IDS and low in (0, 1) and column.max() - low == n - 1
    return bool(counted or ID.search(str(name)))
