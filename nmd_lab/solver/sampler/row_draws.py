"""Draws of the rows of a factor, given the other factor: one small Gaussian for each row.

With τ_ij = ρ times the weight of an entry, and the partner p_j (a row of the other factor, with a
one for the offset), row i has

    precision  P_i = Λ + Σ_j τ_ij p_j p_jᵀ,      mean  P_i⁻¹ (Λ μ + Σ_j τ_ij y_ij p_j),

where y_ij is T minus the offset of the column and the mean.  Λ and μ are those of the group of the
row.  A row without a label draws one before, with its vector integrated out: group c has the
logarithm of its probability, up to a constant,

    log π_c + ½ log |Λ_c| - ½ μ_cᵀ Λ_c μ_c - ½ log |P_ic| + ½ b_icᵀ P_ic⁻¹ b_ic,

where b_ic is the bracket of the mean.  Where more than half of a row is stored, and entries have no
weights, the sum over j is that over all columns less that over the others.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from nmd_lab._runtime.compiler import compile_inner, compile_kernel

from .streams import draw_index, fill_normal, new_stream, start_stream

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
    column = np.empty(d)
    for c in range(n_groups):
        score = log_weights[c]
        for a in range(d):
            y[a] = b[a] + linear[c, a]
            for e in range(a + 1):
                L[a, e] = normal[a, e] + precision[c, a, e]
        for e in range(d):  # L Lᵀ = P and L y = b, column by column
            pivot = math.sqrt(L[e, e])
            y[e] /= pivot
            score += 0.5 * y[e] * y[e] - math.log(pivot)
            for a in range(e + 1, d):
                column[a] = L[a, e] / pivot
            for a in range(e + 1, d):
                y[a] -= column[a] * y[e]
                for f in range(e + 1, a + 1):
                    L[a, f] -= column[a] * column[f]
        scores[c] = score
    return draw_index(scores, stream)


draw_label = compile_inner(_draw_label)
"""``draw_label(normal, b, linear, ...)`` draws the group of a row; see `_draw_label`."""


def _has_pattern(indices, begin, end, before, behind):  # type: ignore[no-untyped-def]
    """Return whether two rows, neither of them empty, store the same entries."""
    alike = 0
    while begin + alike < end and before + alike < behind:
        if indices[begin + alike] != indices[before + alike]:
            return False
        alike += 1
    return alike > 0 and alike == end - begin == behind - before


has_pattern = compile_inner(_has_pattern)
"""``has_pattern(indices, begin, end, before, behind)`` compares two rows; see `_has_pattern`."""


def _sum_absent(  # type: ignore[no-untyped-def]
    indices, begin, end, partners, rho_of_partners, absent, of_some, of_absent
):
    """Overwrite of_absent with Σ_j ρ_j p_j p_jᵀ over the entries that a row does not store."""
    n, d = partners.shape
    of_absent[:] = 0.0
    count, k = 0, begin
    for j in range(n):
        if k < end and indices[k] == j:
            k += 1
        else:
            root = math.sqrt(rho_of_partners[j]) if rho_of_partners.size else 1.0
            for a in range(d):
                absent[count, a] = root * partners[j, a]
            count += 1
        if count == CHUNK or (j == n - 1 and count):
            np.dot(absent[:count].T, absent[:count], of_some)
            of_absent += of_some
            count = 0


sum_absent = compile_inner(_sum_absent)
"""``sum_absent(indices, begin, end, ...)`` sums over absent entries; see `_sum_absent`."""


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
    rho_of_partners,
    of_all,
    sums,
    seed,
    sweep,
    kind,
    labels,
    rows,
    misfit,
    done,
):
    n, d = partners.shape
    in_groups = log_weights.size > 1
    L, half, scores = np.empty((d, d)), np.empty(d), np.empty(log_weights.size)
    gathered = np.empty((CHUNK, d), partners.dtype)
    product = np.empty((d, d), partners.dtype)
    normal, b, noise = np.empty((d, d)), np.empty(d), np.empty(d)
    absent, of_some = np.empty((CHUNK, d)), np.empty((d, d))
    of_absent = np.empty((d, d))  # sum to subtract
    before, behind = 0, 0  # entries of the row to which that sum belongs
    stream = new_stream()
    for i in range(first, last):
        if done.size and done[i]:
            continue
        if in_groups:
            normal[:] = 0.0
            b[:] = 0.0
        else:
            normal[:] = precision[0]
            b[:] = linear[0]
        of_row = rho[i] if rho.size > 1 else rho[0]
        begin, end = indptr[i], indptr[i + 1]
        from_all = of_all.size > 0 and 2 * (end - begin) > n
        if from_all:
            for a in range(d):
                b[a] += of_row * sums[i, a]
        count = 0
        for k in range(begin, begin if from_all else end):
            j = indices[k]
            tau = of_row * (rho_of_partners[j] if rho_of_partners.size else 1.0)
            if weights.size:
                tau *= weights[k]
            root = math.sqrt(tau)
            y = root * (target[k] - constants[j] - mean)
            for a in range(d):
                scaled = root * partners[j, a]
                gathered[count, a] = scaled
                b[a] += y * scaled
            count += 1
            if count == CHUNK or k == end - 1:
                np.dot(gathered[:count].T, gathered[:count], product)
                normal += product
                count = 0
        if from_all:  # less the entries that are not stored
            if not has_pattern(indices, begin, end, before, behind):
                sum_absent(
                    indices, begin, end, partners, rho_of_partners, absent, of_some, of_absent
                )
                before, behind = begin, end
            for a in range(d):
                for c in range(d):
                    normal[a, c] += of_row * (of_all[a, c] - of_absent[a, c])
        start_stream(stream, seed, sweep, kind, i)
        if in_groups:
            if labels[i] < 0:
                labels[i] = draw_label(
                    normal, b, linear, precision, log_weights, stream, L, half, scores
                )
            normal += precision[labels[i]]
            b += linear[labels[i]]
        draw_gaussian(normal, b, stream, noise, rows[i])
        if misfit.size:
            total = 0.0
            for k in range(begin, end):
                j = indices[k]
                residual = target[k] - constants[j] - mean
                for a in range(d):
                    residual -= rows[i, a] * partners[j, a]
                total += residual * residual * (weights[k] if weights.size else 1.0)
            misfit[i] = total
