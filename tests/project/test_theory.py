"""Formulas of docs/theory.md against independent computations."""

import numpy as np
import pytest
from scipy import stats

import nmd_lab as nmd

BETA = 1.7
"""Precision of the noise."""

LIKELIHOODS = {
    "frobenius": lambda x, y: stats.norm.logpdf(x, y, BETA**-0.5),
    "l1": lambda x, y: stats.laplace.logpdf(x, y, 1 / BETA),
    "itakura_saito": lambda x, y: stats.gamma.logpdf(x, BETA, scale=y / BETA),
    "squared_log": lambda x, y: stats.lognorm.logpdf(x, BETA**-0.5, scale=y),
    "kl": lambda x, y: stats.poisson.logpmf(x, y),
    "logistic": lambda x, y: stats.bernoulli.logpmf(x, 1 / (1 + np.exp(-y))),
}


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_a_loss_is_a_negative_log_likelihood_up_to_a_constant(name):
    x = np.array([0.0, 1.0]) if name == "logistic" else np.array([1.0, 2.0, 7.0])
    y, other = np.array([0.4, 2.5, 6.0])[:, None], 1.3
    loss = nmd_loss(name)
    beta = 1.0 if name in ("kl", "logistic") else BETA
    wanted = LIKELIHOODS[name](x, other) - LIKELIHOODS[name](x, y)
    np.testing.assert_allclose(beta * (loss(x, y) - loss(x, other)), wanted, rtol=1e-9)


def nmd_loss(name):
    """Return the loss of a name."""
    classes = {"l1": "L1", "kl": "KL", "itakura_saito": "ItakuraSaito", "squared_log": "SquaredLog"}
    return getattr(nmd.losses, classes.get(name, name.capitalize()))()


def test_the_ridge_of_both_factors_is_the_nuclear_norm_of_their_product():
    """The convex problem is solved by thresholds of singular values."""
    rng = np.random.default_rng(0)
    X, alpha = rng.normal(size=(30, 4)) @ rng.normal(size=(4, 20)), 5.0
    left, values, right = np.linalg.svd(X, full_matrices=False)
    values = np.maximum(values - alpha, 0)
    fit = nmd.decompose(X, 6, "identity", alpha=alpha, max_iter=3000, tol=1e-12, random_state=0)
    np.testing.assert_allclose(fit.reconstruct(), (left * values) @ right, atol=1e-4)
    wanted = 0.5 * np.sum(((left * values) @ right - X) ** 2) + alpha * values.sum()
    assert fit.objective == pytest.approx(wanted, rel=1e-8)
