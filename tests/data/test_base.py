"""The interface of observations: dense and sparse ones of equal data give equal answers.

Indices of sparse input are checked where it enters: wrong ones would end the process.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

import nmd_lab as nmd
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


M, N = 12, 9


def good(layout: str = "csr") -> sparse.sparray:
    rng = np.random.default_rng(0)
    return sparse.random_array((M, N), density=0.5, rng=rng).asformat(layout)


def spoiled(layout: str, array: str, position: int, value: Any) -> sparse.sparray:
    X = good(layout)
    getattr(X, array)[position] = value
    return X


def altered(layout: str, array: str, change: Callable[[Any], Any]) -> sparse.sparray:
    X = good(layout)
    setattr(X, array, change(getattr(X, array)))
    return X


def damage() -> dict[str, sparse.sparray]:
    """Return one damaged matrix of each kind."""
    made = {
        f"{layout} {array} {value}": spoiled(layout, array, -1, value)
        for layout, array in [*((each, "indices") for each in ("csr", "csc", "bsr")),
                              ("coo", "row"), ("coo", "col")]
        for value in (-1, max(M, N), 2_000_000_000)
    }  # fmt: skip
    for layout in ("csr", "csc", "bsr"):
        made[f"{layout} falling indptr"] = spoiled(layout, "indptr", 3, 0)
        made[f"{layout} negative indptr"] = spoiled(layout, "indptr", 2, -5)
        made[f"{layout} indptr beyond"] = spoiled(layout, "indptr", -1, 10**6)
        made[f"{layout} indptr from 1"] = spoiled(layout, "indptr", 0, 1)
        made[f"{layout} short indptr"] = altered(layout, "indptr", lambda ends: ends[:-2])
        made[f"{layout} few values"] = altered(layout, "data", lambda values: values[:3])
        made[f"{layout} fractions"] = altered(layout, "indices", lambda each: each + 0.5)
    made["csr int64"] = altered("csr", "indices", lambda each: each.astype(np.int64) + 2**40)
    made["lil beyond"] = spoiled("lil", "rows", 3, [1, 2, 3, 4, 5, 50])
    made["lil uneven"] = spoiled("lil", "rows", 3, [0, 1, 2])
    return made


DAMAGE = damage()


def raises(name="X"):
    return pytest.raises(
        ValueError, match=rf"^{name} (stores an entry at|has|is) .*build it anew|^{name} has .*give"
    )


@pytest.mark.parametrize("case", DAMAGE)
def test_wrong_indices_are_refused(case):
    for absent_are_zeros in (True, False):
        with raises():
            observe(DAMAGE[case], absent_are_zeros=absent_are_zeros)


FIT = {"alpha": 0, "max_iter": 2}
WAYS = {
    "decompose": lambda X: nmd.decompose(X, 2, "identity", max_iter=2),
    "complete": lambda X: nmd.complete(X, 2, init="random", **FIT),
    "split_observed": lambda X: nmd.split_observed(X, 0.2, 0),
    "study": lambda X: nmd.Study(X, rank=2),
    "completion": lambda X: nmd.MatrixCompletion(2).fit(X),
    "estimator": lambda X: nmd.NMD(2, nonlinearity="identity").fit(X),
    "fold_in": lambda X: nmd.complete(good(), 2, **FIT).fold_in(X),
    "baseline": lambda X: nmd.baselines.soft_impute(X, 2, max_iter=2),
    "validation": lambda X: nmd.complete(good(), 2, validation=X, **FIT),
    "observed": lambda X: nmd.complete(good(), 2, observed=X, **FIT),
    "weights": lambda X: nmd.complete(good(), 2, weights=X, **FIT),
    "exclude": lambda X: nmd.complete(good(), 2, **FIT).top(0, exclude=X),
}


@pytest.mark.parametrize("way", WAYS)
def test_they_are_refused_wherever_data_enter(way):
    with raises(way if way in ("validation", "observed", "weights", "exclude") else "X"):
        WAYS[way](DAMAGE["csr indices 2000000000"])


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("indices", np.array([0, 99])), ("indices", np.array([0, -1])), ("indices", np.array([0])),
        ("indptr", np.array([0, 1])), ("indptr", np.array([0, 2, 1])), ("weights", np.ones(3)),
    ],
)  # fmt: skip
def test_our_own_sparse_type_is_checked(name, array):
    X = observe(sparse.csr_array(np.eye(2))).as_sparse()
    with raises("SparseObservations"):
        replace(X, **{name: array})
    changed = observe(sparse.csr_array(np.eye(2))).as_sparse()
    changed.indices[1] = 77
    with raises():
        nmd.complete(changed, 1)


def test_order_is_found_in_the_arrays_themselves():
    X = sparse.csr_array(np.arange(1.0, 7).reshape(2, 3))
    assert X.has_sorted_indices
    X.indices[:3], X.data[:3] = [2, 0, 1], [3.0, 1.0, 2.0]
    np.testing.assert_array_equal(observe(X).to_array(), np.arange(1.0, 7).reshape(2, 3))
    assert X.indices[:3].tolist() == [2, 0, 1]
