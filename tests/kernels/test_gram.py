"""Columns of sparse data in chunks of rows: the result of whole columns, up to rounding."""

import numpy as np
import pytest
from scipy import sparse

import nmd_lab as nmd
from nmd_lab.kernels import row_steps as gram
from nmd_lab.kernels.products import CsrStorage


def ratings(m=90, n=30):
    """Return a matrix with an empty row and an empty column at each end and in the middle."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, n)) * (rng.random((m, n)) < 0.2)
    X[[0, m // 2, m - 1]] = 0
    X[:, [0, n // 2, n - 1]] = 0
    return sparse.csr_array(X)


def shrink_chunks(monkeypatch, entries, fewest=1, memory=100):
    for name, value in {"ENTRIES": entries, "MIN_CHUNKS": fewest, "MAX_MEMORY": memory}.items():
        monkeypatch.setattr(gram, name, value)


@pytest.mark.filterwarnings("ignore::nmd_lab.warnings.UnobservedWarning")
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("entries", [7, 50, 10_000])
@pytest.mark.parametrize("offsets", ["none", "both"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_fit_does_not_depend_on_chunks(monkeypatch, entries, threads, offsets, dtype):
    X, options = ratings().astype(dtype), {"max_iter": 8, "tol": 0, "random_state": 0}
    given = {"alpha": 0.1, "offsets": offsets, **options, "compute": nmd.Compute(threads=threads)}
    whole = nmd.complete(X, 3, "relu", **given)
    shrink_chunks(monkeypatch, entries)
    parts = nmd.complete(X, 3, "relu", **given)
    rtol = 1e-9 if dtype == np.float64 else 1e-3
    np.testing.assert_allclose(parts.history.objective, whole.history.objective, rtol=rtol)
    products = (fit.W.values @ fit.H.values for fit in (parts, whole))
    np.testing.assert_allclose(*products, atol=10 * rtol * np.abs(whole.H.values).max())


def test_chunks_are_for_large_data_and_small_ranks(monkeypatch):
    X = ratings()
    storage = CsrStorage(X.shape, X.indptr, X.indices)
    assert len(gram.chunks_of_columns(storage, 3)) == 1
    shrink_chunks(monkeypatch, 20, fewest=4, memory=1.0)
    assert len(gram.chunks_of_columns(storage, 3)) > 1
    assert len(gram.chunks_of_columns(storage, 30)) == 1  # its normal matrices would be too large


@pytest.mark.parametrize("shares", [1, 2, 5])
def test_ranges_of_rows_have_about_as_many_entries(monkeypatch, shares):
    X = ratings()
    shrink_chunks(monkeypatch, 50)
    chunks = gram.chunks_of_columns(CsrStorage(X.shape, X.indptr, X.indices), 3)
    counts, ranges = np.bincount(X.indices, minlength=30), gram.shares_of_rows(chunks, shares)
    np.testing.assert_array_equal(np.r_[*ranges], np.arange(30))
    sizes = [counts[each].sum() for each in ranges]
    np.testing.assert_allclose(sizes, counts.sum() / shares, atol=counts.max())
