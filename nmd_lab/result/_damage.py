"""Damaged HDF5 files, found before the library of HDF5 reads them.

HDF5 believes every length and address in a file.  With damaged ones it may take minutes, gigabytes
or the whole process.  A file of this package therefore ends with the SHA-256 of its content, behind
the part that HDF5 reads.  Other programs ignore it, and drop it when they change the file.  A file
without it is first read in a process of its own, within limits of time and memory.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

MARK = b"\nnmd_lab sha256 "
LENGTH = len(MARK) + 64 + 1

LARGEST_RATIO = 1100
"""Largest ratio of the size of an array to that of a compressed file; that of gzip is 1032."""

CHUNK = 2**22

SIGNATURE = b"\x89HDF\r\n\x1a\n"
"""First bytes of an HDF5 file."""

ENDS = {0: (13, 24, 40), 1: (13, 28, 44), 2: (9, 12, 28), 3: (9, 12, 28)}
"""Positions of the size of addresses, of the first address and of the end of the file in the first
block of an HDF5 file, by its version."""

UNREADABLE = 3
"""Exit code of a trial that found a file unreadable; 1 is a trial that could not begin."""

TRIAL = f"""
import json, sys
path, sys.path[:] = sys.argv[1], json.loads(sys.argv[2])
import h5netcdf
size = int(sys.argv[3])
try:
    import resource
    seconds = sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) + 3 + size / 2e7
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    limit = used + 2**26 + 8 * size
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
except (ImportError, OSError, ValueError):
    pass
try:
    with h5netcdf.File(path, "r") as file:
        dict(file.attrs)
        for variable in file.variables.values():
            variable.dimensions, dict(variable.attrs), variable[...]
except BaseException:
    sys.exit({UNREADABLE})
"""


class DamagedFileError(ValueError):
    """Raised for a file whose content is not what was written."""


def with_checksum(content: memoryview) -> list[bytes | memoryview]:
    """Return the content of a file and, as its end, the checksum."""
    digest = hashlib.sha256(content).hexdigest().encode()
    return [content, MARK + digest + b"\n"]


def check_file(path: Path) -> None:
    """Check that a file can be read without danger.

    Parameters
    ----------
    path : Path
        HDF5 file, of this package or not.

    Raises
    ------
    DamagedFileError
        If its checksum is wrong; or if it has none, and cannot be read within limits of time and
        memory that its size sets.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - LENGTH))
        end = file.read()
        if not end.startswith(MARK):
            if MARK in end:
                raise DamagedFileError("the checksum is cut short")
            _check_length(path, size)
            _try_to_read(path, size)
            return
        digest, left = hashlib.sha256(), size - LENGTH
        file.seek(0)
        while left > 0 and (chunk := file.read(min(CHUNK, left))):
            digest.update(chunk)
            left -= len(chunk)
    if end != MARK + digest.hexdigest().encode() + b"\n":
        raise DamagedFileError("the checksum is another one")


def check_size(variable: Any, size: int) -> None:
    """Check that an array can come from a file of this size, before it is read.

    Parameters
    ----------
    variable : h5netcdf.Variable
        Variable of the file.
    size : int
        Size of the file in bytes.

    Raises
    ------
    DamagedFileError
        If the array is too large.
    """
    ratio = 1 if variable.chunks is None else LARGEST_RATIO
    n_bytes = variable.dtype.itemsize
    for length in variable.shape:
        n_bytes *= int(length)
    if n_bytes > ratio * size:
        raise DamagedFileError(f"an array of {n_bytes} bytes in a file of {size}")


def _check_length(path: Path, size: int) -> None:
    """Raise DamagedFileError if the first block of an HDF5 file says that it is longer."""
    with path.open("rb") as file:
        start = file.read(52)
    if len(start) < 52 or start[:8] != SIGNATURE or start[8] not in ENDS:
        return  # HDF5 may find its first block elsewhere
    size_of_addresses, base, end = ENDS[start[8]]
    if start[size_of_addresses] != 8:
        return
    first, last = (int.from_bytes(start[at : at + 8], "little") for at in (base, end))
    if first == 0 and last > size:
        raise DamagedFileError(f"{last - size} bytes are missing at the end")


def _try_to_read(path: Path, size: int) -> None:
    """Read a file in a process of its own, which a damaged file may end."""
    if not sys.executable:  # Python is embedded in another program
        return
    command = [sys.executable, "-c", TRIAL, os.fspath(path), json.dumps(sys.path), str(size)]
    try:
        trial = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=60 + size / 2e6,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise DamagedFileError("reading takes too long") from error
    except OSError:  # a system without processes
        return
    if trial.returncode == UNREADABLE or trial.returncode < 0:
        raise DamagedFileError(f"a trial ended with {trial.returncode}")
