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


@given(holey(), st.data())
def test_dense_and_sparse_answer_alike(data, choice):
    X, seen, weights = data
    keep = choice.draw(hnp.arrays(bool, int(seen.sum())))
    block = slice(choice.draw(st.integers(0, X.shape[0] - 1)), X.shape[0])
    weights = seen * 1.0 if weights is None else weights
    some = np.full(X.shape, np.nan)
    some[tuple(index[keep] for index in np.nonzero(seen))] = X[seen][keep]
    for one in pair(*data):
        assert one.n_observed == seen.sum()
        np.testing.assert_array_equal(one.select(keep).to_array(), some)
        np.testing.assert_array_equal(one.to_array(), np.where(seen, X, np.nan))
        np.testing.assert_array_equal(one.entries()[:2], np.nonzero(seen))
        np.testing.assert_array_equal(one.observed(), (X[seen], weights[seen]))
        for axis, empty in enumerate(one.empty_rows_and_columns()[::-1]):
            np.testing.assert_array_equal(one.counts(axis), seen.sum(axis))
            np.testing.assert_array_equal(empty, np.flatnonzero(~seen.any(axis)))
        rows = one.csr_rows(block)
        np.testing.assert_array_equal(np.diff(rows.indptr), seen[block].sum(1))
        np.testing.assert_array_equal(rows.indices, np.nonzero(seen[block])[1])
        np.testing.assert_array_equal(rows.values, X[block][seen[block]])
        np.testing.assert_array_equal(rows.observed()[1], weights[block][seen[block]])
        again = one.as_sparse()
        assert again.pattern is not None
        np.testing.assert_array_equal(again.to_array(), one.to_array())


@given(holey())
def test_absent_zeros_count(data):
    X, seen, _ = data
    full = np.where(seen, X, 0)
    one = observe(sparse.csr_array(full), absent_are_zeros=True)
    assert one.n_observed == one.n_stored == X.size
    assert one.pattern is None
    np.testing.assert_array_equal(one.to_array(), full)
    np.testing.assert_array_equal(one.transformed(np.cosh), np.cosh(full).ravel())
    np.testing.assert_array_equal(one.reader()[0 : X.size], full.ravel())
    values, weights = one.observed()
    assert np.sum(weights) == X.size
    assert np.isclose(values @ weights, full.sum())
    rows = one.csr_rows(slice(0, X.shape[0]))
    assert np.all(np.diff(rows.indptr) == X.shape[1])
    np.testing.assert_array_equal(rows.values.reshape(X.shape), full)
    np.testing.assert_array_equal(rows.indices, np.tile(np.arange(X.shape[1]), X.shape[0]))


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
