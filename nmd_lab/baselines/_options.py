"""Numbers that a baseline has as options of its own."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any


def check_option(name: str, value: Any, low: float, high: float = math.inf) -> float:
    """Return an option as a float, if it is a finite number from low to high.

    Parameters
    ----------
    name : str
        What the option is called.
    value : float
        What was given.
    low, high : float
        The smallest and the largest that make sense.

    Raises
    ------
    TypeError, ValueError
        If it is no number, or out of the range.
    """
    wanted = "" if low == -math.inf else f" >= {low:g}"
    if high < math.inf:
        wanted = f" from {low:g} to {high:g}"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}={value!r} is not a number: give one{wanted}.")
    if not (low <= float(value) <= high and math.isfinite(value)):
        raise ValueError(f"{name}={value} is out of range: give a finite number{wanted}.")
    return float(value)
