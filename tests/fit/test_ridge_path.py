"""The start by a path of ridges: against Algorithm 1 called once for each ridge."""

import bisect

import numpy as np
import pytest
from given import PLAIN
from scipy import sparse

import nmd_lab as nmd
from nmd_lab.fit.starts import MAX_RIDGE_RATIO, N_RIDGE_ITERATIONS


def data():
    rng = np.random.default_rng(0)
    X = np.maximum(rng.normal(size=(40, 3)) @ rng.normal(size=(3, 30)), 0)
    return np.where(rng.random(X.shape) < 0.7, X + 0.1 * rng.normal(size=X.shape), np.nan)


def test_it_is_algorithm_1_with_one_ridge_after_the_other():
    X, alpha, nonlinearity = data(), 0.7, "identity"
    given = {"solver": PLAIN, "tol": 0, "random_state": 0}
    given |= {"offsets": "columns", "offset_alpha": 1.0}
    path = nmd.complete(X, 5, nonlinearity, alpha=alpha, init="path", max_iter=4, **given)

    def removes_all(ridge):
        fit = nmd.complete(X, 5, nonlinearity, alpha=ridge, max_iter=400, **given)
        return np.linalg.norm(fit.W) * np.linalg.norm(fit.H) < 1e-6

    candidates = np.geomspace(0.1, 100, 200)
    first = candidates[bisect.bisect_left(candidates, True, key=removes_all) - 1]
    count = int(np.ceil(np.log(first / alpha) / np.log(MAX_RIDGE_RATIO)))
    ridges = alpha * (first / alpha) ** (1 - np.arange(count) / count)
    init, most = "auto", N_RIDGE_ITERATIONS
    for ridge in ridges:
        init = nmd.complete(X, 5, nonlinearity, alpha=ridge, init=init, max_iter=most, **given)
    last = nmd.complete(X, 5, nonlinearity, alpha=alpha, init=init, max_iter=4, **given)
    one, other = (each.reconstruct().values for each in (path, last))
    assert np.abs(one - other).max() < 0.02 * np.abs(one).max()


def test_sparse_zeros_have_the_path_of_a_dense_matrix():
    X = sparse.random_array((60, 50), density=0.1, random_state=0, format="csr")
    options = {"alpha": 0.1, "init": "path", "max_iter": 30, "tol": 0, "random_state": 0}
    one, other = (nmd.decompose(each, 3, "relu", **options) for each in (X, X.toarray()))
    assert one.objective <= 1.02 * other.objective


def test_multiples_of_the_weights_and_the_ridge_change_nothing():
    weights = np.random.default_rng(2).uniform(0.5, 2, size=(40, 30))
    one, other = (
        nmd.complete(
            data(), 4, "identity", alpha=c, weights=c * weights, init="path", max_iter=3, tol=0
        )
        for c in (1.0, 1024.0)
    )
    np.testing.assert_allclose(other.reconstruct(), one.reconstruct(), rtol=1e-6, atol=1e-6)


def test_multiples_of_the_weights_leave_the_residuals():
    weights, seen = np.random.default_rng(2).uniform(0.5, 2, size=(40, 30)), {}
    options = {"alpha": 0, "solver": nmd.ADMM(refine=False), "tol": 0, "max_iter": 10}
    for c in (1.0, 2.0**30, 2.0**-30):
        options |= {"weights": c * weights, "callback": seen.setdefault(c, []).append}
        nmd.complete(data(), 4, "relu", random_state=0, **options)
    one, *others = ([each.relative_residual for each in states] for states in seen.values())
    assert all(other == pytest.approx(one, rel=1e-9) for other in others)
