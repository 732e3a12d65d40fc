"""The joint distribution of a row: draws of scores leave it as it is, and it is found.

Means of groups of rows against their law, given their precisions; the joint draws have more.
"""

from __future__ import annotations

import numpy as np
import pytest
from densities import SIGNIFICANT, assert_standard_normal
from scipy import stats

from nmd_lab.sampler.joint_normal import JointChain, Scores, draw_scores
from nmd_lab.sampler.priors import Groups, RowPrior, draw_prior

INF = np.inf
COVARIANCE = np.array([[1.0, 0.6, -0.3], [0.6, 1.5, 0.4], [-0.3, 0.4, 0.8]])


def test_draws_of_scores_leave_their_joint_distribution():
    """Of a number, a level, a class of three and another number, of which some are missing.

    Missing scores and groups are drawn anew, and not from the old ones.
    """
    rng, m, d, shares = np.random.default_rng(0), 30_000, 5, np.array([0.5, 0.3, 0.2])
    means, roots = 0.7 * rng.normal(size=(3, d)), rng.normal(size=(3, d, d)) + 1.5 * np.eye(d)
    groups = rng.choice(3, m, p=shares)
    z = means[groups] + np.einsum("mab,mb->ma", roots[groups], rng.normal(size=(m, d)))
    cuts = np.array([-INF, -0.4, 0.8, INF])
    low, high, classes = z.copy(), z.copy(), np.full((m, d), -1)
    level = np.searchsorted(cuts, z[:, 1]) - 1
    low[:, 1], high[:, 1] = cuts[level], cuts[level + 1]
    low[:, 2:4], high[:, 2:4] = -INF, INF
    chosen = np.column_stack([np.zeros(m), z[:, 2:4]]).argmax(axis=1)
    missing = rng.random((m, 4)) < 0.4
    classes[:, 2] = np.where(missing[:, 2], -1, chosen)
    missing = missing[:, [0, 1, 2, 2, 3]]
    low[missing], high[missing] = -INF, INF
    new, labels = np.where(missing, np.nan, z), np.full(m, -1)
    prior = RowPrior(means, np.linalg.inv(roots @ roots.transpose(0, 2, 1)), shares)
    firsts = np.array([0, 1, 2, 2, 4])
    draw_scores(Scores(low, high, classes, firsts), new, prior, labels, (7, 0), relabel=True)
    assert (new[:, 1:4] != z[:, 1:4]).all()
    assert ((low <= new) & (new <= high)).all()
    again = np.column_stack([np.zeros(m), new[:, 2:4]]).argmax(axis=1)
    assert (again == chosen)[classes[:, 2] >= 0].all()
    assert stats.chisquare(np.bincount(labels), m * shares).pvalue > SIGNIFICANT
    for c in range(3):
        assert_standard_normal(np.linalg.solve(roots[c], (new[labels == c] - means[c]).T))


def test_correlations_of_incomplete_rows_are_those_of_the_complete_ones():
    rng = np.random.default_rng(0)
    x = rng.multivariate_normal(np.array([0.5, -0.2, 0.1]), COVARIANCE, 3000)
    holed = np.where(rng.random(x.shape) < 0.3, np.nan, x)
    known, (low, high) = ~np.isnan(holed), (np.full(x.shape, -INF), np.full(x.shape, INF))
    low[known] = high[known] = holed[known]
    low[:, 2], high[:, 2] = np.where(x[:, 2] > 0.1, 0.0, -INF), np.where(x[:, 2] > 0.1, INF, 0.0)
    scores = Scores(low, high, np.full(x.shape, -1), np.arange(3))
    chain, found = JointChain.first(scores, np.random.default_rng(1)), []
    for sweep in range(250):
        chain.step()
        if sweep >= 50:
            cov = np.linalg.inv(chain.draw.precision[0])
            found.append(cov / np.sqrt(np.outer(cov.diagonal(), cov.diagonal())))
    root = np.sqrt(COVARIANCE.diagonal())
    np.testing.assert_allclose(np.mean(found, axis=0), COVARIANCE / np.outer(root, root), atol=0.05)


LABELS = np.array([0, 0, 0, 0, 0, 1, 1, 1])
"""Nobody is in the last of three groups."""


@pytest.fixture(scope="module")
def drawn():
    """Return rows, and many draws of means, precisions and κ, of which those before are 0.6."""
    rng, found = np.random.default_rng(0), []
    rows = rng.normal(size=(8, 2)) * [1.2, 0.8] + np.where(LABELS[:, None], [1, -1], 0)
    for _ in range(1200):
        groups = Groups(LABELS.copy(), np.array([[1.5, 0.4], [0.4, 0.7]]), 0.6)
        prior = draw_prior(groups, RowPrior.first(3, 2), rows.copy(), 1, rng)
        found.append((prior.mean, prior.precision, groups.strength))
    return rows, *(np.array(each) for each in zip(*found, strict=True))


@pytest.mark.parametrize("c", [0, 1, 2])
def test_the_mean_of_a_group_has_its_normal_law(drawn, c):
    """A group without rows has that of the prior, with the new κ."""
    rows, means, precisions, strengths = drawn
    of_group = rows[c == LABELS]
    total = 0.6 + len(of_group) if len(of_group) else strengths[:, None, None]
    roots = np.linalg.cholesky(total * precisions[:, c])
    centre = of_group.sum(axis=0) / (0.6 + len(of_group))
    assert_standard_normal(np.einsum("kba,kb->ak", roots, means[:, c] - centre))
