"""Row operators: the sums over the entries of rows, and the steps that solve with them.

A row operator moves row w of a factor to the minimiser of a least-squares problem with T + U,

    (Σ p_j p_jᵀ + ridge I) step = Σ s_j p_j - ridge w,

where p_j is a row of the other factor and the sums are over the entries that the row stores.  It is
a Gram policy, which makes the sums, and a finish, which solves for the step.  The policies are

- shared: every row has all entries, hence one normal matrix H Hᵀ, and the gradients are a product
  of matrices (`nmd_lab.kernels.sweep`);
- `per_row`: each row has a normal matrix of its own, summed over its entries;
- `summed`: the same, from sums that were made before;
- by downdating: the normal matrix of all entries less that of the few that a row does not store.

Another policy is a compiled function like `_add_in_order`, which adds the sums of a row to its
normal matrix and gradient, and a function that returns it with its arguments.  It is chosen in
`gram_policy`.

The entries of a column lie far from each other in arrays that are ordered by rows.  In a pass over
whole columns of large data, nearly every access would miss the cache.  The sums of all columns then
grow while one chunk of rows after another is in the cache.

A finish moves each row w to the minimiser z of

    1/2 (z - w)ᵀ G (z - w) - g·(z - w) + value(z) / ρ,

where G and g are the normal matrix and the gradient, with the ridge.  Small problems with a G of
their own are solved in compiled loops: the call of a routine of NumPy or LAPACK takes longer than
the computation.  The finishes are

- `_solve`, without a constraint: a Cholesky factor;
- `_descend`, for bounds and l1 penalties: sweeps over the coordinates;
- accelerated proximal gradient steps in NumPy, for any other constraint.

Another finish is a compiled function of a row like these, and a branch of `update_rows`.  Rows
that share one G have one inverse, or the steps of `ConstrainedColumns.row_solver`
(`shared_solver`).

Downdating: with G the sum of p_j p_jᵀ over all partners, row i has the normal matrix

    A = G - Σ p_j p_jᵀ   over its missing entries,

so that its cost grows with these alone.  The difference has the rounding errors of G.  With the
ridge R, the eigenvalues of (G + R)⁻¹ (A + R) lie between 0 and 1, so that the smallest of them is
at least their product det(A + R) / det(G + R).  Where this ratio is too small to trust the
difference, the row is summed over its entries, as by `per_row`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise, starmap
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from nmd_lab._runtime.compiler import cached_kernel, compile_inner, inlined
from nmd_lab.data.entries import FloatArray, IntArray
from nmd_lab.devices import HOST, Device

from .constrained_rows import (
    MAX_SWEEPS,
    SWEEP_TOL,
    ConstrainedColumns,
    RowSolver,
    descend,
    invert_diagonal,
)
from .products import CsrStorage

ENTRIES = 1 << 21  # entries of a chunk of rows, 16 MiB of doubles
MIN_CHUNKS = 4  # smallest number of chunks; fewer entries are no problem for the cache
MAX_MEMORY = 0.5  # largest size of all normal matrices, in numbers for each entry


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
    longest = int(np.diff(columns.indptr).max(initial=0))
    return Chunk(columns.indptr, arrays[0], arrays[1], first, begin, longest)


def shares_of_rows(chunks: list[Chunk], shares: int) -> list[slice]:
    """Return ranges of rows with about as many entries."""
    indptr = sum((chunk.indptr for chunk in chunks[1:]), start=chunks[0].indptr)
    ends = np.searchsorted(indptr, indptr[-1] / shares * np.arange(1, shares))
    return list(starmap(slice, pairwise([0, *ends.tolist(), indptr.size - 1])))


class RowSums(NamedTuple):
    """How normal matrices and gradients of rows are summed: a Gram policy and its arguments.

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


def per_row(chunk: Chunk, S: FloatArray, partners: FloatArray, base: int = 0) -> RowSums:
    """Return the policy that sums over the entries of each row.

    Without positions, S begins with the entry `base`.
    """
    S, partners = S[chunk.first_entry :], partners[chunk.first_partner :]
    arguments = (*chunk[:3], base, S, partners, np.empty(chunk.longest, S.dtype))
    add = _add_gathered if chunk.positions.size else _add_in_order
    return RowSums(add, arguments, f"{S.dtype}_{chunk.partners.dtype}")


def summed(normals: FloatArray, gradients: FloatArray, first: int = 0) -> RowSums:
    """Return the policy of rows, from `first`, whose sums were made before."""
    return RowSums(_add_summed, (normals, gradients, first), "sums")


def row_sums(grams: list[RowSums], rows: slice, size: int) -> tuple[FloatArray, FloatArray]:
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
    add_entries(indices, indptr[row], indptr[row + 1], base, S, partners, normal, gradient, True)


def _add_gathered(row, entries, normal, gradient):  # type: ignore[no-untyped-def]
    indptr, indices, positions, _, S, partners, gathered = entries
    begin, end = indptr[row], indptr[row + 1]
    gather(S, positions, begin, end, gathered)
    add_entries(indices, begin, end, begin, gathered, partners, normal, gradient, True)


@inlined
def gather(S, positions, begin, end, gathered):  # type: ignore[no-untyped-def]
    """Put the entries of a row that lie at some positions of S next to each other."""
    for k in range(begin, end):
        gathered[k - begin] = S[positions[k]]


@inlined
def add_entries(indices, begin, end, base, S, partners, normal, gradient, both):  # type: ignore[no-untyped-def]
    """Add the entries of a row to its gradient and the lower triangle of its normal matrix.

    `both` is False for the gradient alone.  The inner loops run from 0 over views of rows: the
    compiler vectorises them only if no index can be negative.
    """
    whole = end - (end - begin) % 4
    for k in range(begin, whole, 4):  # four at a time: each sum is loaded and stored once
        h0, h1 = partners[indices[k]], partners[indices[k + 1]]
        h2, h3 = partners[indices[k + 2]], partners[indices[k + 3]]
        s0, s1, s2, s3 = S[k - base], S[k + 1 - base], S[k + 2 - base], S[k + 3 - base]
        for a in range(gradient.size):
            row, a0, a1, a2, a3 = normal[a], h0[a], h1[a], h2[a], h3[a]
            gradient[a] += s0 * a0 + s1 * a1 + s2 * a2 + s3 * a3
            for c in range(a + 1 if both else 0):
                row[c] += a0 * h0[c] + a1 * h1[c] + a2 * h2[c] + a3 * h3[c]
    for k in range(whole, end):
        h, s = partners[indices[k]], S[k - base]
        for a in range(gradient.size):
            row, weight = normal[a], h[a]
            gradient[a] += s * weight
            for c in range(a + 1 if both else 0):
                row[c] += weight * h[c]


def update_rows(
    constrained: ConstrainedColumns | None,
    gram: RowSums,
    ridge: FloatArray,
    penalty: float,
    rows: slice,
    solved: slice,
    out: FloatArray,
) -> None:
    """Move some rows of `out`, which have normal matrices of their own, in place."""
    first, size = solved.start or 0, len(ridge)
    if constrained is not None and constrained.entrywise is None:
        step = 2048  # normal matrices that NumPy works on, which bounds temporary arrays
        for begin in range(rows.start, rows.stop, step):
            chunk = slice(begin, min(begin + step, rows.stop))
            normals, gradients = row_sums([gram], chunk, size)
            normals += np.tril(normals, -1).transpose(0, 2, 1) + np.diag(ridge)
            before = out[chunk, solved]
            move = constrained.row_solver(normals, penalty, MAX_SWEEPS)
            out[chunk, solved] = move(before, gradients - ridge * before)
        return
    finish: Callable[..., None] = _solve
    numbers: Any = np.zeros(size)
    if constrained is not None:
        bounds = constrained.bounds(size, penalty)
        finish, numbers = _descend, (*bounds, MAX_SWEEPS, SWEEP_TOL, np.empty(size), np.empty(size))
    loop = _update_loop(gram.add, finish, f"{gram.types}_{out.dtype}")
    loop(rows.start, rows.stop, gram.arguments, ridge, numbers, first, out)


@cache
def _update_loop(
    add: Callable[..., None], finish: Callable[..., None], types: str
) -> Callable[..., None]:
    add, finish = inlined(add), inlined(finish)

    def update(first, last, arguments, ridge, numbers, column, rows):  # type: ignore[no-untyped-def]
        size = ridge.size
        normal, gradient = np.empty((size, size)), np.empty(size)
        for i in range(first, last):
            normal[:] = 0.0
            for a in range(size):
                normal[a, a], gradient[a] = ridge[a], -ridge[a] * rows[i, column + a]
            add(i, arguments, normal, gradient)
            finish(normal, gradient, rows, i, column, numbers)

    return cached_kernel(update, f"update{add.__name__}{finish.__name__}_{types}")


def _solve(normal, step, rows, i, column, no_ridge):  # type: ignore[no-untyped-def]
    factorize(normal, no_ridge, normal)
    substitute(normal, step)
    for a in range(step.size):
        rows[i, column + a] += step[a]


def _descend(normal, gradient, rows, i, column, numbers):  # type: ignore[no-untyped-def]
    weights, lowest, sweeps, settled, inverse, w = numbers
    for a in range(w.size):
        w[a] = rows[i, column + a]
        for c in range(a):
            normal[c, a] = normal[a, c]
    invert_diagonal(normal, inverse)
    descend(w, gradient, normal, inverse, weights, lowest, sweeps, settled)
    for a in range(w.size):
        rows[i, column + a] = w[a]


def shared_solver(
    constrained: ConstrainedColumns | None,
    gram: FloatArray,
    ridge: FloatArray,
    penalty: float,
    *,
    sweeps: int = MAX_SWEEPS,
) -> RowSolver:
    """Return the finish of rows that share one normal matrix, whose gradients have no ridge."""
    if constrained is None:
        inverse = regularized_inverse(gram, ridge).astype(gram.dtype)
    else:
        normal = gram.astype(np.float64) + np.diag(ridge)
        move = constrained.row_solver(normal, penalty, sweeps)

    def solve(rows: FloatArray, gradients: FloatArray) -> FloatArray:
        gradients = gradients - ridge.astype(rows.dtype) * rows
        if constrained is None:
            return np.asarray(rows + gradients @ inverse)
        return move(rows, gradients).astype(rows.dtype, copy=False)

    return solve


def regularized_inverse(normal: FloatArray, ridge: FloatArray) -> FloatArray:
    """Return (normal + diag(ridge))⁻¹ in double precision, or NaN where there is none."""
    identity = np.eye(normal.shape[0])
    factor, failed = dpotrf(normal + ridge * identity, clean=0)
    inverse: FloatArray = np.full_like(identity, np.nan) if failed else dpotrs(factor, identity)[0]
    return inverse


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


MIN_STORED = 0.75  # fraction of stored entries from which rows are looked at


def missing_entries(storage: CsrStorage) -> CsrStorage | None:
    """Return the entries that are not stored, if these are few."""
    m, n = storage.shape
    if storage.n_entries < MIN_STORED * m * n:
        return None
    columns = [np.empty(0, storage.indices.dtype)]
    for block in storage.blocks():
        counts = np.diff(storage.indptr[block.rows.start : block.rows.stop + 1])
        absent = np.ones((counts.size, n), bool)
        absent[np.repeat(np.arange(counts.size), counts), storage.indices[block.entries]] = False
        columns.append(np.nonzero(absent)[1].astype(storage.indices.dtype))
    indptr = np.arange(m + 1, dtype=storage.indptr.dtype) * n - storage.indptr
    return CsrStorage(storage.shape, indptr, np.concatenate(columns))


def gram_policy(
    missing: CsrStorage | None, partners: FloatArray, ridge: FloatArray
) -> Callable[..., RowSums]:
    """Return the policy of rows with normal matrices of their own: a function like `per_row`."""
    of_rows = partial(per_row, partners=partners)
    if missing is None:
        return of_rows
    wide = partners.astype(np.float64)  # a difference loses digits
    total = wide.T @ wide
    try:
        pivots = np.diag(np.linalg.cholesky(total + np.diag(ridge)))
    except np.linalg.LinAlgError:
        return of_rows

    def gram_by_downdate(chunk: Chunk, S: FloatArray, base: int = 0) -> RowSums:
        gram = of_rows(chunk, S, base=base)
        sums = missing.indptr, missing.indices, wide, total, pivots, ridge
        arguments = (gram.arguments, *sums, np.empty((2, *total.shape)))
        return RowSums(_add_less_few, arguments, gram.types)

    return gram_by_downdate


def _add_less_few(row, arguments, normal, gradient):  # type: ignore[no-untyped-def]
    entries, missing_indptr, missing, wide, total, pivots, ridge, scratch = arguments
    indptr, indices, positions, base, S, partners, gathered = entries
    begin, end = indptr[row], indptr[row + 1]
    absent, last = missing_indptr[row], missing_indptr[row + 1]
    difference, L, size = scratch[0], scratch[1], pivots.size
    n_stored, n_missing, ratio = end - begin, last - absent, 0.0
    pays = n_stored > n_missing + size
    # For few missing entries, the ratio of determinants is likely to be large enough.
    if pays and n_missing * size <= 6.0 * (n_stored + n_missing):
        difference[:] = 0.0
        _add_products(missing, absent, last, wide, difference)
        for a in range(size):
            for c in range(a + 1):
                difference[a, c] = total[a, c] - difference[a, c]
        factorize(difference, ridge, L)
        ratio = 1.0
        for a in range(size):
            ratio *= (L[a, a] / pivots[a]) ** 2
    if positions.size:
        gather(S, positions, begin, end, gathered)
        S, base = gathered, begin
    if 1e-4 < ratio < 2.0:  # the difference is as good as a sum
        for a in range(size):
            for c in range(a + 1):
                normal[a, c] += difference[a, c]
        add_entries(indices, begin, end, base, S, partners, normal, gradient, False)
    else:
        add_entries(indices, begin, end, base, S, partners, normal, gradient, True)


@inlined
def _add_products(indices, begin, end, partners, normal):  # type: ignore[no-untyped-def]
    """Add the products of the entries of a row to the lower triangle of a matrix."""
    for k in range(begin, end):
        h = partners[indices[k]]
        for a in range(normal.shape[0]):
            row, weight = normal[a], h[a]
            for c in range(a + 1):
                row[c] += weight * h[c]
