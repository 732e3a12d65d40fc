"""New rows of a fit to sparse zeros: as low as a general minimiser, and each by itself."""

import numpy as np
import pytest
from helpers import some
from scipy import sparse
from scipy.optimize import minimize

import nmd_lab as nmd
from nmd_lab.model.model import make_model

PAIRS = [
    ("relu", "frobenius"),
    ("relu", "kl"),
    (nmd.MinMax(0, 2), "frobenius"),
    ("modulus", "kl"),
    ("square", "frobenius"),
    ("identity", "frobenius"),
]


def data(m=70, n=50, rank=4, seed=0):
    """Return documents, of which most entries are 0, with one of every row and column."""
    rng = np.random.default_rng(seed)
    X = np.maximum(rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n)) - 1.5, 0)
    X[np.arange(m), np.arange(m) % n] += 1
    X[-1] = 0  # an empty document
    return np.minimum(X, 2)


def fit_to(X, f, loss, alpha=0.0):
    return nmd.decompose(sparse.csr_array(X), 4, f, loss, alpha=alpha, random_state=0, max_iter=60)


def objective(fit, f, loss, alpha, x):
    """Return the objective of a row, with the floor of the loss on f."""
    pair, H = make_model(f, loss), fit.H.values

    def value(w):
        y = np.asarray(pair.nonlinearity(w @ H))
        return float(pair.loss(x, y).sum() + alpha / 2 * w @ w)

    return value


@pytest.mark.parametrize("alpha", some([0.5, 0.0], 1))
@pytest.mark.parametrize(("f", "loss"), some(PAIRS, 2), ids=str)
def test_rows_are_as_low_as_other_minimisers(f, loss, alpha, monkeypatch):
    """On average: a row may end in another minimum, which depends on the last digits of H."""
    X = data(m=221)[:220]
    fit, new = fit_to(X[:60], f, loss, alpha), sparse.csr_array(X[60:])
    W = fit.fold_in(new).values
    monkeypatch.setattr("nmd_lab.fit.new_rows.can_descend", lambda model: False)
    other = fit.fold_in(new).values
    rng, ours, admm, powell = np.random.default_rng(1), [], [], []
    for w, v, x in zip(W, other, X[60:], strict=True):
        value = objective(fit, f, loss, alpha, x)
        ours.append(value(w))
        admm.append(value(v))
        if len(powell) < 20:
            starts = rng.normal(size=(4, 4))
            powell.append(min(minimize(value, start, method="Powell").fun for start in starts))
        near = [value(w + step) for step in 1e-5 * np.abs(w).mean() * rng.normal(size=(50, 4))]
        assert ours[-1] <= min(near) * (1 + 1e-3) + 1e-9
    assert np.mean(ours) <= 1.02 * np.mean(admm)
    assert np.median(np.array(ours) - admm) <= 1e-3 * np.median(admm)
    assert np.mean(ours[:20]) <= 1.3 * np.mean(powell)


@pytest.mark.parametrize(("f", "loss"), some(PAIRS, 2), ids=str)
def test_a_row_does_not_depend_on_the_others(f, loss, monkeypatch):
    X = data()
    fit = fit_to(X[:60], f, loss)
    new = sparse.csr_array(X[60:])
    W = fit.fold_in(new).values
    for i in (0, 4, 9):
        np.testing.assert_allclose(fit.fold_in(new[i : i + 1]).values, W[i : i + 1], atol=1e-6)
    monkeypatch.setattr("nmd_lab.data.observations.BLOCK", 120)
    np.testing.assert_allclose(fit.fold_in(new).values, W, atol=1e-6)


def test_columns_may_come_in_any_order_and_rows_as_a_dense_array():
    X = data()
    names = [f"term {j}" for j in range(50)]
    named = nmd.observations_from_sparse(sparse.csr_array(X[:60]), np.arange(60), names)
    fit = nmd.decompose(named, 4, random_state=0, max_iter=60)
    W = fit.fold_in(sparse.csr_array(X[60:])).values
    order = np.random.default_rng(2).permutation(50)
    shuffled = nmd.observations_from_sparse(
        sparse.csr_array(X[60:][:, order]), np.arange(10), [names[j] for j in order]
    )
    np.testing.assert_allclose(fit.fold_in(shuffled).values, W, atol=1e-6)
    np.testing.assert_array_equal(fit.fold_in(X[60:]).values, W)
    assert fit.fold_in(sparse.csr_array(X[60:])).shape == (10, 4)
