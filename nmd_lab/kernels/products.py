"""What a solver stores of each entry, and products at these positions.

A dense problem stores every entry, a sparse one only the observed entries.  Both store them row by
row in flat arrays.  A storage divides the rows into blocks.  For the entries of a block it computes
A = WH, S Hᵀ and Sᵀ W.  The same sweep serves both storages.

The loops of a sparse storage are separate from the T-update.  A loop that did both would not
vectorise.

The split variable T and its dual U are flat arrays of entries, too, which lie on a device.

`RowBlocks` has the products with a large matrix, sparse or in a file, and a constant added to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, get_index_dtype

from nmd_lab._runtime.compiler import cached_kernel
from nmd_lab._runtime.machine import for_kernels
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import BLOCK, Observations, row_blocks, row_borders
from nmd_lab.data.sparse import is_sparse
from nmd_lab.devices import HOST, Device
from nmd_lab.model.model import Model, groups


class Block(NamedTuple):
    """Ranges of rows, of the flat entries that are stored there, and of columns."""

    rows: slice
    entries: slice
    columns: slice = slice(None)


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
        self.block_rows = max(1, min(BLOCK * device.factor // shape[1], shape[0]))
        self.block_size = self.block_rows * shape[1]

    def blocks(self, share: int = 0, shares: int = 1) -> Iterator[Block]:
        """Yield the blocks of one of `shares` parts of the rows."""
        m, n = self.shape
        end = m * (share + 1) // shares
        for first in range(m * share // shares, end, self.block_rows):
            last = min(first + self.block_rows, end)
            yield Block(slice(first, last), slice(first * n, last * n))

    def pack(self, H: FloatArray) -> Any:
        """Return H on the device."""
        return self.device.put(H)

    def products(self, block: Block, W: FloatArray, H_packed: FloatArray, out: Any) -> Any:
        """Put WH at the block's entries where `out` begins, and return that part of `out`."""
        rows, partners = self.device.put(W[block.rows]), H_packed[:, block.columns]
        found = out[: len(rows) * partners.shape[1]]
        self.device.multiply(rows, partners, found.reshape(len(rows), -1))
        return found

    def times_Ht(self, block: Block, S: FloatArray, H_packed: FloatArray) -> FloatArray:
        """Return the block's rows of S Hᵀ."""
        partners = H_packed[:, block.columns].T
        return self.device.get(S.reshape(-1, len(partners)) @ partners)

    def add_StW(self, block: Block, S: FloatArray, W: FloatArray, out: FloatArray) -> None:
        """Add the block's part of Sᵀ W to `out`."""
        rows = self.device.put(W[block.rows])
        out[block.columns] += self.device.get(S.reshape(len(rows), -1).T @ rows)


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
        self.n_entries = indices.size
        integer = get_index_dtype(maxval=max(self.n_entries, *shape))
        self.indptr: NDArray[np.integer] = for_kernels(np.asarray(indptr, integer))
        self.indices: NDArray[np.integer] = for_kernels(np.asarray(indices, integer))
        longest = int(np.diff(indptr).max(initial=0))
        self.block_size = min(self.n_entries, max(BLOCK, longest))

    def blocks(self, share: int = 0, shares: int = 1) -> Iterator[Block]:
        """Yield the blocks of one of `shares` parts of the rows, of about as many entries."""
        first, end = row_borders(self.indptr, shares)[share : share + 2]
        for rows in row_blocks(self.indptr, first, end):
            yield Block(rows, slice(int(self.indptr[rows.start]), int(self.indptr[rows.stop])))

    def pack(self, H: FloatArray) -> FloatArray:
        """Return Hᵀ (n, rank), in which a column of H is contiguous."""
        return np.ascontiguousarray(H.T)

    def products(self, block: Block, W: FloatArray, H_packed: FloatArray, out: Any) -> Any:
        """Put WH at the block's entries where `out` begins, and return that part of `out`."""
        self._call(_products, block, W, H_packed, out)
        return out[: block.entries.stop - block.entries.start]

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
        whole = Block(slice(0, self.shape[0]), slice(0, self.n_entries))
        out = np.empty(self.n_entries, dtype=W.dtype)
        self.products(whole, W, self.pack(H), out)
        return out

    def _call(self, kernel: Callable[..., None], block: Block, *arrays: FloatArray) -> None:
        types = arrays[0].dtype.char + self.indices.dtype.char  # their names take longer to make
        compiled = cached_kernel(kernel, f"{kernel.__name__.strip('_')}_{types}")
        compiled(self.indptr, self.indices, block.rows.start, block.rows.stop, *arrays)

    def transposed(self) -> tuple[CsrStorage, NDArray[np.integer]]:
        """Return the storage of the transpose, and for each of its entries the position here."""
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
        yield block, storage.products(block, W, H_packed, buffer)


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


class StoredEntries:
    """Positions, values and weights of the stored entries, as the passes over them take them.

    Attributes
    ----------
    storage : DenseStorage or CsrStorage
        Their positions.
    x : ndarray, or what reads the values of a range
        Values; a slice gives an array.  They may be anything where an entry is missing.
    weights : ndarray or None
        Weights; 0 where an entry is missing.
    limits : EntryLimits or None
        Entries of which only limits are known.
    model_index : ndarray of int or None
        Position of the kind of each entry; None if there is one.
    """

    def __init__(self, observations: Observations, model: Model, device: Device = HOST) -> None:
        weights, self.limits = observations.weight_reader(), observations.limit_reader()
        self.storage, self.device = storage_of(observations, device), device
        self.dtype = observations.dtype
        self.x = device.read(observations.reader(), observations.n_stored)
        self.weights = None if weights is None else device.read(weights, observations.n_stored)
        self.model_index: NDArray[np.int16] | None = None
        if model.is_mixed:
            self.model_index = model.index_at(*observations.stored_positions()).astype(np.int16)
        self.model, self._sorted = model, dict[tuple[int, int], tuple[Any, ...]]()

    def of_block(self, entries: slice, A: FloatArray) -> tuple[Any, ...]:
        """Return the arrays of a block with WH there; None where it has no weights, limits, ..."""
        limits, x, weights = self.limits, self.x[entries], self.weights_of(entries)
        if limits is None:
            return x, A, weights, None, None, self._sorted_block(entries)
        uppers = x if limits.uppers is None else limits.uppers[entries]
        return x, A, weights, limits.codes[entries], uppers, self._sorted_block(entries)

    def weights_of(self, entries: slice) -> FloatArray | None:
        """Return the weights of a block."""
        return None if self.weights is None else self.weights[entries]

    def _sorted_block(self, entries: slice) -> tuple[Any, ...] | None:
        """Return the entries of a block by their f and d, which are sorted once; None for one kind.

        These are their positions in the block, the column model of each in this order, and where
        those of each f and d begin, and the last ones end.
        """
        if self.model_index is None:
            return None
        place = entries.start, entries.stop
        if place not in self._sorted:
            which, (different, positions, _) = self.model_index[entries], self.model.by_function
            order, ends = groups(positions[which], len(different))
            self._sorted[place] = order.astype(np.int32), which[order], ends
        return self._sorted[place]


@dataclass
class Entries:
    """What an iteration changes at each stored entry, as flat arrays on the device.

    Attributes
    ----------
    T, U : array (n_entries,)
        The split variable and its scaled dual.
    previous_A : array (n_entries,) or None
        WH of the update before, where T = WH beyond the stored entries.
    S : array (n_entries,) or None
        T + U - WH, where the H-step needs it.
    """

    T: Any
    U: Any
    previous_A: Any = None
    S: Any = None

    def on(self, device: Device) -> Entries:
        """Put arrays that were read from a file on a device."""
        for name in ("T", "U", "previous_A", "S"):
            if (array := getattr(self, name)) is not None:
                setattr(self, name, device.put(array))
        return self


def starting_entries(observations: Observations, model: Model, device: Device) -> Entries:
    """Return T at its start, and U = 0."""
    T = pseudo_inverses(observations, model)
    return Entries(device.put(T), device.zeros(T.shape, T.dtype))


def pseudo_inverses(observations: Observations, model: Model) -> FloatArray:
    """Return the starting T at the stored entries, as a new flat array; 0 if missing."""
    if not model.is_mixed:
        return observations.transformed(model.pseudo_inverse)
    x, weights = observations.transformed(lambda x: x), observations.weight_reader()
    T = model.pseudo_inverse(x, *observations.stored_positions())
    return (T if weights is None else T * (weights > 0)).astype(x.dtype, copy=False)


class RowBlocks:
    """The matrix R + fill, of which blocks of rows are in double precision at a time."""

    def __init__(self, R: Any, fill: float, size: int | None = None) -> None:
        self.R, self.fill = R, fill
        self.size = size or max(1, BLOCK // R.shape[1])

    def product(self, V: FloatArray) -> FloatArray:
        """Return (R + fill) V."""
        products = np.concatenate([block @ V for block, _ in self._blocks()])
        return np.asarray(products + self.fill * np.sum(V, axis=0))

    def transposed_product(self, V: FloatArray) -> FloatArray:
        """Return (R + fill)ᵀ V."""
        products: Any = sum(block.T @ V[rows] for block, rows in self._blocks())
        return np.asarray(products + self.fill * np.sum(V, axis=0))

    def gram(self) -> FloatArray:
        """Return (R + fill)ᵀ (R + fill)."""
        m, n = self.R.shape
        if is_sparse(self.R):
            R = self.R.astype(np.float64)
            sums = self.fill * np.ravel(R.sum(axis=0))
            return np.asarray((R.T @ R).toarray() + sums + sums[:, None] + m * self.fill**2)
        filled = (block + self.fill for block, _ in self._blocks())
        return np.asarray(sum((each.T @ each for each in filled), start=np.zeros((n, n))))

    def _blocks(self) -> Iterator[tuple[Any, slice]]:
        """Yield blocks of rows with their positions; a sparse R is one of them."""
        if is_sparse(self.R):
            yield self.R, slice(None)
            return
        for first in range(0, self.R.shape[0], self.size):
            rows = slice(first, first + self.size)
            yield np.asarray(self.R[rows], np.float64), rows


def vectors_of_gram(squares: FloatArray, V: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return V / √D and √D Vᵀ, the largest first, from eigenvalues D² and eigenvectors of AᵀA.

    A V / √D = U √D of the singular value decomposition U D Vᵀ of A.
    """
    root, V = np.maximum(squares[::-1], 0) ** 0.25, V[:, ::-1]
    alive = root > 1e-12 * root.max(initial=0)
    return np.divide(V, root, out=np.zeros(V.shape), where=alive), root[:, None] * V.T


def singular_factors(W: FloatArray, H: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return U √D, √D Vᵀ and the numbers in D of the singular value decomposition U D Vᵀ of WH.

    Of all factors of WH these have the smallest ‖W‖² + ‖H‖².  WH itself is not computed.
    """
    Q, R = np.linalg.qr(W)
    P, S = np.linalg.qr(H.T)
    U, sizes, Vt = np.linalg.svd(R @ S.T, full_matrices=False)
    root = np.sqrt(sizes)
    return Q @ (U * root), (root[:, None] * Vt) @ P.T, sizes
