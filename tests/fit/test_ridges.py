"""Ridges: the start by a path of them, against one fit for each, and that of the offsets."""

import bisect

import numpy as np
import pytest
from helpers import PLAIN
from scipy import sparse
from sklearn.linear_model import Ridge

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


def ratings(shape=(18, 14), share=0.6, seed=0):
    """Return a table of sums, products and noise, and what is observed of it."""
    (m, n), rng = shape, np.random.default_rng(seed)
    X = 3 + rng.normal(size=m)[:, None] + rng.normal(size=n)
    X = X + rng.normal(size=(m, 2)) @ rng.normal(size=(2, n)) + 0.1 * rng.normal(size=shape)
    seen = rng.random(shape) < share
    seen[0] = seen[:, 0] = True
    return X, seen


def offsets_by_hand(X, seen, mean, offset_alpha, kind="both"):
    """Return the ridge regression of the observed entries on dummies of rows and columns."""
    rows, columns = np.nonzero(seen)
    of_rows, of_columns = (
        np.eye(size)[at] for size, at in zip(X.shape, (rows, columns), strict=True)
    )
    design = np.hstack([of_rows * (kind != "columns"), of_columns * (kind != "rows")])
    best = Ridge(offset_alpha, fit_intercept=False).fit(design, X[seen] - mean).coef_
    return mean + best[: len(X), None] + best[len(X) :]


# What minimises it --------------------------------------------------------------------------------


@pytest.mark.parametrize("split", ["everywhere", "observed"])
@pytest.mark.parametrize("kind", ["rows", "columns", "both"])
def test_offsets_alone_are_ridge_regression(kind, split):
    X, seen = ratings()
    nothing = np.zeros((18, 1)), np.zeros((1, 14))
    options = {"observed": seen, "offsets": kind, "alpha": 100.0, "offset_alpha": 2.5}
    options |= {"init": nothing, "max_iter": 600, "tol": 0}
    options |= {"solver": nmd.ADMM(rho=1.0, split=split)}
    fit = nmd.complete(X, 1, **options)
    np.testing.assert_allclose(fit._factors[0] @ fit._factors[1], 0, atol=1e-12)
    expected = offsets_by_hand(X, seen, X[seen].mean(), 2.5, kind)
    np.testing.assert_allclose(fit.reconstruct(), expected, atol=1e-8)


# New rows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("alpha", "offset_alpha"), [(0.5, 6.0), (6.0, 0.0), (0.0, 6.0)])
def test_new_rows_have_the_ridge_of_the_offsets(alpha, offset_alpha):
    """Weighted least squares; any H will do."""
    X, seen = ratings()
    options = {"offsets": "both", "alpha": alpha, "offset_alpha": offset_alpha, "max_iter": 20}
    fit = nmd.complete(X, 2, observed=seen, random_state=0, **options)
    new, known = ratings(seed=1)
    weights = np.random.default_rng(2).uniform(0.5, 2, new.shape)
    found = fit.fold_in(new, observed=known, weights=weights)
    regressors = np.vstack([np.ones(14), fit._factors[1]])
    ridge = np.diag([offset_alpha, alpha, alpha])
    for i in range(18):
        D, v = regressors[:, known[i]], weights[i, known[i]]
        target = (new[i] - fit.offsets.mean - fit.offsets.columns)[known[i]]
        expected = np.linalg.solve(D * v @ D.T + ridge, D @ (v * target))
        np.testing.assert_allclose(found.values[i], expected[1:], atol=1e-5)
        assert float(found["offset"][i]) == pytest.approx(expected[0], abs=1e-5)
