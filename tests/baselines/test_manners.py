"""The completion baselines behave alike: input, sparsity, seeds, ends of a run, errors."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import nmd_lab
from nmd_lab.baselines import bmf, lmafit, rtrmc, soft_impute, wlra

LINEAR = [lmafit, wlra, rtrmc]
COMPLETIONS = [*LINEAR, soft_impute, bmf]


@pytest.fixture
def noisy(rng):
    """A 40 x 30 matrix near rank 3, and which 60 % of it are seen."""
    X = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 30))
    return X + 0.3 * rng.normal(size=X.shape), rng.random(X.shape) < 0.6


@pytest.mark.parametrize("method", COMPLETIONS)
def test_mask_nan_and_sparse_input_are_one_problem(method, noisy):
    X, seen = noisy
    rows, columns = np.nonzero(seen)
    inputs = [
        (np.where(seen, X, 1e9), seen),
        (np.where(seen, X, np.nan), None),
        (np.ma.masked_array(X, ~seen), None),
        (sparse.coo_array((X[seen], (rows, columns)), shape=X.shape), None),
    ]
    pair = np.ones((40, 3)) / 3, np.full((3, 30), X[seen].mean())
    pair[1][...] += np.linspace(-0.1, 0.1, 90).reshape(3, 30)
    fits = [method(data, 3, observed=mask, init=pair, max_iter=3, tol=0) for data, mask in inputs]
    for other in fits[1:]:
        np.testing.assert_array_equal(other.W, fits[0].W)
        np.testing.assert_array_equal(other.H, fits[0].H)


@pytest.mark.parametrize("method", COMPLETIONS)
def test_sparse_data_stay_sparse(method, rng):
    def problem(m, n, count):
        places = rng.choice(m * n, count, replace=False)
        entries = (rng.random(count), np.divmod(places, n))
        return sparse.coo_array(entries, shape=(m, n)).tocsr()

    method(problem(20, 10, 90), 2, max_iter=1, random_state=0)  # compiles
    X = problem(4000, 3000, 20000)
    before = X.copy()
    tracemalloc.start()
    try:
        method(X, 2, max_iter=2, tol=0, random_state=0, init="random")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4000 * 3000 * 8 / 5
    assert (before != X).nnz == 0


@pytest.mark.parametrize("method", COMPLETIONS)
def test_a_seed_repeats(method, noisy):
    X, seen = noisy
    fits = [method(X, 3, observed=seen, init="random", max_iter=4, random_state=seed)
            for seed in (5, 5, 6)]  # fmt: skip
    np.testing.assert_array_equal(fits[0].W, fits[1].W)
    np.testing.assert_array_equal(fits[0].H, fits[1].H)
    assert not np.array_equal(fits[0].H, fits[2].H)


@pytest.mark.parametrize("method", COMPLETIONS)
def test_where_nothing_is_observed(method, noisy):
    X, seen = noisy
    X = X + 20  # so that 0 is out of bounds
    seen[4], seen[:, 7] = False, False
    model = method(X, 3, observed=seen, max_iter=5, random_state=0).reconstruct().values
    if method is bmf:
        assert X[seen].min() - 1e-9 <= model.min() <= model.max() <= X[seen].max() + 1e-9
    else:
        np.testing.assert_array_equal(model[4], 0)
        np.testing.assert_array_equal(model[:, 7], 0)


@pytest.mark.parametrize("method", COMPLETIONS)
def test_rank_may_be_full_and_data_zero(method):
    for X in (np.zeros((5, 4)), np.eye(5, 4)):
        fit = method(X, 4, max_iter=20, random_state=0, init="random")
        assert np.all(np.isfinite(fit.reconstruct()))


@pytest.mark.parametrize("method", [*LINEAR, soft_impute])
def test_a_nonlinearity_is_put_on_the_finished_prediction(method, noisy):
    X, seen = noisy
    linear, clipped = (
        method(X, 3, observed=seen, nonlinearity=f, max_iter=6, tol=0)
        for f in ("identity", nmd_lab.MinMax(-1, 1))
    )
    np.testing.assert_array_equal(clipped.history.iteration, linear.history.iteration)
    if clipped.parameters["iteration"] == linear.parameters["iteration"]:
        np.testing.assert_array_equal(clipped.W, linear.W)
    model = clipped.reconstruct().values
    assert (model.min(), model.max()) == (-1, 1)
    error = np.linalg.norm((X - model)[seen]) / np.linalg.norm(X[seen])
    assert clipped.relative_error == pytest.approx(error)


@pytest.mark.parametrize("method", COMPLETIONS)
def test_a_run_can_be_followed_and_ended(method, noisy):
    X, seen = noisy
    fit = method(X, 3, observed=seen, tol=0, random_state=0, callback=lambda at: at.iteration == 2)
    assert fit.stop_reason == "callback: stopped after 2 iterations"
    assert fit.n_iter == 2
    fit = method(X, 3, observed=seen, tol=0, random_state=0, time_limit=0)
    assert fit.stop_reason == "time_limit: 0 s passed"
    assert method(X, 3, observed=seen, tol=0.1, random_state=0).stop_reason.code == "converged"


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        (lmafit, {"increment": -1}, "increment=-1 is out of range: give a finite number >= 0"),
        (lmafit, {"init": "zeros"}, "init='zeros' is unknown: choose one of"),
        (lmafit, {"nonlinearity": "swish"}, "nonlinearity='swish' is unknown"),
        (wlra, {"alpha": np.inf}, "alpha=inf is out of range"),
        (wlra, {"weights": -np.ones((3, 3))}, "weights holds a negative"),
        (rtrmc, {"regularization": 0}, "regularization=0 is out of range: .* from 1e-08 to 0.1"),
        (rtrmc, {"max_inner": 0}, "max_inner=0 is out of range"),
        (soft_impute, {"shrinkage": np.nan}, "shrinkage=nan is out of range"),
        (bmf, {"low": 2, "high": 1}, "low=2 is above high=1: swap the bounds"),
        (bmf, {"high": np.inf}, r"high=inf is out of range: give a finite number\."),
        (bmf, {"init": "svd"}, "init='svd' is unknown: choose one of .'random'., a pair"),
        (bmf, {"init": (np.ones((3, 1)), np.full((1, 3), 9))}, r"init has the product 9 outside"),
        (bmf, {"max_iter": 0}, "max_iter=0 is too small"),
    ],
)
def test_what_makes_no_sense(method, options, message):
    with pytest.raises(ValueError, match=message):
        method(np.eye(3), 1, **options)


def test_an_option_must_be_a_number():
    with pytest.raises(TypeError, match="shrinkage='much' is not a number: give one >= 0"):
        soft_impute(np.eye(3), 1, shrinkage="much")


def test_rtrmc_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pymanopt", None)
    with pytest.raises(ImportError, match=r'rtrmc needs Pymanopt: pip install "nmd-lab\[base'):
        rtrmc(np.eye(3), 1)
