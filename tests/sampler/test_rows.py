"""Draws of rows and columns: in chunks, and each with a stream of its own."""

import numpy as np
from scipy import sparse

from nmd_lab.data.inputs import observe
from nmd_lab.kernels.products import storage_of
from nmd_lab.sampler.priors import RowPrior
from nmd_lab.sampler.row_updates import OtherFactor, RowUpdate, StreamId

RANK = 3


def drawn(T, key, rho=1.7, weights=None):
    """Return rows of T given random vectors of its columns, and these with their constants."""
    (m, n), rng = T.shape, np.random.default_rng(0)
    rows, other = np.zeros((m, RANK)), OtherFactor(rng.normal(size=(n, RANK)), rng.normal(size=n))
    prior = RowPrior(rng.normal(size=(1, RANK)), np.eye(RANK)[None])
    side = RowUpdate(storage_of(observe(sparse.csr_array(T)).as_sparse()), None, weights, 1)
    side.draw(T.ravel(), rows, other, prior, np.array([rho]), key, np.zeros(m, np.int64))
    return rows, other


def test_many_entries_in_a_row_are_gathered_in_chunks():
    """A row has more entries than are gathered at a time; with precise noise it is their fit."""
    T = np.random.default_rng(1).normal(size=(2, 700))
    rows, other = drawn(T, StreamId(1, 2, 0), 1e16, np.ones(T.size))  # which takes all entries
    expected = np.linalg.lstsq(other.vectors, (T - other.constants).T)[0].T
    np.testing.assert_allclose(rows, expected, rtol=1e-6)


def test_a_stream_belongs_to_seed_sweep_side_and_row():
    T, seen = np.random.default_rng(1).normal(size=(5, 7)), set()
    for key in (StreamId(1, 1, 0), StreamId(2, 1, 0), StreamId(1, 2, 0), StreamId(1, 1, 1)):
        rows, again = (drawn(T, key)[0] for _ in "ab")
        np.testing.assert_array_equal(rows, again)
        seen |= set(rows.ravel().tolist())
    assert len(seen) == 4 * rows.size
