"""The Gaussian of a row given its observed entries, in compiled functions.

The observed entries o of a row z ~ N(μ, Σ) have noise of known variances v_o::

    x_o = z_o + N(0, v_o)

With A = Σ_oo + diag(v_o) = Uᵀ U, y = U⁻ᵀ (x_o - μ_o) and V = U⁻ᵀ Σ_o:

    log p(x_o) = -½ yᵀ y - log |U| + constant,      E z = μ + Vᵀ y,      cov z = Σ - Vᵀ V.

With few missing entries m, the inverse A = (Σ + diag(v))⁻¹ of all entries is cheaper.  With G = AΣ,
r = x - μ, which is 0 where x is missing, A_mm = Uᵀ U, y = -U⁻ᵀ A_m: r and V = U⁻ᵀ G_m:

    log p(x_o) = -½ (rᵀ A r - yᵀ y) + ½ log |A| - log |U| + constant,
    E z = μ + Gᵀ r + Vᵀ y,      cov z = Σ - ΣG + Vᵀ V.
"""

from __future__ import annotations

import math

import numpy as np

from nmd_lab._runtime.compiler import compile_inner


@compile_inner
def put_fewer(x, can_invert, positions):  # type: ignore[no-untyped-def]
    """Put the positions of the observed entries of a row into an array, or of fewer missing ones.

    Return their number, and whether they are the missing ones, which `can_invert` allows.
    """
    missing = 0
    for j in range(x.size):
        missing += math.isnan(x[j])
    few, n = can_invert and 2 * missing < x.size, 0
    for j in range(x.size):
        if math.isnan(x[j]) == few:
            positions[n] = j
            n += 1
    return n, few


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
def solve_inverse(U, A, r, missing, y, product):  # type: ignore[no-untyped-def]
    """Put A r into `product` and -U⁻ᵀ of its missing entries into `y`; return rᵀ A r - yᵀ y."""
    d, square = r.size, 0.0
    for i in range(d):
        product[i] = 0.0
        for j in range(d):
            product[i] += A[i, j] * r[j]
        square += r[i] * product[i]
    product[:] *= -1.0
    return square - solve_row(U, product, np.zeros(d), missing, y)


@compile_inner
def invert(covariance, variance):  # type: ignore[no-untyped-def]
    """Return A, G and ΣG."""
    A = np.linalg.inv(covariance + variance * np.eye(len(covariance)))
    G = np.dot(A, covariance)
    return A, G, np.dot(covariance, G)


@compile_inner
def add_product(r, G, centre):  # type: ignore[no-untyped-def]
    """Add Gᵀ r to `centre`."""
    for i in range(r.size):
        for j in range(r.size):
            centre[j] += r[i] * G[i, j]


@compile_inner
def put_residual(x, mean, r):  # type: ignore[no-untyped-def]
    """Put x - μ into `r`, and 0 where x is missing."""
    for j in range(x.size):
        r[j] = 0.0 if math.isnan(x[j]) else x[j] - mean[j]


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
def condition(V, y, sign, centre, spread):  # type: ignore[no-untyped-def]
    """Add Vᵀ y to the means of the entries of z, and `sign` times VᵀV to their variances."""
    for j in range(centre.size):
        for a in range(y.size):
            centre[j] += y[a] * V[a, j]
            spread[j] += sign * V[a, j] * V[a, j]
