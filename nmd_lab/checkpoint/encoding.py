"""Values of a checkpoint as JSON and arrays, and back.

Objects are stored by the name of their class and their fields.  Only classes that `Classes` lists
are read back, so that a file runs no code.  Arrays keep their bits, their memory order and what
they share: one that occurs twice is stored once, and a view stays a view.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LARGEST_BASE = 4
"""Size of an array, in units of a view of it, up to which the view is stored with it."""

BIT_GENERATORS: dict[str, type[np.random.BitGenerator]] = {
    cls.__name__: cls
    for cls in (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox)
}
"""Sources of random numbers."""

KEY = "nmd"
"""Key of a JSON object that stands for something else than a dict."""


class Made(NamedTuple):
    """How objects of a class are stored that are made from a few arguments.

    Attributes
    ----------
    settings : callable
        Function of an object that returns the arguments.
    make : callable
        Function of the arguments that returns an equal object.
    """

    settings: Callable[[Any], Iterable[Any]]
    make: Callable[..., Any]


class Classes:
    """The classes of the objects that a checkpoint may hold."""

    def __init__(self, plain: Iterable[type], made: dict[type, Made]) -> None:
        self.plain = {cls.__name__: cls for cls in plain}
        self.made = {cls.__name__: (cls, how) for cls, how in made.items()}

    def knows(self, value: Any) -> bool:
        """Return whether the class of an object is one of these."""
        kind, name = type(value), type(value).__name__
        return self.plain.get(name) is kind or self.made.get(name, (None,))[0] is kind


class Encoder:
    """Turns values into JSON; the arrays are collected.

    Attributes
    ----------
    arrays : list of ndarray
        Arrays so far, contiguous in C or Fortran order.
    """

    def __init__(self, classes: Classes) -> None:
        self._classes = classes
        self.arrays: list[NDArray[Any]] = []
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # an id is unique only as long as the object lives

    def encode(self, value: Any) -> Any:
        """Return a value as JSON."""
        kind, name = type(value), type(value).__name__
        if value is None or kind in (bool, str, int):
            return value
        if isinstance(value, np.ndarray):
            return self._encode_array(value)
        if isinstance(value, np.generic):
            return {KEY: "number", "dtype": value.dtype.str, "value": self.encode(value.item())}
        if kind is float:
            return value if math.isfinite(value) else {KEY: "float", "value": repr(value)}
        if isinstance(value, np.random.Generator):
            bits = value.bit_generator
            return {
                KEY: "generator",
                "class": type(bits).__name__,
                "state": self.encode(bits.state),
            }
        if self._classes.plain.get(name) is kind:
            names = getattr(value, "_fields", None) or [f.name for f in fields(value)]
            own = {field: self.encode(getattr(value, field)) for field in names}
            return {KEY: "object", "class": name, "fields": own}
        cls, how = self._classes.made.get(name, (None, None))
        if cls is kind and how is not None:
            return {KEY: "made", "class": name, "settings": self._all(how.settings(value))}
        if isinstance(value, dict):
            pairs = [[self.encode(key), self.encode(item)] for key, item in value.items()]
            return {KEY: "dict", "items": pairs}
        if isinstance(value, deque):
            return {KEY: "deque", "items": self._all(value), "maxlen": value.maxlen}
        if kind is tuple:
            return {KEY: "tuple", "items": self._all(value)}
        if kind is list:
            return self._all(value)
        raise TypeError(f"a checkpoint cannot hold a {type(value).__name__}")

    def _all(self, values: Iterable[Any]) -> list[Any]:
        return [self.encode(each) for each in values]

    def _encode_array(self, array: NDArray[Any]) -> dict[str, Any]:
        base = array
        while isinstance(base.base, np.ndarray):
            base = base.base
        if base is not array and base.nbytes <= LARGEST_BASE * max(array.nbytes, 1):
            contiguous = base.flags.c_contiguous or base.flags.f_contiguous
            if contiguous and base.dtype == array.dtype:
                start = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
                view = {"shape": list(array.shape), "strides": list(array.strides), "start": start}
                return {KEY: "view", "base": self._number(base)} | view
        return {KEY: "array", "number": self._number(array)}

    def _number(self, array: NDArray[Any]) -> int:
        if id(array) not in self._numbers:
            self._numbers[id(array)] = len(self.arrays)
            self._kept.append(array)
            contiguous = array.flags.c_contiguous or array.flags.f_contiguous
            self.arrays.append(array if contiguous else np.ascontiguousarray(array))
        return self._numbers[id(array)]


class Decoder:
    """Turns what `Encoder` made back into values."""

    def __init__(self, classes: Classes, arrays: list[NDArray[Any]]) -> None:
        self._classes, self._arrays = classes, arrays

    def decode(self, plain: Any) -> Any:
        """Return the value that `Encoder.encode` got."""
        if isinstance(plain, list):
            return [self.decode(each) for each in plain]
        if not isinstance(plain, dict):
            return plain
        kind = plain[KEY]
        if kind == "array":
            return self._arrays[plain["number"]]
        if kind == "view":
            base = self._arrays[plain["base"]]
            flat = base.reshape(-1, order="A")
            return np.ndarray(
                tuple(plain["shape"]), base.dtype, flat, plain["start"], tuple(plain["strides"])
            )
        if kind == "float":
            return float(plain["value"])
        if kind == "number":
            return np.dtype(plain["dtype"]).type(self.decode(plain["value"]))
        if kind == "object":
            own = {name: self.decode(each) for name, each in plain["fields"].items()}
            return self._classes.plain[plain["class"]](**own)
        if kind == "made":
            _, how = self._classes.made[plain["class"]]
            return how.make(*self.decode(plain["settings"]))
        if kind == "generator":
            bits = BIT_GENERATORS[plain["class"]]()
            bits.state = self.decode(plain["state"])
            return np.random.Generator(bits)
        if kind == "dict":
            return {self.decode(key): self.decode(each) for key, each in plain["items"]}
        items = self.decode(plain["items"])
        return deque(items, plain["maxlen"]) if kind == "deque" else tuple(items)
