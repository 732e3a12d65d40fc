"""The file of a checkpoint: a zip archive of a header in JSON and of arrays, with checksums.

The present checkpoint becomes the earlier one (``NAME.earlier``) before a new one is written, so
that one of both is always whole.
"""

from __future__ import annotations

import contextlib
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.disk import write_atomically

HEADER = "nmd_lab_checkpoint"
"""Name of the header among the arrays."""

DAMAGE = (AttributeError, LookupError, TypeError, ValueError, zipfile.BadZipFile, zlib.error)
"""Exceptions by which NumPy says that a file is damaged, beside those of a file cut short."""


class DamagedCheckpointError(ValueError):
    """Raised for a file that is no whole checkpoint."""


def earlier(path: Path) -> Path:
    """Return the path of the checkpoint before the last one."""
    return path.with_name(f"{path.name}.earlier")


def exists(path: Path) -> bool:
    """Return whether there is a checkpoint, or the one before it."""
    return path.exists() or earlier(path).exists()


def write(path: Path, header: dict[str, Any], arrays: list[NDArray[Any]]) -> None:
    """Write a checkpoint; the present one becomes the earlier one."""
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    if path.exists():
        path.replace(earlier(path))
    named = {HEADER: text} | {f"{k}": array for k, array in enumerate(arrays)}
    write_atomically(path, lambda file: np.savez(file, **named))


def read(path: Path) -> tuple[dict[str, Any], list[NDArray[Any]]]:
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
