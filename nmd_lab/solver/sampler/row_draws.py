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

What the draw of a row with few missing cells costs grows with these alone.  If all entries were
stored, the rows of a group c would share one precision,

    A_c = Λ_c + Σ_j ρ_j p_j p_jᵀ      over all columns j.

Row i has P_ic = A_c - Uᵀ U, where U has a row √ρ_j p_jᵀ for each missing cell.  Let b be the linear
term of the row, M = I - U A_c⁻¹ Uᵀ and z = U A_c⁻¹ b.  Then

    log |P| = log |A| + log |M|,      bᵀ P⁻¹ b = bᵀ A⁻¹ b + zᵀ M⁻¹ z

give the probability of a label, and a row is drawn in two steps.  The first one fills the missing
cells, with the row integrated out:

    s ~ N(M⁻¹ z, M⁻¹),      w ~ N(A⁻¹ (b + Uᵀ s), A⁻¹).

With L Lᵀ = A, all of this needs only L⁻¹ b, L⁻¹ p_j and their products over pairs of columns, which
are the same for all rows.  So a row with h missing cells takes a Cholesky factor of size h.

Of more than `MAX_INTEGRATED` missing cells, those that say least about a row are filled before,
given the row as it is: y_ij ~ N(p_j·w, 1/ρ_j).  This is a Gibbs step of its own, which leaves the
posterior as it is.
"""

from __future__ import annotations

import math

import numpy as np

from nmd_lab._runtime.compiler import compile_inner

from .streams import MISSING, draw_index, fill_normal, new_stream, normal, start_stream

CHUNK = 256
"""Entries of a row whose vectors are gathered at a time."""


@compile_inner
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
            for a in range(b.size):
                for c in range(b.size):
                    normal[a, c] += product[a, c]
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
    seed, sweep, kind, keys = key
    n, d = vectors.shape
    in_groups = log_weights.size > 1
    L, half, scores = np.empty((d, d)), np.empty(d), np.empty(log_weights.size)
    normal, b, noise = np.empty((d, d)), np.empty(d), np.empty(d)
    by_column = rho_of_columns, vectors
    narrow = np.empty((CHUNK, d), vectors.dtype), np.empty((d, d), vectors.dtype)
    wide = np.empty((CHUNK, d)), np.empty((d, d))
    y, none, absent = np.empty(n), np.empty(0), np.empty(n, indices.dtype)
    of_absent, before = np.zeros((d, d)), indices[:0]  # sum to subtract, and columns of that row
    stream = new_stream()
    for i in range(first, last):
        if done.size and done[i]:
            continue
        for a in range(d):
            b[a] = 0.0 if in_groups else linear[0, a]
            for c in range(d):
                normal[a, c] = 0.0 if in_groups else precision[0, a, c]
        rho_of_row = rho_of_rows[i] if rho_of_rows.size > 1 else rho_of_rows[0]
        begin, end = np.int64(indptr[i]), np.int64(indptr[i + 1])
        for k in range(begin, end):
            y[k - begin] = target[k] - constants[indices[k]] - mean
        if gram.size and 2 * (end - begin) > n:
            columns = indices[begin:end]
            if not equal(columns, before):
                for a in range(d):
                    for c in range(d):
                        of_absent[a, c] = 0.0
                count = absent_columns(columns, absent)
                here = absent, np.int64(0), count, none, none
                add_entries(*here, 1.0, by_column, wide, of_absent, half)
                before = columns
            for a in range(d):
                b[a] += rho_of_row * sums[i, a]
                for c in range(d):
                    normal[a, c] += rho_of_row * (gram[a, c] - of_absent[a, c])
        else:
            here = indices, begin, end, y, weights
            add_entries(*here, rho_of_row, by_column, narrow, normal, b)
        start_stream(stream, seed, sweep, kind, keys[i] if keys.size else i)
        if in_groups:
            if labels[i] < 0:
                labels[i] = draw_label(
                    normal, b, linear, precision, log_weights, stream, L, half, scores
                )
            group = labels[i]
            for a in range(d):
                b[a] += linear[group, a]
                for c in range(d):
                    normal[a, c] += precision[group, a, c]
        draw_gaussian(normal, b, stream, noise, rows[i])
        if squares.size:
            total = 0.0
            for k in range(begin, end):
                j, residual = indices[k], y[k - begin]
                for a in range(d):
                    residual -= rows[i, a] * vectors[j, a]
                total += residual * residual * (weights[k] if weights.size else 1.0)
            squares[i] = total


def fill_missing(first, last, few, cells, predicted, spreads, key, chosen, y):  # type: ignore[no-untyped-def]
    """List the first missing cells of each row, by `order`, and fill the others."""
    starts, columns, order = cells
    seed, sweep = key
    is_missing, stream = np.zeros(order.size, np.bool_), new_stream()
    most = chosen.shape[1]
    for i in range(first, last):
        if not few[i]:
            continue
        begin, end = starts[i], starts[i + 1]
        if end - begin <= most:
            for k in range(begin, end):
                chosen[i, k - begin] = columns[k]
            continue
        for k in range(begin, end):
            is_missing[columns[k]] = True
        count = 0
        for j in order:
            if count == most:
                break
            if is_missing[j]:
                is_missing[j] = False
                chosen[i, count] = j
                count += 1
        start_stream(stream, seed, sweep, np.int64(MISSING), i)
        for k in range(begin, end):
            j = columns[k]
            if is_missing[j]:
                is_missing[j] = False
                y[i, j] = predicted[i, j] + spreads[j] * normal(stream)


@compile_inner
def factor(b, linear, inverse, white, pairs, chosen, count, y, L, z):  # type: ignore[no-untyped-def]
    """Put L⁻¹ b, the factor of M and its solution for z into place; return their log-density."""
    d = b.size
    score, determinant = 0.0, 1.0
    for a in range(d):
        total = 0.0
        for e in range(a + 1):
            total += inverse[a, e] * (b[e] + linear[e])
        y[a] = total
        score += 0.5 * total * total
    for p in range(count):
        j = chosen[p]
        total = 0.0
        for a in range(d):
            total += white[j, a] * y[a]
        for q in range(p):
            entry = -pairs[j, chosen[q]]
            for r in range(q):
                entry -= L[p, r] * L[q, r]
            entry /= L[q, q]
            L[p, q] = entry
            total -= entry * z[q]
        pivot = 1.0 - pairs[j, j]
        for r in range(p):
            pivot -= L[p, r] * L[p, r]
        pivot = math.sqrt(pivot)
        L[p, p] = pivot
        z[p] = total / pivot
        score += 0.5 * z[p] * z[p]
        determinant *= pivot
    return score - math.log(determinant)


@compile_inner
def draw_row(chosen, count, inverse, white, y, L, z, noise, stream, row):  # type: ignore[no-untyped-def]
    """Put a draw of the row into place, given what `factor` has left."""
    d = y.size
    fill_normal(stream, noise[:count])
    for p in range(count - 1, -1, -1):  # Lᵀ s = z + noise
        total = z[p] + noise[p]
        for q in range(p + 1, count):
            total -= L[q, p] * z[q]
        z[p] = total / L[p, p]
    fill_normal(stream, noise[:d])
    for a in range(d):
        y[a] += noise[a]
        noise[a] = 0.0
    for p in range(count):
        j, s = chosen[p], z[p]
        for a in range(d):
            y[a] += s * white[j, a]
    for a in range(d):
        for e in range(a + 1):
            noise[e] += inverse[a, e] * y[a]
    for a in range(d):
        row[a] = noise[a]


def draw_rows_with_few(first, last, pattern, sums, shared, key, labels, rows):  # type: ignore[no-untyped-def]
    """Draw rows with few missing cells in place, with the labels that are unknown."""
    few, counts, chosen = pattern
    linear, inverse, white, pairs, logs = shared
    seed, sweep, kind = key
    d, most = sums.shape[1], chosen.shape[1]
    y, noise = np.empty(d), np.empty(max(most, d))
    L, z, scores = np.empty((most, most)), np.empty(most), np.empty(logs.size)
    stream = new_stream()
    for i in range(first, last):
        if not few[i]:
            continue
        start_stream(stream, seed, sweep, kind, i)
        b, here, count = sums[i], chosen[i], min(counts[i], most)
        c = labels[i] if labels.size else 0
        if c < 0:
            for g in range(logs.size):
                scores[g] = logs[g] + factor(
                    b, linear[g], inverse[g], white[g], pairs[g], here, count, y, L, z
                )
            c = labels[i] = draw_index(scores, stream)
        factor(b, linear[c], inverse[c], white[c], pairs[c], here, count, y, L, z)
        draw_row(here, count, inverse[c], white[c], y, L, z, noise, stream, rows[i])
