"""Peak memory of a piece of work, as the Linux kernel sees it."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

MIB = 1 << 10  # in the kernel's unit, KiB


class Peak:
    """Resident memory, in MiB: what there is at the start, and the most that there is later.

    It counts everything that the process has, compiled code included; to leave that out, run the
    work once on something small before.
    """

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
        self.start = _status("VmRSS")

    @property
    def total(self) -> float:
        return _status("VmHWM") / MIB

    @property
    def beyond_start(self) -> float:
        return (_status("VmHWM") - self.start) / MIB


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    raise KeyError(name)


def in_own_process(work: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function of a module returns, called in a new process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()
