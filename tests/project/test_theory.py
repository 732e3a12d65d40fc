"""Formulas of docs/theory.md against independent computations."""

import numpy as np
import pytest
from scipy import stats

import nmd_lab as nmd

BETA = 1.7
"""Precision of the noise."""

LIKELIHOODS = [
    (nmd.losses.ItakuraSaito(), lambda x, y: stats.gamma.logpdf(x, BETA, scale=y / BETA)),
    (nmd.losses.SquaredLog(), lambda x, y: stats.lognorm.logpdf(x, BETA**-0.5, scale=y)),
]
"""Those of other losses are in tests/model/test_likelihoods.py."""


@pytest.mark.parametrize(("loss", "log_density"), LIKELIHOODS)
def test_a_loss_is_a_negative_log_likelihood_up_to_a_constant(loss, log_density):
    x, y, other = np.array([1.0, 2.0, 7.0]), np.array([0.4, 2.5, 6.0])[:, None], 1.3
    wanted = log_density(x, other) - log_density(x, y)
    np.testing.assert_allclose(BETA * (loss(x, y) - loss(x, other)), wanted, rtol=1e-9)


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
