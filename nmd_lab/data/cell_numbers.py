"""Cells as numbers: dates, and numbers as laboratories write them.

**Dates** are days since 1970, in UTC where they have a time zone.

>>> import pandas as pd
>>> dates = pd.Series(pd.to_datetime(["2020-01-02", None]))
>>> days_of(dates).tolist()
[18263.0, nan]
>>> dates_of(np.array([18263.2, 18264.7]), dates).dt.day.tolist()
[2, 4]

**Texts** are numbers such as 0,7 or 1 200.5, limits such as "<0.5", and words such as ND.  A column
has either decimal points or decimal commas.  The other mark separates thousands, as a
space or an apostrophe may.

>>> read_numbers(pd.Series(["< 0,5", "1 200,5", "> 3", "n.d.", "lost"]))["number"].tolist()
[0.5, 1200.5, 3.0, nan, nan]
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

DAY, FIRST_DAY = np.timedelta64(86_400_000_000, "us"), np.datetime64(0, "us")
ENDS_OF_NANOSECONDS, ENDS = (-106_750, 106_750), (-719_161, 2_932_895)
"""First and last day of dates of nanoseconds, in any time zone, and of Python's."""


def days_of(column: Any) -> NDArray[np.float64]:
    """Return the dates of a pandas.Series as days."""
    clock = _clock(column, "UTC").to_numpy("M8[us]")
    return np.asarray((clock - FIRST_DAY) / DAY, dtype=np.float64)


def numbers_of(values: Any) -> NDArray[np.float64]:
    """Return numbers as they are, and dates of NumPy, pandas or Python as days."""
    flat = pd.Series(np.asarray(values).ravel())
    if pd.api.types.infer_dtype(flat) in ("datetime", "datetime64", "date"):
        return days_of(flat)
    return flat.to_numpy(dtype=np.float64)


def dates_of(days: NDArray[np.floating], column: Any) -> Any:
    """Return days as dates like those of a pandas.Series: whole days where it has no others.

    The same is true of seconds.  No date is beyond those of its unit and of the column.
    """
    known, there = pd.to_datetime(column), column.dropna()
    clock = _clock(there)
    step = next(step for step in ("D", "s", "us") if (clock == clock.dt.floor(step)).all())
    ends = np.trunc([*days_of(there), *(ENDS_OF_NANOSECONDS if known.dt.unit == "ns" else ENDS)])
    since = np.rint(np.clip(days, ends.min(), ends.max()) * DAY.astype(np.float64))
    dates = pd.Series(FIRST_DAY + since.astype("m8[us]"))
    if step == "s":
        dates = dates.dt.round(step)
    if known.dt.tz is not None:
        dates = dates.dt.tz_localize("UTC").dt.tz_convert(known.dt.tz)
    if step == "D":  # by the clocks of the zone; of a midnight that there is twice, the first
        first = np.ones(len(dates), dtype=bool)
        dates = dates.dt.round(step, ambiguous=first, nonexistent="shift_forward")
    if column.dtype == object and pd.api.types.infer_dtype(there) in ("date", "empty"):
        return dates.dt.date
    return dates.astype(known.dtype)


def _clock(column: Any, zone: Any = None) -> Any:
    """Return the dates of a pandas.Series, in microseconds, by the clocks of their time zone.

    Those of another `zone` if there is one; dates without any stay as they are.
    """
    try:
        dates = pd.to_datetime(column)
        if zone is not None and dates.dt.tz is not None:
            dates = dates.dt.tz_convert(zone)
        return dates.dt.tz_localize(None).astype("datetime64[us]")
    except (ValueError, AttributeError) as error:
        name = column.name
        raise TypeError(
            f"X has dates of several time zones, or dates that pandas does not have, in column "
            f"{name!r}: run `X[{name!r}] = pd.to_datetime(X[{name!r}], utc=True, errors='coerce')`."
        ) from error


def date_texts(days: NDArray[np.floating], column: Any) -> list[str]:
    """Return days as texts of dates like those of a pandas.Series, with times of the day if any.

    >>> date_texts(np.array([18262.52]), pd.Series([pd.Timestamp(2020, 1, 1, 12)]))
    ['2020-01-01 12:28']
    """
    dates = pd.to_datetime(dates_of(days, column))
    texts = dates.dt.strftime("%Y-%m-%d %H:%M").str.removesuffix(" 00:00")
    return list(texts)


def date_text(days: float, *, time: bool = False) -> str:
    """Return days since 1970 as a date, with its time or without.

    >>> date_text(18262.52), date_text(18262.52, time=True)
    ('2020-01-02', '2020-01-01 12:28')
    """
    if time:
        return str(np.datetime64(math.floor(days * 1440), "m")).replace("T", " ")
    return str(np.datetime64(round(days), "D"))


BELOW, ABOVE = "<≤⩽", ">≥⩾"
"""Signs before an upper and a lower limit, each perhaps with "="."""

WORDS = r"n[./ ]?[dn]\.?|not detected|non-?detect|traces?|l?lo[dq]|l[dq]|m?dl|rl|b[dq]l|blo?[dq]"
"""Words for "below a limit" without a number."""


def read_numbers(values: Any) -> pd.DataFrame:
    """Return what each text or number of a pandas.Series says.

    Returns
    -------
    pandas.DataFrame
        number : number or limit, NaN where there is none, or where a comma may be decimal or not;
        at_most, at_least : whether there is such a limit; is_word : whether it is a word for "below
        a limit"; is_unknown : whether there is a text of another kind.
    """
    is_text = pd.Series([isinstance(value, str) for value in values], values.index, dtype=bool)
    text = values.where(is_text, "").astype(str).str.normalize("NFKC").str.strip().str.lower()
    parts = text.str.extract(f"^=?([{BELOW}{ABOVE}]?)=? *(.*)$").fillna("")
    sign, rest = parts[0], parts[1]
    point, comma = _numbers(rest, ".", ","), _numbers(rest, ",", ".")
    number = comma if comma.count() > point.count() else point
    if comma.count() == point.count():
        number = number.mask((point != comma) & rest.str.contains(","))
    others = pd.to_numeric(values.mask(is_text), errors="coerce").astype(np.float64)
    number = number.where(is_text, others)
    at_least = sign.isin(list(ABOVE))
    is_word = rest.str.fullmatch(WORDS) & ~at_least
    read = {"number": number.astype(np.float64), "at_most": sign.isin(list(BELOW)) | is_word}
    is_unknown = number.isna() & values.notna() & ~is_word
    return pd.DataFrame(read | {"at_least": at_least, "is_word": is_word, "is_unknown": is_unknown})


def _numbers(text: Any, mark: str, other: str) -> Any:
    """Return texts in lower case as numbers with a decimal mark; the other one is of thousands."""
    groups = f"[{other}'’ ]"
    whole = rf"[-+]?(?:\d+|[1-9]\d{{0,2}}(?:{groups}\d{{3}})+)?"
    plain = text.where(text.str.fullmatch(rf"{whole}(?:[{mark}]\d*)?(?:e[-+]?\d+)?"))
    plain = plain.str.replace(groups, "", regex=True).str.replace(mark, ".", regex=False)
    return pd.to_numeric(plain, errors="coerce")
