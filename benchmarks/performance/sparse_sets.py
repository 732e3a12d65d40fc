"""Generated sparse matrices: term frequencies, counts, a band, and large ones."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def documents(m: int, n: int, words: float, topics: int = 24, seed: int = 0) -> sparse.csr_array:
    """Return the counts of n terms in m documents, about `words` in each.

    Each document mixes a few topics, and each topic prefers some terms of a Zipf distribution.
    """
    rng = np.random.default_rng(seed)
    zipf = 1.0 / np.arange(1, n + 1) ** 0.9
    share = rng.dirichlet(np.full(topics, 0.15), m)
    terms = np.cumsum(zipf * rng.gamma(0.25, 1.0, (topics, n)), axis=1)
    rows, columns = [], []
    lengths = rng.multinomial(int(m * words), rng.dirichlet(np.full(m, 4.0)))
    counts = np.array([rng.multinomial(k, p) for k, p in zip(lengths, share, strict=True)])
    for topic in range(topics):
        row = np.repeat(np.arange(m), counts[:, topic])
        rows.append(row)
        columns.append(np.searchsorted(terms[topic], rng.random(row.size) * terms[topic, -1]))
    where = (np.concatenate(rows), np.concatenate(columns))
    matrix = sparse.coo_array((np.ones(where[0].size), where), shape=(m, n)).tocsr()
    matrix.sum_duplicates()
    return matrix


def tf_idf(m: int = 700, n: int = 900) -> sparse.csr_array:
    """Return term frequencies times inverse document frequencies, rows of norm one."""
    counts = documents(m, n, words=400)
    frequency = np.bincount(counts.indices, minlength=n)
    weighted = counts.multiply(np.log((1 + m) / (1 + frequency)) + 1).tocsr()
    norms = np.sqrt(weighted.multiply(weighted).sum(axis=1))
    return sparse.csr_array(sparse.diags_array(1 / np.maximum(norms, 1e-12)) @ weighted)


def banded(size: int = 1000, width: int = 6) -> sparse.csr_array:
    """Return a band of uniform numbers, which no linear model of low rank fits."""
    rng = np.random.default_rng(0)
    offsets = range(-width, width + 1)
    bands = [rng.random(size - abs(k)) for k in offsets]
    return sparse.csr_array(sparse.diags_array(bands, offsets=list(offsets)))


SETS = {
    "tf-idf, 700 x 900": tf_idf,
    "counts, 900 x 280": lambda: documents(900, 280, words=60, seed=1),
    "banded, 1000 x 1000": banded,
}
