"""The Gaussian of a row given its observed entries, in compiled functions.

The observed entries o of a row z ~ N(μ, Σ) have noise of known variances v_o::

    x_o = z_o + N(0, v_o)

With A = Σ_oo + diag(v_o) = Uᵀ U, y = U⁻ᵀ (x_o - μ_o) and V = U⁻ᵀ Σ_o:

    log p(x_o) = -½ yᵀ y - log |U| + constant,      E z = μ + Vᵀ y,      cov z = Σ - Vᵀ V.

With few missing entries m and one variance v, the inverse A = (Σ + vI)⁻¹ is cheaper.  With
r = x - μ, which is 0 where x is missing, A_mm = Uᵀ U, y = -U⁻ᵀ A_m: r and V = U⁻ᵀ (I - vA)_m:

    log p(x_o) = -½ (rᵀ A r - yᵀ y) + ½ log |A| - log |U| + constant,
    E z = μ + r - vA r + Vᵀ y,      cov z = vI - v² A + Vᵀ V.

Everywhere below, `matrix` is A if the missing entries are few, and Σ otherwise.
"""

from __future__ import annotations

import math

from nmd_lab._runtime.compiler import compile_inner


@compile_inner
def put_fewer(x, variance, common, positions):  # type: ignore[no-untyped-def]
    """Put the positions of the observed entries of a row into an array, or of fewer missing ones.

    Return their number, and whether they are the missing ones: if all observed entries have the
    common variance, with which A is formed.
    """
    missing, can_invert = 0, True
    for j in range(x.size):
        if math.isnan(x[j]):
            missing += 1
        elif variance[j] != common:
            can_invert = False
    few, n = can_invert and 2 * missing < x.size, 0
    for j in range(x.size):
        if math.isnan(x[j]) == few:
            positions[n] = j
            n += 1
    return n, few


@compile_inner
def invert(matrix):  # type: ignore[no-untyped-def]
    """Overwrite a positive definite matrix with its inverse, by elimination without pivoting."""
    d = matrix.shape[0]
    for k in range(d):
        scale = 1.0 / matrix[k, k]
        matrix[k, k] = 1.0
        for j in range(d):
            matrix[k, j] *= scale
        for i in range(d):
            if i != k:
                factor = matrix[i, k]
                matrix[i, k] = 0.0
                for j in range(d):
                    matrix[i, j] -= factor * matrix[k, j]


@compile_inner
def factorise(matrix, columns, few, variance, U):  # type: ignore[no-untyped-def]
    """Put the factor of A_mm or of Σ_oo + diag(v_o) into `U`, and return log |U|."""
    n = columns.size
    for a in range(n):
        for b in range(a, n):
            U[a, b] = matrix[columns[a], columns[b]]
        if not few:
            U[a, a] += variance[columns[a]]
    half = 0.0
    for a in range(n):
        pivot = math.sqrt(U[a, a])
        half += math.log(pivot)
        for b in range(a, n):
            U[a, b] /= pivot
        for c in range(a + 1, n):
            factor = U[a, c]
            for b in range(c, n):
                U[c, b] -= factor * U[a, b]
    return half


@compile_inner
def solve_row(x, mean, few, matrix, U, columns, r, g, y):  # type: ignore[no-untyped-def]
    """Put r, with zeros where x is missing, g = r or -A r, and y into place.

    Return the squared length of the observed entries.
    """
    n, length, sign = columns.size, 0.0, -1.0 if few else 1.0
    for j in range(x.size):
        r[j] = g[j] = 0.0 if math.isnan(x[j]) else x[j] - mean[j]
    if few:
        for j in range(x.size):
            g[j] = 0.0
            for i in range(x.size):
                g[j] -= matrix[j, i] * r[i]
            length -= r[j] * g[j]
    for a in range(n):
        y[a] = g[columns[a]]
    for a in range(n):
        y[a] /= U[a, a]
        length += sign * y[a] * y[a]
        for b in range(a + 1, n):
            y[b] -= y[a] * U[a, b]
    return length


@compile_inner
def project(U, matrix, columns, few, v, V):  # type: ignore[no-untyped-def]
    """Put V into `V`."""
    n, d = columns.size, matrix.shape[0]
    scale = -v if few else 1.0
    for a in range(n):
        for j in range(d):
            V[a, j] = scale * matrix[columns[a], j]
        if few:
            V[a, columns[a]] += 1.0
    for a in range(n):
        for j in range(d):
            V[a, j] /= U[a, a]
        for b in range(a + 1, n):
            factor = U[a, b]
            for j in range(d):
                V[b, j] -= factor * V[a, j]


@compile_inner
def put_mean(mean, r, g, few, v, n, V, y, centre):  # type: ignore[no-untyped-def]
    """Put E z into `centre`; the first `n` rows of V and entries of y count."""
    for j in range(mean.size):
        centre[j] = mean[j] + r[j] + v * g[j] if few else mean[j]
    for a in range(n):
        for j in range(mean.size):
            centre[j] += y[a] * V[a, j]


@compile_inner
def put_variances(matrix, few, v, n, V, spread):  # type: ignore[no-untyped-def]
    """Put the variances of the entries of z into `spread`."""
    sign = 1.0 if few else -1.0
    for j in range(spread.size):
        spread[j] = v - v * v * matrix[j, j] if few else matrix[j, j]
        for a in range(n):
            spread[j] += sign * V[a, j] * V[a, j]
