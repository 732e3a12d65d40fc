"""HDF5 files of unknown origin, tried before they are read.

HDF5 believes every length and address in a file.  With damaged ones it may take minutes, gigabytes
or the whole process.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

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
size, memory = int(sys.argv[3]), int(sys.argv[4])
try:
    import resource
    seconds = sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) + 3 + max(size, memory / 8) / 2e7
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    limit = used + 2**26 + memory
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
except (ImportError, OSError, ValueError):
    pass
try:
    with h5netcdf.File(path, "r", phony_dims="sort") as file:
        dict(file.attrs)
        for variable in file.variables.values():
            variable.dimensions, dict(variable.attrs), variable[...]
except BaseException:
    sys.exit({UNREADABLE})
"""


class DamagedFileError(ValueError):
    """Raised for a file whose content is not what was written."""


def try_hdf5(path: Path, memory: float) -> None:
    """Check that a file can be read without danger, if it has the mark of HDF5.

    Parameters
    ----------
    path : Path
        File.
    memory : float
        Bytes that its contents may take; if infinite, the file is trusted.

    Raises
    ------
    DamagedFileError
        If it cannot be read within limits of time and memory.
    """
    if math.isinf(memory):
        return
    with path.open("rb") as file:
        if file.read(len(SIGNATURE)) != SIGNATURE:
            return
    size = path.stat().st_size
    check_length(path, size)
    try_to_read(path, size, int(memory))


def check_length(path: Path, size: int) -> None:
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


def try_to_read(path: Path, size: int, memory: int) -> None:
    """Read a file in a process of its own, which a damaged file may end.

    Parameters
    ----------
    path : Path
        File.
    size, memory : int
        Bytes of the file, and those that its contents may take.

    Raises
    ------
    DamagedFileError
        If it cannot be read within limits of time and memory.
    """
    if not sys.executable:  # Python is embedded in another program
        return
    command = [sys.executable, "-c", TRIAL, os.fspath(path), json.dumps(sys.path)]
    command += [str(size), str(memory)]
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
