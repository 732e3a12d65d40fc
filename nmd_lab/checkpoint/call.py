"""The call that a checkpoint belongs to: the function and its arguments.

Numbers, text and objects of this package are stored, so that the call can be repeated.  Of others,
such as arrays and objects of the user, a hash is stored, by which they are recognised when they are
given again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from .encoding import Classes, Decoder, Encoder

DATA = ("observed", "weights", "at_most", "at_least", "upper", "valid")
"""Arguments that belong to X; the hash of the data covers them."""

FREE = ("callback", "progress", "time_limit", "compute")
"""Arguments that may change when a run resumes."""


@dataclass(frozen=True)
class Call:
    """A call of `decompose`, `complete` or `sample`."""

    function: str
    arguments: dict[str, Any]

    def header(self, classes: Classes) -> dict[str, Any]:
        """Return the call as JSON."""
        stored = {
            name: stored_form(name, value, classes)
            for name, value in self.arguments.items()
            if name != "callback" and value is not None
        }
        arguments = {name: each for name, each in stored.items() if each is not None}
        return {"function": self.function, "arguments": arguments}

    def check(self, now: Mapping[str, Any], stored: Mapping[str, Any], path: str) -> None:
        """Raise ValueError, which names the call, if a checkpoint belongs to another call."""
        if stored["function"] != self.function:
            raise ValueError(
                f"checkpoint={path!r} is of {stored['function']}(), and this is "
                f"{self.function}(): call that, or give another checkpoint=."
            )
        before, present = stored["arguments"], now["arguments"]
        for name in sorted({*before, *present} - {*FREE, *DATA}):
            kind, value = before.get(name) or ("value", None)
            if name == "random_state" and self.arguments.get(name) is None:
                continue  # the checkpoint has the random numbers
            if [kind, value] != present.get(name, ["value", None]):
                text = "another value" if isinstance(value, dict) or kind == "hash" else repr(value)
                raise ValueError(
                    f"{name}={_short(self.arguments.get(name))} does not go with "
                    f"checkpoint={path!r}, which has {text}: give what was given then, or another "
                    "checkpoint=."
                )

    @staticmethod
    def again(stored: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """Return the arguments of a stored call, and the names of those that it does not have."""
        arguments, others = {}, []
        for name, (kind, value) in stored["arguments"].items():
            try:
                if kind != "value":
                    raise LookupError(name)
                arguments[name] = Decoder(Classes(), []).decode(value)
            except LookupError:  # also for a class of the user
                others.append(name)
        return arguments, sorted(others)


def stored_form(name: str, value: Any, classes: Classes) -> list[Any] | None:
    """Return how an argument is stored, and its JSON or its hash; None if it is not."""
    if name in DATA:
        return ["data", None]
    if name == "dtype" and value is not None:
        value = np.dtype(value).name
    elif isinstance(value, np.generic):
        value = value.item()
    encoder = Encoder(classes)
    try:
        encoded = encoder.encode(value)
        if not encoder.arrays and not isinstance(value, np.random.Generator):
            return ["value", encoded]
    except TypeError:
        pass
    return None if name in FREE or name == "random_state" else ["hash", hash_of(value)]


def hash_of(value: Any) -> str:
    """Return a hash of an argument; equal arguments have equal ones."""
    import joblib

    if hasattr(value, "_factors") and hasattr(value, "offsets"):
        value = [*value._factors, *value.offsets]
    try:
        return str(joblib.hash(_content(value)))
    except Exception:  # what cannot be pickled is told by its text, without addresses
        text = f"{value!r} {getattr(value, '__dict__', '')}"
        return re.sub(r" at 0x[0-9a-f]+", "", text)


def _content(value: Any) -> Any:
    """Return what makes labelled arrays equal, without what they remember of their use."""
    if isinstance(value, tuple | list):
        return [_content(each) for each in value]
    if isinstance(value, xr.DataArray):
        return value.dims, value.values, {str(n): c.values for n, c in value.coords.items()}
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 40 else f"a {type(value).__name__}"
