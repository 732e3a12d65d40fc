"""The positions of the stored entries of a matrix, and three products at these positions.

A dense problem stores every entry, a sparse one only the observed entries.  Both store them row by
row in flat arrays.  A storage divides the rows into blocks.  For the entries of a block it computes
A = WH, S Hᵀ and Sᵀ W.  The same sweep serves both storages.

The loops of a sparse storage are separate from the T-update.  A loop that did both would not
vectorise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.compiler import cached_kernel, for_kernels
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import BLOCK, Observations
from nmd_lab.devices import HOST, Device


class Block(NamedTuple):
    """A range of rows and the range of flat entries that they store."""

    rows: slice
    entries: slice


MIN_SHARE_ENTRIES = 1 << 18  # entries of a part of the rows below which another thread does not pay


class DenseStorage:
    """Every entry is stored; the products are those of matrices on the device.

    Attributes
    ----------
    shape : tuple of int
        Number of rows and columns, (m, n).
    n_entries : int
        Number of stored entries.
    block_size : int
        Largest number of entries of a block.
    complete : bool
        Whether every entry is stored.
    device : Device
        Where the entries lie.
    """

    complete = True

    def __init__(self, shape: tuple[int, int], device: Device = HOST) -> None:
        self.shape, self.device = shape, device
        self.n_entries = shape[0] * shape[1]
        entries = BLOCK * device.factor
        self.block_rows = max(1, min(entries // shape[1], shape[0]))
        self.block_size = self.block_rows * shape[1]

    def blocks(self, share: int = 0, shares: int = 1) -> Iterator[Block]:
        """Yield the blocks of one of `shares` parts of the rows."""
        m, n = self.shape
        end = m * (share + 1) // shares
        for first in range(m * share // shares, end, self.block_rows):
            last = min(first + self.block_rows, end)
            yield Block(slice(first, last), slice(first * n, last * n))

    def pack(self, H: FloatArray) -> FloatArray:
        """Return H on the device."""
        packed: FloatArray = self.device.put(H)
        return packed

    def products(self, block: Block, W: FloatArray, H_packed: FloatArray, out: FloatArray) -> None:
        """Put WH at the block's entries into `out`."""
        rows = self.device.put(W[block.rows])
        self.device.multiply(rows, H_packed, out.reshape(-1, self.shape[1]))

    def times_Ht(self, block: Block, S: FloatArray, H_packed: FloatArray) -> FloatArray:
        """Return the block's rows of S Hᵀ."""
        return self.device.get(S.reshape(-1, self.shape[1]) @ H_packed.T)

    def add_StW(self, block: Block, S: FloatArray, W: FloatArray, out: FloatArray) -> None:
        """Add the block's part of Sᵀ W to `out`."""
        rows = self.device.put(W[block.rows])
        out += self.device.get(S.reshape(-1, self.shape[1]).T @ rows)


class CsrStorage:
    """The entries of a compressed sparse row (CSR) pattern; the products are compiled loops.

    Its attributes and methods are those of `DenseStorage`.
    """

    complete = False
    device = HOST

    def __init__(
        self, shape: tuple[int, int], indptr: NDArray[np.integer], indices: NDArray[np.integer]
    ) -> None:
        self.shape = shape
        self.indptr: NDArray[np.integer] = for_kernels(indptr)
        self.indices: NDArray[np.integer] = for_kernels(indices)
        self.n_entries = indices.size
        longest = int(np.diff(indptr).max(initial=0))
        self.block_size = min(self.n_entries, max(BLOCK, longest))

    def blocks(self, share: int = 0, shares: int = 1) -> Iterator[Block]:
        """Yield the blocks of one of `shares` parts of the rows, of about as many entries."""
        size = self.n_entries / shares
        # the first and the last part also have the empty rows before and after all entries
        first = 0 if share == 0 else self._row_of(size * share)
        end = self.shape[0] if share == shares - 1 else self._row_of(size * (share + 1))
        while first < end:
            last = self._row_of(self.indptr[first] + BLOCK)
            last = min(max(last, first + 1), end)
            yield Block(slice(first, last), slice(int(self.indptr[first]), int(self.indptr[last])))
            first = last

    def _row_of(self, entry: Any) -> int:
        """Return the last row that begins at or before an entry."""
        return int(np.searchsorted(self.indptr, entry, side="right")) - 1

    def pack(self, H: FloatArray) -> FloatArray:
        """Return Hᵀ (n, rank), in which a column of H is contiguous."""
        return np.ascontiguousarray(H.T)

    def products(self, block: Block, W: FloatArray, H_packed: FloatArray, out: FloatArray) -> None:
        """Put WH at the block's entries into `out`."""
        self._call(_products, block, W, H_packed, out)

    def times_Ht(self, block: Block, S: FloatArray, H_packed: FloatArray) -> FloatArray:
        """Return the block's rows of S Hᵀ."""
        n_rows = block.rows.stop - block.rows.start
        out = np.empty((n_rows, H_packed.shape[1]), dtype=H_packed.dtype)
        self._call(_times_Ht, block, S, H_packed, out)
        return out

    def add_StW(self, block: Block, S: FloatArray, W: FloatArray, out: FloatArray) -> None:
        """Add the block's part of Sᵀ W to `out`."""
        self._call(_add_StW, block, S, W, out)

    def all_products(self, W: FloatArray, H: FloatArray) -> FloatArray:
        """Return WH at every entry, flat."""
        H_packed, out = self.pack(H), np.empty(self.n_entries, dtype=W.dtype)
        for block in self.blocks():
            self.products(block, W, H_packed, out[block.entries])
        return out

    def _call(self, kernel: Callable[..., None], block: Block, *arrays: FloatArray) -> None:
        types = arrays[0].dtype.char + self.indices.dtype.char  # their names take longer to make
        compiled = cached_kernel(kernel, f"{kernel.__name__.strip('_')}_{types}")
        compiled(self.indptr, self.indices, block.rows.start, block.rows.stop, *arrays)

    def transposed(self) -> tuple[CsrStorage, NDArray[np.integer]]:
        """Return the storage of the transpose, and for each of its entries the position here."""
        from scipy.sparse import csr_array

        numbers = np.arange(self.n_entries, dtype=self.indices.dtype)
        pattern = csr_array((numbers, self.indices, self.indptr), shape=self.shape).tocsc()
        m, n = self.shape
        return CsrStorage((n, m), pattern.indptr, pattern.indices), pattern.data


Storage = DenseStorage | CsrStorage
"""Either storage."""


def products_of_blocks(
    storage: Storage, W: FloatArray, H_packed: FloatArray, share: int = 0, shares: int = 1
) -> Iterator[tuple[Block, FloatArray]]:
    """Yield the blocks of a share of the rows, each with WH at its entries in the same buffer."""
    buffer = storage.device.empty((storage.block_size,), W.dtype)
    for block in storage.blocks(share, shares):
        A = buffer[: block.entries.stop - block.entries.start]
        storage.products(block, W, H_packed, A)
        yield block, A


def storage_of(observations: Observations, device: Device = HOST) -> Storage:
    """Return the storage that suits the observations; a CSR pattern has no other device."""
    if observations.pattern is None:
        return DenseStorage(observations.shape, device)
    return CsrStorage(observations.shape, *observations.pattern)


def _products(indptr, indices, first, last, W, Ht, out):  # type: ignore[no-untyped-def]
    base = indptr[first]
    for i in range(first, last):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            total = 0.0
            for c in range(W.shape[1]):
                total += W[i, c] * Ht[j, c]
            out[k - base] = total


def _times_Ht(indptr, indices, first, last, S, Ht, out):  # type: ignore[no-untyped-def]
    base = indptr[first]
    for i in range(first, last):
        for c in range(Ht.shape[1]):
            out[i - first, c] = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            j, s = indices[k], S[k - base]
            for c in range(Ht.shape[1]):
                out[i - first, c] += s * Ht[j, c]


def _add_StW(indptr, indices, first, last, S, W, out):  # type: ignore[no-untyped-def]
    base = indptr[first]
    for i in range(first, last):
        for k in range(indptr[i], indptr[i + 1]):
            j, s = indices[k], S[k - base]
            for c in range(W.shape[1]):
                out[j, c] += s * W[i, c]
