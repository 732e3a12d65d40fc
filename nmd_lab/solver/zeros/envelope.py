"""The Moreau envelope of a sparse matrix of zeros, with multipliers at the stored entries alone.

The multipliers U of absent zeros would be an array of the size of the matrix.  Here they are 0, so
that a zero adds a function of (WH)_ij alone.  As ρ grows, this function approaches the loss.  The
memory is that of the stored entries and of one tile for each thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

import numpy as np

from nmd_lab._threads import map_and_add
from nmd_lab.data.base import FloatArray, Observations
from nmd_lab.data.sparse_observations import SparseObservations
from nmd_lab.model.mixed import AnyPair
from nmd_lab.model.proximal import Pair
from nmd_lab.solver.refinement.moreau_envelope import (
    Evaluation,
    curvature_kernel,
    envelope_kernel,
    outer_products,
)
from nmd_lab.solver.storage import BLOCKS

from .tiles import Tile, Tiles
from .zero_loss import ZeroLoss


class SparseEnvelope:
    """The function L of `MoreauEnvelope` and its gradient, tile by tile.

    Parameters
    ----------
    tiles : Tiles
        Stored entries of data whose absent entries are zeros.
    pair : Pair
        Nonlinearity and loss.
    threads : int
        Largest number of threads.  Each works on its own part of the rows.

    Attributes
    ----------
    U : ndarray (n_stored,)
        Multipliers of the stored entries, in the order of the tiles.
    """

    def __init__(self, tiles: Tiles, pair: Pair, threads: int = 1) -> None:
        self.tiles, self.x = tiles, tiles.x
        self.U = np.zeros_like(self.x)
        dtype, (m, n) = self.x.dtype, tiles.shape
        self.kernel = envelope_kernel(pair, f"{dtype}_every")
        self.curvature_kernel = curvature_kernel(pair, f"{dtype}_every")
        self.model = pair.model
        self.zero_loss = ZeroLoss(pair, dtype)
        self.parts = max(1, min(threads, m * n // BLOCKS.share_entries, -(-m // self.tiles.height)))

    def evaluate(
        self, W: FloatArray, H: FloatArray, penalty: float, update_from: float = 0.0
    ) -> Evaluation:
        """Return L and its gradient; see `MoreauEnvelope.evaluate`."""
        gradient_W = np.zeros_like(W)
        at_zero = np.array(self.zero_loss(np.zeros(1, W.dtype), penalty))

        def share(part: int) -> tuple[FloatArray, FloatArray]:
            gradient, sums = np.zeros((H.shape[1], H.shape[0]), H.dtype), np.zeros(3)
            for tile, G in self._products(W, H, part):
                sums += self._slopes(tile, G.reshape(-1), penalty, update_from)
                sums -= (tile.stored.stop - tile.stored.start) * at_zero
                gradient_W[tile.rows] += G @ H[:, tile.columns].T
                gradient[tile.columns] += G.T @ W[tile.rows]
            return gradient, sums

        gradient_H, (value, data_term, squares) = map_and_add(share, self.parts)
        numbers = (float(value), float(data_term), float(np.sqrt(squares)))
        return Evaluation(*numbers, gradient_W, np.ascontiguousarray(gradient_H.T))

    def normal_matrices(
        self, W: FloatArray, H: FloatArray, penalty: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the blocks of the Gauss-Newton matrix; see `MoreauEnvelope.normal_matrices`."""
        outer_W, outer_H = outer_products(W), outer_products(H.T)
        rows = np.zeros_like(outer_W)

        def share(part: int) -> tuple[FloatArray, ...]:
            columns = np.zeros_like(outer_H)
            for tile, C in self._products(W, H, part):
                self._curvatures(tile, C.reshape(-1), penalty)
                rows[tile.rows] += C @ outer_H[tile.columns]
                columns[tile.columns] += C.T @ outer_W[tile.rows]
            return (columns,)

        (columns,) = map_and_add(share, self.parts)
        return rows, columns

    def _products(
        self, W: FloatArray, H: FloatArray, part: int
    ) -> Iterator[tuple[Tile, FloatArray]]:
        """Yield the tiles of a part, each with its WH, in an array for the next one, too."""
        buffer = np.empty(self.tiles.size, H.dtype)
        for tile in self.tiles(part, self.parts):
            rows, columns = W[tile.rows], H[:, tile.columns]
            A = buffer[: rows.shape[0] * columns.shape[1]].reshape(rows.shape[0], -1)
            yield tile, np.dot(rows, columns, out=A)

    def _slopes(self, tile: Tile, A: FloatArray, penalty: float, update_from: float) -> FloatArray:
        """Turn A = WH of a tile into the gradient of L, and return the three sums.

        The stored entries count as zeros at WH = 0, in addition.
        """
        positions = self.tiles.positions[tile.stored]
        stored = A[positions]
        A[positions] = 0
        sums = np.array(self.zero_loss(A, penalty))
        if not stored.size:
            return sums
        x, U = self.x[tile.stored], self.U[tile.stored]
        numbers = (penalty, update_from, self.model)
        sums += self.kernel(x, stored, None, None, None, None, U, *numbers)
        A[positions] = stored
        return sums

    def _curvatures(self, tile: Tile, A: FloatArray, penalty: float) -> None:
        """Turn A = WH of a tile into the second derivative of L."""
        positions, zeros = self.tiles.positions[tile.stored], np.zeros_like(A)
        stored, none = A[positions], (None, None, None, None)
        self.curvature_kernel(zeros, A, *none, zeros, penalty, self.model)
        if stored.size:
            x, U = self.x[tile.stored], self.U[tile.stored]
            self.curvature_kernel(x, stored, *none, U, penalty, self.model)
            A[positions] = stored

    def forget(self) -> None:
        """Set the multipliers back to zero."""
        self.U[:] = 0


def handles(observations: Observations, pair: AnyPair) -> TypeGuard[SparseObservations]:
    """Return whether there is a `SparseEnvelope` of such data: sparse zeros, without limits."""
    sparse = isinstance(observations, SparseObservations) and observations.absent_are_zeros
    return sparse and observations.limits is None and isinstance(pair, Pair)
