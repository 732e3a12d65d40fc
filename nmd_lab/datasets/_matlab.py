"""A reader of real matrices in MATLAB files of version 5, which no damage of a file can crash.

Such a file is a header of 128 bytes and a list of elements.  An element has a type, a size and
contents, which for a matrix are elements again: flags, sizes, name and numbers (MathWorks,
"MAT-File Format").
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

HEADER = 128
MATRIX, COMPRESSED = 14, 15
NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8"}
"""NumPy type of the numbers of an element, by its type."""

LARGEST = 1 << 30
"""Largest size of a compressed element after decompression, in bytes."""


def read_matrix_of(content: bytes, name: str) -> NDArray[np.float64]:
    """Return a matrix of a MATLAB file."""
    if content[126:128] not in (b"IM", b"MI"):
        raise ValueError("it is not of version 5")
    order = "<" if content[126:128] == b"IM" else ">"
    for kind, element in _elements(content[HEADER:], order):
        if kind == COMPRESSED:
            unpacker = zlib.decompressobj()
            try:
                element = unpacker.decompress(element, LARGEST)
            except zlib.error as error:
                raise ValueError("its compression is damaged") from error
            kind, element = next(_elements(element, order), (0, b""))
        if kind == MATRIX:
            found = _matrix(element, order, name)
            if found is not None:
                return found
    raise ValueError(f"it has no real matrix {name}")


def _elements(content: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Yield the type and the contents of each element."""
    start = 0
    while start + 8 <= len(content):
        kind, size = struct.unpack_from(f"{order}II", content, start)
        if kind >> 16:  # four bytes or less, in the place of the size
            kind, size = kind & 0xFFFF, kind >> 16
            data, end = start + 4, start + 8
        else:
            data = start + 8
            # Elements begin at multiples of 8 bytes, but for compressed ones.
            end = data + size + (0 if kind == COMPRESSED else -size % 8)
        if data + size > len(content):
            raise ValueError("it breaks off")
        yield kind, content[data : data + size]
        start = end


def _matrix(content: bytes, order: str, name: str) -> NDArray[np.float64] | None:
    """Return the numbers of a matrix if it has this name and is real, else None."""
    parts = list(_elements(content, order))
    if len(parts) != 4 or parts[2][1].decode("latin1") != name:
        return None
    kind, numbers = parts[3]
    size = len(parts[1][1]) // 4
    shape = struct.unpack(f"{order}{size}i", parts[1][1][: 4 * size])
    if kind not in NUMBERS or size != 2:
        return None
    dtype = np.dtype(order + NUMBERS[kind])
    if min(shape) < 0 or len(numbers) != shape[0] * shape[1] * dtype.itemsize:
        raise ValueError(f"its matrix {name} has other sizes than numbers")
    with np.errstate(invalid="ignore"):  # of a NaN, which is refused
        X = np.frombuffer(numbers, dtype).reshape(shape, order="F").astype(np.float64)
    if not np.isfinite(X).all():
        raise ValueError(f"its matrix {name} has numbers that are not finite")
    return X
