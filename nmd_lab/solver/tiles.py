"""Sparse data whose absent entries are zeros: their tiles, and the envelope over them.

Tiles of a sparse matrix, and the stored entries of each.

A pass over the matrix works on one tile at a time, which stays in the cache.  The stored entries
are kept in the order of the tiles, so that those of a tile are a slice.

The Moreau envelope of a sparse matrix of zeros, with multipliers at the stored entries alone.

The multipliers U of absent zeros would be an array of the size of the matrix.  Here they are 0, so
that a zero adds a function of (WH)_ij alone.  As ρ grows, this function approaches the loss.  The
memory is that of the stored entries and of one tile for each thread.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.machine import map_and_add
from nmd_lab.data.entries import FloatArray, IntArray
from nmd_lab.model.model import Model

from .devices import HOST, Device
from .refinement.moreau_envelope import Evaluation, outer_products, size_of_T, to_curvature
from .storage import SHARE_ENTRIES

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
        """Yield the tiles of one of `shares` parts of the rows."""
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


class SparseEnvelope:
    """The function L of `MoreauEnvelope` and its gradient, tile by tile.

    Attributes
    ----------
    size : int
        Number of stored entries.
    U : ndarray (n_stored,)
        Multipliers of the stored entries, in the order of the tiles.
    """

    def __init__(self, tiles: Tiles, model: Model, threads: int = 1) -> None:
        self.tiles, self.x, self.size = tiles, tiles.x, tiles.n_stored
        device, dtype, (m, n) = tiles.device, tiles.dtype, tiles.shape
        self.device = device
        self.U = device.zeros((self.size,), dtype)
        self.envelope_pass = device.envelope_pass(model, f"{dtype}_every")
        self.zero_pass = device.zero_pass(model, dtype)
        self.model, self.numbers = model, model.numbers  # which may hold addresses in the model
        shares = min(m * n // SHARE_ENTRIES, -(-m // tiles.height))
        self.parts = max(1, min(device.threads(threads), shares))

    def evaluate(
        self, W: FloatArray, H: FloatArray, penalty: float, update_from: float = 0.0
    ) -> Evaluation:
        """Return L and its gradient; see `MoreauEnvelope.evaluate`."""
        device, dtype = self.device, H.dtype
        gradient_W = device.zeros(W.shape, dtype)
        at_zero = np.array(self.zero_pass(device.zeros((1,), dtype), penalty))
        n, W, H = H.shape[1], device.put(W), device.put(H)

        def share(index: int) -> tuple[FloatArray, FloatArray]:
            gradient, sums = device.zeros((n, H.shape[0]), dtype), np.zeros(3)
            for tile, G in self._products(W, H, index):
                sums += self._slopes(tile, G.reshape(-1), penalty, update_from)
                sums -= (tile.stored.stop - tile.stored.start) * at_zero
                gradient_W[tile.rows] += G @ H[:, tile.columns].T
                gradient[tile.columns] += G.T @ W[tile.rows]
            return gradient, sums

        gradient_H, (value, data_term, squares) = map_and_add(share, self.parts)
        numbers = (float(value), float(data_term), float(np.sqrt(squares)))
        return Evaluation(
            *numbers, device.get(gradient_W), np.ascontiguousarray(device.get(gradient_H).T)
        )

    def normal_matrices(
        self, W: FloatArray, H: FloatArray, penalty: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the blocks of the Gauss-Newton matrix; see `MoreauEnvelope.normal_matrices`."""
        device, dtype = self.device, H.dtype
        outer_W, outer_H = device.put(outer_products(W)), device.put(outer_products(H.T))
        rows = device.zeros(outer_W.shape, dtype)
        W, H = device.put(W), device.put(H)

        def share(index: int) -> tuple[FloatArray, ...]:
            columns = device.zeros(outer_H.shape, dtype)
            for tile, C in self._products(W, H, index):
                self._curvatures(tile, C.reshape(-1), penalty)
                rows[tile.rows] += C @ outer_H[tile.columns]
                columns[tile.columns] += C.T @ outer_W[tile.rows]
            return (columns,)

        (columns,) = map_and_add(share, self.parts)
        return device.get(rows), device.get(columns)

    def _products(
        self, W: FloatArray, H: FloatArray, share: int
    ) -> Iterator[tuple[Tile, FloatArray]]:
        """Yield the tiles of a part, each with its WH, in an array for the next one, too."""
        buffer = self.device.empty((self.tiles.size,), self.tiles.dtype)
        for tile in self.tiles(share, self.parts):
            rows, columns = W[tile.rows], H[:, tile.columns]
            A = buffer[: rows.shape[0] * columns.shape[1]].reshape(rows.shape[0], -1)
            yield tile, self.device.multiply(rows, columns, A)

    def _slopes(self, tile: Tile, A: FloatArray, penalty: float, update_from: float) -> FloatArray:
        """Turn A = WH of a tile into the gradient of L, and return the three sums.

        The stored entries count as zeros at WH = 0, in addition.
        """
        positions = self.tiles.positions[tile.stored]
        stored = A[positions]
        A[positions] = 0
        sums = np.array(self.zero_pass(A, penalty))
        if not len(positions):
            return sums
        x, U = self.x[tile.stored], self.U[tile.stored]
        numbers = (penalty, update_from, self.numbers)
        sums += self.envelope_pass(x, stored, None, None, None, None, U, *numbers)
        A[positions] = stored
        return sums

    def _curvatures(self, tile: Tile, A: FloatArray, penalty: float) -> None:
        """Turn A = WH of a tile into the second derivative of L."""
        positions = self.tiles.positions[tile.stored]
        stored = A[positions]
        to_curvature(lambda A: self.zero_pass(A, penalty), A, abs(A), penalty)
        if len(positions):
            x, U = self.x[tile.stored], self.U[tile.stored]
            none, numbers = (None, None, None, None), (penalty, 0.0, self.numbers)
            size = abs(stored - U) + size_of_T(x, self.model)
            to_curvature(
                lambda A: self.envelope_pass(x, A, *none, U, *numbers), stored, size, penalty
            )
            A[positions] = stored

    def forget(self) -> None:
        """Set the multipliers back to zero."""
        self.U[:] = 0
