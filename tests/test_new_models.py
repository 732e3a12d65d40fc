"""Fits with the losses and nonlinearities beyond the paper, against independent optimisers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import norm

import nmd_lab as nmd

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning"),
]


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
    loss = nmd.losses.NegativeBinomial(1 / size)
    fit = nmd.decompose(X, 2, "exp", loss, random_state=0, max_iter=40)
    H, W = fit.H.values, fit.fold_in(X[:5]).values
    for x, w in zip(X[:5], W, strict=True):
        wanted = newton_glm(x, H, size)
        best, reached = (float(loss(x, np.exp(each @ H)).sum()) for each in (wanted, w))
        assert reached <= best * (1 + 1e-4)


CASES = [
    (nmd.nonlinearities.PiecewiseLinear([0, 1], [0.1, 1, 0.5], (0, 0.2)), nmd.losses.Huber(0.3)),
    (nmd.nonlinearities.Wrap(6.0), nmd.losses.Quantile(0.6)),
    (nmd.nonlinearities.Exp(), nmd.losses.NegativeBinomial()),
    (nmd.Identity(), nmd.losses.Ordinal()),
    (nmd.nonlinearities.Softplus(), nmd.losses.SquaredLog()),
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


def test_ordinal_levels_against_lbfgs():
    A, rng = product(30, 25, 2, 3)
    X = np.digitize(A + rng.normal(size=A.shape), [-1.5, -0.5, 0.5, 1.5]).astype(float)
    (m, n), rank, alpha = X.shape, 2, 1.0
    level = X.astype(int)

    def objective(z):
        W, H = z[: m * rank].reshape(m, rank), z[m * rank : (m + n) * rank].reshape(rank, n)
        rest = z[(m + n) * rank :]
        cuts = np.cumsum([rest[0], *np.exp(rest[1:])])
        ends = np.concatenate([[-np.inf], cuts, [np.inf]])
        Y = W @ H
        P = norm.cdf(ends[level + 1] - Y) - norm.cdf(ends[level] - Y)
        P = np.maximum(P, 1e-300)
        high, low = (norm.pdf(ends[k] - Y) / P for k in (level + 1, level))
        G = high - low
        of_cuts = np.array([low[level == k + 1].sum() - high[level == k].sum() for k in range(4)])
        tail = np.cumsum(of_cuts[::-1])[::-1]
        of_rest = tail * np.concatenate([[1.0], np.exp(rest[1:])])
        gradient = [(G @ H.T + alpha * W).ravel(), (W.T @ G + alpha * H).ravel(), of_rest]
        value = -np.log(P).sum() + alpha / 2 * (np.sum(W * W) + np.sum(H * H))
        return value, np.concatenate(gradient)

    starts = [np.append(rng.normal(size=(m + n) * rank), [-1.0, 0, 0, 0]) for _ in range(4)]
    options = {"maxiter": 3000, "maxfun": 6000}
    found = [minimize(objective, z, jac=True, method="L-BFGS-B", options=options) for z in starts]
    best = min(each.fun for each in found)
    fit = nmd.decompose(X, rank, "identity", "ordinal", alpha=alpha, random_state=0)
    W, H, cuts = fit.W.values, fit.H.values, np.array(fit.loss.cut_points)
    rest = np.append(cuts[0], np.log(np.diff(cuts)))
    reached, gradient = objective(np.concatenate([W.ravel(), H.ravel(), rest]))
    assert reached == pytest.approx(fit.objective, rel=1e-8)
    assert reached <= best * (1 + 1e-4)
    assert np.linalg.norm(gradient) < 1e-2 * reached


@pytest.mark.parametrize("options", [{"alpha": 0.5, "max_iter": 5}, {"alpha": "auto"}])
def test_a_short_fit_learns_the_dispersion(options):
    rng = np.random.default_rng(0)
    mean = np.exp(1 + 0.5 * rng.normal(size=(60, 2)) @ rng.normal(size=(2, 50)))
    X = rng.negative_binomial(2, 1 / (1 + 0.5 * mean)).astype(float)
    loss = nmd.losses.NegativeBinomial()
    fit = nmd.decompose(X, 3, "exp", loss, random_state=0, **options)
    assert 0.2 < fit.loss.dispersion < 1.1  # the truth is 0.5; the start is above 5

    def likelihood(dispersion):
        return np.sum(
            nmd.losses.NegativeBinomial(dispersion)(X, np.exp(fit.W.values @ fit.H.values))
        )

    best = minimize_scalar(likelihood, bounds=(0.01, 5), method="bounded")
    assert likelihood(fit.loss.dispersion) <= best.fun * (1 + 1e-4)
    ridge = 0.5 * fit.parameters["alpha"] * (np.sum(fit.W.values**2) + np.sum(fit.H.values**2))
    assert fit.objective == pytest.approx(likelihood(fit.loss.dispersion) + ridge, rel=1e-6)


def test_where_parts_of_columns_do_not_go_is_said():
    table = pd.DataFrame({"a": np.arange(8.0), "b": pd.Categorical(list("xyxyxyxy"))})
    with pytest.raises(TypeError, match=r"categories in column 'b'.*use fit"):
        nmd.MatrixCompletion(1).partial_fit(table)
