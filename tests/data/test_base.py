"""The interface of observations: dense and sparse ones of equal data give equal answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from nmd_lab.data.inputs import observe


@st.composite
def holey(draw):
    """Draw a small matrix, where it is observed, and weights (or None)."""
    shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
    X = draw(hnp.arrays(float, shape, elements=st.integers(-3, 3).map(float)))
    seen = draw(hnp.arrays(bool, shape))
    seen.flat[draw(st.integers(0, seen.size - 1))] = True
    weights = draw(st.none() | hnp.arrays(float, shape, elements=st.integers(1, 4).map(float)))
    return X, seen, weights


def pair(X, seen, weights):
    """Return the same data as dense and as sparse observations; a weight of 0 is a hole too."""
    hole = ~seen
    if weights is not None:
        hole, weights = hole & (X < 0), np.where(seen, weights, 0)
    stored = sparse.coo_array((X[~hole], np.nonzero(~hole)), shape=X.shape)
    dense = observe(np.where(hole, np.nan, X), weights=weights)
    return dense, observe(stored, weights=weights)


@given(holey())
def test_dense_and_sparse_answer_alike(data):
    X, seen, weights = data
    for one in pair(*data):
        assert one.shape == X.shape
        assert one.n_observed == seen.sum()
        np.testing.assert_array_equal(one.to_array(), np.where(seen, X, np.nan))
        rows, columns, values = one.entries()
        np.testing.assert_array_equal((rows, columns), np.nonzero(seen))
        np.testing.assert_array_equal(values, X[seen])
        found, counted = one.observed()
        np.testing.assert_array_equal(found, X[seen])
        np.testing.assert_array_equal(
            counted, np.ones(seen.sum()) if weights is None else weights[seen]
        )
        for axis in (0, 1):
            np.testing.assert_array_equal(one.counts(axis), seen.sum(axis))
        empty_rows, empty_columns = one.empty_rows_and_columns()
        np.testing.assert_array_equal(empty_rows, np.flatnonzero(~seen.any(1)))
        np.testing.assert_array_equal(empty_columns, np.flatnonzero(~seen.any(0)))
        again = one.as_sparse()
        assert again.pattern is not None
        np.testing.assert_array_equal(again.to_array(), one.to_array())


@given(holey(), st.data())
def test_a_selection_keeps_what_it_is_asked_for(data, choice):
    X, seen, _ = data
    keep = choice.draw(hnp.arrays(bool, int(seen.sum())))
    expected = np.full(X.shape, np.nan)
    expected[tuple(index[keep] for index in np.nonzero(seen))] = X[seen][keep]
    for one in pair(*data):
        before = one.to_array()
        np.testing.assert_array_equal(one.select(keep).to_array(), expected)
        np.testing.assert_array_equal(one.to_array(), before)


@given(holey(), st.integers(0, 5), st.integers(1, 6))
def test_rows_in_compressed_form(data, first, count):
    X, seen, weights = data
    block = slice(min(first, X.shape[0] - 1), min(first + count, X.shape[0]))
    for one in pair(*data):
        indptr, columns, values, counted, _ = one.csr_rows(block)
        np.testing.assert_array_equal(np.diff(indptr), seen[block].sum(1))
        np.testing.assert_array_equal(columns, np.nonzero(seen[block])[1])
        np.testing.assert_array_equal(values, X[block][seen[block]])
        expected = np.ones(values.size) if weights is None else weights[block][seen[block]]
        np.testing.assert_array_equal(counted, expected)


@given(holey(), st.booleans())
def test_centring_takes_off_offsets_and_fills_holes_with_the_mean_without(data, centred):
    X, seen, _ = data
    rng = np.random.default_rng(0)
    rows, columns = rng.normal(size=X.shape[0]), rng.normal(size=X.shape[1])
    if centred:
        asked = np.square, (0.5, rows, columns)
        expected = np.where(seen, np.square(X) - 0.5 - rows[:, None] - columns, 0)
    else:
        asked, expected = (np.copy, (0.0, None, None)), np.where(seen, X, X[seen].mean())
    for one in pair(*data):
        matrix, constant = one.centred(*asked)
        assert not (centred and constant)
        array = matrix.toarray() if sparse.issparse(matrix) else matrix
        np.testing.assert_allclose(array + constant, expected, atol=1e-14)


@given(holey())
def test_absent_zeros_count(data):
    X, seen, _ = data
    full = np.where(seen, X, 0)
    one = observe(sparse.csr_array(full), absent_are_zeros=True)
    assert one.n_observed == one.n_stored == X.size
    assert one.pattern is None
    np.testing.assert_array_equal(one.to_array(), full)
    np.testing.assert_array_equal(one.transformed(np.cosh), np.cosh(full).ravel())
    read = one.reader()[0 : X.size]
    np.testing.assert_array_equal(read, full.ravel())
    values, weights = one.observed()
    assert np.sum(weights) == X.size
    assert np.isclose(values @ weights, full.sum())
    indptr, columns, values, *_ = one.csr_rows(slice(0, X.shape[0]))
    assert np.all(np.diff(indptr) == X.shape[1])
    np.testing.assert_array_equal(values.reshape(X.shape), full)
    np.testing.assert_array_equal(columns, np.tile(np.arange(X.shape[1]), X.shape[0]))


def test_observed_values_are_not_copied():
    dense = observe(np.ones((300, 300)))
    for one in (dense, dense.as_sparse()):
        values, weights = one.observed()
        assert np.shares_memory(values, one.values)
        assert weights.strides == (0,)  # one number, however many values


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_precision_stays(dtype):
    X = np.array([[1, np.nan], [3, 4]], dtype=dtype)
    dense = observe(X)
    for one in (dense, dense.as_sparse()):
        assert one.values.dtype == one.to_array().dtype == one.transformed(np.sqrt).dtype == dtype
