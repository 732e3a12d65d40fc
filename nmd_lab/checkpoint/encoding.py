"""Values of a checkpoint as JSON and arrays, and back.

Objects are stored by the name of their class and by what makes them: the fields of a dataclass, the
items of a named tuple, the settings of a nonlinearity or a loss.  Only classes of this package, and
those that the caller names, are read back, so that a file runs no code.  Arrays keep their bits and
their memory order; one that occurs twice is stored once.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

KEY = "nmd"
"""Key of a JSON object that stands for something else than text and numbers."""


Recipe = tuple[Callable[[Any], Iterable[Any]], Callable[..., Any]]
"""A function of an object that returns arguments, and one of these that makes an equal object."""


class Classes:
    """The classes of the objects that a checkpoint may hold.

    Parameters
    ----------
    others : iterable of type
        Classes that are not of this package.
    recipes : dict, optional
        Recipes of classes whose objects only the caller can make again.
    """

    def __init__(
        self, others: Iterable[type] = (), recipes: Mapping[type, Recipe] | None = None
    ) -> None:
        self._others = {name_of(cls): cls for cls in others}
        self.recipes = {name_of(cls): recipe for cls, recipe in (recipes or {}).items()}

    def find(self, name: str) -> type | None:
        """Return a class by its name; None if there is none of this name."""
        module, _, path = name.partition(":")
        found = self._others.get(name)
        if found is None and module.split(".")[0] == "nmd_lab":
            found = getattr(sys.modules.get(module), path, None)
        return found if isinstance(found, type) else None


def name_of(cls: type) -> str:
    """Return the name of a class, with its module."""
    return f"{cls.__module__}:{cls.__qualname__}"


def _arguments_of(value: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return what makes an equal object."""
    if is_dataclass(value):
        return [], {each.name: getattr(value, each.name) for each in fields(value)}
    if hasattr(value, "__getnewargs__"):
        return list(value.__getnewargs__()), {}
    return list(value.settings if hasattr(value, "settings") else value.parameters), {}


class Encoder:
    """Turns values into JSON; the arrays are collected."""

    def __init__(self, classes: Classes) -> None:
        self._classes = classes
        self.arrays: list[NDArray[Any]] = []
        self._numbers: dict[int, tuple[int, Any]] = {}  # with the array, which keeps its id

    def encode(self, value: Any) -> Any:
        """Return a value as JSON."""
        kind, classes = type(value), self._classes
        if value is None or kind in (bool, str, int, float):
            return value
        if kind is list:
            return [self.encode(each) for each in value]
        if kind is dict:
            if not all(type(name) is str for name in value):
                raise TypeError("a checkpoint cannot hold a dict whose keys are no text")
            return {KEY: "dict", "items": {name: self.encode(v) for name, v in value.items()}}
        if kind in (tuple, deque):
            length = getattr(value, "maxlen", None)
            return {KEY: kind.__name__, "items": self.encode(list(value)), "maxlen": length}
        if isinstance(value, np.generic):
            return {KEY: "number", "dtype": value.dtype.str, "value": value.item()}
        if isinstance(value, np.random.Generator):
            bits = value.bit_generator
            return {KEY: "rng", "of": type(bits).__name__, "state": self.encode(bits.state)}
        if isinstance(value, type) and classes.find(name_of(value)) is value:
            return {KEY: "class", "of": name_of(value)}
        name, named = name_of(kind), dict[str, Any]()
        if name in classes.recipes:
            items = list(classes.recipes[name][0](value))
        elif hasattr(value, "__array__"):
            return {KEY: "array", "number": self._number(value)}
        elif classes.find(name) is kind:
            items, named = _arguments_of(value)
        else:
            raise TypeError(f"a checkpoint cannot hold a {kind.__name__}")
        named = {field: self.encode(each) for field, each in named.items()}
        return {KEY: "object", "of": name, "items": self.encode(items), "named": named}

    def _number(self, value: Any) -> int:
        """Return the number of an array, of NumPy, in a file or on a device."""
        if id(value) not in self._numbers:
            array = np.asarray(value.cpu() if hasattr(value, "cpu") else value)
            self._numbers[id(value)] = len(self.arrays), value
            self.arrays.append(array)
        return self._numbers[id(value)][0]


class Decoder:
    """Turns what `Encoder` returned back into values."""

    def __init__(self, classes: Classes, arrays: list[NDArray[Any]]) -> None:
        self._classes, self._arrays = classes, arrays

    def decode(self, plain: Any) -> Any:
        """Return the value that `Encoder.encode` got."""
        if isinstance(plain, list):
            return [self.decode(each) for each in plain]
        if not isinstance(plain, dict):
            return plain
        kind, decode = plain[KEY], self.decode
        if kind == "array":
            return self._arrays[plain["number"]]
        if kind == "number":
            return np.dtype(plain["dtype"]).type(plain["value"])
        if kind == "rng":
            bits = getattr(np.random, plain["of"])()
            bits.state = decode(plain["state"])
            return np.random.Generator(bits)
        if kind == "dict":
            return {name: decode(each) for name, each in plain["items"].items()}
        if kind in ("tuple", "deque"):
            items = decode(plain["items"])
            return tuple(items) if kind == "tuple" else deque(items, plain["maxlen"])
        _, make = self._classes.recipes.get(plain["of"], (None, self._classes.find(plain["of"])))
        if make is None:
            raise LookupError(f"there is no class {plain['of']!r}")
        if kind == "class":
            return make
        named = {name: decode(each) for name, each in plain["named"].items()}
        return make(*decode(plain["items"]), **named)
