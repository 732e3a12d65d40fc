"""How much memory this process may still take: what is free, its limits, those of its cgroups.

A fit that needs more is refused before it begins, in place of one that the system kills later.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/")
"""Folder in which `proc` and `sys` are; the tests have one of their own."""

LOADED_LATER = 192 << 20
"""Address space that a first fit takes for libraries and for the code that it compiles."""

HEAP = 64 << 20
"""Address space that the C library reserves for the small arrays of a thread."""

STACK = 8 << 20
"""Address space of the stack of a thread."""

UNLIMITED = 1 << 60
"""Limits of at least this size mean that there is none (cgroup v1 writes about 2^63)."""


def free_memory(root: Path | None = None, *, with_cache: bool = False) -> int | None:
    """Return the memory that this process can still take, in bytes; None where that is unknown.

    It is the least of the memory available without swapping, of what is left below the limits of
    the address space and of the data segment (RLIMIT_AS, RLIMIT_DATA), and of what is left in the
    process's control groups and all groups around them (cgroups, version 1 and 2).

    Parameters
    ----------
    root : Path, optional
        Folder with `proc` and `sys`; by default that of the system.
    with_cache : bool, default False
        Whether files that groups hold in memory count as free even if they were used just now, as
        they are while a file is read range by range.
    """
    root = ROOT if root is None else root
    limits = [left for _, left in _below_resource_limits(root)]
    cache = ("inactive_file", "active_file") if with_cache else ("inactive_file",)
    free = [*_available(root), *limits, *_left_in_groups(root, cache)]
    return max(min(free), 0) if free else None


def free_addresses(threads: int, root: Path | None = None) -> int | None:
    """Return the address space that large arrays can still take, in bytes; None without a limit.

    Libraries, compiled code and threads take addresses, most of which never hold anything.

    Parameters
    ----------
    threads : int
        Number of threads that a fit starts; 0 if it does all in the main thread.
    root : Path, optional
        Folder with `proc`; by default that of the system.
    """
    root = ROOT if root is None else root
    left = dict(_below_resource_limits(root)).get("RLIMIT_AS")
    if left is None:
        return None
    heaps = max(threads * HEAP - _reserved(root), 0)
    return max(left - LOADED_LATER - heaps - threads * STACK, 0)


def _reserved(root: Path) -> int:
    """Return the address space that is reserved but cannot be used yet, as by earlier threads."""
    total = 0
    for line in _lines(root / "proc/self/maps"):
        addresses, permissions, *rest = line.split()
        if permissions == "---p" and len(rest) == 3:  # no file
            first, _, last = addresses.partition("-")
            total += int(last, 16) - int(first, 16)
    return total


def _available(root: Path) -> Iterator[int]:
    """Yield the memory available without swapping."""
    found = _fields(root / "proc/meminfo").get("MemAvailable")
    if found is not None:
        yield found
        return
    try:
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return


def _below_resource_limits(root: Path) -> Iterator[tuple[str, int]]:
    """Yield the names of the limits of this process, and what is left below them."""
    try:
        import resource  # not on Windows
    except ImportError:
        return
    used = _fields(root / "proc/self/status")
    for name, field in (("RLIMIT_AS", "VmSize"), ("RLIMIT_DATA", "VmData")):
        limit, _ = resource.getrlimit(getattr(resource, name))
        if limit != resource.RLIM_INFINITY:
            yield name, limit - used.get(field, 0)


def _left_in_groups(root: Path, cache: tuple[str, ...]) -> Iterator[int]:
    """Yield what is left in each control group of this process, and in those around it."""
    for line in _lines(root / "proc/self/cgroup"):
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            top, limit, usage = root / "sys/fs/cgroup", "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            top, limit = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
            usage = "memory.usage_in_bytes"
        else:
            continue
        folder = top / path.lstrip("/")
        # In a container the path may be that outside of it: then only the top is there.
        for group in (folder, *folder.parents):
            most, now = _number(group / limit), _number(group / usage)
            if most is not None and most < UNLIMITED:
                yield most - (now or 0) + _reclaimable(group, cache)
            if group == top:
                break


def _reclaimable(group: Path, cache: tuple[str, ...]) -> int:
    """Return the file cache that a group counts as used, but gives back when memory is short."""
    found: dict[str, int] = {}
    for line in _lines(group / "memory.stat"):
        name, _, value = line.partition(" ")
        if name.removeprefix("total_") in cache and value.strip().isdigit():
            found.setdefault(name.removeprefix("total_"), int(value))
    return sum(found.values())


def _fields(path: Path) -> dict[str, int]:
    """Return the fields of a file like /proc/meminfo that are in kB, in bytes."""
    found: dict[str, int] = {}
    for line in _lines(path):
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) == 2 and words[1] == "kB" and words[0].isdigit():
            found[name] = int(words[0]) * 1024
    return found


def _number(path: Path) -> int | None:
    """Return the number in a file; None for "max", and if there is no such file."""
    text = "".join(_lines(path)).strip()
    return int(text) if text.isdigit() else None


def _lines(path: Path) -> list[str]:
    """Return the lines of a file; none if it cannot be read."""
    try:
        return path.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return []
