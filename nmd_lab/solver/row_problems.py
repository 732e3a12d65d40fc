"""Small least-squares problems, one for each row of a block, with or without constraints.

They are solved in compiled loops: for a matrix of a few rows, the call of a NumPy or LAPACK routine
takes longer than the computation.
"""

from __future__ import annotations

import math

import numpy as np

from nmd_lab._runtime.compiler import compile_inner
from nmd_lab.data.entries import FloatArray

from .constraints.steps import SETTLED, SWEEPS, ConstrainedColumns, descend, invert_diagonal
from .storage import Block, CsrStorage, sparse_kernel

MATRICES = 2048  # normal matrices that are held at a time, which bounds the temporary arrays


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


@compile_inner
def add_entries(indices, begin, end, base, S, partners, normal, step):  # type: ignore[no-untyped-def]
    """Add the entries of a row to the lower triangle of its normal matrix and to its gradient.

    The inner loops run from 0 over views of rows: the compiler vectorises them only if no index can
    be negative.
    """
    size = step.size
    whole = end - (end - begin) % 4
    for k in range(begin, whole, 4):  # four at a time: each sum is loaded and stored once
        h0, h1 = partners[indices[k]], partners[indices[k + 1]]
        h2, h3 = partners[indices[k + 2]], partners[indices[k + 3]]
        s0, s1, s2, s3 = S[k - base], S[k + 1 - base], S[k + 2 - base], S[k + 3 - base]
        for a in range(size):
            step[a] += s0 * h0[a] + s1 * h1[a] + s2 * h2[a] + s3 * h3[a]
        for a in range(size):
            row, a0, a1, a2, a3 = normal[a], h0[a], h1[a], h2[a], h3[a]
            for c in range(a + 1):
                row[c] += a0 * h0[c] + a1 * h1[c] + a2 * h2[c] + a3 * h3[c]
    for k in range(whole, end):
        h, s = partners[indices[k]], S[k - base]
        for a in range(size):
            step[a] += s * h[a]
            row, weight = normal[a], h[a]
            for c in range(a + 1):
                row[c] += weight * h[c]


def constrained_rows(
    constrained: ConstrainedColumns,
    penalty: float,
    storage: CsrStorage,
    block: Block,
    S: FloatArray,
    partners: FloatArray,
    solved: slice,
    ridge: FloatArray,
    rows: FloatArray,
) -> None:
    """Solve the constrained least-squares problem of each row of a block, in place."""
    first, last, _ = solved.indices(rows.shape[1])
    types, size = f"{rows.dtype}_{storage.indices.dtype}", last - first
    pattern = (storage.indptr, storage.indices)
    if constrained.entrywise is not None:
        kernel = sparse_kernel(_descend_rows, types)
        bounds = constrained.bounds(size, penalty)
        limits = (SWEEPS, SETTLED)
        where = (block.rows.start, block.rows.stop)
        kernel(*pattern, *where, S, partners, first, ridge, *bounds, *limits, rows)
        return
    kernel = sparse_kernel(_normal_equations, types)
    base = storage.indptr[block.rows.start]
    for start in range(block.rows.start, block.rows.stop, MATRICES):
        chunk = slice(start, min(start + MATRICES, block.rows.stop))
        normals, steps = (
            np.empty((chunk.stop - start, size, size)),
            np.empty((chunk.stop - start, size)),
        )
        where = (start, chunk.stop)
        kernel(*pattern, *where, base, S, partners, first, ridge, rows, normals, steps)
        rows[chunk, first:last] = _proximal_rows(
            constrained, rows[chunk, first:last], steps, normals, penalty
        )


def constrained_from_sums(
    constrained: ConstrainedColumns,
    penalty: float,
    normals: FloatArray,
    steps: FloatArray,
    solved: slice,
    ridge: FloatArray,
    rows: FloatArray,
) -> None:
    """Solve constrained least-squares problems from their sums, in place."""
    size = steps.shape[1]
    lower = np.tril(normals)
    normals = lower + np.tril(normals, -1).transpose(0, 2, 1) + np.diag(ridge)
    steps = steps - ridge * rows[:, solved]
    if constrained.entrywise is None:
        rows[:, solved] = _proximal_rows(constrained, rows[:, solved], steps, normals, penalty)
        return
    kernel = sparse_kernel(_descend_from_sums, str(rows.dtype))
    bounds, limits = constrained.bounds(size, penalty), (SWEEPS, SETTLED)
    kernel(normals, steps, solved.start or 0, *bounds, *limits, rows)


def _proximal_rows(
    constrained: ConstrainedColumns,
    rows: FloatArray,
    gradient: FloatArray,
    normals: FloatArray,
    penalty: float,
) -> FloatArray:
    """Return rows, each with a normal matrix of its own, after proximal gradient steps."""
    longest = np.linalg.eigvalsh(normals)[:, -1:]
    lengths = 1.0 / np.maximum(longest, np.finfo(float).tiny)

    def times_normal(change: FloatArray) -> FloatArray:
        product: FloatArray = np.matmul(normals, change[:, :, None])[:, :, 0]
        return product

    return constrained.proximal_gradient(rows, gradient, times_normal, lengths, penalty)


def improve_rows(
    storage: CsrStorage,
    block: Block,
    S: FloatArray,
    partners: FloatArray,
    solved: slice,
    ridge: FloatArray,
    rows: FloatArray,
) -> None:
    """Solve the least-squares problem of each row of a block, in place."""
    kernel = sparse_kernel(_improve_rows, f"{rows.dtype}_{storage.indices.dtype}")
    pattern = (storage.indptr, storage.indices, block.rows.start, block.rows.stop)
    kernel(*pattern, S, partners, solved.start or 0, ridge, rows)


def _improve_rows(indptr, indices, start, stop, S, partners, first, ridge, rows):  # type: ignore[no-untyped-def]
    base, size = indptr[start], partners.shape[1]
    normal, step, no_ridge = np.empty((size, size)), np.empty(size), np.zeros(size)
    for i in range(start, stop):
        normal[:] = 0.0
        for a in range(size):
            normal[a, a], step[a] = ridge[a], -ridge[a] * rows[i, first + a]
        add_entries(indices, indptr[i], indptr[i + 1], base, S, partners, normal, step)
        factorize(normal, no_ridge, normal)
        substitute(normal, step)
        for a in range(size):
            rows[i, first + a] += step[a]


def _descend_rows(  # type: ignore[no-untyped-def]
    indptr, indices, start, stop, S, partners, first, ridge, weights, lowest, sweeps, settled, rows
):
    base, size = indptr[start], partners.shape[1]
    normal, step = np.empty((size, size)), np.empty(size)
    w, inverse = np.empty(size), np.empty(size)
    for i in range(start, stop):
        normal[:] = 0.0
        for a in range(size):
            w[a] = rows[i, first + a]
            normal[a, a], step[a] = ridge[a], -ridge[a] * w[a]
        add_entries(indices, indptr[i], indptr[i + 1], base, S, partners, normal, step)
        for a in range(size):
            for c in range(a):
                normal[c, a] = normal[a, c]
        invert_diagonal(normal, inverse)
        descend(w, step, normal, inverse, weights, lowest, sweeps, settled)
        for a in range(size):
            rows[i, first + a] = w[a]


def _descend_from_sums(normals, steps, first, weights, lowest, sweeps, settled, rows):  # type: ignore[no-untyped-def]
    size = steps.shape[1]
    w, inverse = np.empty(size), np.empty(size)
    for i in range(steps.shape[0]):
        for a in range(size):
            w[a] = rows[i, first + a]
        invert_diagonal(normals[i], inverse)
        descend(w, steps[i], normals[i], inverse, weights, lowest, sweeps, settled)
        for a in range(size):
            rows[i, first + a] = w[a]


def _normal_equations(  # type: ignore[no-untyped-def]
    indptr, indices, start, stop, base, S, partners, first, ridge, rows, normals, steps
):
    size = partners.shape[1]
    for i in range(start, stop):
        normal, step = normals[i - start], steps[i - start]
        normal[:] = 0.0
        for a in range(size):
            normal[a, a], step[a] = ridge[a], -ridge[a] * rows[i, first + a]
        add_entries(indices, indptr[i], indptr[i + 1], base, S, partners, normal, step)
        for a in range(size):
            for c in range(a):
                normal[c, a] = normal[a, c]
