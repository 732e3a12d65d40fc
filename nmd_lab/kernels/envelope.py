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
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.machine import map_and_add
from nmd_lab.data.entries import FloatArray, IntArray
from nmd_lab.devices import HOST, Device
from nmd_lab.model.model import Model

from .products import MIN_SHARE_ENTRIES, StoredEntries, products_of_blocks
from .sweep import number_of_shares

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
        self.envelope_pass = device.passes(model, limited=False).envelope
        self.zero_pass = device.zero_pass(model, dtype)
        self.model, self.numbers = model, model.numbers  # which may hold addresses in the model
        shares = min(m * n // MIN_SHARE_ENTRIES, -(-m // tiles.height))
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
            size = abs(stored - U) + scale_of_T(x, self.model)
            to_curvature(
                lambda A: self.envelope_pass(x, A, *none, U, *numbers), stored, size, penalty
            )
            A[positions] = stored

    def forget(self) -> None:
        """Set the multipliers back to zero."""
        self.U[:] = 0


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
    """The function L and its gradient, computed block by block of rows.

    Attributes
    ----------
    entries : StoredEntries
        The data.
    size : int
        Number of stored entries.
    U : array (n_stored,) on the device, or None
        Multipliers; None as long as they are all zero.
    """

    def __init__(self, entries: StoredEntries, threads: int = 1) -> None:
        self.entries, self.storage, self.device = entries, entries.storage, entries.device
        self.size = self.storage.n_entries
        self.parts = number_of_shares(self.storage, threads, entries.model)
        self.U: Any = None
        self._none = self.device.empty((self.storage.block_size,), entries.dtype)
        self._none[:] = 0
        limited = entries.limits is not None
        self.envelope_pass = self.device.passes(entries.model, limited=limited).envelope

    def evaluate(
        self, W: FloatArray, H: FloatArray, penalty: float, update_from: float = 0.0
    ) -> Evaluation:
        """Return L and its gradient."""
        H_packed, gradient_W = self.storage.pack(H), np.empty_like(W)
        if update_from and self.U is None:
            self.U = self.device.zeros((self.size,), self.entries.dtype)

        def share(index: int) -> tuple[FloatArray, FloatArray]:
            gradient, sums = np.zeros((H.shape[1], H.shape[0]), H.dtype), np.zeros(3)
            for block, G in products_of_blocks(self.storage, W, H_packed, index, self.parts):
                numbers = (penalty, update_from, self.entries.numbers)
                sums += self.envelope_pass(*self._data(block.entries, G), *numbers)
                gradient_W[block.rows] = self.storage.times_Ht(block, G, H_packed)
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
        rows = np.empty(outer_W.shape, W.dtype)

        def share(index: int) -> tuple[FloatArray, ...]:
            columns = np.zeros(outer_H.shape, H.dtype)
            for block, C in products_of_blocks(self.storage, W, H_packed, index, self.parts):
                self._to_curvature(block.entries, C, penalty)
                rows[block.rows] = self.storage.times_Ht(block, C, outer_H_packed)
                self.storage.add_StW(block, C, outer_W, columns)
            return (columns,)

        (columns,) = map_and_add(share, self.parts)
        return rows, columns

    def _to_curvature(self, entries: slice, A: FloatArray, penalty: float) -> None:
        """Turn A = WH of a block into the second derivative of L."""
        x, _, weights, *marks, U = self._data(entries, A)
        numbers = (penalty, 0.0, self.entries.numbers)
        size = abs(A - U) + scale_of_T(x, self.entries.model)
        if weights is not None:
            self.device.fill(size, abs(A), weights == 0)  # x may be anything there

        def to_gradient(A: FloatArray) -> None:
            self.envelope_pass(x, A, weights, *marks, U, *numbers)

        to_curvature(to_gradient, A, size, penalty)

    def _data(self, entries: slice, A: FloatArray) -> tuple[Any, ...]:
        """Return the arrays of a block, as passes take them."""
        U = self._none[: len(A)] if self.U is None else self.U[entries]
        return *self.entries.of_block(entries, A), U

    def forget(self) -> None:
        """Set the multipliers back to zero."""
        self.U = None


def to_curvature(
    to_gradient: Callable[[FloatArray], Any], A: FloatArray, size: Any, penalty: float
) -> None:
    """Turn A into the slope of a gradient, and `size` into a step that is small next to it."""
    size += 1e-30
    size *= 1e-4
    there = A + size
    size[:] = there
    size -= A
    to_gradient(A)
    to_gradient(there)
    there -= A
    there /= size
    A[:] = there.clip(0.0, penalty)


def scale_of_T(x: FloatArray, model: Model) -> Any:
    """Return the size that T has at entries x, 1 where each kind has a unit of its own."""
    return 1.0 if model.is_mixed else abs(x) ** (1.0 / (model.degrees[0] or 1))


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
