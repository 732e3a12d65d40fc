"""What surrounds a fit that is measured: a time limit, and an eye on the memory."""

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


class TimeIsUp(BaseException):
    """Raised in a fit whose time limit has passed; no ``except Exception`` can swallow it."""


@contextmanager
def alarm(seconds: float | None) -> Iterator[None]:
    """Raise `TimeIsUp` in the block after some seconds.

    Compiled code is left first: one iteration or one SVD is not cut short.  Where the system has
    no timer (Windows, or outside the main thread) the block is left alone, and judged afterwards.
    """
    if seconds is None:
        yield
        return
    began = time.perf_counter()
    timer = hasattr(signal, "setitimer")
    if timer and threading.current_thread() is threading.main_thread():

        def ring(*_: Any) -> None:
            raise TimeIsUp

        before = signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
    else:
        yield
        if time.perf_counter() - began > seconds:
            raise TimeIsUp


@contextmanager
def peak_memory() -> Iterator[list[float]]:
    """Put the memory that the block took at its peak, in bytes, into the list that it yields.

    It is the highest resident size of the process in the block less that at its start, after free
    memory was given back: exact to a fraction of a MiB.  NaN where Linux's /proc is missing: what
    other systems tell of a process is its peak so far, which says nothing of a single fit.
    """
    memory = [math.nan]
    try:
        ctypes.CDLL(None).malloc_trim(0)  # else memory that earlier fits freed would be reused
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # peak := now
        before = _resident()["VmRSS"]
    except (AttributeError, KeyError, OSError, TypeError):
        yield memory
        return
    yield memory
    memory[0] = max(0.0, _resident()["VmHWM"] - before)


def _resident() -> dict[str, float]:
    """Return the resident size of this process now and at its peak, in bytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    words = [line.split() for line in lines if line.startswith(("VmRSS", "VmHWM"))]
    return {name.rstrip(":"): 1024.0 * int(size) for name, size, _ in words}
