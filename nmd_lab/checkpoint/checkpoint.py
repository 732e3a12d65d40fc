"""The checkpoint of a run: its state, written from time to time, and read when the run resumes."""

from __future__ import annotations

import time
import warnings
from typing import Any, Generic, Protocol, TypeVar

from nmd_lab._runtime.disk import check_target
from nmd_lab._version import __version__
from nmd_lab.warnings import CheckpointWarning

from . import file
from .call import Call
from .encoding import Classes, Decoder, Encoder

S = TypeVar("S")
"""State of a run: a dataclass."""


class Beside(Protocol):
    """What belongs to the checkpoints of a run, and is written by others."""

    def write(self) -> str:
        """Write what belongs to the checkpoint of now, and return its name."""

    def read(self, name: str) -> None:
        """Read what belongs to a checkpoint."""

    def clean(self) -> None:
        """Remove what is older than the last two checkpoints."""


class Checkpoint(Generic[S]):
    """Writes the checkpoints of one run.

    Attributes
    ----------
    state : object
        Where the run stands; it changes with the run.
    """

    def __init__(
        self,
        path: Any,
        every: float,
        call: Call,
        data: str,
        classes: Classes,
        state: S,
        beside: Beside | None = None,
    ) -> None:
        self.path = check_target(path, "checkpoint")
        self._every, self._classes, self._matched = every, classes, beside
        self._header = call.header(classes) | {"observations": data}
        self.state = self._read(call, data) if file.exists(self.path) else state
        self._written: float | None = time.monotonic()

    def _read(self, call: Call, data: str) -> S:
        """Return the stored state, if it is of this call and of these data."""
        header, arrays = file.read(self.path)
        call.check(self._header, header["call"], str(self.path))
        if (header["beside"] is None) != (self._matched is None):
            remedy = "leave client= out" if self._matched is not None else "give client="
            raise ValueError(
                f"checkpoint={str(self.path)!r} was written with and without a cluster: {remedy}, "
                "as it was."
            )
        if header["call"]["observations"] != data:
            raise ValueError(
                f"checkpoint={str(self.path)!r} is of other data than X: give the same X, observed "
                "and weights, or another checkpoint=."
            )
        if self._matched is not None:
            self._matched.read(header["beside"])
        try:
            state: S = Decoder(self._classes, arrays).decode(header["state"])
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
        """Write a checkpoint; if this fails, a warning says so, and the run continues without."""
        encoder = Encoder(self._classes)
        state = encoder.encode(self.state)
        header = {"call": self._header, "version": __version__, "state": state}
        try:
            header["beside"] = None if self._matched is None else self._matched.write()
            file.write(self.path, header, encoder.arrays)
            if self._matched is not None:
                self._matched.clean()
            self._written = time.monotonic()
        except OSError as error:
            self._written = None
            warnings.warn(
                f"No further checkpoint is written: {error}", CheckpointWarning, stacklevel=2
            )
