"""Means of groups of rows against their law, given their precisions; the joint draws have more."""

import numpy as np
import pytest
from densities import assert_standard_normal

from nmd_lab.sampler.priors import Groups, draw_group_priors

LABELS = np.array([0, 0, 0, 0, 0, 1, 1, 1])
"""Nobody is in the last of three groups."""


@pytest.fixture(scope="module")
def drawn():
    """Return rows, and many draws of means, precisions and κ, of which those before are 0.6."""
    rng, found = np.random.default_rng(0), []
    rows = rng.normal(size=(8, 2)) * [1.2, 0.8] + np.where(LABELS[:, None], [1, -1], 0)
    for _ in range(1200):
        groups = Groups(LABELS.copy(), np.array([[1.5, 0.4], [0.4, 0.7]]), 0.6)
        prior = draw_group_priors(groups, 3, rows.copy(), rng)
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
