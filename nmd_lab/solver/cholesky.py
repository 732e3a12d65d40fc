"""Small least-squares problems in compiled loops: normal matrices and their factorisation.

For a matrix of a few rows, the call of a NumPy or LAPACK routine takes longer than the computation.
"""

from __future__ import annotations

import math

from nmd_lab._runtime.compiler import compile_inner


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
