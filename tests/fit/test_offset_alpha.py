"""The ridge of the offsets: a number of its own in the objective, whatever solves it."""

import numpy as np
import pytest

import nmd_lab as nmd


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
    m, n = X.shape
    rows, columns = np.nonzero(seen)
    design = np.zeros((rows.size, m + n))
    if kind in ("rows", "both"):
        design[np.arange(rows.size), rows] = 1
    if kind in ("columns", "both"):
        design[np.arange(rows.size), m + columns] = 1
    normal = design.T @ design + offset_alpha * np.eye(m + n)
    best = np.linalg.lstsq(normal, design.T @ (X[seen] - mean), rcond=None)[0]
    return mean + best[:m, None] + best[m:]


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
