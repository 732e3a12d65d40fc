"""The grid of a study: its axes, the fit of each cell, and the key of that fit.

The key is a hash of all arguments that the method takes, but not of the place in the grid.  So a
grid that grows keeps its fits.  Cells that differ only in arguments that their method ignores, such
as the nonlinearity of an SVD, share one fit.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from inspect import Parameter
from numbers import Real
from typing import Any

import numpy as np
import xarray as xr
from joblib import hash as hash_of

from nmd_lab._checks import check_number, check_rank, check_share, check_words, is_auto
from nmd_lab.data.pictures import Picture
from nmd_lab.model.losses import Loss, as_loss
from nmd_lab.model.nonlinearities import Nonlinearity, as_nonlinearity
from nmd_lab.solver.constraints.base import FactorConstraint
from nmd_lab.solver.options import Options
from nmd_lab.solver.penalty import PenaltyRule

from .corruption import HIDE, NOISE, Corruption
from .known_entries import KnownEntries
from .methods import Method

CONDITIONS = ("missing", "noise", "seed")
"""Dimensions that describe the data of a fit, not the model."""

SOLVER = "solver"
"""Dimension of the methods; ``sel(method=...)`` means something else in xarray."""

FIRST = ("nonlinearity", "loss", "rank", "alpha", "offset_alpha")
"""Arguments whose dimensions come first, in this order."""

MODEL_CHECKS: dict[str, Callable[[Any], Any]] = {
    "nonlinearity": as_nonlinearity, "loss": as_loss, "rank": check_rank
}  # fmt: skip
"""Checks of the arguments that are a model, and may be "auto"."""

NOTHING_HIDDEN, NO_NOISE = Corruption("random", 0.0), Corruption("gaussian", 0.0)


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

    def __post_init__(self) -> None:
        """Refuse an argument without values, and one with equal values."""
        if not self.values:
            raise ValueError(f"{self.name}=[] is empty: give at least one value.")
        for label in self.labels:
            if self.labels.count(label) > 1:
                raise ValueError(f"{self.name} has the value {label!r} twice: give each once.")

    @classmethod
    def of(cls, name: str, argument: Any) -> Axis:
        """Return the axis of an argument; a list, a range or a 1-D array has several values."""
        is_vector = isinstance(argument, np.ndarray) and argument.ndim == 1
        varied = isinstance(argument, list | range) or is_vector
        values = tuple(_checked(name, v) for v in (argument if varied else [argument]))
        booleans = {isinstance(v, bool) for v in values}
        plain = all(isinstance(v, Real) for v in values) and len(booleans) == 1
        return cls(name, values, values if plain else tuple(map(_as_text, values)), varied)

    @classmethod
    def of_corruption(
        cls, name: str, argument: Any, kinds: Iterable[str], picture: Picture | None
    ) -> Axis:
        """Return the axis of `missing` or `noise`; levels without a kind are of the first kind."""
        argument = 0.0 if argument is None else argument
        levels_of = argument if isinstance(argument, Mapping) else {next(iter(kinds)): argument}
        check_words(name, levels_of, kinds)
        values = tuple(
            Corruption(kind, _checked_level(name, kind, v), picture if kind == "blocks" else None)
            for kind, levels in levels_of.items()
            for v in np.ravel(levels).tolist()
        )
        several = len(levels_of) > 1
        labels = tuple(str(v) if several else v.level for v in values)
        return cls(name, values, labels, several or any(map(np.ndim, levels_of.values())))


def _checked(name: str, value: Any) -> Any:
    """Return one value of an argument in the form that the study keeps, if it makes sense."""
    if name == SOLVER:
        return Method.of(value)
    if (check := MODEL_CHECKS.get(name)) is not None:
        checked = value if is_auto(value) else check(value)
        return value if isinstance(value, str) else checked
    if name in {field.name for field in fields(Options)}:
        Options.of({name: value})
    try:
        as_json(value)
    except TypeError as error:
        raise TypeError(f"{name}={value!r} cannot be kept: give numbers, text, arrays.") from error
    return value.item() if isinstance(value, np.generic) else value


def _checked_level(name: str, kind: str, level: Any) -> float:
    """Return one level of one kind as a float, if it is within its bounds."""
    if name == "missing" or kind in ("salt_and_pepper", "outliers"):
        return check_share(name, level, one=name == "noise")
    return check_number(name, level, 0, above=0 if kind == "poisson" else None)


def _as_text(value: Any) -> str:
    """Return the label of a value that is not a number."""
    return str(value) if isinstance(value, str | Method) else repr(value)


def position_of(label: Any, labels: Sequence[Any], dim: str) -> int:
    """Return the position of a label; a number stands for its text beside a word such as "auto"."""
    label = label.item() if isinstance(label, np.generic) else label
    for candidate in (label, _as_text(label)):
        if candidate in labels:
            return labels.index(candidate)
    raise ValueError(f"{dim}={label!r} is not in the study: choose from {list(labels)}.")


def as_json(value: Any) -> str:
    """Return an argument as text that identifies it; TypeError if it is, say, a function."""
    return json.dumps(value, sort_keys=True, default=_plain)


def _plain(value: Any) -> Any:
    """Return what JSON does not know as numbers and text."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray | xr.DataArray):
        return ["array", hash_of(np.ascontiguousarray(value))]
    if isinstance(value, Nonlinearity | Loss):
        return [type(value).__qualname__, *value.settings]
    if isinstance(value, FactorConstraint | PenaltyRule | Picture):
        return [type(value).__qualname__, vars(value)]
    if isinstance(value, Method | np.dtype | type):
        return str(value)
    raise TypeError(f"{value!r} has no plain form")


@dataclass(frozen=True)
class Task:
    """One fit: a method, its arguments beside X and the seed, and the corruption of X."""

    method: Method
    arguments: dict[str, Any]
    missing: Corruption
    noise: Corruption
    seed: int

    @classmethod
    def of(cls, values: dict[str, Any]) -> Task:
        """Return the task for one value of each axis."""
        method = values[SOLVER]
        arguments = {name: v for name, v in values.items() if name in method.defaults}
        return cls(method, arguments, values["missing"], values["noise"], int(values["seed"]))

    def on_all_data(self) -> Task:
        """Return the same fit with nothing hidden and no noise."""
        return replace(self, missing=NOTHING_HIDDEN, noise=NO_NOISE)

    @property
    def key(self) -> str:
        """Hash of everything that decides the result of the fit, apart from X."""
        function, arguments = self.method.function, self.method.defaults | self.arguments
        content = {
            "method": f"{function.__module__}.{function.__qualname__}",
            "arguments": arguments,
            "missing": self.missing if self.missing.level else NOTHING_HIDDEN,
            "noise": self.noise if self.noise.level else NO_NOISE,
            "seed": self.seed,
        }
        return hashlib.sha256(as_json(content).encode()).hexdigest()[:20]


@dataclass(frozen=True)
class Grid:
    """All axes of a study by name, and the tasks of its cells."""

    axes: dict[str, Axis]

    @property
    def dims(self) -> dict[str, Axis]:
        """Axes that are dimensions of the results."""
        return {name: axis for name, axis in self.axes.items() if axis.varied}

    def __iter__(self) -> Iterator[Task]:
        """Yield the task of each cell, the last dimension fastest."""
        for values in itertools.product(*(axis.values for axis in self.axes.values())):
            yield Task.of(dict(zip(self.axes, values, strict=True)))

    def task(self, labels: Mapping[str, Any]) -> Task:
        """Return the task of a cell; a dimension with one value needs no label."""
        check_words("dimension", labels, self.dims)
        values = {}
        for name, axis in self.axes.items():
            if name not in labels and len(axis.values) > 1:
                raise ValueError(f"{name} is not given: choose one of {list(axis.labels)}.")
            label = labels.get(name, axis.labels[0])
            values[name] = axis.values[position_of(label, axis.labels, name)]
        return Task.of(values)

    def coordinates(self) -> dict[str, Any]:
        """Return the coordinates of the results."""
        coords: dict[str, Any] = {}
        for name, axis in self.dims.items():
            is_text = any(isinstance(label, str) for label in axis.labels)
            coords[name] = np.array(axis.labels, dtype=object if is_text else None)
            if is_text and name in ("missing", "noise"):
                kinds, levels, _ = zip(*axis.values, strict=True)
                coords[f"{name}_kind"] = (name, np.array(kinds, object))
                coords[f"{name}_level"] = (name, list(levels))
        return coords


def make_grid(
    arguments: dict[str, Any], others: dict[str, Any], data: KnownEntries, names: Iterable[str]
) -> Grid:
    """Return the grid of a study, after the checks of its arguments.

    `others` are those of the study itself: solver, missing, noise, seed, shape; `names` all names.
    """
    methods = Axis.of(SOLVER, others[SOLVER])
    accepted = dict.fromkeys(name for method in methods.values for name in method.defaults)
    check_words("argument", arguments, [*accepted, *names])
    for method in methods.values:
        for name, default in method.defaults.items():
            if default is Parameter.empty and name not in arguments:
                raise TypeError(f"{name} is not given: {method} needs it.")
    missing, shape, picture = others["missing"], others["shape"], None
    if shape is not None or (isinstance(missing, Mapping) and "blocks" in missing):
        picture = data.picture_of_rows(shape)
    axes = [
        methods,
        *(Axis.of(n, arguments[n]) for n in dict.fromkeys([*FIRST, *arguments]) if n in arguments),
        Axis.of_corruption("missing", missing, HIDE, picture),
        Axis.of_corruption("noise", others["noise"], NOISE, None),
        Axis.of("seed", others["seed"]),
    ]
    grid = Grid({axis.name: axis for axis in axes})
    for rank in set(grid.axes["rank"].values if "rank" in arguments else ()) - {"auto"}:
        check_rank(rank, data.shape)
    return grid
