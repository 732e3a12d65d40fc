"""The grid of a study: its axes, the fit of each cell, and the key of that fit.

The key is a hash of all arguments that the method takes, but not of the place in the grid.  So a
grid that grows keeps its fits.  Cells that differ only in arguments that their method ignores, such
as the nonlinearity of an SVD, share one fit.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from inspect import Parameter
from typing import Any

import numpy as np

from nmd_lab._checks import check_number, check_rank, check_share, check_words
from nmd_lab.data.pictures import Picture

from .corruption import HIDE, NOISE, Corruption
from .hashing import plain_value
from .methods import Method
from .values import AUTO, checked_value, labels_of, position_of

CONDITIONS = ("missing", "noise", "seed")
"""Dimensions that describe the data of a fit, not the model."""

SOLVER = "solver"
"""Dimension of the methods; ``sel(method=...)`` means something else in xarray."""

NOTHING_HIDDEN, NO_NOISE = Corruption("random", 0.0), Corruption("gaussian", 0.0)


def dimension(name: str) -> str:
    """Return the dimension of the results for an argument: "solver" for "method"."""
    return SOLVER if name == "method" else name


@dataclass(frozen=True)
class Axis:
    """One argument of the fits, with all its values.

    Attributes
    ----------
    name : str
        Name of the argument.
    values : tuple
        Values of the argument, at least one.
    labels : tuple
        Coordinates of the values: numbers, truth values or text, all different.
    varied : bool
        Whether the argument is a dimension of the results.
    """

    name: str
    values: tuple[Any, ...]
    labels: tuple[Any, ...]
    varied: bool

    @property
    def dim(self) -> str:
        """Dimension of the results: "solver" for the methods, else the name of the argument."""
        return dimension(self.name)

    @classmethod
    def of(cls, name: str, argument: Any) -> Axis:
        """Return the axis of an argument; a list, a range or a 1-D array has several values."""
        is_vector = isinstance(argument, np.ndarray) and argument.ndim == 1
        varied = isinstance(argument, list | range) or is_vector
        values = tuple(argument) if varied else (argument,)
        if not values:
            raise ValueError(f"{name}=[] is empty: give at least one value.")
        checked = tuple(checked_value(name, value) for value in values)
        labels = labels_of(checked)
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"{name} has the value {label!r} twice: give each once.")
        return cls(name, checked, labels, varied)


@dataclass(frozen=True)
class Task:
    """One fit: a method, its arguments, and the corruption of X.

    Attributes
    ----------
    method : Method
        Function that fits.
    arguments : dict
        Arguments of the method beside X and the seed.
    missing, noise : Corruption
        Way to hide entries, and kind of noise.
    seed : int
        Seed of the missing entries, the noise and the fit.
    """

    method: Method
    arguments: dict[str, Any]
    missing: Corruption
    noise: Corruption
    seed: int

    def on_all_data(self) -> Task:
        """Return the same fit with nothing hidden and no noise."""
        return replace(self, missing=NOTHING_HIDDEN, noise=NO_NOISE)

    @property
    def key(self) -> str:
        """Hash of everything that decides the result of the fit, apart from X."""
        content = {
            "method": f"{self.method.function.__module__}.{self.method.function.__qualname__}",
            "arguments": plain_value(self.method.settled(self.arguments)),
            "missing": plain_value(self.missing if self.missing.level else NOTHING_HIDDEN),
            "noise": plain_value(self.noise if self.noise.level else NO_NOISE),
            "seed": self.seed,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:20]


@dataclass(frozen=True)
class Grid:
    """All axes of a study, and the tasks of its cells.

    Attributes
    ----------
    axes : tuple of Axis
        Arguments with their values, whether they vary or not.
    """

    axes: tuple[Axis, ...]

    @property
    def dims(self) -> dict[str, Axis]:
        """Axes that are dimensions of the results."""
        return {axis.dim: axis for axis in self.axes if axis.varied}

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
        """Return the task of a cell.

        Parameters
        ----------
        labels : dict
            Coordinates of the cell; a dimension with one value needs none.

        Raises
        ------
        ValueError
            If there is no such cell.
        """
        labels = {dimension(name): label for name, label in labels.items()}
        check_words("dimension", labels, self.dims)
        values = {}
        for axis in self.axes:
            if axis.dim in labels:
                values[axis.name] = axis.values[
                    position_of(labels[axis.dim], axis.labels, axis.dim)
                ]
            elif len(axis.values) == 1:
                (values[axis.name],) = axis.values
            else:
                raise ValueError(
                    f"{axis.dim} is not given: choose one of {list(axis.labels)} for the cell."
                )
        return task_of(values)

    def check_ranks(self, shape: tuple[int, int]) -> None:
        """Raise ValueError if a rank that is given exceeds a side of the matrix."""
        ranks = next((axis.values for axis in self.axes if axis.name == "rank"), ())
        for rank in ranks:
            if rank != AUTO:
                check_rank(rank, shape)

    def coordinates(self) -> dict[str, Any]:
        """Return the coordinates of the results."""
        coords: dict[str, Any] = {}
        for name, axis in self.dims.items():
            is_text = any(isinstance(label, str) for label in axis.labels)
            coords[name] = np.array(axis.labels, dtype=object if is_text else None)
            if is_text and name in ("missing", "noise"):
                coords[f"{name}_kind"] = (name, np.array([v.kind for v in axis.values], object))
                coords[f"{name}_level"] = (name, [float(v.level) for v in axis.values])
        return coords


def task_of(values: dict[str, Any]) -> Task:
    """Return the task for one value of each argument."""
    method = values["method"]
    arguments = {name: v for name, v in values.items() if name in method.defaults}
    return Task(method, arguments, values["missing"], values["noise"], int(values["seed"]))


def make_grid(
    arguments: dict[str, Any],
    missing: Any,
    noise: Any,
    method: Any,
    seeds: range,
    study_arguments: Iterable[str] = (),
    picture: Picture | None = None,
) -> Grid:
    """Return the grid of a study, after all checks that need no data.

    Parameters
    ----------
    arguments : dict
        Arguments of the fits, each a value or a list of values.
    missing, noise, method
        Arguments of `Study`.
    seeds : range
        Seeds of the study.
    study_arguments : iterable of str
        Names of the other arguments of `Study`, which are proposed for a misspelt name.
    picture : Picture, optional
        Layout of the picture that each row is.

    Raises
    ------
    ValueError, TypeError
        If an argument makes no sense.
    """
    methods = Axis.of("method", method)
    accepted = dict.fromkeys(name for each in methods.values for name in each.defaults)
    check_words("argument", arguments, [*accepted, *study_arguments])
    for each in methods.values:
        for name, default in each.defaults.items():
            if default is Parameter.empty and name not in arguments:
                raise TypeError(f"{name} is not given: {each.name} needs it, for example {name}=5.")
    first = ("nonlinearity", "loss", "rank", "alpha", "offset_alpha")
    order = [n for n in first if n in arguments] + [n for n in arguments if n not in first]
    if methods.varied and methods.dim in arguments:
        raise ValueError(
            f"{methods.dim}= is an argument of a method and the dimension of the methods: give one "
            "method, or rename the argument."
        )
    axes = [methods, *(Axis.of(name, arguments[name]) for name in order)]
    axes.append(_corruption_axis("missing", missing, HIDE, "random", picture))
    axes.append(_corruption_axis("noise", noise, NOISE, "gaussian"))
    return Grid((*axes, Axis.of("seed", seeds)))


def _corruption_axis(
    name: str,
    argument: Any,
    kinds: Mapping[str, Any],
    default_kind: str,
    picture: Picture | None = None,
) -> Axis:
    """Return the axis of `missing` or `noise`."""
    levels_of: Mapping[str, Any] = (
        argument
        if isinstance(argument, Mapping)
        else {default_kind: 0.0 if argument is None else argument}
    )
    check_words(name, levels_of, kinds)
    if not levels_of:
        raise ValueError(f"{name}={argument!r} is empty: give a kind with levels, or leave it out.")
    several_kinds = varied = len(levels_of) > 1
    values = []
    for kind, levels in levels_of.items():
        is_list = isinstance(levels, list | tuple | range | np.ndarray)
        varied = varied or is_list
        layout = picture if kind == "blocks" else None
        values += [
            Corruption(kind, _checked_level(name, kind, level), layout)
            for level in (levels if is_list else [levels])
        ]
    if not values:
        raise ValueError(f"{name}={argument!r} is empty: give at least one level.")
    labels = tuple(f"{c.kind} {c.level:g}" if several_kinds else float(c.level) for c in values)
    if len(set(labels)) < len(labels):
        raise ValueError(f"{name}={argument!r} has the same level twice: give each once.")
    return Axis(name, tuple(values), labels, varied)


def _checked_level(name: str, kind: str, level: Any) -> float:
    """Return one level of one kind as a float, if it is within its bounds."""
    if name == "missing":
        return check_share(name, level)
    if kind in ("salt_and_pepper", "outliers"):
        return check_share(name, level, one=True)
    return check_number(name, level, 0, above=0 if kind == "poisson" else None)
