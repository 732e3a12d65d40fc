"""Columns of sparse data in chunks of rows: the result of whole columns, up to rounding."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import nmd_lab as nmd
from nmd_lab.solver import gram
from nmd_lab.solver.storage import CsrStorage


def ratings(m=90, n=30):
    """Return a matrix with an empty row and an empty column at each end and in the middle."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((m, n), density=0.2, rng=rng, format="lil")
    for line in (0, m // 2, m - 1):
        X[line] = 0
    for line in (0, n // 2, n - 1):
        X[:, line] = 0
    X = sparse.csr_array(X)
    X.eliminate_zeros()
    X.data += rng.normal(size=X.data.size)
    return X


@pytest.fixture
def small_chunks(monkeypatch):
    def shrink(entries, fewest=1, memory=100):
        monkeypatch.setattr(gram, "ENTRIES", entries)
        monkeypatch.setattr(gram, "FEWEST", fewest)
        monkeypatch.setattr(gram, "MEMORY", memory)

    return shrink


@pytest.mark.filterwarnings("ignore::nmd_lab.warnings.UnobservedWarning")
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("entries", [7, 50, 10_000])
@pytest.mark.parametrize("offsets", ["none", "both"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_fit_does_not_depend_on_chunks(small_chunks, entries, threads, offsets, dtype):
    X, options = ratings().astype(dtype), {"max_iter": 8, "tol": 0, "random_state": 0}
    given = {"alpha": 0.1, "offsets": offsets, **options, "compute": nmd.Compute(threads=threads)}
    whole = nmd.complete(X, 3, "relu", **given)
    small_chunks(entries)
    parts = nmd.complete(X, 3, "relu", **given)
    rtol = 1e-9 if dtype == np.float64 else 1e-3
    np.testing.assert_allclose(parts.history.objective, whole.history.objective, rtol=rtol)
    products = (fit.W.values @ fit.H.values for fit in (parts, whole))
    np.testing.assert_allclose(*products, atol=10 * rtol * np.abs(whole.H.values).max())


def test_chunks_are_for_large_data_and_small_ranks(small_chunks):
    X = ratings()
    storage = CsrStorage(X.shape, X.indptr, X.indices)
    assert len(gram.chunks_of_columns(storage, 3)) == 1
    small_chunks(20, fewest=4, memory=1.0)
    assert len(gram.chunks_of_columns(storage, 3)) > 1
    assert len(gram.chunks_of_columns(storage, 30)) == 1  # its normal matrices would be too large
