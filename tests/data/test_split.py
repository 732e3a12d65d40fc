"""A split is a partition, and its training set has entries in every row and column."""

import numpy as np
import pandas as pd
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import nmd_lab as nmd


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.05, 0.95), st.floats(0.05, 1.0))
def test_a_split_is_a_partition_that_keeps_every_row_and_column(seed, share, density):
    rng = np.random.default_rng(seed)
    X = sparse.csr_array(np.where(rng.random((12, 9)) < density, rng.normal(size=(12, 9)), 0))
    if X.nnz < 2:
        return
    train, test = nmd.split_observed(X, share, random_state=seed)
    assert train.nnz + test.nnz == X.nnz
    np.testing.assert_allclose((train + test).toarray(), X.toarray())
    assert train.nnz >= X.nnz - max(1, round(share * X.nnz))
    for axis in (0, 1):
        np.testing.assert_array_equal(abs(train).sum(axis) > 0, abs(X).sum(axis) > 0)


def test_the_test_set_has_the_requested_size_if_possible_and_depends_on_the_seed():
    X = sparse.random_array((200, 100), density=0.3, rng=np.random.default_rng(0))
    first, second, other = (nmd.split_observed(X, 0.2, seed)[1] for seed in (1, 1, 2))
    assert first.nnz == round(0.2 * X.nnz)
    assert nmd.split_observed(X, 17, 0)[1].nnz == 17
    assert (first != second).nnz == 0
    assert (first != other).nnz > 0


def test_the_kind_of_the_input_is_kept():
    rng = np.random.default_rng(0)
    values = np.where(rng.random((8, 6)) < 0.8, rng.normal(size=(8, 6)), np.nan)
    frame = pd.DataFrame(values, index=list("abcdefgh"))
    labelled = xr.DataArray(values, dims=("a", "b"), coords={"b": range(6)}, name="x")
    for X in (values, frame, labelled):
        train, test = nmd.split_observed(X, 0.25, 0)
        assert type(train) is type(test) is type(X)
        in_train, in_test = ~np.isnan(np.asarray(train)), ~np.isnan(np.asarray(test))
        assert not np.any(in_train & in_test)
        np.testing.assert_array_equal(in_train | in_test, ~np.isnan(values))
    xr.testing.assert_identical(train.coords.to_dataset(), labelled.coords.to_dataset())
    matrix = sparse.csr_matrix(np.nan_to_num(values))
    assert isinstance(nmd.split_observed(matrix, 0.2, 0)[0], sparse.csr_matrix)


def test_a_class_that_no_other_cell_shows_is_not_hidden():
    frame = pd.DataFrame({"a": range(30), "b": [f"town {min(k, 20)}" for k in range(30)]})
    frame = frame.astype({"b": "category"})
    for seed in range(5):
        train, test = nmd.split_observed(frame, 0.4, random_state=seed)
        assert set(train["b"].dropna()) == set(frame["b"])
        assert test["a"].notna().any()
