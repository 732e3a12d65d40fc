"""The Cholesky factorisation of a small matrix, for compiled loops over many rows of data.

For a matrix of a few rows, the call of a NumPy or LAPACK routine takes longer than the computation.
"""

from __future__ import annotations

import math

from nmd_lab._numba import compile_inner


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
