"""A split is a partition, and its training set has entries in every row and column.

Cells hidden in runs, as others are missing in rows that follow each other.
"""

from itertools import groupby

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from helpers import mask_of
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import nmd_lab as nmd
from nmd_lab.data.folds import missing_in_runs, moved_runs
from nmd_lab.data.inputs import observe
from nmd_lab.data.observations import Observations


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


M, N = 400, 8


def with_gaps(length, share, seed=0, *, m=M, n=N, columns=None):
    """Return a matrix with gaps of this length in some columns, each of its own."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    for j in range(n) if columns is None else columns:
        for begin in rng.permutation(m // (length + 1))[: int(share * m / length)]:
            X[begin * (length + 1) : begin * (length + 1) + length, j] = np.nan
    return X


def hidden_of(X, share, seed=0, sequence=None):
    """Return which cells are hidden, (m, n)."""
    sequence = np.arange(len(X)) if sequence is None else sequence
    observations, rng = observe(X), np.random.default_rng(seed)
    return mask_of(observations.select(moved_runs(observations, share, rng, sequence)))


def runs(mask):
    """Return the lengths of the runs of a mask along its rows, of all columns."""
    return [sum(1 for _ in run) for column in mask.T for is_in, run in groupby(column) if is_in]


@pytest.mark.parametrize("share", [0.05, 0.1])
@pytest.mark.parametrize("length", [1, 5, 20])
def test_about_the_share_of_observed_cells_is_hidden(length, share):
    """Over many seeds; each run is hidden with the same probability."""
    X = with_gaps(length, 0.3)
    masks = [hidden_of(X, share, seed) for seed in range(30)]
    assert not any((mask & np.isnan(X)).any() for mask in masks)
    found = np.mean([mask.sum() for mask in masks]) / np.isfinite(X).sum()
    assert found == pytest.approx(share, rel=0.15)


def test_hidden_runs_are_moved_missing_ones():
    """A run is as long as the missing ones, unless it begins, ends or lies at missing cells."""
    length = 6
    X = with_gaps(length, 0.2)
    hidden = hidden_of(X, 0.1)
    lengths = runs(hidden)
    assert max(lengths) == length
    assert np.mean(np.array(lengths) == length) > 0.5
    apart = hidden | np.isnan(X)
    apart[[0, -1]] = True  # a run that goes over the end is cut
    inside = [each for column in apart.T for each in runs(column[:, None])[1:-1]]
    assert sorted(inside)[1] >= length  # a shorter one touches a missing one, or is the last one
    assert {j for j in range(N) if hidden[:, j].any()} == set(range(N))


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_columns_without_a_gap_hide_nothing_of_their_own(share):
    """A share that the gaps do not have hides all of their runs."""
    X = with_gaps(5, 0.3, columns=[1, 4])
    hidden = hidden_of(X, share)
    assert set(np.flatnonzero(hidden.any(axis=0))) == {1, 4}
    assert hidden.sum() <= np.isnan(X).sum()


@pytest.mark.parametrize("first", [0, 1])
def test_rows_without_an_entry_are_hidden_whole(first):
    """But for columns that are never missing, such as those of the calendar."""
    X, lengths = np.random.default_rng(0).normal(size=(M, N)), []
    X[50:60, first:] = X[200:210, first:] = X[100:105, 3] = np.nan
    for seed in range(20):
        hidden = hidden_of(X, 0.2, seed)
        assert not hidden[:, :first].any()
        assert (hidden | np.isnan(X))[hidden[:, 1], first:].all()
        lengths += runs(hidden[:, [1]])
    assert max(lengths) == 10
    assert lengths.count(10) > 20


def test_indicators_of_a_category_are_hidden_together():
    words = np.random.default_rng(0).choice(["a", "b", "c", "d"], M).astype(object)
    X = pd.DataFrame({"number": with_gaps(5, 0.2, n=1)[:, 0], "word": words})
    X.loc[30:60, "word"] = X.loc[200:240, "word"] = None
    observations = observe(X)
    i, j, _ = observations.entries()
    for seed in range(5):
        hidden = moved_runs(observations, 0.2, np.random.default_rng(seed), np.arange(M))
        at = i[hidden & (j > 0)]
        assert at.size
        np.testing.assert_array_equal(np.bincount(at)[np.unique(at)], 4)


def test_runs_follow_the_sequence_of_the_rows():
    X, order = with_gaps(6, 0.2), np.random.default_rng(4).permutation(M)
    shuffled = X[np.argsort(order)]  # row `order[t]` is the t-th of the sequence
    in_order, mixed = hidden_of(X, 0.1), hidden_of(shuffled, 0.1, sequence=order)
    np.testing.assert_array_equal(mixed[order], in_order)


def test_the_correlation_with_the_next_row_decides():
    """By Pearson's formula for all columns together, around the limit of a quarter."""
    said, shares = [], np.linspace(0.05, 0.5, 6)
    for k in range(40):
        rng = np.random.default_rng(k)
        X, sequence = rng.normal(size=(60, 6)), rng.permutation(60)
        X[rng.random(X.shape) < shares] = np.nan
        for j in range(6):
            X[9 * j : 9 * j + rng.integers(2, 9), j] = np.nan
        X[np.isnan(X).all(axis=1), 0] = 0.0
        z = np.isnan(X) - np.isnan(X).mean(axis=0)
        expected = (z[1:] * z[:-1]).sum() > 0.25 * (z**2).sum()
        assert missing_in_runs(observe(X[np.argsort(sequence)]), sequence) == expected
        said.append(expected)
    assert 3 < sum(said) < 37


def test_what_has_no_runs(monkeypatch):
    full, one_row = np.ones((M, N)), np.array([[1.0, np.nan, 2.0]])
    few = sparse.random_array((400, 300), density=0.02, rng=np.random.default_rng(0))
    for X in (full, one_row, few):
        if X is few:  # sparse data have no mask
            monkeypatch.setattr(Observations, "missing", None)
        assert not missing_in_runs(observe(X), np.arange(X.shape[0]))


@pytest.mark.parametrize("columns", [1, 2, 8])
def test_few_columns_with_single_cells_are_no_runs(columns):
    """A row lacks all of one or two columns by chance, but not all of many."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(M, N))
    X[:, :columns][rng.random((M, columns)) < 0.2] = np.nan
    assert not missing_in_runs(observe(X), np.arange(M))
    X[100] = np.nan
    assert missing_in_runs(observe(X), np.arange(M))
