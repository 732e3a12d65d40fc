"""The augmented Lagrangian with T eliminated, and its tiles for sparse data with absent zeros.

For fixed multipliers U and penalty ρ the best T is the T-update, T = prox(WH - U), so

    L(W, H) = Σ min over t of d(x, f(t)) + ρ/2 (t - v)²  + alpha/2 (‖W‖² + ‖H‖²),    V = WH - U,

is the Moreau envelope of the loss, entry by entry.  Its gradient with respect to WH is ρ (V - T).
The exact T-update therefore gives an exact gradient, even if f and d have kinks, flat pieces and
poles, except where two minimisers T tie: there L has a kink that points upwards, which a descent
leaves (ReLU + Frobenius, x = ρ = 1: the slope jumps from 0 to -0.707 at v = 1 - √2).  Where the
loss is flat in WH (a clipped entry, a dead ReLU), a small ρ still gives a gradient in the right
direction.  With U = 0 and a large ρ, L is close to the objective itself.  With the right U, both
have the same stationary points at any ρ (the method of multipliers).

A pass over a sparse matrix works on one tile at a time, which stays in the cache.  The stored
entries are kept in the order of the tiles, so that those of a tile are a slice.  The multipliers U
of absent zeros would be an array of the size of the matrix.  Here they are 0, so that a zero adds a
function of (WH)_ij alone, which approaches the loss as ρ grows.  The memory is that of the stored
entries and of one tile for each thread.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.machine import map_and_add
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.devices import HOST, Device
from nmd_lab.model.model import Model

from .products import Block, DenseStorage, products_of_blocks
from .sweep import number_of_shares

ROWS = 256  # largest number of rows of a tile
ENTRIES = 1 << 17  # entries of a tile: 1 MiB of doubles, which stay in a second-level cache


class Tiles(DenseStorage):
    """The tiles of a matrix, as blocks, whose entries are the stored ones.

    Attributes
    ----------
    n_stored : int
        Number of stored entries.
    x : ndarray (n_stored,)
        Stored values in the order of the tiles.
    positions : ndarray of int32 (n_stored,)
        Position of each of them in its tile, row by row.
    """

    def __init__(self, data: SparseObservations, device: Device = HOST) -> None:
        super().__init__(data.shape, device)
        (m, n), self.n_stored, self.dtype = data.shape, data.values.size, data.dtype
        self.height = min(m, ROWS * math.isqrt(device.factor))
        self.width = min(n, max(1, ENTRIES * device.factor // self.height))
        self.block_size = self.height * self.width
        self.across = -(-n // self.width)
        rows, columns = data.rows.astype(np.int32), data.indices.astype(np.int32)
        tile = rows // self.height * self.across
        tile += columns // self.width
        counts = np.bincount(tile, minlength=self.across * -(-m // self.height))
        self.ends = np.cumsum(counts)
        order = np.argsort(tile, kind="stable")
        left = tile[order] % self.across * self.width
        positions: NDArray[np.int32] = rows[order] % self.height
        positions *= np.minimum(n - left, self.width)
        positions += columns[order]
        positions -= left
        self.x: FloatArray = device.put(data.values[order])
        self.positions: NDArray[np.int32] = device.put(positions)

    def blocks(self, share: int = 0, shares: int = 1) -> Iterator[Any]:
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
            yield Block(rows, slice(begin, int(self.ends[number])), columns)


class Evaluation(NamedTuple):
    """The result of one pass over the data at some W and H.

    Attributes
    ----------
    value : float
        L without the ridge.
    data_term : float
        Weighted loss of f(WH).
    primal : float
        ‖T - WH‖.
    gradient_W, gradient_H : ndarray (m, rank) and (rank, n)
        Gradient of L without the ridge.
    """

    value: float
    data_term: float
    primal: float
    gradient_W: FloatArray
    gradient_H: FloatArray


class MoreauEnvelope:
    """The function L and its gradient, computed block by block.

    Attributes
    ----------
    entries : StoredEntries or TileEntries
        The data.
    size : int
        Number of stored entries.
    U : array (n_stored,) on the device, or None
        Multipliers; None as long as they are all zero.
    """

    def __init__(self, entries: Any, threads: int = 1) -> None:
        self.entries, self.storage, self.device = entries, entries.storage, entries.device
        self.size = self.storage.n_entries
        self.parts = number_of_shares(self.storage, threads, entries.model)
        self.U: Any = None
        limited = entries.limits is not None
        self.passes = self.device.passes(entries.model, limited=limited)

    def evaluate(
        self, W: FloatArray, H: FloatArray, penalty: float, update_from: float = 0.0
    ) -> Evaluation:
        """Return L and its gradient."""
        H_packed, gradient_W = self.storage.pack(H), np.zeros_like(W)
        if update_from and self.U is None:
            self.U = self.device.zeros((self.size,), self.entries.dtype)

        def share(index: int) -> tuple[FloatArray, FloatArray]:
            gradient, sums = np.zeros((H.shape[1], H.shape[0]), H.dtype), np.zeros(3)
            for block, G in products_of_blocks(self.storage, W, H_packed, index, self.parts):
                sums += self._to_slopes(block, G, penalty, update_from)
                gradient_W[block.rows] += self.storage.times_Ht(block, G, H_packed)
                self.storage.add_StW(block, G, W, gradient)
            return gradient, sums

        gradient_H, (value, data_term, squares) = map_and_add(share, self.parts)
        numbers = (float(value), float(data_term), float(np.sqrt(squares)))
        return Evaluation(*numbers, gradient_W, np.ascontiguousarray(gradient_H.T))

    def normal_matrices(
        self, W: FloatArray, H: FloatArray, penalty: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the diagonal blocks of the Gauss-Newton matrix of L, without the ridge."""
        H_packed, outer_H = self.storage.pack(H), outer_products(H.T)
        outer_H_packed, outer_W = self.storage.pack(outer_H.T), outer_products(W)
        rows = np.zeros(outer_W.shape, W.dtype)

        def share(index: int) -> tuple[FloatArray, ...]:
            columns = np.zeros(outer_H.shape, H.dtype)
            for block, C in products_of_blocks(self.storage, W, H_packed, index, self.parts):
                self._to_curvature(block, C, penalty)
                rows[block.rows] += self.storage.times_Ht(block, C, outer_H_packed)
                self.storage.add_StW(block, C, outer_W, columns)
            return (columns,)

        (columns,) = map_and_add(share, self.parts)
        return rows, columns

    def _to_slopes(self, block: Any, A: FloatArray, penalty: float, update_from: float) -> Any:
        """Turn A = WH of a block into the gradient of L, and return the three sums."""
        return self.passes.envelope(*self._data(block.entries, A), penalty, update_from)

    def _to_curvature(self, block: Any, A: FloatArray, penalty: float) -> None:
        """Turn A = WH of a block into the second derivative of L, by a step that is small in T."""
        there = A + 1e-4 * (self._sizes(block.entries, A) + 1e-30)
        step = there - A
        for each in (A, there):
            self._to_slopes(block, each, penalty, 0.0)
        A[:] = ((there - A) / step).clip(0.0, penalty)

    def _sizes(self, entries: slice, A: FloatArray) -> FloatArray:
        """Return the size of T at the entries of a block."""
        x, _, weights, *_, U = self._data(entries, A)
        model = self.entries.model  # a kind with a unit of its own has T of size 1
        of_x = 1.0 if model.is_mixed else abs(x) ** (1.0 / (model.degrees[0] or 1))
        sizes: FloatArray = abs(A - U) + of_x
        if weights is not None:
            sizes[weights == 0] = abs(A[weights == 0])  # x may be anything there
        return sizes

    def _data(self, entries: slice, A: FloatArray) -> tuple[Any, ...]:
        """Return the arrays of a block, as passes take them."""
        U = 0 * A if self.U is None else self.U[entries]
        return *self.entries.of_block(entries, A), U

    def forget(self) -> None:
        """Set the multipliers back to zero."""
        self.U = None


class TileEntries:
    """The stored entries of tiles, with what passes of a model take."""

    limits = None

    def __init__(self, tiles: Tiles, model: Model) -> None:
        self.storage, self.device, self.dtype = tiles, tiles.device, tiles.dtype
        self.model = model

    def of_block(self, entries: slice, A: FloatArray) -> tuple[Any, ...]:
        """Return the arrays of a tile; see `StoredEntries.of_block`."""
        return self.storage.x[entries], A, None, None, None, None


class SparseEnvelope(MoreauEnvelope):
    """The function L of a matrix with absent zeros, tile by tile.

    The multipliers are those of the stored entries, in the order of the tiles.
    """

    def __init__(self, tiles: Tiles, model: Model, threads: int = 1) -> None:
        super().__init__(TileEntries(tiles, model), threads)
        self.size, self.positions = tiles.n_stored, tiles.positions

    def _to_slopes(self, block: Block, A: FloatArray, penalty: float, update_from: float) -> Any:
        """Turn A = WH of a tile into the gradient of L, and return the three sums."""
        positions = self.positions[block.entries]
        stored = A[positions]
        A[positions] = 0
        sums = np.array(self.passes.zeros(A, penalty))
        if len(positions):  # which count as zeros at WH = 0, too
            at_zero = self.passes.zeros(self.device.zeros((1,), self.entries.dtype), penalty)
            sums -= len(positions) * np.array(at_zero)
            sums += super()._to_slopes(block, stored, penalty, update_from)
            A[positions] = stored
        return sums

    def _sizes(self, entries: slice, A: FloatArray) -> FloatArray:
        """Return the size of T at all entries of a tile."""
        sizes, positions = abs(A), self.positions[entries]
        sizes[positions] = super()._sizes(entries, A[positions])
        return sizes


def outer_products(rows: FloatArray) -> FloatArray:
    """Return the lower triangle of the outer product of each row with itself, flat."""
    i, j = np.tril_indices(rows.shape[1])
    return np.asarray(np.take(rows, i, axis=1) * np.take(rows, j, axis=1))


def symmetric(triangles: FloatArray, size: int) -> FloatArray:
    """Return the symmetric matrices (..., size, size) whose lower triangles these rows hold."""
    i, j = np.tril_indices(size)
    position = np.empty((size, size), dtype=np.intp)
    position[i, j] = position[j, i] = np.arange(i.size)
    return np.asarray(np.take(triangles, position, axis=1))
