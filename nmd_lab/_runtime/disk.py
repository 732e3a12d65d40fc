"""Files that are written as a whole or not at all, and arrays that lie in files.

The content of a file goes into a temporary file with it, through to the disk, and then takes the
name of the target.  A run that is killed in between leaves its temporary file behind; the next
write to the same target removes it.

A `FileArray` is mapped into memory.  A range is a view of the mapping, so that what is written to
it gets into the file.  Ranges that were used are given back again and again, and the next ones are
asked for ahead, so that a pass over a large array takes little memory and does not wait for each
range.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import mmap
import os
import platform
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import psutil
from numpy.typing import DTypeLike, NDArray

MAX_WRITE_SECONDS = 24 * 3600.0
"""Age in seconds from which a temporary file is a leftover, whoever made it."""


def check_target(path: str | os.PathLike[str], name: str = "path") -> Path:
    """Return the absolute path of a file that can be written, or raise an error with the reason.

    A file without a name is made in the folder for a moment, and nothing stays.
    """
    path = Path(path).resolve()
    if path.is_dir():
        raise IsADirectoryError(f"{name}={str(path)!r} is a folder: give a file name in it.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{name}={str(path)!r} is in no existing folder: make it first.")
    try:
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
    ours = _prefix(path).removesuffix(f"{os.getpid()}-")
    for leftover in path.parent.glob(f"{glob.escape(f'.{path.name}.')}*.partial"):
        process = leftover.name.removeprefix(ours).partition("-")[0]  # a number if of this machine
        # Another process may have removed it, or its number may be none of a process.
        with contextlib.suppress(OSError, OverflowError):
            is_over = process.isdigit() and not psutil.pid_exists(int(process))
            if is_over or time.time() - leftover.stat().st_mtime > MAX_WRITE_SECONDS:
                leftover.unlink()


WINDOW_BYTES = 32 << 20
"""Bytes after which used ranges are given back, and that are asked for ahead."""

MIN_ENTRIES = 1024
"""Numbers of an array from which it lies in a file."""


class FileArray:
    """An array in a file, flat or of rows, read and written by ranges of its first axis."""

    def __init__(self, array: NDArray[Any], mapping: mmap.mmap, start: int = 0) -> None:
        self.array, self.dtype, self.size = array, array.dtype, array.size
        self.shape, self.ndim = array.shape, array.ndim
        self._mapping, self._start, self._used = mapping, start, 0  # bytes since the last advice

    def __getitem__(self, where: Any) -> Any:
        """Return a range as a view, or single entries."""
        if isinstance(where, slice):
            self._use(where)
        return self.array[where]

    def __setitem__(self, where: Any, values: Any) -> None:
        """Set a range, or all of the array."""
        if isinstance(where, slice):
            self._use(where)
        self.array[where] = values

    def __len__(self) -> int:
        return len(self.array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the array itself, which NumPy then reads as a whole."""
        return np.asarray(self.array, dtype=dtype)

    def reshape(self, *shape: Any) -> FileArray:
        """Return the same numbers in another shape, in C order."""
        return FileArray(self.array.reshape(*shape), self._mapping, self._start)

    def _use(self, where: slice) -> None:
        """Give used ranges back from time to time, and ask for the next one."""
        (first, last, _), size = where.indices(len(self)), self.array.strides[0]
        before, self._used = self._used, self._used + (last - first) * size
        if first == last or (self._used < WINDOW_BYTES and before):
            return
        self._used = 1
        if hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
            self._mapping.madvise(mmap.MADV_DONTNEED)
            page = (self._start + first * size) // mmap.PAGESIZE
            self._mapping.madvise(mmap.MADV_WILLNEED, page * mmap.PAGESIZE, 2 * WINDOW_BYTES)


class Scratch:
    """A folder for the arrays of a fit, in files without a name, which are gone with the arrays."""

    def __init__(self, work_dir: str | os.PathLike[str] | None = None) -> None:
        self.folder = Path(work_dir or tempfile.gettempdir()).absolute()

    def zeros(self, size: int, dtype: DTypeLike) -> FileArray:
        """Return a new array of zeros in a file."""
        dtype = np.dtype(dtype)
        length = max(size * dtype.itemsize, 1)
        free = shutil.disk_usage(self.folder).free
        if 1.02 * length > free:  # some is for other files
            raise OSError(
                f"work_dir={str(self.folder)!r} has {free / 2**30:.3g} GiB left, and "
                f"{length / 2**30:.3g} GiB more are needed: give another folder."
            )
        with tempfile.TemporaryFile(dir=self.folder) as file:
            file.truncate(length)
            mapping = mmap.mmap(file.fileno(), length)
        return FileArray(np.frombuffer(mapping, dtype, size), mapping)
