"""Draws of the rows of a factor, given the other factor: one small Gaussian for each row.

With τ_ij = ρ times the weight of an entry, and the partner p_j (a row of the other factor, with a
one for the offset), row i has

    precision  P_i = Λ + Σ_j τ_ij p_j p_jᵀ,      mean  P_i⁻¹ (Λ μ + Σ_j τ_ij y_ij p_j),

where y_ij is T minus the offset of the column and the mean.  Λ and μ are those of the group of the
row.  A row without a label draws one before, with its vector integrated out: group c has the
logarithm of its probability, up to a constant,

    log π_c + ½ log |Λ_c| - ½ μ_cᵀ Λ_c μ_c - ½ log |P_ic| + ½ b_icᵀ P_ic⁻¹ b_ic,

where b_ic is the bracket of the mean.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from nmd_lab._numba import compile_inner, compile_kernel

from .streams import fill_normal, start_stream, uniform

CHUNK = 256
"""Entries of a row whose partners are gathered at a time."""


@cache
def row_kernel(types: str) -> Any:
    """Return the compiled loop over sparse rows, once for each combination of types."""
    return compile_kernel(_draw_rows, f"draw_rows_{types}", cached=True)


def _draw(normal, b, stream, noise, row):  # type: ignore[no-untyped-def]
    """Put a draw from N(normal⁻¹ b, normal⁻¹) into `row`; `b` is overwritten."""
    L = np.linalg.cholesky(normal)
    d = b.size
    for a in range(d):  # L y = b
        total = b[a]
        for c in range(a):
            total -= L[a, c] * b[c]
        b[a] = total / L[a, a]
    fill_normal(stream, noise)
    for a in range(d):
        b[a] += noise[a]
    for a in range(d - 1, -1, -1):  # Lᵀ x = y + noise
        x = b[a] / L[a, a]
        b[a] = x
        for c in range(a):
            b[c] -= L[a, c] * x
    for a in range(d):
        row[a] = b[a]


draw_gaussian = compile_inner(_draw)
"""``draw_gaussian(normal, b, stream, noise, row)`` draws a row; see `_draw`."""


def _draw_label(normal, b, linear, precision, log_weights, stream, L, y, scores):  # type: ignore[no-untyped-def]
    """Return a draw of the group of a row, given the sums over its entries."""
    d, n_groups = b.size, scores.size
    for c in range(n_groups):
        score = log_weights[c]
        for a in range(d):  # L Lᵀ = P, L y = b
            for e in range(a + 1):
                total = normal[a, e] + precision[c, a, e]
                for f in range(e):
                    total -= L[a, f] * L[e, f]
                L[a, e] = math.sqrt(total) if a == e else total / L[e, e]
            total = b[a] + linear[c, a]
            for f in range(a):
                total -= L[a, f] * y[f]
            y[a] = total / L[a, a]
            score += 0.5 * y[a] * y[a] - math.log(L[a, a])
        scores[c] = score
    scores -= scores.max()
    scores[:] = np.exp(scores)
    rest = uniform(stream) * scores.sum()
    for c in range(n_groups):
        rest -= scores[c]
        if rest < 0:
            return c
    return n_groups - 1


draw_label = compile_inner(_draw_label)
"""``draw_label(normal, b, linear, ...)`` draws the group of a row; see `_draw_label`."""


def _draw_rows(  # type: ignore[no-untyped-def]
    indptr,
    indices,
    first,
    last,
    target,
    weights,
    partners,
    constants,
    mean,
    linear,
    precision,
    log_weights,
    rho,
    seed,
    sweep,
    kind,
    labels,
    rows,
    misfit,
):
    d, in_groups = rows.shape[1], log_weights.size > 1
    L, half, scores = np.empty((d, d)), np.empty(d), np.empty(log_weights.size)
    gathered = np.empty((CHUNK, d), partners.dtype)
    product = np.empty((d, d), partners.dtype)
    normal, b, noise = np.empty((d, d)), np.empty(d), np.empty(d)
    stream = np.empty(4, np.uint64)
    for i in range(first, last):
        if in_groups:
            normal[:] = 0.0
            b[:] = 0.0
        else:
            normal[:] = precision[0]
            b[:] = linear[0]
        for begin in range(indptr[i], indptr[i + 1], CHUNK):
            count = min(CHUNK, indptr[i + 1] - begin)
            for k in range(count):
                j = indices[begin + k]
                root = math.sqrt(rho * weights[begin + k]) if weights.size else math.sqrt(rho)
                y = root * (target[begin + k] - constants[j] - mean)
                for a in range(d):
                    scaled = root * partners[j, a]
                    gathered[k, a] = scaled
                    b[a] += y * scaled
            np.dot(gathered[:count].T, gathered[:count], product)
            normal += product
        start_stream(stream, seed, sweep, kind, i)
        if in_groups:
            if labels[i] < 0:
                labels[i] = draw_label(
                    normal, b, linear, precision, log_weights, stream, L, half, scores
                )
            normal += precision[labels[i]]
            b += linear[labels[i]]
        draw_gaussian(normal, b, stream, noise, rows[i])
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            residual = target[k] - constants[j] - mean
            for a in range(d):
                residual -= rows[i, a] * partners[j, a]
            total += residual * residual * (weights[k] if weights.size else 1.0)
        misfit[i] = total
