"""Row operators: the sums over the entries of rows, and the steps that solve with them.

A row operator moves row w of a factor to the minimiser of a least-squares problem with T + U,

    (Σ p_j p_jᵀ + ridge I) step = Σ s_j p_j - ridge w,

where p_j is a row of the other factor and the sums are over the entries that the row stores: the
normal matrix and the gradient of the row.  If every row has all entries, there is one normal matrix
H Hᵀ, and the gradients are a product of matrices (`nmd_lab.kernels.sweep`).

The entries of a column lie far from each other in arrays that are ordered by rows.  In a pass over
whole columns of large data, nearly every access would miss the cache.  The sums of all columns then
grow while one chunk of rows after another is in the cache.

With the sums each row w moves to the minimiser z of

    1/2 (z - w)ᵀ G (z - w) - g·(z - w) + value(z) / ρ,

where G and g are the normal matrix and the gradient, with the ridge: by a Cholesky factor without a
constraint, in a compiled loop, since the call of a routine of LAPACK takes longer than the
computation, and by `ConstrainedColumns.row_solver` with one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise, starmap
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from nmd_lab._runtime.compiler import cached_kernel, compile_inner
from nmd_lab.data.entries import FloatArray, IntArray
from nmd_lab.devices import HOST, Device

from .constrained_rows import MAX_SWEEPS, ConstrainedColumns, RowSolver
from .products import CsrStorage

ENTRIES = 1 << 21  # entries of a chunk of rows, 16 MiB of doubles
MIN_CHUNKS = 4  # smallest number of chunks; fewer entries are no problem for the cache
MAX_MEMORY = 0.5  # largest size of all normal matrices, in numbers for each entry
NUMBERS = 1 << 16  # of normal matrices that are made at a time, 512 KiB


class Chunk(NamedTuple):
    """Entries of rows, all of them or those of a range of partners.

    Attributes
    ----------
    indptr : ndarray of int (n_rows + 1,)
        Row i has the entries indptr[i] to indptr[i + 1].
    partners : ndarray of int (n_entries,)
        Rows of the other factor, from the first one of the chunk.
    positions : ndarray of int (n_entries,) or None
        Positions of the entries in S, from the first entry of the chunk; None if entries are in
        the order of the rows.
    first_partner, first_entry : int
        First partner, and first entry in S.
    """

    indptr: IntArray
    partners: IntArray
    positions: IntArray | None = None
    first_partner: int = 0
    first_entry: int = 0


def chunk_of_rows(storage: CsrStorage) -> Chunk:
    """Return the entries of all rows of a storage."""
    return Chunk(storage.indptr, storage.indices)


def chunks_of_columns(storage: CsrStorage, size: int, device: Device = HOST) -> list[Chunk]:
    """Return the entries of all columns of a storage: several chunks of large data.

    The normal matrices of all columns, of a given size, are then held at the same time.  On a
    device with arrays in files the entries lie there, too.
    """
    m, n = storage.shape
    ends: Any = []
    if storage.n_entries >= max(MIN_CHUNKS * ENTRIES, n * size**2 / MAX_MEMORY):
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
    return Chunk(columns.indptr, arrays[0], arrays[1], first, begin)


def shares_of_rows(chunks: list[Chunk], shares: int) -> list[slice]:
    """Return ranges of rows with about as many entries."""
    indptr = sum((chunk.indptr for chunk in chunks[1:]), start=chunks[0].indptr)
    ends = np.searchsorted(indptr, indptr[-1] / shares * np.arange(1, shares))
    return list(starmap(slice, pairwise([0, *ends.tolist(), indptr.size - 1])))


def row_sums(
    chunks: list[Chunk], S: FloatArray, partners: FloatArray, rows: slice
) -> tuple[FloatArray, FloatArray]:
    """Return the normal matrices, as lower triangles, and the gradients of some rows."""
    count, size = rows.stop - rows.start, partners.shape[1]
    normals, gradients = np.zeros((count, size, size)), np.zeros((count, size))
    for chunk in chunks:
        indptr = chunk.indptr[rows.start : rows.stop + 1]
        here, indices, at = slice(indptr[0], indptr[-1]), chunk.partners, chunk.positions
        values = S[here] if at is None else S[chunk.first_entry :][at[here]]
        add = cached_kernel(_add_entries, f"sums_{S.dtype}_{indices.dtype}")
        add(indptr, indices, values, partners[chunk.first_partner :], normals, gradients)
    return normals, gradients


def _add_entries(indptr, indices, S, partners, normals, gradients):  # type: ignore[no-untyped-def]
    """Add the entries of rows to their gradients and the lower triangles of normal matrices.

    S begins with the first of these entries.  The inner loops run from 0 over views of rows: the
    compiler vectorises them only if no index can be negative.
    """
    base = indptr[0]
    for i in range(gradients.shape[0]):
        normal, gradient, begin, end = normals[i], gradients[i], indptr[i], indptr[i + 1]
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


def sums_of_ranges(
    chunks: list[Chunk], S: FloatArray, partners: FloatArray, rows: slice
) -> Iterator[tuple[slice, tuple[FloatArray, FloatArray]]]:
    """Yield ranges of some rows with the sums over their entries."""
    step, every = max(1, NUMBERS // max(1, partners.shape[1]) ** 2), None
    if len(chunks) > 1:  # each is in the cache once
        every = row_sums(chunks, S, partners, rows)
    for begin in range(rows.start, rows.stop, step):
        some = slice(begin, min(begin + step, rows.stop))
        if every is None:
            yield some, row_sums(chunks, S, partners, some)
        else:
            at = slice(some.start - rows.start, some.stop - rows.start)
            yield some, (every[0][at], every[1][at])


def update_rows(
    constrained: ConstrainedColumns | None,
    chunks: list[Chunk],
    S: FloatArray,
    partners: FloatArray,
    ridge: FloatArray,
    penalty: float,
    rows: slice,
    solved: slice,
    out: FloatArray,
) -> None:
    """Move some rows of `out`, which have normal matrices of their own, in place."""
    for some, sums in sums_of_ranges(chunks, S, partners, rows):
        out[some, solved] = moved(constrained, *sums, ridge, penalty, out[some, solved])


def moved(
    constrained: ConstrainedColumns | None,
    normals: FloatArray,
    gradients: FloatArray,
    ridge: FloatArray,
    penalty: float,
    rows: FloatArray,
) -> FloatArray:
    """Return the next rows, given the sums over their entries."""
    gradients = gradients - ridge * rows
    if constrained is not None:
        normals = normals + np.tril(normals, -1).transpose(0, 2, 1) + np.diag(ridge)
        return constrained.row_solver(normals, penalty, MAX_SWEEPS)(rows, gradients)
    cached_kernel(_solve, "solve_rows")(normals, ridge, gradients)
    return rows + gradients


def _solve(normals, ridge, steps):  # type: ignore[no-untyped-def]
    L = np.empty((ridge.size, ridge.size))
    for i in range(steps.shape[0]):
        factorize(normals[i], ridge, L)
        substitute(L, steps[i])


def shared_solver(
    constrained: ConstrainedColumns | None,
    gram: FloatArray,
    ridge: FloatArray,
    penalty: float,
    *,
    sweeps: int = MAX_SWEEPS,
) -> RowSolver:
    """Return the finish of rows that share one normal matrix, whose gradients have no ridge."""
    normal, identity = gram.astype(np.float64) + np.diag(ridge), np.eye(ridge.size)
    if constrained is None:
        factor, failed = dpotrf(normal, clean=0)
        inverse = identity * np.nan if failed else dpotrs(factor, identity)[0]
        inverse = inverse.astype(gram.dtype)
    else:
        move = constrained.row_solver(normal, penalty, sweeps)

    def solve(rows: FloatArray, gradients: FloatArray) -> FloatArray:
        gradients = gradients - ridge.astype(rows.dtype) * rows
        if constrained is None:
            return np.asarray(rows + gradients @ inverse)
        return move(rows, gradients).astype(rows.dtype, copy=False)

    return solve


@compile_inner
def factorize(normal, ridge, L):  # type: ignore[no-untyped-def]
    """Put the Cholesky factor of normal + diag(ridge) into the lower triangle of L.

    In a direction without data the pivot is zero, up to rounding.  It is replaced by infinity, so
    that solutions are zero in that direction.  `normal` and `L` may be the same array.
    """
    for j in range(normal.shape[0]):
        diagonal = normal[j, j]
        pivot = diagonal + ridge[j]
        for k in range(j):
            pivot -= L[j, k] * L[j, k]
        pivot = math.sqrt(pivot) if pivot > 1e-15 * diagonal + 1e-300 else math.inf
        L[j, j] = pivot
        for i in range(j + 1, normal.shape[0]):
            total = normal[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = total / pivot


@compile_inner
def substitute(L, b):  # type: ignore[no-untyped-def]
    """Overwrite b with the solution y of L Lᵀ y = b."""
    for i in range(b.size):
        total = b[i]
        for k in range(i):
            total -= L[i, k] * b[k]
        b[i] = total / L[i, i]
    for i in range(b.size - 1, -1, -1):
        row = L[i]
        b[i] /= row[i]
        for k in range(i):
            b[k] -= row[k] * b[i]
