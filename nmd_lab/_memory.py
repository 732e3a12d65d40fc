"""The memory that this process can still take, and the refusal of what needs more.

A fit that needs more is refused before it begins, in place of one that the system kills later.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import psutil

SHARE = 0.9  # largest share of the free memory that a fit may take: others take some, too


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
    allowed = SHARE * free if limit is None else min(SHARE * free, limit * 2**30)
    if needed > allowed:
        limit_text = "" if limit is None else f" and memory_limit={limit:g}"
        sizes = f"needs {needed / 2**30:.3g} GiB, {free / 2**30:.3g} GiB are free{limit_text}"
        raise MemoryError(f"{what} {sizes}: {remedy.format(share=allowed / needed)}.")
