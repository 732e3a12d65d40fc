"""Fits with the losses and nonlinearities beyond the paper, against independent optimisers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import nmd_lab as nmd

pytestmark = pytest.mark.filterwarnings("ignore::nmd_lab.NMDWarning")


def product(m, n, rank, seed, size=1.0):
    rng = np.random.default_rng(seed)
    return size * rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n)), rng


def test_logistic_pca_against_lbfgs():
    A, rng = product(40, 30, 2, 1)
    X = (rng.random(A.shape) < 1 / (1 + np.exp(-A))).astype(float)
    (m, n), rank, alpha = X.shape, 2, 0.5

    def objective(z):
        W, H = z[: m * rank].reshape(m, rank), z[m * rank :].reshape(rank, n)
        Y = W @ H
        G = 1 / (1 + np.exp(-Y)) - X
        gradient = np.concatenate([(G @ H.T + alpha * W).ravel(), (W.T @ G + alpha * H).ravel()])
        return np.sum(np.logaddexp(0, Y) - X * Y) + alpha / 2 * (z @ z), gradient

    starts = [rng.normal(size=(m + n) * rank) for _ in range(5)]
    best = min(minimize(objective, z, jac=True, method="L-BFGS-B").fun for z in starts)
    fit = nmd.decompose(X, rank, "identity", "logistic", alpha=alpha, random_state=0)
    reached = objective(np.concatenate([fit.W.values.ravel(), fit.H.values.ravel()]))[0]
    assert reached <= best * (1 + 1e-4)
    signs = nmd.decompose(2 * X - 1, rank, "identity", "logistic", alpha=alpha, random_state=0)
    # The expected values: p for 0 and 1, and 2 p - 1 for -1 and 1.
    np.testing.assert_allclose((signs.reconstruct() + 1) / 2, fit.reconstruct(), atol=1e-5)


def newton_glm(x, H, size):
    """The maximum-likelihood w of a negative binomial regression with a log link."""
    w = np.linalg.lstsq(H.T, np.log(x + 0.5), rcond=None)[0]

    def objective(w):
        e = w @ H
        return np.sum((x + size) * np.logaddexp(0, e - np.log(size)) - x * (e - np.log(size)))

    for _ in range(100):
        share = 1 / (1 + np.exp(np.log(size) - w @ H))
        gradient = H @ ((x + size) * share - x)
        step = np.linalg.solve((H * ((x + size) * share * (1 - share))) @ H.T, gradient)
        while objective(w - step) > objective(w) + 1e-12:
            step /= 2
        w = w - step
    return w


def test_negative_binomial_rows_against_a_glm():
    A, rng = product(12, 60, 2, 2, 0.7)
    size = 2.0
    X = rng.negative_binomial(size, size / (size + np.exp(A))).astype(float)
    loss = nmd.NegativeBinomial(1 / size)
    fit = nmd.decompose(X, 2, "exp", loss, random_state=0, max_iter=40)
    H, W = fit.H.values, fit.fold_in(X[:5]).values
    for x, w in zip(X[:5], W, strict=True):
        wanted = newton_glm(x, H, size)
        best, reached = (float(loss(x, np.exp(each @ H)).sum()) for each in (wanted, w))
        assert reached <= best * (1 + 1e-4)


CASES = [
    (nmd.PiecewiseLinear([0, 1], [0.1, 1, 0.5], (0, 0.2)), nmd.Huber(0.3)),
    (nmd.Wrap(6.0), nmd.Quantile(0.6)),
    (nmd.Exp(), nmd.NegativeBinomial()),
    (nmd.Identity(), nmd.Ordinal()),
    (nmd.Softplus(), nmd.SquaredLog()),
]


def suited(X, loss):
    """Data of the kind that a loss wants."""
    if loss.name == "ordinal":
        return np.digitize(X, [-1.0, 0.5]) + 1.0
    if loss.name in ("negative_binomial", "squared_log"):
        return np.round(np.abs(X) + 1)
    return X


@pytest.mark.parametrize(("f", "loss"), CASES, ids=lambda part: part.name)
def test_fits_lower_the_objective_and_survive_a_file(f, loss, tmp_path):
    A, rng = product(20, 15, 2, 3)
    X = suited(A + 0.1 * rng.normal(size=A.shape), loss)
    holes = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    for fit in (
        nmd.decompose(X, 2, f, loss, random_state=0, max_iter=30),
        nmd.complete(holes, 2, f, loss, alpha=0, offsets="none", random_state=0, max_iter=30),
    ):
        objective = fit.history["objective"].values
        assert np.all(np.isfinite(objective))
        assert objective.min() <= objective[0]
        assert np.all(np.isfinite(fit.reconstruct().values))
        fit.save(tmp_path / "fit.nc")
        again = nmd.load(tmp_path / "fit.nc")
        assert (again.nonlinearity, again.loss) == (fit.nonlinearity, fit.loss)
        np.testing.assert_array_equal(again.reconstruct(), fit.reconstruct())
        assert np.all(np.isfinite(fit.fold_in(X[:2]).values))
