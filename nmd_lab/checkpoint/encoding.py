"""Values of a checkpoint as JSON and arrays, and back.

Objects are stored by the name of their class and by what makes them: the fields of a dataclass, the
items of a named tuple, the settings of a nonlinearity or a loss.  Only classes of this package, and
those that the caller names, are read back, so that a file runs no code.  Arrays keep their bits and
their memory order; one that occurs twice is stored once.
"""

from __future__ import annotations

import importlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

KEY = "nmd"
"""Key of a JSON object that stands for something else than text and numbers."""


class Recipe(NamedTuple):
    """How objects of a class are stored that only the caller can make again.

    Attributes
    ----------
    arguments : callable
        Function of an object that returns the arguments.
    make : callable
        Function of the arguments that returns an equal object.
    """

    arguments: Callable[[Any], Iterable[Any]]
    make: Callable[..., Any]


class Classes:
    """The classes of the objects that a checkpoint may hold."""

    def __init__(
        self, others: Iterable[type] = (), recipes: Mapping[type, Recipe] | None = None
    ) -> None:
        self._others = {_name_of(cls): cls for cls in others}
        self.recipes = {_name_of(cls): recipe for cls, recipe in (recipes or {}).items()}

    def knows(self, cls: type) -> bool:
        """Return whether a class is one of these, and is found by its name."""
        try:
            return self.find(_name_of(cls)) is cls
        except LookupError:
            return False

    def find(self, name: str) -> type:
        """Return a class by its name; LookupError if there is none of this name."""
        if name in self._others:
            return self._others[name]
        module, _, path = name.partition(":")
        found: Any = None
        if module.split(".")[0] == "nmd_lab":
            found = getattr(importlib.import_module(module), path, None)
        if not isinstance(found, type):
            raise LookupError(f"there is no class {name!r}")
        return found


def _name_of(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _arguments_of(value: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return what makes an equal object."""
    if is_dataclass(value):
        return [], {each.name: getattr(value, each.name) for each in fields(value)}
    if hasattr(value, "__getnewargs__"):
        return list(value.__getnewargs__()), {}
    for name in ("settings", "parameters"):
        if hasattr(value, name):
            return list(getattr(value, name)), {}
    raise TypeError(f"a checkpoint cannot hold a {type(value).__name__}")


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
        if isinstance(value, type) and classes.knows(value):
            return {KEY: "class", "of": _name_of(value)}
        recipe = classes.recipes.get(_name_of(kind))
        if recipe is not None:
            made_of = self.encode(list(recipe.arguments(value)))
            return {KEY: "recipe", "of": _name_of(kind), "items": made_of}
        if hasattr(value, "__array__"):
            return {KEY: "array", "number": self._number(value)}
        if not classes.knows(kind):
            raise TypeError(f"a checkpoint cannot hold a {kind.__name__}")
        items, named = _arguments_of(value)
        named = {name: self.encode(each) for name, each in named.items()}
        return {KEY: "object", "of": _name_of(kind), "items": self.encode(items), "named": named}

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
        if kind == "class":
            return self._classes.find(plain["of"])
        items = decode(plain["items"])
        if kind == "tuple":
            return tuple(items)
        if kind == "deque":
            return deque(items, plain["maxlen"])
        if kind == "recipe":
            return self._classes.recipes[plain["of"]].make(*items)
        named = {name: decode(each) for name, each in plain["named"].items()}
        return self._classes.find(plain["of"])(*items, **named)
