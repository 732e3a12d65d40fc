"""Indices of sparse input are checked where it enters: wrong ones would end the process."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import nmd_lab as nmd
from nmd_lab.data.inputs import observe

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
