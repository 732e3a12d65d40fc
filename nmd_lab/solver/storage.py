"""Where the stored entries of a matrix are, and the three products that a sweep takes there.

A dense problem stores every entry, a sparse one those of Ω, row after row; in both the entries lie
in flat arrays.  A layout cuts the rows into blocks and multiplies: A = WH at the entries of a
block, S Hᵀ and Sᵀ W.  Nothing else in the solver knows which layout it works on.

The products of a sparse layout are passes of their own over a block's entries: a loop that mixed
them with the T-update would not vectorise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from nmd_lab._numba import compile_kernel
from nmd_lab.data.base import FloatArray, Observations

BLOCK_ENTRIES = 1 << 16  # 512 KiB of doubles: a block and its state stay in a second-level cache


class Block(NamedTuple):
    """A range of rows and the flat entries that they store."""

    rows: slice
    entries: slice


class Layout(Protocol):
    """What a sweep asks of a layout; `right` is H in the form that `prepare` gave it."""

    shape: tuple[int, int]
    n_entries: int
    block_size: int
    complete: bool

    def blocks(self, part: int = 0, parts: int = 1) -> Iterator[Block]:
        """Cut one of several shares of the rows into blocks."""

    def prepare(self, H: FloatArray) -> FloatArray:
        """Return H (rank, n) in the memory order that suits the layout."""

    def products(self, block: Block, W: FloatArray, right: FloatArray, out: FloatArray) -> None:
        """Put WH at the block's entries into `out`."""

    def times_Ht(self, block: Block, S: FloatArray, right: FloatArray) -> FloatArray:
        """Return the block's rows of S Hᵀ."""

    def add_StW(self, block: Block, S: FloatArray, W: FloatArray, out: FloatArray) -> None:
        """Add the block's share of Sᵀ W (n, rank) to `out`."""


class DenseLayout:
    """Every entry is stored; the products are BLAS's."""

    complete = True

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
        self.n_entries = shape[0] * shape[1]
        self.block_rows = max(1, min(BLOCK_ENTRIES // shape[1], shape[0]))
        self.block_size = self.block_rows * shape[1]

    def blocks(self, part: int = 0, parts: int = 1) -> Iterator[Block]:
        """Cut one of several shares of the rows into blocks."""
        m, n = self.shape
        end = m * (part + 1) // parts
        for first in range(m * part // parts, end, self.block_rows):
            last = min(first + self.block_rows, end)
            yield Block(slice(first, last), slice(first * n, last * n))

    def prepare(self, H: FloatArray) -> FloatArray:
        """Return H itself."""
        return H

    def products(self, block: Block, W: FloatArray, right: FloatArray, out: FloatArray) -> None:
        """Put WH at the block's entries into `out`."""
        np.dot(W[block.rows], right, out=out.reshape(-1, self.shape[1]))

    def times_Ht(self, block: Block, S: FloatArray, right: FloatArray) -> FloatArray:
        """Return the block's rows of S Hᵀ."""
        product: FloatArray = S.reshape(-1, self.shape[1]) @ right.T
        return product

    def add_StW(self, block: Block, S: FloatArray, W: FloatArray, out: FloatArray) -> None:
        """Add the block's share of Sᵀ W to `out`."""
        out += S.reshape(-1, self.shape[1]).T @ W[block.rows]


class SparseLayout:
    """The entries of a CSR pattern; the products are compiled loops over them.

    Parameters
    ----------
    shape : tuple of int
        Number of rows and columns.
    indptr, indices : ndarray of int
        The pattern, row after row.
    """

    complete = False

    def __init__(
        self, shape: tuple[int, int], indptr: NDArray[np.integer], indices: NDArray[np.integer]
    ) -> None:
        self.shape = shape
        self.indptr, self.indices = indptr, indices
        self.n_entries = indices.size
        longest = int(np.diff(indptr).max(initial=0))
        self.block_size = min(self.n_entries, max(BLOCK_ENTRIES, longest))

    def blocks(self, part: int = 0, parts: int = 1) -> Iterator[Block]:
        """Cut one of several shares of the rows, equal in entries, into blocks."""
        shares = np.linspace(0, self.n_entries, parts + 1)
        first, end = self._row_of(shares[part]), self._row_of(shares[part + 1])
        if part == parts - 1:
            end = self.shape[0]
        while first < end:
            last = self._row_of(self.indptr[first] + BLOCK_ENTRIES)
            last = min(max(last, first + 1), end)
            yield Block(slice(first, last), slice(int(self.indptr[first]), int(self.indptr[last])))
            first = last

    def _row_of(self, entry: Any) -> int:
        """Return the last row that begins at or before an entry."""
        return int(np.searchsorted(self.indptr, entry, side="right")) - 1

    def prepare(self, H: FloatArray) -> FloatArray:
        """Return H transposed, so that a column of H is in one place."""
        return np.ascontiguousarray(H.T)

    def products(self, block: Block, W: FloatArray, right: FloatArray, out: FloatArray) -> None:
        """Put WH at the block's entries into `out`."""
        self._call(_products, block, W, right, out)

    def times_Ht(self, block: Block, S: FloatArray, right: FloatArray) -> FloatArray:
        """Return the block's rows of S Hᵀ."""
        out = np.empty((block.rows.stop - block.rows.start, right.shape[1]), dtype=right.dtype)
        self._call(_times_Ht, block, S, right, out)
        return out

    def add_StW(self, block: Block, S: FloatArray, W: FloatArray, out: FloatArray) -> None:
        """Add the block's share of Sᵀ W to `out`."""
        self._call(_add_StW, block, S, W, out)

    def all_products(self, W: FloatArray, H: FloatArray) -> FloatArray:
        """Return WH at every entry, flat."""
        right, out = self.prepare(H), np.empty(self.n_entries, dtype=W.dtype)
        for block in self.blocks():
            self.products(block, W, right, out[block.entries])
        return out

    def _call(self, kernel: Callable[..., None], block: Block, *arrays: FloatArray) -> None:
        compiled = sparse_kernel(kernel, f"{arrays[0].dtype}_{self.indices.dtype}")
        compiled(self.indptr, self.indices, block.rows.start, block.rows.stop, *arrays)

    def transposed(self) -> tuple[SparseLayout, NDArray[np.integer]]:
        """Return the layout of the transpose, and where its entries are among ours."""
        from scipy.sparse import csr_array

        numbers = np.arange(self.n_entries, dtype=self.indices.dtype)
        pattern = csr_array((numbers, self.indices, self.indptr), shape=self.shape).tocsc()
        m, n = self.shape
        return SparseLayout((n, m), pattern.indptr, pattern.indices), pattern.data


def layout_of(observations: Observations) -> DenseLayout | SparseLayout:
    """Return where the entries of a problem are stored."""
    if observations.pattern is None:
        return DenseLayout(observations.shape)
    return SparseLayout(observations.shape, *observations.pattern)


@cache
def sparse_kernel(kernel: Callable[..., Any], types: str) -> Callable[..., Any]:
    """Compile a loop over the entries of a CSR pattern, once for each combination of types."""
    return compile_kernel(kernel, f"{kernel.__name__.strip('_')}_{types}", cached=True)


def _products(indptr, indices, first, last, W, right, out):  # type: ignore[no-untyped-def]
    base = indptr[first]
    for i in range(first, last):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            total = 0.0
            for c in range(W.shape[1]):
                total += W[i, c] * right[j, c]
            out[k - base] = total


def _times_Ht(indptr, indices, first, last, S, right, out):  # type: ignore[no-untyped-def]
    base = indptr[first]
    for i in range(first, last):
        for c in range(right.shape[1]):
            out[i - first, c] = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            j, s = indices[k], S[k - base]
            for c in range(right.shape[1]):
                out[i - first, c] += s * right[j, c]


def _add_StW(indptr, indices, first, last, S, W, out):  # type: ignore[no-untyped-def]
    base = indptr[first]
    for i in range(first, last):
        for k in range(indptr[i], indptr[i + 1]):
            j, s = indices[k], S[k - base]
            for c in range(W.shape[1]):
                out[j, c] += s * W[i, c]
