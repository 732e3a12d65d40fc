"""The sums of row operators: the normal matrix and the gradient of each of some rows.

A row operator moves row w of a factor to the minimiser of a least-squares problem with T + U,

    (Σ p_j p_jᵀ + ridge I) step = Σ s_j p_j - ridge w,

where p_j is a row of the other factor and the sums are over the entries that the row stores.  It is
a Gram policy, which makes the sums, and a finish, which solves for the step
(`nmd_lab.solver.row_updates`).  The policies are

- shared: every row has all entries, hence one normal matrix H Hᵀ, and the gradients are a product
  of matrices (`nmd_lab.solver.sweep`);
- `per_row`: each row has a normal matrix of its own, summed over its entries;
- `summed`: the same, from sums that were made before;
- shared less few: the normal matrix of all entries less that of the few that a row does not store
  (`nmd_lab.solver.few_missing`).

Another policy is a compiled function like `_add_in_order`, which adds the sums of a row to its
normal matrix and gradient, and a function that returns it as a `Gram` with its arguments.  It is
chosen in `nmd_lab.solver.few_missing.gram_policy`.

The entries of a column lie far from each other in arrays that are ordered by rows.  In a pass over
whole columns of large data, nearly every access would miss the cache.  The sums of all columns then
grow while one chunk of rows after another is in the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise, starmap
from typing import Any, NamedTuple

import numpy as np

from nmd_lab._runtime.compiler import cached_kernel, compile_inner, inlined
from nmd_lab.data.entries import FloatArray, IntArray

from .devices import HOST, Device
from .storage import CsrStorage

ENTRIES = 1 << 21  # entries of a chunk of rows, 16 MiB of doubles
FEWEST = 4  # smallest number of chunks; fewer entries are no problem for the cache
MEMORY = 0.5  # largest size of all normal matrices, in numbers for each entry


class Chunk(NamedTuple):
    """Entries of rows, all of them or those of a range of partners.

    Attributes
    ----------
    indptr : ndarray of int (n_rows + 1,)
        Row i has the entries indptr[i] to indptr[i + 1].
    partners : ndarray of int (n_entries,)
        Rows of the other factor, from the first one of the chunk.
    positions : ndarray of int (n_entries,)
        Positions of the entries in S, from the first entry of the chunk; empty if entries are in
        the order of the rows.
    first_partner, first_entry : int
        First partner, and first entry in S.
    longest : int
        Largest number of entries of a row, if there are positions.
    """

    indptr: IntArray
    partners: IntArray
    positions: IntArray
    first_partner: int = 0
    first_entry: int = 0
    longest: int = 0


def chunk_of_rows(storage: CsrStorage) -> Chunk:
    """Return the entries of all rows of a storage."""
    return Chunk(storage.indptr, storage.indices, storage.indices[:0])


def chunks_of_columns(storage: CsrStorage, size: int, device: Device = HOST) -> list[Chunk]:
    """Return the entries of all columns of a storage: several chunks of large data.

    The normal matrices of all columns, of a given size, are then held at the same time.  On a
    device with arrays in files the entries lie there, too.
    """
    m, n = storage.shape
    ends: Any = []
    if storage.n_entries >= max(FEWEST * ENTRIES, n * size**2 / MEMORY):
        ends = np.arange(ENTRIES, storage.n_entries, ENTRIES)
    borders = np.unique([0, *np.searchsorted(storage.indptr, ends), m]).tolist()
    return [_chunk(storage, device, *pair) for pair in pairwise(borders)]


def _chunk(storage: CsrStorage, device: Device, first: int, last: int) -> Chunk:
    """Return the entries of all columns in a range of rows."""
    begin, end = int(storage.indptr[first]), int(storage.indptr[last])
    indptr = storage.indptr[first : last + 1] - storage.indptr[first]
    shape = (last - first, storage.shape[1])
    columns, positions = CsrStorage(shape, indptr, storage.indices[begin:end]).transposed()
    arrays: list[Any] = [device.get(device.put(each)) for each in (columns.indices, positions)]
    longest = int(np.diff(columns.indptr).max(initial=0))
    return Chunk(columns.indptr, arrays[0], arrays[1], first, begin, longest)


def shares_of_rows(chunks: list[Chunk], shares: int) -> list[slice]:
    """Return ranges of rows with about as many entries."""
    indptr = sum((chunk.indptr for chunk in chunks[1:]), start=chunks[0].indptr)
    ends = np.searchsorted(indptr, indptr[-1] / shares * np.arange(1, shares))
    return list(starmap(slice, pairwise([0, *ends.tolist(), indptr.size - 1])))


class Gram(NamedTuple):
    """A Gram policy with its arguments.

    Attributes
    ----------
    add : function
        Compiled function (row, arguments, normal, gradient) that adds the sums of a row to the
        lower triangle of its normal matrix, and to its gradient.
    arguments : tuple
        Arrays and numbers.
    types : str
        Types of the arrays, a part of the names of loops.
    """

    add: Callable[..., None]
    arguments: tuple[Any, ...]
    types: str


def per_row(chunk: Chunk, S: FloatArray, partners: FloatArray, base: int = 0) -> Gram:
    """Return the policy that sums over the entries of each row.

    Without positions, S begins with the entry `base`.
    """
    S, partners = S[chunk.first_entry :], partners[chunk.first_partner :]
    arguments = (*chunk[:3], base, S, partners, np.empty(chunk.longest, S.dtype))
    add = _add_gathered if chunk.positions.size else _add_in_order
    return Gram(add, arguments, f"{S.dtype}_{chunk.partners.dtype}")


def summed(normals: FloatArray, gradients: FloatArray, first: int = 0) -> Gram:
    """Return the policy of rows, from `first`, whose sums were made before."""
    return Gram(_add_summed, (normals, gradients, first), "sums")


def row_sums(grams: list[Gram], rows: slice, size: int) -> tuple[FloatArray, FloatArray]:
    """Return the normal matrices, as lower triangles, and the gradients of some rows."""
    count = rows.stop - rows.start
    normals, gradients = np.zeros((count, size, size)), np.zeros((count, size))
    for gram in grams:
        loop = _sum_loop(gram.add, gram.types)
        loop(rows.start, gram.arguments, normals, gradients)
    return normals, gradients


@cache
def _sum_loop(add: Callable[..., None], types: str) -> Callable[..., None]:
    add = compile_inner(add)

    def sums(first, arguments, normals, gradients):  # type: ignore[no-untyped-def]
        for i in range(gradients.shape[0]):
            add(first + i, arguments, normals[i], gradients[i])

    return cached_kernel(sums, f"sums{add.__name__}_{types}")


def _add_summed(row, sums, normal, gradient):  # type: ignore[no-untyped-def]
    own_normals, own_gradients, begin = sums
    own_normal, own_gradient = own_normals[row - begin], own_gradients[row - begin]
    for a in range(gradient.size):
        gradient[a] += own_gradient[a]
        for c in range(a + 1):
            normal[a, c] += own_normal[a, c]


def _add_in_order(row, entries, normal, gradient):  # type: ignore[no-untyped-def]
    indptr, indices, _, base, S, partners, _ = entries
    add_entries(indices, indptr[row], indptr[row + 1], base, S, partners, normal, gradient)


def _add_gathered(row, entries, normal, gradient):  # type: ignore[no-untyped-def]
    indptr, indices, positions, _, S, partners, gathered = entries
    begin, end = indptr[row], indptr[row + 1]
    gather(S, positions, begin, end, gathered)
    add_entries(indices, begin, end, begin, gathered, partners, normal, gradient)


@inlined
def gather(S, positions, begin, end, gathered):  # type: ignore[no-untyped-def]
    """Put the entries of a row that lie at some positions of S next to each other."""
    for k in range(begin, end):
        gathered[k - begin] = S[positions[k]]


@inlined
def add_entries(indices, begin, end, base, S, partners, normal, gradient):  # type: ignore[no-untyped-def]
    """Add the entries of a row to the lower triangle of its normal matrix and to its gradient.

    The inner loops run from 0 over views of rows: the compiler vectorises them only if no index can
    be negative.
    """
    whole = end - (end - begin) % 4
    for k in range(begin, whole, 4):  # four at a time: each sum is loaded and stored once
        h0, h1 = partners[indices[k]], partners[indices[k + 1]]
        h2, h3 = partners[indices[k + 2]], partners[indices[k + 3]]
        s0, s1, s2, s3 = S[k - base], S[k + 1 - base], S[k + 2 - base], S[k + 3 - base]
        for a in range(gradient.size):
            row, a0, a1, a2, a3 = normal[a], h0[a], h1[a], h2[a], h3[a]
            gradient[a] += s0 * a0 + s1 * a1 + s2 * a2 + s3 * a3
            for c in range(a + 1):
                row[c] += a0 * h0[c] + a1 * h1[c] + a2 * h2[c] + a3 * h3[c]
    for k in range(whole, end):
        h, s = partners[indices[k]], S[k - base]
        for a in range(gradient.size):
            row, weight = normal[a], h[a]
            gradient[a] += s * weight
            for c in range(a + 1):
                row[c] += weight * h[c]
