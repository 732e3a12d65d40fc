"""The grid of a study: what varies, the fit behind each cell, and the name of that fit.

A fit is named by a hash of everything that its method looks at, and of nothing else: not of its
place in the grid.  So a grid that grows keeps its old fits, and a cell that differs from another
only in what its method ignores (the nonlinearity of an SVD) shares that other cell's fit.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from inspect import Parameter
from numbers import Real
from typing import Any

import numpy as np

from nmd_lab._checks import check_rank, check_words
from nmd_lab.data.pictures import Picture
from nmd_lab.model.losses import as_loss
from nmd_lab.model.nonlinearities import as_nonlinearity
from nmd_lab.solver.options import Settings

from .corruption import HIDE, NOISE, Corruption
from .hashing import plain
from .methods import Method

CONDITIONS = ("missing", "noise", "seed")
"""Dimensions that describe the trial, not the model."""

NOTHING_HIDDEN, NO_NOISE = Corruption("random", 0.0), Corruption("gaussian", 0.0)


@dataclass(frozen=True)
class Axis:
    """One argument, its values, and how they are labelled.

    Attributes
    ----------
    name : str
        The argument.
    values : tuple
        At least one.
    labels : tuple
        Numbers, truth values or words, all different.
    varied : bool
        Whether it is a dimension of the results.
    """

    name: str
    values: tuple[Any, ...]
    labels: tuple[Any, ...]
    varied: bool

    @classmethod
    def of(cls, name: str, given: Any) -> Axis:
        """Return the axis of an argument; a list, a range or a vector of numbers varies."""
        vector = isinstance(given, np.ndarray) and given.ndim == 1
        varied = isinstance(given, list | range) or vector
        values = tuple(given) if varied else (given,)
        if not values:
            raise ValueError(f"{name}=[] is empty: give at least one value.")
        checked = tuple(_checked(name, value) for value in values)
        labels = _labels(checked)
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"{name} has the value {label!r} twice: give each once.")
        return cls(name, checked, labels, varied)


@dataclass(frozen=True)
class Task:
    """One fit: a method, its arguments, and the data that it gets.

    Attributes
    ----------
    method : Method
        The function.
    arguments : dict
        What it is called with, beside X and the seed.
    missing, noise : Corruption
        What is done to X.
    seed : int
        Of the holes, the noise and the fit.
    """

    method: Method
    arguments: dict[str, Any]
    missing: Corruption
    noise: Corruption
    seed: int

    def on_all_data(self) -> Task:
        """Return the same fit without holes and noise."""
        return replace(self, missing=NOTHING_HIDDEN, noise=NO_NOISE)

    @property
    def key(self) -> str:
        """The name of the fit: a hash of everything that decides its result, X apart."""
        everything = {
            "method": f"{self.method.function.__module__}.{self.method.function.__qualname__}",
            "arguments": plain(self.method.defaults | self.arguments),
            "missing": plain(self.missing if self.missing.level else NOTHING_HIDDEN),
            "noise": plain(self.noise if self.noise.level else NO_NOISE),
            "seed": self.seed,
        }
        return hashlib.sha256(json.dumps(everything, sort_keys=True).encode()).hexdigest()[:20]


@dataclass(frozen=True)
class Grid:
    """All axes of a study, and the tasks of its cells."""

    axes: tuple[Axis, ...]

    @property
    def dims(self) -> dict[str, Axis]:
        """The axes that are dimensions of the results."""
        return {axis.name: axis for axis in self.axes if axis.varied}

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return tuple(len(axis.values) for axis in self.dims.values())

    def axis(self, name: str) -> Axis:
        """Return the axis of an argument."""
        return next(axis for axis in self.axes if axis.name == name)

    def __iter__(self) -> Iterator[Task]:
        """Yield the task of each cell, the last dimension fastest."""
        for values in itertools.product(*(axis.values for axis in self.axes)):
            yield task_of(dict(zip((axis.name for axis in self.axes), values, strict=True)))

    def task(self, labels: Mapping[str, Any]) -> Task:
        """Return the task of the cell with the given labels; one value needs no label."""
        check_words("dimension", labels, self.dims)
        chosen = {}
        for axis in self.axes:
            if axis.name in labels:
                label = labels[axis.name]
                if label not in axis.labels:
                    raise ValueError(
                        f"{axis.name}={label!r} is not in the study: choose from "
                        f"{list(axis.labels)}."
                    )
                chosen[axis.name] = axis.values[axis.labels.index(label)]
            elif len(axis.values) == 1:
                (chosen[axis.name],) = axis.values
            else:
                raise ValueError(
                    f"{axis.name} is not given: choose one of {list(axis.labels)} for the cell."
                )
        return task_of(chosen)

    def coordinates(self) -> dict[str, Any]:
        """Return the coordinates of the results."""
        coords: dict[str, Any] = {}
        for name, axis in self.dims.items():
            words = any(isinstance(label, str) for label in axis.labels)
            coords[name] = np.array(axis.labels, dtype=object if words else None)
            if words and name in ("missing", "noise"):
                coords[f"{name}_kind"] = (name, np.array([v.kind for v in axis.values], object))
                coords[f"{name}_level"] = (name, [float(v.level) for v in axis.values])
        return coords


def task_of(values: dict[str, Any]) -> Task:
    """Return the task of one combination of values."""
    method = values["method"]
    arguments = {name: v for name, v in values.items() if name in method.defaults}
    return Task(method, arguments, values["missing"], values["noise"], int(values["seed"]))


def make_grid(
    arguments: dict[str, Any],
    missing: Any,
    noise: Any,
    method: Any,
    seeds: range,
    own: Iterable[str] = (),
    picture: Picture | None = None,
) -> Grid:
    """Return the grid of a study after checking everything that can be checked without X.

    Parameters
    ----------
    arguments : dict
        Those of the fits, each with a value or a list of them.
    missing, noise, method
        As for `Study`.
    seeds : range
        The seeds.
    own : iterable of str
        The other arguments of `Study`, which a misspelt one may mean.
    picture : Picture, optional
        The picture that each row is.
    """
    methods = Axis.of("method", method)
    known = dict.fromkeys(name for each in methods.values for name in each.defaults)
    check_words("argument", arguments, [*known, *own])
    for each in methods.values:
        for name, default in each.defaults.items():
            if default is Parameter.empty and name not in arguments:
                raise TypeError(f"{name} is not given: {each.name} needs it, for example {name}=5.")
    first = ("nonlinearity", "loss", "rank", "alpha")
    order = [n for n in first if n in arguments] + [n for n in arguments if n not in first]
    axes = [methods, *(Axis.of(name, arguments[name]) for name in order)]
    holes = _corruptions("missing", missing, HIDE, picture)
    axes += [holes, _corruptions("noise", noise, NOISE)]
    return Grid((*axes, Axis.of("seed", seeds)))


def _corruptions(
    name: str, given: Any, kinds: Mapping[str, Any], picture: Picture | None = None
) -> Axis:
    """Return the axis of what is done to X."""
    default = "random" if name == "missing" else "gaussian"
    words: Mapping[str, Any] = (
        given if isinstance(given, Mapping) else {default: 0.0 if given is None else given}
    )
    check_words(name, words, kinds)
    if not words:
        raise ValueError(f"{name}={given!r} is empty: give a kind with levels, or leave it out.")
    varied = len(words) > 1
    values = []
    for kind, given_levels in words.items():
        listed = isinstance(given_levels, list | tuple | range | np.ndarray)
        varied = varied or listed
        levels: Iterable[Any] = given_levels if listed else [given_levels]
        detail = picture if kind == "blocks" else None
        values += [_corruption(name, kind, level)._replace(picture=detail) for level in levels]
    if not values:
        raise ValueError(f"{name}={given!r} is empty: give at least one level.")
    several = len(words) > 1
    labels = tuple(f"{c.kind} {c.level:g}" if several else float(c.level) for c in values)
    if len(set(labels)) < len(labels):
        raise ValueError(f"{name}={given!r} has the same level twice: give each once.")
    return Axis(name, tuple(values), labels, varied)


def _corruption(name: str, kind: str, level: Any) -> Corruption:
    """Check one level of one kind."""
    if isinstance(level, bool) or not isinstance(level, Real):
        raise TypeError(f"{name}={level!r} is not a number: give the level of {kind!r} as one.")
    share = name == "missing" or kind in ("salt_and_pepper", "outliers")
    smallest = np.nextafter(0, 1) if kind == "poisson" else 0.0
    number = float(level)
    inside = smallest <= number < math.inf and not (name == "missing" and number >= 1)
    if not inside or (share and number > 1):
        allowed = "from 0 to below 1" if name == "missing" else "from 0 to 1"
        what = f"a share {allowed}" if share else f"a finite number {'>' if smallest else '>='} 0"
        raise ValueError(f"{name}={level} is out of range: give {kind!r} as {what}.")
    return Corruption(kind, number)


def _checked(name: str, value: Any) -> Any:
    """Return a value as the study keeps it, after checking what can be checked without X."""
    if name == "method":
        return Method.of(value)
    if name == "nonlinearity":
        return _by_name(as_nonlinearity(value), as_nonlinearity)
    if name == "loss":
        return _by_name(as_loss(value), as_loss)
    if name == "rank":
        return check_rank(value)
    if name in {field.name for field in fields(Settings)}:
        Settings.of({name: value})
    try:
        plain(value)
    except TypeError as error:
        raise TypeError(f"{name}={error}") from error
    return value.item() if isinstance(value, np.generic) else value


def _labels(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return numbers as they are, and everything as words as soon as one of them is none."""
    numbers = all(isinstance(v, Real) and not isinstance(v, bool) for v in values)
    if numbers or all(isinstance(v, bool) for v in values):
        return values
    return tuple(_word(value) for value in values)


def _by_name(value: Any, as_object: Callable[[Any], Any]) -> Any:
    """Return the name of a nonlinearity or loss where it stands for the same, else the object."""
    try:
        return value.name if as_object(value.name) == value else value
    except ValueError:  # a class of the user's own
        return value


def _word(value: Any) -> str:
    if isinstance(value, Method):
        return value.name
    return value if isinstance(value, str) else repr(value)
