"""The machine: its memory, threads and disk, and the versions of libraries.

**Files** are written as a whole or not at all.  The content of a file goes into a temporary file
with it, through to the disk, and then takes the name of the target.  A run that is killed in
between leaves its temporary file behind; the next write to the same target removes it.

A `FileArray` is mapped into memory.  A range is a view of the mapping, so that what is written to
it gets into the file.  Ranges that were used are given back again and again, and the next ones are
asked for ahead, so that a pass over a large array takes little memory and does not wait for each
range.

**Memory and threads.**  A fit that needs more memory than is free is refused before it begins, in
place of one that the system kills later.  Several BLAS threads slow down the small products of a
fit, above all on a busy machine, where each thread waits for the slowest: BLAS has one thread
during a fit, whose parts of rows have threads of their own.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import mmap
import os
import platform
import shutil
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numba
import numpy as np
import psutil
import threadpoolctl
from numpy.typing import DTypeLike, NDArray
from threadpoolctl import ThreadpoolController

from nmd_lab._version import __version__

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


class _SameMemory:
    """The memory of a read-only array, as that of one that can be written."""

    def __init__(self, array: NDArray[Any]) -> None:
        address, _ = array.__array_interface__["data"]
        self.array = array  # which must live as long
        self.__array_interface__ = array.__array_interface__ | {"data": (address, False)}


def for_kernels(array: Any) -> Any:
    """Return an array for kernels that only read it: a read-only one would be a type of its own."""
    if type(array) is np.ndarray and not array.flags.writeable:
        return np.asarray(_SameMemory(array))
    return array


class FileArray:
    """An array in a file, flat or of rows, read and written by ranges of its first axis."""

    def __init__(self, array: NDArray[Any], mapping: mmap.mmap, start: int = 0) -> None:
        self.array, self.dtype, self.size = for_kernels(array), array.dtype, array.size
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


MAX_SHARE = 0.9  # largest fraction of the free memory that a fit may take: others take some, too


def free_memory() -> int:
    """Return the bytes that this process can still take, by what is free and by its limits."""
    process = psutil.Process().memory_info()
    resident = process.rss - getattr(process, "shared", 0)  # without the pages of mapped files
    free: list[int] = [psutil.virtual_memory().available]
    free += [limit - resident for limit in _group_limits()]
    with contextlib.suppress(ImportError):  # on Windows
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        free += [limit - process.vms] if limit != resource.RLIM_INFINITY else []
    return max(min(free), 0)


def _group_limits() -> Iterator[int]:
    """Yield the limits of the control groups of this process, for example of a container."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            name = "memory.limit_in_bytes" if controllers else "memory.max"  # versions 1 and 2
            folder = Path("/sys/fs/cgroup", controllers, path.lstrip("/"))
            for group in (folder, *folder.parents):
                with contextlib.suppress(OSError, ValueError):  # not there, or "max"
                    yield int((group / name).read_text())


def refuse_above(needed: int, what: str, remedy: str, limit: float | None = None) -> None:
    """Raise MemoryError if so many bytes are not free, or are above a limit in GiB."""
    free = free_memory()
    allowed = MAX_SHARE * free if limit is None else min(MAX_SHARE * free, limit * 2**30)
    if needed > allowed:
        limit_text = "" if limit is None else f" and memory_limit={limit:g}"
        sizes = f"needs {needed / 2**30:.3g} GiB, {free / 2**30:.3g} GiB are free{limit_text}"
        raise MemoryError(f"{what} {sizes}: {remedy.format(share=allowed / needed)}.")


_lock = threading.Lock()
_users = 0
_limit: Any = None


def all_threads() -> int:
    """Return the number of threads in Numba's configuration (NUMBA_NUM_THREADS)."""
    config: Any = numba.config
    return int(config.NUMBA_NUM_THREADS)


@cache
def _controller() -> ThreadpoolController:
    """Return the controller of the BLAS libraries that are loaded at the first call."""
    return ThreadpoolController()


def _take_control() -> None:
    """Allow this thread to set BLAS limits.

    Newer versions of threadpoolctl allow it only to the first thread that did so.  Here a lock
    protects the limits, and the last user may be another thread than the first.
    """
    openblas: Any = getattr(threadpoolctl, "OpenBLASController", None)
    if hasattr(openblas, "clear_controlling_thread"):
        openblas.clear_controlling_thread(force=True)


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS to one thread until the last of several concurrent users leaves."""
    global _users, _limit
    with _lock:
        if _users == 0:
            _take_control()
            _limit = _controller().limit(limits=1, user_api="blas")
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _take_control()
                _limit.restore_original_limits()
                _take_control()  # and leave it to nobody


def in_threads(work: Callable[[Any], Any], items: Iterable[Any], threads: int) -> list[Any]:
    """Return the results of some work on each item, on several of them at a time."""
    if threads == 1:
        return list(map(work, items))
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, items))


def map_and_add(
    share: Callable[[int], tuple[NDArray[Any], ...]], parts: int
) -> tuple[NDArray[Any], ...]:
    """Work on several parts at a time and return the sums of their results."""
    results = in_threads(share, range(parts), parts)
    return tuple(sum(arrays[1:], start=arrays[0]) for arrays in zip(*results, strict=True))


def map_ranges(work: Callable[[slice], Any], n_rows: int) -> list[Any]:
    """Return the results of some work on ranges of rows, several at a time."""
    # Eight ranges have sums of their own, so that sums do not depend on the number of threads.
    ends = [n_rows * i // 8 for i in range(9)]
    return in_threads(work, (slice(*each) for each in pairwise(ends)), all_threads())


NEEDED = (
    *("numpy", "scipy", "numba", "xarray", "pandas", "scikit-learn", "narwhals"),
    *("joblib", "threadpoolctl", "psutil", "tqdm"),
)
"""Libraries that the package needs; a test compares them with pyproject.toml."""

OPTIONAL = (
    *("matplotlib", "pillow", "h5netcdf", "h5py", "openpyxl", "pooch", "pyarrow"),
    *("jupyterlab", "ipywidgets", "anywidget", "voila", "dask", "distributed", "torch"),
)
"""Libraries of the extras, but for those that only developers need."""

VARIABLES = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables that set numbers of threads."""


def show_versions() -> None:
    """Print the versions of Python, this package and its libraries, and what sets threads.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.show_versions()  # doctest: +ELLIPSIS
    nmd_lab ...
    """
    blas = [
        f"{info['internal_api']} {info['version']} ({info['num_threads']} threads)"
        for info in threadpoolctl.threadpool_info()
        if info["user_api"] == "blas"
    ]
    lines = {
        "nmd_lab": __version__,
        "python": f"{platform.python_version()} ({sys.implementation.name})",
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        **{name: _version_of(name) or "missing" for name in NEEDED},
        **{name: _version_of(name) or "not installed (optional)" for name in OPTIONAL},
        **{name: os.environ.get(name, "not set") for name in VARIABLES},
        "BLAS": ", ".join(blas) or "not known",
    }
    width = max(map(len, lines)) + 1
    print("\n".join(f"{name:{width}}{text}" for name, text in lines.items()))


def _version_of(name: str) -> str | None:
    """Return the installed version of a library, without importing it."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
