"""Draws of the rows of a factor, given the other factor: one small Gaussian for each row.

With τ_ij = ρ times the weight of an entry, and p_j a row of the other factor (with a one for the
offset), row i has

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
from functools import partial

import numpy as np

from nmd_lab._runtime.compiler import compile_inner

from .streams import draw_index, fill_normal, new_stream, start_stream

CHUNK = 256
"""Entries of a row whose vectors are gathered at a time."""


@partial(compile_inner, inline=True)  # a call counts the references of all arrays, in each row
def add_entries(columns, begin, end, y, weights, rho, other, scratch, normal, b):  # type: ignore[no-untyped-def]
    """Add Σ τ p pᵀ over the entries of a row to `normal` and, if y is given, Σ τ y p to `b`."""
    rho_of_columns, vectors = other
    gathered, product = scratch
    count = 0
    for k in range(begin, end):
        j = columns[k]
        tau = rho * (rho_of_columns[j] if rho_of_columns.size else 1.0)
        if weights.size:
            tau *= weights[k]
        root = math.sqrt(tau)
        scaled_y = root * y[k - begin] if y.size else 0.0
        for a in range(b.size):
            scaled = root * vectors[j, a]
            gathered[count, a] = scaled
            b[a] += scaled_y * scaled
        count += 1
        if count == CHUNK or k == end - 1:
            np.dot(gathered[:count].T, gathered[:count], product)
            normal += product
            count = 0


@compile_inner
def draw_gaussian(normal, b, stream, noise, row):  # type: ignore[no-untyped-def]
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


@compile_inner
def draw_label(normal, b, linear, precision, log_weights, stream, L, y, scores):  # type: ignore[no-untyped-def]
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


@compile_inner
def equal(columns, others):  # type: ignore[no-untyped-def]
    """Return whether two rows store the same columns."""
    same = columns.size == others.size
    k = 0
    while same and k < columns.size:
        same = columns[k] == others[k]
        k += 1
    return same


@compile_inner
def absent_columns(columns, out):  # type: ignore[no-untyped-def]
    """Put the columns that a row does not store first into `out`, and return their number."""
    count, k = 0, 0
    for j in range(out.size):
        if k < columns.size and columns[k] == j:
            k += 1
        else:
            out[count] = j
            count += 1
    return count


def draw_rows(first, last, entries, other, prior, rho, of_all, key, rows, labels, squares, done):  # type: ignore[no-untyped-def]
    """Draw some sparse rows in place, with the labels that are unknown and the squares left."""
    indptr, indices, target, weights = entries
    vectors, constants, mean = other
    linear, precision, log_weights = prior
    rho_of_rows, rho_of_columns = rho
    gram, sums = of_all
    seed, sweep, kind = key
    n, d = vectors.shape
    in_groups = log_weights.size > 1
    L, half, scores = np.empty((d, d)), np.empty(d), np.empty(log_weights.size)
    normal, b, noise = np.empty((d, d)), np.empty(d), np.empty(d)
    by_column = rho_of_columns, vectors
    narrow = np.empty((CHUNK, d), vectors.dtype), np.empty((d, d), vectors.dtype)
    wide = np.empty((CHUNK, d)), np.empty((d, d))
    y, none, absent = np.empty(n), np.empty(0), np.empty(n, np.int64)
    of_absent, before = np.zeros((d, d)), indices[:0]  # sum to subtract, and columns of that row
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
        rho_of_row = rho_of_rows[i] if rho_of_rows.size > 1 else rho_of_rows[0]
        begin, end = indptr[i], indptr[i + 1]
        for k in range(begin, end):
            y[k - begin] = target[k] - constants[indices[k]] - mean
        if gram.size and 2 * (end - begin) > n:
            columns = indices[begin:end]
            if not equal(columns, before):
                of_absent[:] = 0.0
                count = absent_columns(columns, absent)
                add_entries(absent, 0, count, none, none, 1.0, by_column, wide, of_absent, half)
                before = columns
            for a in range(d):
                b[a] += rho_of_row * sums[i, a]
                for c in range(d):
                    normal[a, c] += rho_of_row * (gram[a, c] - of_absent[a, c])
        else:
            here = indices, begin, end, y, weights
            add_entries(*here, rho_of_row, by_column, narrow, normal, b)
        start_stream(stream, seed, sweep, kind, i)
        if in_groups:
            if labels[i] < 0:
                labels[i] = draw_label(
                    normal, b, linear, precision, log_weights, stream, L, half, scores
                )
            normal += precision[labels[i]]
            b += linear[labels[i]]
        draw_gaussian(normal, b, stream, noise, rows[i])
        if squares.size:
            total = 0.0
            for k in range(begin, end):
                j, residual = indices[k], y[k - begin]
                for a in range(d):
                    residual -= rows[i, a] * vectors[j, a]
                total += residual * residual * (weights[k] if weights.size else 1.0)
            squares[i] = total
