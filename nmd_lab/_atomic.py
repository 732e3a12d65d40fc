"""Writing a file as a whole or not at all.

The content goes into a temporary file beside the target, through to the disk, and then takes the
name of the target.  A run that is killed in between leaves its temporary file behind; the next
write to the same target removes it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

LONGEST_WRITE = 24 * 3600.0
"""Age in seconds from which a temporary file is a leftover, whoever made it."""


def check_target(path: str | os.PathLike[str], name: str = "path") -> Path:
    """Return the absolute path of a file that can be written, or raise an error that says why not.

    A file without a name is made in the folder for a moment, and nothing stays.
    """
    path = Path(path).resolve()
    if path.is_dir():
        raise IsADirectoryError(f"{name}={str(path)!r} is a folder: give a file name in it.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{name}={str(path)!r} is in no existing folder: make it first.")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(
            f"{name}={str(path)!r} is in a folder that cannot be written: give another path."
        )
    try:  # some folders promise what they do not allow, such as /proc to root
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise with_remedy(error, path, name) from error
    return path


def write_atomically(path: str | os.PathLike[str], write: Callable[[BinaryIO], object]) -> None:
    """Let a function write a file; if this fails, an older file of this name is kept.

    A generator in place of the function would hold the buffers of a failed write, and HDF5 crashes
    then.
    """
    path = check_target(path)
    _remove_leftovers(path)
    unfinished = path.with_name(f"{_prefix(path)}{uuid.uuid4().hex}.partial")
    try:
        with unfinished.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        raise with_remedy(error, path) from error
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
    _keep_name(path)


def _keep_name(path: Path) -> None:
    """Write the folder of a file to the disk."""
    if os.name == "posix":  # without this, a power cut could lose the new name
        with contextlib.suppress(OSError):  # some file systems cannot
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def with_remedy(error: OSError, path: Path, name: str = "path") -> OSError:
    """Return an error of the same class and number whose message is a sentence."""
    reason = (error.strerror or str(error)).rstrip(".")
    explained = type(error)(
        f"{name}={str(path)!r} cannot be written ({reason}): free space, or give another path."
    )
    explained.errno = error.errno
    return explained


def _prefix(path: Path) -> str:
    """Return how the names of this process's temporary files begin."""
    host = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
    return f".{path.name}.{host}-{os.getpid()}-"


def _remove_leftovers(path: Path) -> None:
    """Remove the temporary files of runs that ended while they wrote this file."""
    host = _prefix(path).removesuffix(f"{os.getpid()}-")
    for leftover in path.parent.iterdir():
        name = leftover.name
        if name.startswith(f".{path.name}.") and name.endswith(".partial"):
            process = name.removeprefix(host).partition("-")[0] if name.startswith(host) else ""
            with contextlib.suppress(OSError):  # another process may have removed it
                age = time.time() - leftover.stat().st_mtime
                if age > LONGEST_WRITE or (process.isdigit() and not _is_alive(int(process))):
                    leftover.unlink()


def _is_alive(process: int) -> bool:
    """Return whether a process of this machine runs; True where this cannot be told."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)  # sends nothing
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
