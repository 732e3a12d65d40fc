"""The machine: memory that is free, threads of BLAS and of a fit, versions of libraries.

A fit that needs more memory than is free is refused before it begins, in place of one that the
system kills later.  Several BLAS threads slow down the small products of a fit, above all on a
busy machine, where each thread waits for the slowest: BLAS has one thread during a fit, whose
parts of rows have threads of their own.
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numba
import psutil
import threadpoolctl
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from nmd_lab._version import __version__

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
