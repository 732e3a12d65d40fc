"""The grid of a study: its cells as an array over the labels of all arguments that vary.

The label of a value is a number, a truth value or text.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from inspect import Parameter, isroutine
from numbers import Real
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from nmd_lab._runtime.checks import check_number, check_rank, check_share, check_words, is_auto
from nmd_lab.model.losses import as_loss
from nmd_lab.model.nonlinearities import as_nonlinearity
from nmd_lab.request.options import FitOptions, Options

from .cell import METHODS, Cell, Metric, defaults, named_function
from .known_entries import HIDE, NOISE, Corruption, KnownEntries, refuse_for_classes

Axis = tuple[dict[Any, Any], bool]  # values of an argument by label, and whether it is a dimension
Array = TypeVar("Array", xr.DataArray, xr.Dataset)

ALGORITHM = "algorithm"  # dimension of methods; ``sel(method=...)`` means another thing in xarray
FIRST = (ALGORITHM, "nonlinearity", "loss", "rank", "alpha", "offset_alpha")  # in this order
CONDITIONS = ("missing", "noise", "seed")  # dimensions that describe the data, not the model

# Checks of the arguments that are a model, and may be "auto"
CHECKS: dict[str, Any] = {"nonlinearity": as_nonlinearity, "loss": as_loss, "rank": check_rank}
KINDS = {"missing": [*HIDE], "noise": [*NOISE]}  # the first one is the default


def make_grid(
    data: KnownEntries, metrics: dict[str, Metric], arguments: dict[str, Any]
) -> xr.DataArray:
    """Return the cells of a study, after the checks of its arguments.

    The attributes are the labels of constants, and the arguments that each method ignores.
    """
    order = [name for name in dict.fromkeys([*FIRST, *arguments]) if name in arguments]
    axes = {name: _axis(name, arguments[name]) for name in order}
    for rank in set(axes["rank"][0].values()) - {"auto"} if "rank" in axes else ():
        check_rank(rank, data.observations.shape)
    if data.classes:
        refuse_for_classes([*axes["missing"][0].values(), *axes["noise"][0].values()])
    cells = []
    for values in itertools.product(*(by_label.values() for by_label, _ in axes.values())):
        settings = dict(zip(axes, values, strict=True))
        method, *condition = (settings.pop(name) for name in (ALGORITHM, *CONDITIONS))
        settings = {name: v for name, v in settings.items() if name in defaults(method)}
        cells.append(Cell(data, metrics, method, settings, *condition))
    dims = {name: by_label for name, (by_label, varied) in axes.items() if varied}
    models = [name for name in dims if name not in (ALGORITHM, *CONDITIONS)]
    attrs = {
        "constants": {name: next(iter(axes[name][0])) for name in axes if name not in dims},
        "ignored": {
            label: [name for name in models if name not in defaults(method)]
            for label, method in axes[ALGORITHM][0].items()
        },
    }
    array = np.array(cells, object).reshape([len(by_label) for by_label in dims.values()])
    return xr.DataArray(array, _coordinates(dims), [*dims], attrs=attrs)


def _coordinates(dims: dict[str, dict[Any, Any]]) -> dict[str, Any]:
    """Return the coordinates of dimensions; kind and level where a label has both."""
    coords: dict[str, Any] = {}
    for name, by_label in dims.items():
        is_text = any(isinstance(label, str) for label in by_label)
        coords[name] = np.array([*by_label], dtype=object if is_text else None)
        if is_text and name in KINDS:
            kinds, levels = zip(*by_label.values(), strict=True)
            coords[f"{name}_kind"] = name, np.array(kinds, object)
            coords[f"{name}_level"] = name, list(levels)
    return coords


def select(array: Array, labels: Mapping[str, Any]) -> Array:
    """Return the cells with the given label, or list of labels, of dimensions, which all stay."""
    check_words("dimension", labels, map(str, array.dims))
    for dim, chosen in labels.items():
        listed = chosen if isinstance(chosen, list | tuple) else [chosen]
        available = array[dim].values.tolist()
        array = array.isel({dim: [_position(label, available, dim) for label in listed]})
    return array


def _position(label: Any, labels: list[Any], dim: str) -> int:
    """Return the position of a label; a number is its text next to words such as "auto"."""
    label = label.item() if isinstance(label, np.generic) else label
    for candidate in (label, _as_text(label)):
        if candidate in labels:
            return labels.index(candidate)
    raise ValueError(f"{dim}={label!r} is not in the study: choose from {labels}.")


def check_names(method: Any, arguments: dict[str, Any], others: Iterable[str]) -> None:
    """Refuse an argument that no method takes, and a method that lacks one."""
    methods, _ = _axis(ALGORITHM, method)
    taken = {label: defaults(function) for label, function in methods.items()}
    check_words("argument", arguments, [*dict.fromkeys(itertools.chain(*taken.values())), *others])
    for label, parameters in taken.items():
        for name, default in parameters.items():
            if default is Parameter.empty and name not in arguments:
                raise TypeError(f"{name} is not given: {label} needs it.")


def _axis(name: str, argument: Any) -> Axis:
    """Return the values of an argument by their labels; a list, range or 1-D array has several."""
    if name in KINDS:
        return _corruptions(name, argument)
    is_vector = isinstance(argument, np.ndarray) and argument.ndim == 1
    varied = isinstance(argument, list | range) or is_vector
    values = list(argument) if varied else [argument]
    if name == ALGORITHM:
        return _by_label(name, [named_function("method", v, METHODS) for v in values]), varied
    values = [_checked(name, v) for v in values]
    booleans = {isinstance(v, bool) for v in values}
    plain = all(isinstance(v, Real) for v in values) and len(booleans) == 1
    return _by_label(name, [(v if plain else _as_text(v), v) for v in values]), varied


def _corruptions(name: str, argument: Any) -> Axis:
    """Return the values of `missing` or `noise`; levels without a kind are of the first kind."""
    argument = 0.0 if argument is None else argument
    levels_of = argument if isinstance(argument, Mapping) else {KINDS[name][0]: argument}
    check_words(name, levels_of, KINDS[name])
    values = [
        Corruption(kind, _checked_level(name, kind, level))
        for kind, levels in levels_of.items()
        for level in np.ravel(levels).tolist()
    ]
    several = len(levels_of) > 1
    pairs = [(f"{v.kind} {v.level:g}" if several else v.level, v) for v in values]
    return _by_label(name, pairs), several or any(map(np.ndim, levels_of.values()))


def _by_label(name: str, pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return values by their labels; refuse none, and equal ones."""
    labels, by_label = [label for label, _ in pairs], dict(pairs)
    if not pairs:
        raise ValueError(f"{name}=[] is empty: give at least one value.")
    if len(by_label) < len(pairs):
        raise ValueError(f"{name}={labels} has a value twice: give each once.")
    return by_label


def _checked(name: str, value: Any) -> Any:
    """Return one value of an argument in the form that the study keeps, if it makes sense."""
    if name in CHECKS and not is_auto(value):
        checked = CHECKS[name](value)
        return value if isinstance(value, str) else checked
    if name in FitOptions.__annotations__:
        Options.of({name: value})
    if any(map(isroutine, (value, *getattr(value, "settings", ())))):
        raise TypeError(f"{name}={value!r} cannot be kept: give numbers, text, arrays.")
    return value.item() if isinstance(value, np.generic) else value


def _checked_level(name: str, kind: str, level: Any) -> float:
    """Return one level of one kind as a float, if it is within its bounds."""
    if name == "missing" or kind in ("salt_and_pepper", "outliers"):
        return check_share(name, level, one=name == "noise")
    return check_number(name, level, 0, above=0 if kind == "poisson" else None)


def _as_text(value: Any) -> str:
    """Return the label of a value that is not a number."""
    return str(value) if isinstance(value, str) else repr(value)
