"""Each draw for groups of rows against its law, given all that it depends on."""

import numpy as np
import pytest
from densities import SIGNIFICANT, assert_standard_normal, assert_wishart
from scipy import stats
from scipy.special import logsumexp

from nmd_lab.sampler import priors as module
from nmd_lab.sampler.priors import FREEDOM, Groups, RowPrior, draw_group_priors, draw_used_priors

D, NUMBER, DRAWS = 2, 3, 1200
LABELS = np.array([0, 0, 0, 0, 0, 1, 1, 1])
"""Nobody is in the last group."""

SCALE, STRENGTH, NU = np.array([[1.5, 0.4], [0.4, 0.7]]), 0.6, 7.0


def rows_of_groups():
    """Return rows in units of the prior."""
    rng = np.random.default_rng(3)
    return rng.normal(size=(LABELS.size, D)) * [1.2, 0.8] + np.where(LABELS[:, None], [1, -1], 0)


@pytest.fixture(scope="module")
def drawn():
    """Return many draws of the priors of the groups, S and κ given rows, labels, S, κ and ν."""
    rng, found = np.random.default_rng(0), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FREEDOM", np.array([NU - D]))
        for _ in range(DRAWS):
            groups = Groups(LABELS.copy(), SCALE.copy(), STRENGTH)
            prior = draw_group_priors(groups, NUMBER, rows_of_groups(), rng)
            drawn = prior.shares, prior.mean, prior.precision
            found.append((*drawn, groups.scale, groups.strength))
    return [np.array(each) for each in zip(*found, strict=True)]


def normal_wishart(c):
    """Return mean, strength, inverse scale and degrees of freedom of group c, by the textbook."""
    rows = rows_of_groups()[c == LABELS]
    n = len(rows)
    mean, inverse_scale = np.zeros(D), NU * SCALE
    if n:
        mean = rows.sum(axis=0) / (STRENGTH + n)
        inverse_scale = inverse_scale + rows.T @ rows - (STRENGTH + n) * np.outer(mean, mean)
    return mean, STRENGTH + n, inverse_scale, NU + n


def test_shares_have_the_dirichlet_law(drawn):
    shares, *_ = drawn
    weights = 1 / NUMBER + np.bincount(LABELS, minlength=NUMBER)
    for share, a in zip(shares.T, weights, strict=True):
        law = stats.beta(a, weights.sum() - a)
        assert stats.kstest(share, law.cdf).pvalue > SIGNIFICANT
    np.testing.assert_allclose(shares.sum(axis=1), 1)


@pytest.fixture(scope="module")
def drawn_between(drawn):
    """Return many draws of means and precisions between two draws of labels."""
    rng, rows, found = np.random.default_rng(2), rows_of_groups(), []
    groups = Groups(LABELS.copy(), SCALE.copy(), STRENGTH, NU)
    before = RowPrior(np.ones((NUMBER, D)), np.tile(np.eye(D), (NUMBER, 1, 1)), np.ones(NUMBER))
    for _ in range(DRAWS):
        prior = draw_used_priors(groups, before, rows, rng)
        for now, each in zip(prior[:3], before[:3], strict=True):
            np.testing.assert_array_equal(now[2], each[2])  # it has no rows
        found.append((prior.mean, prior.precision))
    return [np.array(each) for each in zip(*found, strict=True)]


@pytest.mark.parametrize("c", [0, 1])
@pytest.mark.parametrize("between", [False, True])
def test_mean_and_precision_of_a_group_have_the_normal_wishart_law(
    drawn, drawn_between, c, between
):
    means, precisions = drawn_between if between else drawn[1:3]
    mean, total, inverse_scale, degrees = normal_wishart(c)
    assert_wishart(precisions[:, c], np.linalg.inv(inverse_scale), degrees)
    roots = np.linalg.cholesky(total * precisions[:, c])
    assert_standard_normal(np.einsum("kba,kb->ak", roots, means[:, c] - mean))


def test_the_common_covariance_has_the_wishart_law(drawn):
    _, _, precisions, scale, _ = drawn
    used = precisions[:, :2].sum(axis=1)
    assert_wishart(scale, np.linalg.inv(np.eye(D) + NU * used), D + 2 * NU)


def test_the_strength_of_the_means_has_its_gamma_law(drawn):
    _, means, precisions, _, strength = drawn
    squares = np.einsum("kca,kcab,kcb->k", means[:, :2], precisions[:, :2], means[:, :2])
    pivot = strength * (0.5 + 0.5 * squares)
    assert stats.kstest(pivot, stats.gamma(0.5 + 0.5 * 2 * D).cdf).pvalue > SIGNIFICANT


def test_a_group_without_rows_is_drawn_from_the_prior(drawn):
    _, means, precisions, scale, strength = drawn
    assert_wishart(precisions[:, 2], np.linalg.inv(NU * scale), NU)
    roots = np.linalg.cholesky(strength[:, None, None] * precisions[:, 2])
    assert_standard_normal(np.einsum("kba,kb->ak", roots, means[:, 2]))


def test_the_degrees_of_freedom_have_their_probabilities(monkeypatch):
    """The rows of a group, one after the other, have Student laws with m and Λ integrated out."""
    monkeypatch.setattr(module, "FREEDOM", FREEDOM[[0, 3, 8]])
    nus, logs = D + FREEDOM[[0, 3, 8]], np.zeros(3)
    for at, nu in enumerate(nus):
        for c in range(NUMBER):
            seen, mean, total, degrees = [], np.zeros(D), STRENGTH, nu
            inverse_scale = nu * SCALE
            for row in rows_of_groups()[c == LABELS]:
                free = degrees - D + 1
                shape = inverse_scale * (total + 1) / (total * free)
                logs[at] += stats.multivariate_t(mean, shape, free).logpdf(row)
                inverse_scale = inverse_scale + total / (total + 1) * np.outer(
                    row - mean, row - mean
                )
                seen.append(row)
                total, degrees = total + 1, degrees + 1
                mean = np.sum(seen, axis=0) / total
    expected = np.exp(logs - logsumexp(logs))
    found, rng = [], np.random.default_rng(1)
    for _ in range(DRAWS):
        groups = Groups(LABELS.copy(), SCALE.copy(), STRENGTH)
        draw_group_priors(groups, NUMBER, rows_of_groups(), rng)
        found.append(groups.freedom)
    counts = [np.isclose(found, nu).sum() for nu in nus]
    assert min(expected) > 0.02
    assert stats.chisquare(counts, DRAWS * expected).pvalue > SIGNIFICANT
