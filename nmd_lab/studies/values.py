"""The values of an argument of a study: their checks and their labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from numbers import Real
from typing import Any

import numpy as np

from nmd_lab._checks import check_rank
from nmd_lab.model.losses import as_loss
from nmd_lab.model.nonlinearities import MinMax, as_nonlinearity
from nmd_lab.solver.options import Options

from .hashing import plain_value
from .methods import Method

AUTO = "auto"
"""Value of an argument that each fit chooses by held-out entries of its own."""

CHOSEN_BY_WORD = ("nonlinearity", "loss", "rank")
"""Arguments that may be "auto" besides the options of a fit."""


def checked_value(name: str, value: Any) -> Any:
    """Return one value of an argument in the form that the study keeps, if it makes sense."""
    if name == "method":
        return Method.of(value)
    if name in CHOSEN_BY_WORD and isinstance(value, str) and value == AUTO:
        return value
    if name == "nonlinearity":
        _refuse_columns(name, value)
        return _name_or_object(value, as_nonlinearity)
    if name == "loss":
        _refuse_columns(name, value)
        return _name_or_object(value, as_loss)
    if name == "rank":
        return check_rank(value)
    if name in {field.name for field in fields(Options)}:
        Options.of({name: value})
    try:
        plain_value(value)
    except TypeError as error:
        raise TypeError(f"{name}={error}") from error
    return value.item() if isinstance(value, np.generic) else value


def _refuse_columns(name: str, value: Any) -> None:
    """Raise TypeError for parts of single columns, which a grid has no coordinate for."""
    if isinstance(value, Mapping):
        raise TypeError(
            f"{name}={value!r} is for single columns, which a study does not compare: give one for "
            "all columns, or a table whose types say what each column is."
        )


def _name_or_object(value: Any, as_object: Callable[[Any], Any]) -> Any:
    """Return the name of a nonlinearity or loss if the name alone describes it, else the object."""
    model = as_object(value)
    if isinstance(model, MinMax):  # bounds that are given are not named
        return model.name if isinstance(value, str) else model
    try:
        return model.name if as_object(model.name) == model else model
    except ValueError:  # a class of the user's own
        return model


def labels_of(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the coordinates of values: text, unless all are numbers or all are truth values."""
    all_numbers = all(isinstance(v, Real) and not isinstance(v, bool) for v in values)
    if all_numbers or all(isinstance(v, bool) for v in values):
        return values
    return tuple(_as_text(value) for value in values)


def _as_text(value: Any) -> str:
    """Return the label of a value that is not a number."""
    if isinstance(value, Method):
        return value.name
    return value if isinstance(value, str) else repr(value)


def position_of(label: Any, labels: Sequence[Any], dim: str) -> int:
    """Return the position of a label; a number stands for its text beside a word such as "auto".

    Parameters
    ----------
    label : object
        Label to look for.
    labels : sequence
        Labels of the dimension.
    dim : str
        Name of the dimension.

    Raises
    ------
    ValueError
        If there is no such label.
    """
    label = label.item() if isinstance(label, np.generic) else label
    for candidate in (label, _as_text(label)):
        if candidate in labels:
            return labels.index(candidate)
    raise ValueError(f"{dim}={label!r} is not in the study: choose from {list(labels)}.")
