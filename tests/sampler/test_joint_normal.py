"""The joint distribution of a row: draws of scores against closed forms and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from nmd_lab.sampler.joint_normal import JointChain, Scores, draw_scores
from nmd_lab.sampler.priors import RowPrior

INF = np.inf
COVARIANCE = np.array([[1.0, 0.6, -0.3], [0.6, 1.5, 0.4], [-0.3, 0.4, 0.8]])
MEAN = np.array([0.5, -0.2, 0.1])


def one_group(mean=MEAN, covariance=COVARIANCE):
    return RowPrior(mean[None], np.linalg.inv(covariance)[None], np.ones(1))


def drawn(low, high, draw, *, classes=None, widths=None, sweeps=1, ends=None, rows=20_000):
    """Return scores and groups of many equal rows with these limits, after some sweeps."""
    d = len(low)
    classes = np.full(d, -1) if classes is None else np.array(classes)
    widths = np.zeros(d, np.int64) if widths is None else np.array(widths)
    low, high, classes = (np.tile(each, (rows, 1)) for each in (low, high, classes))
    scores = Scores(low.astype(float), high.astype(float), classes.astype(np.int64), widths)
    z, labels, more = (
        scores.first(),
        np.zeros(rows, np.int64),
        {} if ends is None else {"ends": ends},
    )
    for sweep in range(sweeps):
        draw_scores(scores, z, draw, labels, (7, sweep), relabel=True, **more)
    return z, labels


def test_missing_scores_have_their_conditional_mean_and_covariance():
    z, _ = drawn([-INF, 1.2, -INF], [INF, 1.2, INF], one_group())
    of, on = [0, 2], [1]
    slope = COVARIANCE[np.ix_(of, on)] / COVARIANCE[1, 1]
    rest = COVARIANCE[np.ix_(of, of)] - slope @ COVARIANCE[np.ix_(on, of)]
    np.testing.assert_array_equal(z[:, 1], 1.2)
    np.testing.assert_allclose(z[:, of].mean(axis=0), MEAN[of] + slope[:, 0] * 1.4, atol=0.03)
    np.testing.assert_allclose(np.cov(z[:, of].T), rest, atol=0.03)


def test_a_missing_number_beside_a_level_is_that_of_a_truncated_normal():
    z, _ = drawn([-INF, 0.3, -INF], [INF, INF, INF], one_group(), sweeps=20)
    y = stats.truncnorm(0.5 / np.sqrt(1.5), INF, -0.2, np.sqrt(1.5))
    assert z[:, 1].min() > 0.3
    np.testing.assert_allclose(z[:, 1].mean(), y.mean(), atol=0.03)
    np.testing.assert_allclose(z[:, 0].mean(), 0.5 + 0.4 * (y.mean() + 0.2), atol=0.03)


def test_a_missing_class_has_the_probabilities_of_the_largest_score():
    z, _ = drawn([-INF, -INF, 0.9], [INF, INF, 0.9], one_group(), widths=[2, 0, 0])
    shares = np.bincount(np.where(z[:, :2].max(axis=1) > 0, z[:, :2].argmax(axis=1) + 1, 0)) / len(
        z
    )
    slope = COVARIANCE[:2, 2] / 0.8
    of_two = stats.multivariate_normal(
        MEAN[:2] + slope * 0.8, COVARIANCE[:2, :2] - 0.8 * np.outer(slope, slope)
    )
    other = of_two.rvs(400_000, random_state=0)
    expected = np.bincount(np.where(other.max(axis=1) > 0, other.argmax(axis=1) + 1, 0)) / len(
        other
    )
    np.testing.assert_allclose(shares, expected, atol=0.015)


@pytest.mark.parametrize("chosen", [0, 1, 2])
def test_an_observed_class_says_which_score_is_the_largest(chosen):
    z, _ = drawn(
        [-INF] * 3, [INF] * 3, one_group(), classes=[chosen, -1, -1], widths=[2, 0, 0], sweeps=20
    )
    with_zero = np.column_stack([np.zeros(len(z)), z[:, :2]])
    assert (with_zero.argmax(axis=1) == chosen).all()
    draws = stats.multivariate_normal(MEAN, COVARIANCE).rvs(400_000, random_state=0)
    of_class = np.column_stack([np.zeros(len(draws)), draws[:, :2]]).argmax(axis=1) == chosen
    np.testing.assert_allclose(z.mean(axis=0), draws[of_class].mean(axis=0), atol=0.04)


def test_groups_have_their_posterior_probabilities_with_missing_scores_integrated_out():
    means, shares = np.array([MEAN, -MEAN, MEAN + 1]), np.array([0.5, 0.3, 0.2])
    covariances = np.array([COVARIANCE, 0.5 * COVARIANCE, np.eye(3)])
    draw = RowPrior(means, np.linalg.inv(covariances), shares)
    _, labels = drawn([0.4, -INF, -0.1], [0.4, INF, -0.1], draw)
    weights = [
        share
        * stats.multivariate_normal(mean[[0, 2]], cov[np.ix_([0, 2], [0, 2])]).pdf([0.4, -0.1])
        for share, mean, cov in zip(shares, means, covariances, strict=True)
    ]
    np.testing.assert_allclose(np.bincount(labels) / 20_000, weights / np.sum(weights), atol=0.015)


def test_missing_scores_stay_between_the_ends_of_their_columns():
    ends = np.array([[0.2, -INF, -INF], [0.9, INF, INF]])
    z, _ = drawn([-INF, 1.2, -INF], [INF, 1.2, INF], one_group(), ends=ends)
    assert 0.2 < z[:, 0].min() < z[:, 0].max() < 0.9


def test_correlations_of_incomplete_rows_are_those_of_the_complete_ones():
    rng = np.random.default_rng(0)
    x = rng.multivariate_normal(MEAN, COVARIANCE, 3000)
    holed = np.where(rng.random(x.shape) < 0.3, np.nan, x)
    known, (low, high) = ~np.isnan(holed), (np.full(x.shape, -INF), np.full(x.shape, INF))
    low[known] = high[known] = holed[known]
    low[:, 2], high[:, 2] = np.where(x[:, 2] > 0.1, 0.0, -INF), np.where(x[:, 2] > 0.1, INF, 0.0)
    scores = Scores(low, high, np.full(x.shape, -1), np.zeros(3, np.int64))
    chain, found = JointChain.first(scores, np.random.default_rng(1)), []
    for sweep in range(250):
        chain.step()
        if sweep >= 50:
            cov = np.linalg.inv(chain.draw.precision[0])
            found.append(cov / np.sqrt(np.outer(cov.diagonal(), cov.diagonal())))
    root = np.sqrt(COVARIANCE.diagonal())
    np.testing.assert_allclose(np.mean(found, axis=0), COVARIANCE / np.outer(root, root), atol=0.05)
