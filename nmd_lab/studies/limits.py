"""Context managers that limit the time of a block and measure its peak memory."""

from __future__ import annotations

import ctypes
import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class TimeLimitExceeded(BaseException):
    """Raised in a fit whose time limit has passed; ``except Exception`` does not catch it."""


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise `TimeLimitExceeded` in the block after some seconds.

    Parameters
    ----------
    seconds : float or None
        Largest duration of the block; None sets no limit.

    Notes
    -----
    Compiled code is not interrupted: a running iteration or SVD ends first.  Windows has no
    timer, and other threads than the main one cannot use it.  There the block runs to its end,
    and the exception comes afterwards.
    """
    if seconds is None:
        yield
        return
    began = time.perf_counter()
    has_timer = hasattr(signal, "setitimer")
    if has_timer and threading.current_thread() is threading.main_thread():

        def expire(*_: Any) -> None:
            raise TimeLimitExceeded

        previous_handler = signal.signal(signal.SIGALRM, expire)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous_handler)
    else:
        yield
        if time.perf_counter() - began > seconds:
            raise TimeLimitExceeded


@contextmanager
def peak_memory() -> Iterator[list[float]]:
    """Measure the memory of a block in bytes.

    Yields
    ------
    list of float
        One number, which is set when the block ends: the highest resident size of the process in
        the block less the size at its start.  It is exact to a fraction of a MiB.  NaN without
        Linux's /proc: other systems only tell the peak since the process began.
    """
    memory = [math.nan]
    try:
        ctypes.CDLL(None).malloc_trim(0)  # else the block could reuse what earlier fits freed
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets the peak
        before = _resident_sizes()["VmRSS"]
    except (AttributeError, KeyError, OSError, TypeError):
        yield memory
        return
    yield memory
    memory[0] = max(0.0, _resident_sizes()["VmHWM"] - before)


def _resident_sizes() -> dict[str, float]:
    """Return the resident size of this process in bytes, now (VmRSS) and at its peak (VmHWM)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    fields = [line.split() for line in lines if line.startswith(("VmRSS", "VmHWM"))]
    return {name.rstrip(":"): 1024.0 * int(size) for name, size, _ in fields}
