"""Dates as numbers: days since 1970, by the clocks of their time zone.

>>> import pandas as pd
>>> dates = pd.Series(pd.to_datetime(["2020-01-02", None]))
>>> days_of(dates).tolist()
[18263.0, nan]
>>> dates_of(np.array([18263.2, 18264.7]), dates).dt.day.tolist()
[2, 4]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

DAY, FIRST_DAY = pd.Timedelta(days=1), pd.Timestamp(0)


def days_of(column: Any) -> NDArray[np.float64]:
    """Return the dates of a pandas.Series as days."""
    dates = pd.to_datetime(column)
    dates = dates if dates.dt.tz is None else dates.dt.tz_localize(None)
    return np.asarray((dates - FIRST_DAY) / DAY, dtype=np.float64)


def dates_of(days: NDArray[np.floating], column: Any) -> Any:
    """Return days as dates like those of a pandas.Series: whole days where it has no others."""
    known = pd.to_datetime(column)
    there = known.dropna()
    step = "D" if (there == there.dt.normalize()).all() else "s"
    dates = FIRST_DAY + pd.to_timedelta(pd.Series(days, column.index), unit="D").dt.round(step)
    if known.dt.tz is not None:  # of a time that there is twice, the first
        first = np.ones(len(dates), dtype=bool)
        dates = dates.dt.tz_localize(known.dt.tz, ambiguous=first, nonexistent="shift_forward")
    if column.dtype == object and step == "D":
        return dates.dt.date
    return dates.astype(known.dtype)


def date_text(days: float, *, time: bool = False) -> str:
    """Return days since 1970 as a date, with its time or without.

    >>> date_text(18262.52), date_text(18262.52, time=True)
    ('2020-01-02', '2020-01-01 12:28')
    """
    date = FIRST_DAY + days * DAY
    return f"{date:%Y-%m-%d %H:%M}" if time else f"{date.round('D'):%Y-%m-%d}"
