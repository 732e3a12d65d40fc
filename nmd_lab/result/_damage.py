"""Damaged HDF5 files, found before the library of HDF5 reads them.

A file of this package ends with the SHA-256 of its content, behind the part that HDF5 reads.  Other
programs ignore it, and drop it when they change the file.  A file without it is first read in a
process of its own (`nmd_lab.data._hdf5`).
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from nmd_lab.data._hdf5 import DamagedFileError, check_length, try_to_read

MARK = b"\nnmd_lab sha256 "
LENGTH = len(MARK) + 64 + 1

LARGEST_RATIO = 1100
"""Largest ratio of the size of an array to that of a compressed file; that of gzip is 1032."""

CHUNK = 2**22


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
            check_length(path, size)
            try_to_read(path, size, 8 * size)
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
