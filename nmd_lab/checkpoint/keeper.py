"""A checkpoint of a run: written from time to time, and read when the run goes on."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from nmd_lab._atomic import check_target
from nmd_lab._version import __version__
from nmd_lab.warnings import CheckpointWarning

from . import file
from .call import Call
from .encoding import Classes, Decoder, Encoder
from .place import Place, Values


class Beside(Protocol):
    """What belongs to the checkpoints of a run, and is written by others."""

    def write(self) -> str:
        """Write what belongs to the checkpoint of now, and return its name."""

    def read(self, name: str) -> None:
        """Read what belongs to a checkpoint."""

    def clean(self) -> None:
        """Remove what is older than the last two checkpoints."""


class Keeper:
    """Writes the checkpoints of one run.

    Attributes
    ----------
    place : Place
        Where the run stands.
    """

    def __init__(
        self,
        path: Any,
        every: float,
        call: Call,
        data: str,
        classes: Classes,
        beside: Beside | None = None,
    ) -> None:
        self.path = check_target(path, "checkpoint")
        self._every, self._classes, self._beside = every, classes, beside
        self._header = call.header(classes) | {"observations": data}
        stored: Values | None = None
        if file.exists(self.path):
            content = file.read(self.path)
            self._check(content.header, call, data)
            if beside is not None:
                beside.read(content.header["beside"])
            try:
                stored = Decoder(classes, content.arrays).decode(content.header["state"])
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                raise ValueError(
                    f"checkpoint={str(self.path)!r} is of nmd_lab {content.header['version']}, "
                    f"which keeps other things than {__version__}: install that version, or give "
                    "another checkpoint=."
                ) from error
        self.place = Place(stored, self.tick)
        self._written = time.monotonic()
        self._broken = False

    def _check(self, header: dict[str, Any], call: Call, data: str) -> None:
        """Raise ValueError if a checkpoint is of another call or of other data."""
        call.check(self._header, header["call"], str(self.path))
        if (header.get("beside") is None) != (self._beside is None):
            remedy = "leave client= out" if self._beside is not None else "give client="
            raise ValueError(
                f"checkpoint={str(self.path)!r} was written with and without a cluster: {remedy}, "
                "as it was."
            )
        if header["call"]["observations"] != data:
            raise ValueError(
                f"checkpoint={str(self.path)!r} is of other data than X: give the same X, observed "
                "and weights, or another checkpoint=."
            )

    def random_numbers(self, make: Callable[[], np.random.Generator]) -> np.random.Generator:
        """Return the random numbers of the run from its beginning on, which checkpoints hold."""
        rng: np.random.Generator = self.place.take()["rng"] if self.place.goes_on else make()
        at_beginning = copy.deepcopy(rng)
        self.place.mark(lambda: {"rng": at_beginning})
        return rng

    def tick(self) -> None:
        """Write a checkpoint if the last one is old enough."""
        if not self._broken and time.monotonic() - self._written >= self._every:
            self.write()

    def write(self) -> None:
        """Write a checkpoint; if this fails, a warning says so, and the run goes on without."""
        encoder = Encoder(self._classes)
        state = encoder.encode(self.place.contents())
        header = {"call": self._header, "version": __version__, "state": state}
        try:
            header["beside"] = None if self._beside is None else self._beside.write()
            file.write(self.path, file.Content(header, encoder.arrays))
            if self._beside is not None:
                self._beside.clean()
        except OSError as error:
            self._broken = True
            warnings.warn(
                f"No further checkpoint is written: {error}", CheckpointWarning, stacklevel=2
            )
        self._written = time.monotonic()


def stored_arguments(path: Any, classes: Classes) -> tuple[str, dict[str, Any], list[str]]:
    """Return what a checkpoint knows of its call."""
    path = Path(path)
    if not file.exists(path):
        raise FileNotFoundError(f"path={str(path)!r} is no file: check the name of the checkpoint.")
    call = file.read(path).header["call"]
    arguments, others = dict(call["plain"]), [*call["hashes"], *call["data"]]
    for name, encoded in call["objects"].items():
        try:
            arguments[name] = Decoder(classes, []).decode(encoded)
        except LookupError:  # a class of the user
            others.append(name)
    return call["function"], arguments, others
