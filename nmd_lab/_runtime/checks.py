"""Checks of arguments: integer, number, fraction, word, rank, seed; an exception as one line.

Every error message is one sentence with the argument, its value and the remedy.  A wrong type is a
`TypeError`, a wrong value a `ValueError`.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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
    name: str, value: Any, smallest: float = -math.inf, *, above: float | None = None
) -> float:
    """Return the value as a float; it must be a finite number within bounds."""
    allowed = "" if smallest == -math.inf else f" >= {smallest:g}"
    if above is not None:
        allowed = f" > {above:g}"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}={value!r} is not a number: give one{allowed}.")
    number = float(value)
    large_enough = number >= smallest if above is None else number > above
    if not (math.isfinite(number) and large_enough):
        raise ValueError(f"{name}={value} is out of range: give a finite number{allowed}.")
    return number


MAX_SIZE = {"float32": 1e36, "float64": 1e120}
"""Largest magnitude of data for each precision; one over it is the smallest.  Between the two, the
sum of the squares of the errors of a fit is an ordinary number."""


def check_size(name: str, largest: float, dtype: Any) -> float:
    """Return the largest magnitude of data, if the precision can hold the errors of their fits."""
    precision = np.dtype(dtype).name
    limit = MAX_SIZE[precision]
    if largest and not 1 / limit <= largest <= limit:
        raise ValueError(
            f"{name} has a largest magnitude of {largest:g}, and {precision} allows {1 / limit:g} "
            f"to {limit:g}: change its unit, for example divide it by {largest:.0e}."
        )
    return largest


def check_share(name: str, value: Any, *, zero: bool = True, one: bool = False) -> float:
    """Return the value as a float; it must be in [0, 1).

    Without `zero` it must be in (0, 1), and with `one` it may be 1.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}={value!r} is not a number: give a fraction from 0 to 1.")
    number = float(value)
    if not (0 < number < 1 or (zero and number == 0) or (one and number == 1)):
        begin = "from 0" if zero else "above 0 and"
        end = ("to 1" if one else "to below 1") if zero else "below 1"
        raise ValueError(f"{name}={value} is out of range: give a fraction {begin} {end}.")
    return number


def check_word(name: str, value: Any, choices: Iterable[Any], others: str = "") -> None:
    """Raise ValueError if a value is not one of the choices; the message names the nearest one."""
    choices = list(choices)
    if _key(value) not in map(_key, choices):
        hint = nearest(value, choices) or f"choose one of {choices}{others}."
        raise ValueError(f"{name}={value!r} is unknown: {hint}")


def _key(value: Any) -> Any:
    """Return a key for comparison, for which 1 is not True, and an array equals no choice."""
    if value is None or isinstance(value, str | Real | np.bool_):
        return isinstance(value, bool | np.bool_), value
    return None


def nearest(value: Any, choices: list[Any]) -> str:
    """Return a question for the string that is most similar to the value, "" if none is."""
    strings = [choice for choice in choices if isinstance(choice, str)]
    near = difflib.get_close_matches(value, strings, n=1) if isinstance(value, str) else []
    return f"did you mean {near[0]!r}?" if near else ""


def check_words(name: str, values: Iterable[str], choices: Iterable[str]) -> None:
    """Raise ValueError if one of the values is not one of the choices; see `check_word`."""
    choices = list(choices)
    for value in values:
        check_word(name, value, choices)


SYNONYMS_OF = {
    "progress": "verbose show_progress disp verbosity",
    "rank": "n_components components k r n_factors factors",
    "max_iter": "max_iterations maxiter n_iter iterations n_iterations epochs n_epochs",
    "random_state": "seed random_seed rng random",
    "alpha": "lambda_ lam reg regularization ridge l2 alpha_W alpha_H reg_all",
    "tol": "tolerance rtol atol",
    "init": "start initialization W0 H0 W H",
    "n_init": "n_starts n_restarts restarts nrun",
    "offsets": "bias biases intercept fit_intercept biased",
    "solver": (
        "rho rho0 step_size penalty epsilon split acceleration refine homotopy polish "
        "limit_noise patience n_iter_no_change"
    ),
    "compute": "n_jobs n_threads num_threads workers threads device checkpoint client",
    "observed": "mask missing",
    "time_limit": "timeout max_time max_seconds",
    "validation": "validation_fraction validation_split val held_out early_stopping",
    "loss": "beta_loss objective distance",
    "nonlinearity": "f activation link",
    "weights": "sample_weight sample_weights weight",
    "callback": "callbacks",
}
SYNONYMS = {word: option for option, words in SYNONYMS_OF.items() for word in words.split()}
"""Options of this package by the names that they have in other libraries."""


def check_option_names(names: Iterable[str], options: Iterable[str], owner: str) -> None:
    """Raise TypeError if a keyword is not an option; the message names the nearest one."""
    options = list(options)
    for name in names:
        if name not in options:
            hint = nearest(name, options)
            if SYNONYMS.get(name) in options:
                hint = f"did you mean {SYNONYMS[name]!r}?"
            if name in ("order", "bounds", "groups", "draws", "chains", "noise"):
                hint = "use sample() or impute()."
            hint = hint or f"the options are {options}."
            raise TypeError(f"{name}= is not an option of {owner}: {hint}")


def is_auto(value: Any) -> bool:
    """Return whether a value is the word "auto"."""
    return isinstance(value, str) and value == "auto"


def check_number_or_auto(name: str, value: Any) -> float | str:
    """Return a value that is "auto" or a number >= 0."""
    if isinstance(value, str):
        check_word(name, value, ["auto"], ", or a number >= 0")
        return value
    return check_number(name, value, 0)


def check_rank(rank: Any, shape: tuple[int, int] | None = None) -> int:
    """Return the rank as an int; it must be >= 1 and not exceed a side of the matrix, if given."""
    checked = check_integer("rank", rank, 1)
    if shape is not None and checked > min(shape):
        raise ValueError(
            f"rank={rank} exceeds the smaller side of X, {min(shape)}: give a smaller rank."
        )
    return checked


def check_seed(random_state: Any) -> None:
    """Raise TypeError or ValueError if `random_state` is no seed; draw nothing from it."""
    if not isinstance(random_state, np.random.Generator | np.random.RandomState):
        as_generator(random_state)


def refuse_class(name: str, value: Any) -> None:
    """Raise TypeError for a class, or a function, in the place of an object."""
    if isinstance(value, type):
        raise TypeError(f"{name}={value.__name__} is a class: give {value.__name__}().")
    if callable(value) and name in OF_FUNCTIONS:
        called = getattr(value, "__name__", "f")
        raise TypeError(f"{name} is the function {called}: give {OF_FUNCTIONS[name]}.")


OF_FUNCTIONS = {
    "nonlinearity": "nmd.nonlinearities.Smooth(f), of an f that Numba compiles",
    "loss": "an object of a subclass of nmd.losses.Loss, with the function as its value(x, y, p)",
}
"""What to give in place of a function of Python."""


def check_positions(name: str, positions: Any, size: int) -> NDArray[np.intp]:
    """Return positions as flat integers from 0; they must be integers from -size to size - 1."""
    array = np.asarray(positions).ravel()
    if array.size == 0:
        return np.empty(0, dtype=np.intp)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} has dtype {array.dtype}: give integer positions.")
    outside = (array < -size) | (array >= size)
    if outside.any():
        wrong = array[int(np.argmax(outside))]
        raise IndexError(
            f"{name} holds {wrong}, which is a position outside X: give one from 0 to {size - 1}, "
            "or a negative one that counts from the end."
        )
    return np.where(array < 0, array + size, array).astype(np.intp)


@contextmanager
def errors_about(name: str) -> Iterator[None]:
    """Name another argument where errors inside the block name X."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(re.sub(r"\bX\b", name, str(error), count=1)) from error


@contextmanager
def needs_library(message: str) -> Iterator[None]:
    """Raise ImportError with the remedy if a library that the block imports is missing."""
    try:
        yield
    except ImportError as error:
        raise ImportError(message) from error


def check_no_fit(name: str, value: Any) -> None:
    """Raise TypeError if a fit was given in the place of data."""
    if hasattr(value, "reconstruct"):
        raise TypeError(
            f"{name} is a {type(value).__name__}: give data, for example its reconstruct()."
        )


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


def new_stream(rng: np.random.Generator) -> np.random.Generator:
    """Return an independent generator, whose seed is drawn from another one.

    It depends on the state of `rng` alone, and not on the seed that `rng` once had.
    """
    return np.random.default_rng(rng.integers(2**32, size=4, dtype=np.uint32))


def sentence(error: BaseException) -> str:
    """Return the message of an exception as one line.

    The class is named before it, unless it is a `ValueError` or `TypeError` whose message is a
    sentence with a full stop, as those of this package are.

    >>> sentence(ValueError("rank=0 is too small.")), sentence(MemoryError("no room"))
    ('rank=0 is too small.', 'MemoryError: no room')
    """
    message = " ".join(str(error.args[0] if error.args else error).split())
    explains_itself = isinstance(error, ValueError | TypeError) and message.endswith(".")
    return message if explains_itself else f"{type(error).__name__}: {message}"


def many(count: int, thing: str) -> str:
    """Return how many things there are.

    >>> many(1, "fit"), many(2, "observed entry")
    ('1 fit', '2 observed entries')
    """
    things = f"{thing[:-1]}ies" if thing.endswith("y") else f"{thing}s"
    return f"{count} {thing if count == 1 else things}"


def evenly(size: int, most: int) -> NDArray[np.intp]:
    """Return at most so many of the positions from 0, evenly spaced."""
    return np.linspace(0, size - 1, min(size, most)).astype(np.intp)


def fault_of_compiler(error: Exception) -> str:
    """Return the line of an error of Numba that names the fault."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    around = ("Failed in", "During", "File", "-")
    cause = next((line for line in lines if not line.startswith(around)), sentence(error))
    return re.split(r", defined at | Raised from ", cause)[0].rstrip(".:")
