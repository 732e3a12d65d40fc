"""Checks of arguments: integer, number, share, word, rank, seed.

Every refusal is one sentence with the argument, the value and the remedy.  A wrong type is a
`TypeError`, a wrong value a `ValueError`.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_integer(name: str, value: Any, smallest: int) -> int:
    """Return an integer, if the value is one and not below `smallest`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name}={value!r} is not an integer: give a whole number >= {smallest}.")
    if value < smallest:
        raise ValueError(f"{name}={value} is too small: give a whole number >= {smallest}.")
    return int(value)


def check_number(
    name: str,
    value: Any,
    smallest: float = -math.inf,
    largest: float = math.inf,
    *,
    above: float | None = None,
) -> float:
    """Return a finite float, if the value is a number within bounds.

    Parameters
    ----------
    name : str
        The argument.
    value : float
        Its value.
    smallest, largest : float
        Bounds, both included.
    above : float, optional
        Lower bound, itself excluded, instead of `smallest`.
    """
    allowed = "" if smallest == -math.inf else f" >= {smallest:g}"
    if above is not None:
        allowed = f" > {above:g}"
    if largest < math.inf:
        allowed = f" from {smallest:g} to {largest:g}"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}={value!r} is not a number: give one{allowed}.")
    number = float(value)
    inside = smallest <= number <= largest and math.isfinite(number)
    if not inside or (above is not None and number <= above):
        raise ValueError(f"{name}={value} is out of range: give a finite number{allowed}.")
    return number


def check_share(name: str, value: Any, *, one: bool = False) -> float:
    """Return a float, if the value is a share from 0 to below 1 (to 1 itself with ``one=True``)."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}={value!r} is not a number: give a share from 0 to 1.")
    number = float(value)
    if not (0 <= number < 1 or (one and number == 1)):
        end = "1" if one else "below 1"
        raise ValueError(f"{name}={value} is out of range: give a share from 0 to {end}.")
    return number


def check_word(name: str, value: Any, choices: Iterable[Any], others: str = "") -> None:
    """Refuse a value that is not one of the choices, and name the nearest one.

    Parameters
    ----------
    name : str
        The argument.
    value : object
        Its value.
    choices : iterable
        What it may be; usually words.
    others : str
        What it may be besides, such as ", a pair (W, H) or a fit".
    """
    choices = list(choices)
    if _key(value) not in map(_key, choices):
        words = [choice for choice in choices if isinstance(choice, str)]
        near = difflib.get_close_matches(value, words, n=1) if isinstance(value, str) else []
        hint = f"did you mean {near[0]!r}?" if near else f"choose one of {choices}{others}."
        raise ValueError(f"{name}={value!r} is unknown: {hint}")


def _key(value: Any) -> Any:
    """Return what tells values apart: 1 is not True, and an array is no word."""
    if value is None or isinstance(value, str | Real | np.bool_):
        return isinstance(value, bool | np.bool_), value
    return None


def check_words(name: str, values: Iterable[str], choices: Iterable[str]) -> None:
    """Refuse the first value that is not one of the choices; see `check_word`."""
    choices = list(choices)
    for value in values:
        check_word(name, value, choices)


def check_option_names(given: Iterable[str], known: Iterable[str], what: str) -> None:
    """Refuse a keyword that is not a known option, and name the nearest one."""
    known = list(known)
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"the options are {known}."
            raise TypeError(f"{name}= is not an option of {what}: {hint}")


def check_rank(rank: Any, shape: tuple[int, int] | None = None) -> int:
    """Return the rank as an int, if a matrix of this shape (or of any) can have it."""
    checked = check_integer("rank", rank, 1)
    if shape is not None and checked > min(shape):
        raise ValueError(
            f"rank={rank} exceeds the smaller side of X, {min(shape)}: give a smaller rank."
        )
    return checked


def as_generator(random_state: Any) -> np.random.Generator:
    """Return the generator that `random_state` stands for."""
    if isinstance(random_state, np.random.RandomState):  # what scikit-learn hands on
        random_state = int(random_state.randint(2**31))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"random_state={random_state!r} is not a seed: give None, an integer >= 0 or a "
            "Generator."
        ) from error
