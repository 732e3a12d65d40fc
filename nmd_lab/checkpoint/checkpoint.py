"""The checkpoint of a run: its state, written from time to time, and read when the run resumes.

Its file is a zip archive of a header in JSON and of arrays, with checksums.  The present checkpoint
becomes the earlier one (``NAME.earlier``) before a new one is written, so that one of both is
always whole.
"""

from __future__ import annotations

import contextlib
import json
import time
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.disk import check_target, write_atomically
from nmd_lab._version import __version__
from nmd_lab.warnings import CheckpointWarning

from .call import Call
from .encoding import Classes, Decoder, Encoder

HEADER = "nmd_lab_checkpoint"
"""Name of the header among the arrays."""

DAMAGE = (AttributeError, LookupError, TypeError, ValueError, zipfile.BadZipFile, zlib.error)
"""Exceptions that NumPy raises for a damaged file, in addition to those of a file cut short."""


class DamagedCheckpointError(ValueError):
    """Raised for a file that is no whole checkpoint."""


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
        with contextlib.suppress(OSError, DamagedCheckpointError):
            return _read(candidate)
    raise DamagedCheckpointError(
        f"checkpoint={str(path)!r} is damaged, or nmd_lab did not write it, and there is no whole "
        "earlier one: remove it to begin anew."
    )


def _read(path: Path) -> tuple[dict[str, Any], list[NDArray[Any]]]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            header = json.loads(stored[HEADER].tobytes())
            return header, [stored[f"{k}"] for k in range(len(stored.files) - 1)]
    except (EOFError, MemoryError, NotImplementedError, *DAMAGE) as error:
        raise DamagedCheckpointError(f"{path.name} is damaged") from error


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
        self.state = self._read(call, data) if exists(self.path) else state
        self._written: float | None = time.monotonic()

    def _read(self, call: Call, data: str) -> S:
        """Return the stored state, if it is of this call and of these data."""
        header, arrays = read_file(self.path)
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
        """Write a checkpoint; if this fails, a warning appears, and the run continues without."""
        encoder = Encoder(self._classes)
        state = encoder.encode(self.state)
        header = {"call": self._header, "version": __version__, "state": state}
        try:
            header["beside"] = None if self._matched is None else self._matched.write()
            write_file(self.path, header, encoder.arrays)
            if self._matched is not None:
                self._matched.clean()
            self._written = time.monotonic()
        except OSError as error:
            self._written = None
            warnings.warn(
                f"No further checkpoint is written: {error}", CheckpointWarning, stacklevel=2
            )
