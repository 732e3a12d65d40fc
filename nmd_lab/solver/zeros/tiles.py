"""Tiles of a sparse matrix, and the stored entries of each.

A pass over the matrix works on one tile at a time, which stays in the cache.  The stored entries
are kept in the order of the tiles, so that those of a tile are a slice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.entries import FloatArray, IntArray
from nmd_lab.solver.devices.base import Device
from nmd_lab.solver.devices.host import HOST

ROWS = 256  # largest number of rows of a tile
ENTRIES = 1 << 17  # entries of a tile: 1 MiB of doubles, which stay in a second-level cache


class Tile(NamedTuple):
    """A tile.

    Attributes
    ----------
    rows, columns : slice
        Rows and columns of the matrix.
    stored : slice
        Its stored entries, in the order of the tiles.
    """

    rows: slice
    columns: slice
    stored: slice

    @property
    def empty(self) -> bool:
        """Whether it has no stored entry."""
        return bool(self.stored.start == self.stored.stop)


class Tiles:
    """The tiles of a matrix.

    Attributes
    ----------
    n_stored : int
        Number of stored entries.
    x : ndarray (n_stored,)
        Stored values in the order of the tiles.
    positions : ndarray of int32 (n_stored,)
        Position of each of them in its tile, row by row.
    size : int
        Largest number of entries of a tile.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        indptr: IntArray,
        indices: IntArray,
        values: FloatArray,
        device: Device = HOST,
    ) -> None:
        m, n = self.shape = shape
        self.device, self.n_stored, self.dtype = device, values.size, values.dtype
        self.height = min(m, ROWS * math.isqrt(device.factor))
        self.width = min(n, max(1, ENTRIES * device.factor // self.height))
        self.size = self.height * self.width
        self.across = -(-n // self.width)
        rows = np.repeat(np.arange(m, dtype=np.int32), np.diff(indptr))
        tile, columns = rows // self.height * self.across, indices.astype(np.int32)
        tile += columns // self.width
        counts = np.bincount(tile, minlength=self.across * -(-m // self.height))
        self.ends = np.cumsum(counts)
        order = np.argsort(tile, kind="stable")
        left = tile[order] % self.across * self.width
        positions: NDArray[np.int32] = rows[order] % self.height
        positions *= np.minimum(n - left, self.width)
        positions += columns[order]
        positions -= left
        self.x: FloatArray = device.put(values[order])
        self.positions: NDArray[np.int32] = device.put(positions)

    def __call__(self, share: int = 0, shares: int = 1) -> Iterator[Tile]:
        """Yield the tiles of one of `shares` shares of the rows."""
        m, n = self.shape
        down = -(-m // self.height)
        first, end = (down * number // shares * self.across for number in (share, share + 1))
        for number in range(first, end):
            row, column = divmod(number, self.across)
            top, left = row * self.height, column * self.width
            rows = slice(top, min(top + self.height, m))
            columns = slice(left, min(left + self.width, n))
            begin = int(self.ends[number - 1]) if number else 0
            yield Tile(rows, columns, slice(begin, int(self.ends[number])))
