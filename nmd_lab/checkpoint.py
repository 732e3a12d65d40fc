"""Checkpoints: where a computation stands, in a file from which a later process resumes.

Values become JSON and arrays, and back.  Objects are stored by the name of their class and by what
makes them: the fields of a dataclass, the items of a named tuple, the settings of a nonlinearity or
a loss.  Only classes of this package, and those that the caller names, are read back, so that a
file runs no code.  Arrays keep their bits and their memory order; one that occurs twice is stored
once.

The call that a checkpoint belongs to is stored with it: the function and its arguments.  Numbers,
text and objects of this package are stored, so that the call can be repeated.  Of others, such as
arrays and objects of the user, a hash is stored, by which they are recognised when they are given
again.

The file is a zip archive of a header in JSON and of arrays, with checksums.  The present checkpoint
becomes the earlier one (``NAME.earlier``) before a new one is written, so that one of both is
always whole.
"""

from __future__ import annotations

import contextlib
import copy
import json
import re
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ._runtime.machine import check_target, write_atomically
from ._version import __version__
from .warnings import CheckpointWarning

KEY = "nmd"
"""Key of a JSON object that stands for something else than text and numbers."""


Recipe = tuple[Callable[[Any], Iterable[Any]], Callable[..., Any]]
"""A function of an object that returns arguments, and one of these that makes an equal object."""


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


def _generator(name: str, state: dict[str, Any]) -> np.random.Generator:
    """Return random numbers with the state of others."""
    bits = getattr(np.random, name)()
    bits.state = state
    return np.random.Generator(bits)


RECIPES: dict[type, Recipe] = {
    dict: (
        lambda x: [list(x), list(x.values())],
        lambda names, x: dict(zip(names, x, strict=True)),
    ),
    tuple: (list, lambda *items: items),
    deque: (lambda x: [list(x), x.maxlen], deque),
    np.generic: (lambda x: [x.dtype.str, x.item()], lambda dtype, x: np.dtype(dtype).type(x)),
    np.random.Generator: (
        lambda x: [type(x.bit_generator).__name__, x.bit_generator.state],
        _generator,
    ),
}
"""Recipes of classes of Python and NumPy."""


class Codec:
    """Turns values into JSON with arrays beside it, and back.

    Parameters
    ----------
    arrays : list of ndarray
        Arrays that are stored already.
    others : iterable of type
        Classes that are not of this package, of which there may be objects.
    recipes : dict, optional
        Recipes of classes whose objects only the caller can make again.
    """

    def __init__(
        self,
        arrays: Iterable[NDArray[Any]] = (),
        others: Iterable[type] = (),
        recipes: Mapping[type, Recipe] = MappingProxyType({}),
    ) -> None:
        self.arrays = [*arrays]
        self._numbers: dict[int, tuple[int, Any]] = {}  # with the array, which keeps its id
        self._others = {name_of(cls): cls for cls in others}
        self._recipes = {name_of(cls): each for cls, each in {**RECIPES, **recipes}.items()}

    def encode(self, value: Any) -> Any:
        """Return a value as JSON."""
        kind: type = np.generic if isinstance(value, np.generic) else type(value)
        if value is None or kind in (bool, str, int, float):
            return value
        if kind is list:
            return [self.encode(each) for each in value]
        if isinstance(value, type) and self._class(name_of(value)) is value:
            return {KEY: "class", "of": name_of(value)}
        name, named = name_of(kind), dict[str, Any]()
        if name in self._recipes:
            items = list(self._recipes[name][0](value))
        elif hasattr(value, "__array__"):
            return {KEY: "array", "number": self._number(value)}
        elif self._class(name) is kind:
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

    def decode(self, plain: Any) -> Any:
        """Return the value that `encode` got."""
        if isinstance(plain, list):
            return [self.decode(each) for each in plain]
        if not isinstance(plain, dict):
            return plain
        if plain[KEY] == "array":
            return self.arrays[plain["number"]]
        _, make = self._recipes.get(plain["of"], (None, self._class(plain["of"])))
        if make is None:
            raise LookupError(f"there is no class {plain['of']!r}")
        if plain[KEY] == "class":
            return make
        named = {name: self.decode(each) for name, each in plain["named"].items()}
        return make(*self.decode(plain["items"]), **named)

    def _class(self, name: str) -> type | None:
        """Return a class that is allowed by its name; None if there is none of this name."""
        module, _, path = name.partition(":")
        found = self._others.get(name)
        if found is None and module.split(".")[0] == "nmd_lab":
            found = getattr(sys.modules.get(module), path, None)
        return found if isinstance(found, type) else None


DATA = ("observed", "weights", "at_most", "at_least", "upper", "valid")
"""Arguments that belong to X; the hash of the data covers them."""

FREE = ("callback", "progress", "time_limit", "compute")
"""Arguments that may change when a run resumes."""


@dataclass(frozen=True)
class Call:
    """A call of `decompose`, `complete` or `sample`."""

    function: str
    arguments: dict[str, Any]

    def header(self, others: Iterable[type]) -> dict[str, Any]:
        """Return the call as JSON; others are classes of the user."""
        values = {n: v for n, v in self.arguments.items() if n != "callback" and v is not None}
        forms = {name: stored_form(name, value, others) for name, value in values.items()}
        arguments = {name: form for name, form in forms.items() if form is not None}
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
                arguments[name] = Codec().decode(value)
            except LookupError:  # also for a class of the user
                others.append(name)
        return arguments, sorted(others)


def stored_form(name: str, value: Any, others: Iterable[type] = ()) -> list[Any] | None:
    """Return how an argument is stored, and its JSON or its hash; None if it is not."""
    if name in DATA:
        return ["data", None]
    if name == "dtype" and value is not None:
        value = np.dtype(value).name
    elif isinstance(value, np.generic):
        value = value.item()
    codec = Codec(others=others)
    try:
        encoded = codec.encode(value)
        if not codec.arrays and not isinstance(value, np.random.Generator):
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


HEADER = "nmd_lab_checkpoint"
"""Name of the header among the arrays."""


def earlier(path: Path) -> Path:
    """Return the path of the checkpoint before the last one."""
    return path.with_name(f"{path.name}.earlier")


def exists(path: Path) -> bool:
    """Return whether there is a checkpoint, or the one before it."""
    return path.exists() or earlier(path).exists()


def write_file(path: Path, header: dict[str, Any], arrays: list[NDArray[Any]]) -> None:
    """Write a checkpoint; the present one becomes the earlier one."""
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    if path.exists():
        path.replace(earlier(path))
    named = {HEADER: text} | {f"{k}": array for k, array in enumerate(arrays)}
    write_atomically(path, lambda file: np.savez(file, **named))


def read_file(path: Path) -> tuple[dict[str, Any], list[NDArray[Any]]]:
    """Return header and arrays of the last checkpoint that is whole."""
    for candidate in (path, earlier(path)):
        damaged = contextlib.suppress(Exception)  # NumPy raises ten kinds for it
        with damaged, candidate.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            header = json.loads(stored[HEADER].tobytes())
            return header, [stored[f"{k}"] for k in range(len(stored.files) - 1)]
    raise ValueError(
        f"checkpoint={str(path)!r} is damaged, or nmd_lab did not write it, and there is no whole "
        "earlier one: remove it to begin anew."
    )


S = TypeVar("S", bound=Any)
"""State of a run: a dataclass with its random numbers as `rng`."""


class Checkpoint(Generic[S]):
    """Writes the checkpoints of one run.

    Parameters
    ----------
    new : object
        State of a run that has no checkpoint yet.
    asked : Asked
        What the call asks for.
    observations : Observations
        Its data.
    kinds : iterable of ColumnModel
        What has its nonlinearities and losses, which may be of classes of the user.

    Attributes
    ----------
    state : object
        Where the run stands; it changes with the run.
    """

    def __init__(self, new: S, asked: Any, observations: Any, kinds: Iterable[Any]) -> None:
        compute, call = asked.compute, asked.call
        self.path = check_target(compute.checkpoint, "checkpoint")
        self._every = compute.checkpoint_every
        self._files = observations.checkpoint_files(Path(compute.checkpoint))
        self._others = [type(each) for kind in kinds for each in (kind.nonlinearity, kind.loss)]
        self._recipes = {} if self._files is None else self._files.recipes
        self._header = call.header(self._others) | {"observations": observations.fingerprint()}
        self.state = self._read(call) if exists(self.path) else new
        self._written: float | None = time.monotonic()

    def _read(self, call: Call) -> S:
        """Return the stored state, if it is of this call and of these data."""
        header, arrays = read_file(self.path)
        call.check(self._header, header["call"], str(self.path))
        if (header["beside"] is None) != (self._files is None):
            remedy = "leave client= out" if self._files is not None else "give client="
            raise ValueError(
                f"checkpoint={str(self.path)!r} was written with and without a cluster: {remedy}, "
                "as it was."
            )
        if header["call"]["observations"] != self._header["observations"]:
            raise ValueError(
                f"checkpoint={str(self.path)!r} is of other data than X: give the same X, observed "
                "and weights, or another checkpoint=."
            )
        if self._files is not None:
            self._files.read(header["beside"])
        try:
            state: S = Codec(arrays, self._others, self._recipes).decode(header["state"])
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise ValueError(
                f"checkpoint={str(self.path)!r} is of nmd_lab {header['version']}, which keeps "
                f"other things than {__version__}: install that version, or give another "
                "checkpoint=."
            ) from error
        return state

    def tick(self) -> None:
        """Write a checkpoint if the last one is old enough."""
        if self._written is not None and time.monotonic() - self._written >= self._every:
            self.write()

    def write(self) -> None:
        """Write a checkpoint; if this fails, a warning appears, and the run continues without."""
        codec = Codec([], self._others, self._recipes)
        state = codec.encode(self.state)
        header = {"call": self._header, "version": __version__, "state": state}
        try:
            header["beside"] = None if self._files is None else self._files.write()
            write_file(self.path, header, codec.arrays)
            if self._files is not None:
                self._files.clean()
            self._written = time.monotonic()
        except OSError as error:
            self._written = None
            warnings.warn(
                f"No further checkpoint is written: {error}", CheckpointWarning, stacklevel=2
            )


def with_checkpoint(
    state: S, asked: Any, observations: Any, kinds: Iterable[Any], rng: Any
) -> tuple[S, Callable[[], None], Any]:
    """Return where a run stands, what writes it from time to time, and its random numbers.

    The arguments are as for `Checkpoint`; a checkpoint keeps the copy of the generator in `state`.
    """
    checkpoint = Checkpoint(state, asked, observations, kinds)
    if checkpoint.state is not state:
        rng = copy.deepcopy(checkpoint.state.rng)
    return checkpoint.state, checkpoint.tick, rng
