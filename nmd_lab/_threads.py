"""Threads: one BLAS thread during a fit, whose shares of rows have threads of their own.

Several BLAS threads slow down the small products of a fit, above all on a busy machine, where each
thread waits for the slowest.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import numba
import threadpoolctl
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

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


def map_and_add(
    share: Callable[[int], tuple[NDArray[Any], ...]], parts: int
) -> tuple[NDArray[Any], ...]:
    """Work on several shares at a time and return the sums of their results."""
    if parts == 1:
        return share(0)
    with ThreadPoolExecutor(parts) as pool:
        results = list(pool.map(share, range(parts)))
    return tuple(sum(arrays[1:], start=arrays[0]) for arrays in zip(*results, strict=True))
