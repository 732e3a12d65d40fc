"""The Gaussian of a row given its observed entries, in compiled functions.

The observed entries o of a row z ~ N(μ, Σ) have noise of known variances v_o::

    x_o = z_o + N(0, v_o)

With A = Σ_oo + diag(v_o) = Uᵀ U, y = U⁻ᵀ (x_o - μ_o) and V = U⁻ᵀ Σ_o:

    log p(x_o) = -½ yᵀ y - log |U| + constant,      E z = μ + Vᵀ y,      cov z = Σ - Vᵀ V.
"""

from __future__ import annotations

import math

from nmd_lab._runtime.compiler import compile_inner


@compile_inner
def put_observed(x, positions):  # type: ignore[no-untyped-def]
    """Put the positions of the observed entries of a row into an array; return their number."""
    n = 0
    for j in range(x.size):
        if not math.isnan(x[j]):
            positions[n] = j
            n += 1
    return n


@compile_inner
def factorise(covariance, columns, variance, U):  # type: ignore[no-untyped-def]
    """Put the upper Cholesky factor of the observed entries into `U`; return half log |A|."""
    n = columns.size
    for a in range(n):
        for b in range(a, n):
            U[a, b] = covariance[columns[a], columns[b]]
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
def solve_row(U, x, mean, columns, y):  # type: ignore[no-untyped-def]
    """Put U⁻ᵀ (x - μ) of the observed entries into `y`, and return its squared length."""
    n, square = columns.size, 0.0
    for a in range(n):
        y[a] = x[columns[a]] - mean[columns[a]]
    for a in range(n):
        y[a] /= U[a, a]
        square += y[a] * y[a]
        for b in range(a + 1, n):
            y[b] -= y[a] * U[a, b]
    return square


@compile_inner
def project(U, covariance, columns, V):  # type: ignore[no-untyped-def]
    """Put U⁻ᵀ Σ_o: into `V`."""
    n, d = columns.size, covariance.shape[0]
    for a in range(n):
        for j in range(d):
            V[a, j] = covariance[columns[a], j]
    for a in range(n):
        for j in range(d):
            V[a, j] /= U[a, a]
        for b in range(a + 1, n):
            factor = U[a, b]
            for j in range(d):
                V[b, j] -= factor * V[a, j]


@compile_inner
def condition(mean, covariance, V, y, centre, spread):  # type: ignore[no-untyped-def]
    """Put the means and variances of the entries of z into `centre` and `spread`."""
    for j in range(mean.size):
        centre[j], spread[j] = mean[j], covariance[j, j]
        for a in range(y.size):
            centre[j] += y[a] * V[a, j]
            spread[j] -= V[a, j] * V[a, j]
