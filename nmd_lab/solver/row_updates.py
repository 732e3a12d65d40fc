"""Row updates: the finishes of row operators, from sums over entries to the next rows.

A finish moves each row w to the minimiser z of

    1/2 (z - w)ᵀ G (z - w) - g·(z - w) + value(z) / ρ,

where G and g are the normal matrix and the gradient of `nmd_lab.solver.gram`, with the ridge.
Small problems with a G of their own are solved in compiled loops: the call of a routine of NumPy or
LAPACK takes longer than the computation.  The finishes are

- `_solve`, without a constraint: a Cholesky factor;
- `_descend`, for bounds and l1 penalties: sweeps over the coordinates;
- accelerated proximal gradient steps in NumPy, for any other constraint.

Another finish is a compiled function of a row like these, and a branch of `update_rows`.  Rows
that share one G have one inverse, or the steps of `ConstrainedColumns.row_solver`
(`shared_solver`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from nmd_lab._runtime.compiler import cached_kernel, compile_inner
from nmd_lab.data.entries import FloatArray

from .constraints.steps import (
    SETTLED,
    SWEEPS,
    ConstrainedColumns,
    RowSolver,
    descend,
    invert_diagonal,
)
from .gram import Gram, row_sums

MATRICES = 2048  # normal matrices that NumPy works on at a time, which bounds temporary arrays


def update_rows(
    constrained: ConstrainedColumns | None,
    gram: Gram,
    ridge: FloatArray,
    penalty: float,
    rows: slice,
    solved: slice,
    out: FloatArray,
) -> None:
    """Move some rows of `out`, which have normal matrices of their own, in place."""
    first, size = solved.start or 0, len(ridge)
    if constrained is not None and constrained.entrywise is None:
        for begin in range(rows.start, rows.stop, MATRICES):
            chunk = slice(begin, min(begin + MATRICES, rows.stop))
            normals, gradients = row_sums([gram], chunk, size)
            normals += np.tril(normals, -1).transpose(0, 2, 1) + np.diag(ridge)
            before = out[chunk, solved]
            move = constrained.row_solver(normals, penalty, SWEEPS)
            out[chunk, solved] = move(before, gradients - ridge * before)
        return
    finish: Callable[..., None] = _solve
    numbers: Any = np.zeros(size)
    if constrained is not None:
        bounds = constrained.bounds(size, penalty)
        finish, numbers = _descend, (*bounds, SWEEPS, SETTLED, np.empty(size), np.empty(size))
    loop = _update_loop(gram.add, finish, f"{gram.types}_{out.dtype}")
    loop(rows.start, rows.stop, gram.arguments, ridge, numbers, first, out)


@cache
def _update_loop(
    add: Callable[..., None], finish: Callable[..., None], types: str
) -> Callable[..., None]:
    add, finish = compile_inner(add, inline=True), compile_inner(finish, inline=True)

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
    sweeps: int = SWEEPS,
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
    try:
        return cho_solve(cho_factor(normal + ridge * identity, check_finite=False), identity)
    except (np.linalg.LinAlgError, ValueError):
        return np.full_like(identity, np.nan)


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
