"""A Gram policy for rows of which few entries are missing: the sum of all less that of the missing.

With G the sum of p_j p_jᵀ over all partners, row i has the normal matrix

    A = G - Σ p_j p_jᵀ   over its missing entries,

so that its cost grows with these alone.  The difference has the rounding errors of G.  With the
ridge R, the eigenvalues of (G + R)⁻¹ (A + R) lie between 0 and 1, so that the smallest of them is
at least their product det(A + R) / det(G + R).  Where this ratio is too small to trust the
difference, the row is summed over its entries, as by `nmd_lab.solver.gram.per_row`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from nmd_lab._runtime.compiler import inlined
from nmd_lab.data.entries import FloatArray

from .gram import Chunk, Gram, add_entries, gather, per_row
from .row_updates import factorize
from .storage import CsrStorage

MOSTLY = 0.75  # fraction of stored entries from which rows are looked at
TRUSTED = 1e-4  # ratio of determinants down to which a difference is as good as a sum
LIKELY = 6.0  # missing fraction times rank up to which the ratio is likely to be one of these


def missing_entries(storage: CsrStorage) -> CsrStorage | None:
    """Return the entries that are not stored, if these are few."""
    m, n = storage.shape
    if storage.n_entries < MOSTLY * m * n:
        return None
    columns = [np.empty(0, storage.indices.dtype)]
    for block in storage.blocks():
        counts = np.diff(storage.indptr[block.rows.start : block.rows.stop + 1])
        absent = np.ones((counts.size, n), bool)
        absent[np.repeat(np.arange(counts.size), counts), storage.indices[block.entries]] = False
        columns.append(np.nonzero(absent)[1].astype(storage.indices.dtype))
    indptr = np.arange(m + 1, dtype=storage.indptr.dtype) * n - storage.indptr
    return CsrStorage(storage.shape, indptr, np.concatenate(columns))


def gram_policy(
    missing: CsrStorage | None, partners: FloatArray, ridge: FloatArray
) -> Callable[..., Gram]:
    """Return the policy of rows with normal matrices of their own: a function like `per_row`."""
    of_rows = partial(per_row, partners=partners)
    if missing is None:
        return of_rows
    wide = partners.astype(np.float64)  # a difference loses digits
    total = wide.T @ wide
    try:
        pivots = np.diag(np.linalg.cholesky(total + np.diag(ridge)))
    except np.linalg.LinAlgError:
        return of_rows

    def shared_less_few(chunk: Chunk, S: FloatArray, base: int = 0) -> Gram:
        gram = of_rows(chunk, S, base=base)
        sums = missing.indptr, missing.indices, wide, total, pivots, ridge
        arguments = (gram.arguments, *sums, np.empty((2, *total.shape)))
        return Gram(_add_less_few, arguments, gram.types)

    return shared_less_few


def _add_less_few(row, arguments, normal, gradient):  # type: ignore[no-untyped-def]
    entries, missing_indptr, missing, wide, total, pivots, ridge, scratch = arguments
    indptr, indices, positions, base, S, partners, gathered = entries
    begin, end = indptr[row], indptr[row + 1]
    absent, last = missing_indptr[row], missing_indptr[row + 1]
    difference, L, size = scratch[0], scratch[1], pivots.size
    n_stored, n_missing, ratio = end - begin, last - absent, 0.0
    pays = n_stored > n_missing + size
    if pays and n_missing * size <= LIKELY * (n_stored + n_missing):
        difference[:] = 0.0
        _add_products(missing, absent, last, wide, difference)
        for a in range(size):
            for c in range(a + 1):
                difference[a, c] = total[a, c] - difference[a, c]
        factorize(difference, ridge, L)
        ratio = 1.0
        for a in range(size):
            ratio *= (L[a, a] / pivots[a]) ** 2
    if positions.size:
        gather(S, positions, begin, end, gathered)
        S, base = gathered, begin
    if TRUSTED < ratio < 2.0:
        for a in range(size):
            for c in range(a + 1):
                normal[a, c] += difference[a, c]
        _add_gradient(indices, begin, end, base, S, partners, gradient)
    else:
        add_entries(indices, begin, end, base, S, partners, normal, gradient)


@inlined
def _add_gradient(indices, begin, end, base, S, partners, gradient):  # type: ignore[no-untyped-def]
    """Add the entries of a row to its gradient alone, four at a time, as `add_entries` does."""
    whole = end - (end - begin) % 4
    for k in range(begin, whole, 4):
        h0, h1 = partners[indices[k]], partners[indices[k + 1]]
        h2, h3 = partners[indices[k + 2]], partners[indices[k + 3]]
        s0, s1, s2, s3 = S[k - base], S[k + 1 - base], S[k + 2 - base], S[k + 3 - base]
        for a in range(gradient.size):
            gradient[a] += s0 * h0[a] + s1 * h1[a] + s2 * h2[a] + s3 * h3[a]
    for k in range(whole, end):
        h, s = partners[indices[k]], S[k - base]
        for a in range(gradient.size):
            gradient[a] += s * h[a]


@inlined
def _add_products(indices, begin, end, partners, normal):  # type: ignore[no-untyped-def]
    """Add the products of the entries of a row to the lower triangle of a matrix."""
    for k in range(begin, end):
        h = partners[indices[k]]
        for a in range(normal.shape[0]):
            row, weight = normal[a], h[a]
            for c in range(a + 1):
                row[c] += weight * h[c]
