"""Checks of arguments: integer, number, share, word, rank, seed.

Every error message is one sentence with the argument, its value and the remedy.  A wrong type is a
`TypeError`, a wrong value a `ValueError`.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_integer(name: str, value: Any, smallest: int) -> int:
    """Return the value as an int; it must be an integer >= `smallest`."""
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
    """Return the value as a float; it must be a finite number within bounds.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    value : float
        Value of the argument.
    smallest, largest : float
        Bounds, both included; none by default.
    above : float, optional
        Lower bound that is excluded, instead of `smallest`.
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
    """Return the value as a float; it must be in [0, 1), or in [0, 1] with ``one=True``."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}={value!r} is not a number: give a share from 0 to 1.")
    number = float(value)
    if not (0 <= number < 1 or (one and number == 1)):
        end = "1" if one else "below 1"
        raise ValueError(f"{name}={value} is out of range: give a share from 0 to {end}.")
    return number


def check_word(name: str, value: Any, choices: Iterable[Any], others: str = "") -> None:
    """Raise ValueError if a value is not one of the choices; the message names the nearest one.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    value : object
        Value of the argument.
    choices : iterable
        Allowed values, usually strings.
    others : str, default ""
        Text on other allowed values, such as ", a pair (W, H) or a fit".
    """
    choices = list(choices)
    if _key(value) not in map(_key, choices):
        hint = _nearest(value, choices) or f"choose one of {choices}{others}."
        raise ValueError(f"{name}={value!r} is unknown: {hint}")


def _key(value: Any) -> Any:
    """Return a key for comparison, for which 1 is not True, and an array equals no choice."""
    if value is None or isinstance(value, str | Real | np.bool_):
        return isinstance(value, bool | np.bool_), value
    return None


def _nearest(value: Any, choices: list[Any]) -> str:
    """Return a question for the string that is most similar to the value, "" if none is."""
    strings = [choice for choice in choices if isinstance(choice, str)]
    near = difflib.get_close_matches(value, strings, n=1) if isinstance(value, str) else []
    return f"did you mean {near[0]!r}?" if near else ""


def check_words(name: str, values: Iterable[str], choices: Iterable[str]) -> None:
    """Raise ValueError if one of the values is not one of the choices; see `check_word`."""
    choices = list(choices)
    for value in values:
        check_word(name, value, choices)


def check_option_names(names: Iterable[str], options: Iterable[str], owner: str) -> None:
    """Raise TypeError if a keyword is not an option; the message names the nearest one.

    Parameters
    ----------
    names : iterable of str
        Keywords of a call.
    options : iterable of str
        Names of the options.
    owner : str
        What the options belong to, for the message, such as "a fit".
    """
    options = list(options)
    for name in names:
        if name not in options:
            hint = _nearest(name, options) or f"the options are {options}."
            raise TypeError(f"{name}= is not an option of {owner}: {hint}")


def check_rank(rank: Any, shape: tuple[int, int] | None = None) -> int:
    """Return the rank as an int; it must be >= 1 and not exceed a side of the matrix, if given."""
    checked = check_integer("rank", rank, 1)
    if shape is not None and checked > min(shape):
        raise ValueError(
            f"rank={rank} exceeds the smaller side of X, {min(shape)}: give a smaller rank."
        )
    return checked


def check_positions(name: str, positions: Any, size: int, labels: str = "") -> NDArray[np.intp]:
    """Return positions as flat integers from 0; they must be integers from -size to size - 1.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    positions : array_like of int
        Positions; negative ones count from the end.
    size : int
        Number of positions there are.
    labels : str, default ""
        Name of the function that takes labels instead, for the message.
    """
    array = np.asarray(positions).ravel()
    if array.size == 0:
        return np.empty(0, dtype=np.intp)
    if array.dtype.kind not in "iu":
        hint = f", or labels to {labels}()" if labels else ""
        raise TypeError(f"{name} has dtype {array.dtype}: give integer positions{hint}.")
    outside = (array < -size) | (array >= size)
    if outside.any():
        wrong = array[int(np.argmax(outside))]
        raise IndexError(
            f"{name} holds {wrong}, which is a position outside X: give one from 0 to {size - 1}, "
            "or a negative one that counts from the end."
        )
    return np.where(array < 0, array + size, array).astype(np.intp)


def check_no_fit(name: str, value: Any) -> None:
    """Raise TypeError if a fit was given in the place of data."""
    if hasattr(value, "reconstruct"):
        raise TypeError(
            f"{name} is a {type(value).__name__}: give data, for example its reconstruct()."
        )


def label_error(name: str, label: Any, known: Any) -> KeyError:
    """Return the error for a label that X does not have; the message names the nearest one.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    label : object
        Unknown label.
    known : pandas.Index
        Labels that there are.
    """
    hint = "the fit was made without it."
    label = label.item() if isinstance(label, np.generic) else label
    same = [one for one in known.tolist() if str(one) == str(label)]
    if same:
        hint = f"did you mean {same[0]!r}?"
    elif isinstance(label, str):
        hint = _nearest(label, known.tolist()) or hint
    elif isinstance(label, Real) and known.dtype.kind in "iuf":
        hint = f"the labels are numbers from {known.min()} to {known.max()}."
    return KeyError(f"{name} has no label {label!r}: {hint}")


def as_generator(random_state: Any) -> np.random.Generator:
    """Return a Generator for a seed, a Generator, a RandomState or None."""
    if isinstance(random_state, np.random.RandomState):  # scikit-learn passes these on
        random_state = int(random_state.randint(2**31))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"random_state={random_state!r} is not a seed: give None, an integer >= 0 or a "
            "Generator."
        ) from error
