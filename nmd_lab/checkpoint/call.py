"""The call that a checkpoint belongs to: the function and its arguments.

Plain arguments and objects of this package are stored, so that the call can be repeated.  Of
others, such as arrays and objects of the user, a hash is stored, by which they are recognised when
they are given again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
import xarray as xr

from .encoding import Classes, Encoder

DATA = ("observed", "weights", "at_most", "at_least", "upper", "valid")
"""Arguments that belong to X; the hash of the data covers them."""

FREE = ("callback", "progress", "time_limit", "compute")
"""Arguments that may change when a run goes on."""

KINDS = ("plain", "objects", "hashes")
"""Kinds of stored arguments."""


@dataclass(frozen=True)
class Call:
    """A call of `decompose`, `complete` or `sample`."""

    function: str
    arguments: dict[str, Any]
    defaults: dict[str, Any] = field(default_factory=dict)

    def header(self, classes: Classes) -> dict[str, Any]:
        """Return the call as JSON."""
        header: dict[str, Any] = {"function": self.function, "data": []}
        header |= {"plain": {}, "objects": {}, "hashes": {}}
        for name, value in self.arguments.items():
            if name in DATA:
                header["data"] += [name] if value is not None else []
            elif name == "callback" or (value is None and self.defaults.get(name) is None):
                continue
            elif name == "dtype":
                header["plain"][name] = np.dtype(value).name
            elif is_plain(value):
                header["plain"][name] = plain(value)
            elif name == "random_state":
                continue  # the checkpoint has the random numbers
            elif (encoded := _encoded(value, classes)) is not None:
                header["objects"][name] = encoded
            elif name not in FREE:
                header["hashes"][name] = digest_of(value)
        return header

    def check(self, now: Mapping[str, Any], stored: Mapping[str, Any], path: str) -> None:
        """Raise ValueError if a checkpoint belongs to another call; a sentence says which."""
        if stored["function"] != self.function:
            raise ValueError(
                f"checkpoint={path!r} is of {stored['function']}(), and this is "
                f"{self.function}(): call that, or give another checkpoint=."
            )
        names = {name for each in (now, stored) for kind in KINDS for name in each[kind]}
        for name in sorted(names - {*FREE}):
            (before, text), (present, _) = (self._value(name, each) for each in (stored, now))
            if name == "random_state" and present is None:
                continue  # the checkpoint has the random numbers
            if before != present:
                raise ValueError(
                    f"{name}={_short(self.arguments.get(name))} does not go with "
                    f"checkpoint={path!r}, which has {text}: give what was given then, or another "
                    "checkpoint=."
                )

    def _value(self, name: str, header: Mapping[str, Any]) -> tuple[Any, str]:
        """Return what a header says of an argument, and a text for it."""
        for kind in KINDS:
            if name in header[kind]:
                value = header[kind][name]
                return value, repr(value) if kind == "plain" else "another value"
        default = self.defaults.get(name)
        return plain(default) if is_plain(default) else default, repr(default)


def _encoded(value: Any, classes: Classes) -> Any:
    """Return an object without arrays as JSON, None for any other."""
    encoder = Encoder(classes)
    try:
        encoded = encoder.encode(value)
    except TypeError:
        return None
    return None if encoder.arrays else encoded


def is_plain(value: Any) -> bool:
    """Return whether a value can be stored in JSON and used again."""
    if value is None or isinstance(value, str | bool | np.bool_ | Real):
        return True
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and is_plain(each) for key, each in value.items())
    return isinstance(value, list | tuple) and all(map(is_plain, value)) and len(value) < 1000


def plain(value: Any) -> Any:
    """Return a plain value in the types of JSON."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def digest_of(value: Any) -> str:
    """Return a hash of an argument; equal arguments have equal ones."""
    digest = hashlib.sha256()
    for piece in _pieces(value):
        digest.update(piece)
    return digest.hexdigest()


def _pieces(value: Any) -> Iterable[bytes]:
    """Yield the bytes that a hash takes."""
    yield type(value).__name__.encode()
    if isinstance(value, np.ndarray | np.generic | xr.DataArray):
        array = np.ascontiguousarray(value)
        yield str((array.dtype, array.shape)).encode()
        yield repr(array.tolist()).encode() if array.dtype.hasobject else array.tobytes()
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield repr(key).encode()
            yield from _pieces(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _pieces(each)
    elif hasattr(value, "tocsr") and hasattr(value, "shape"):
        matrix = value.tocsr()
        for array in (matrix.indptr, matrix.indices, matrix.data):
            yield from _pieces(np.asarray(array))
    elif hasattr(value, "factors") and hasattr(value, "offsets"):
        yield from _pieces([*value.factors, *value.offsets])
    elif hasattr(value, "to_numpy"):
        yield from _pieces(value.to_numpy())
    else:
        yield re.sub(r" at 0x[0-9a-f]+", "", repr(value)).encode()


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 40 else f"a {type(value).__name__}"
