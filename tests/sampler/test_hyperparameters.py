"""Draws of means and precisions of rows, and of noise levels, against their closed forms."""

import numpy as np
import pytest
from densities import assert_standard_normal, assert_wishart

from nmd_lab.sampler.priors import draw_row_prior

DRAWS = 4000
STRENGTH = 2.5


def normal_wishart(rows, units):
    """Return the parameters of the posterior, by the formulas for whole matrices."""
    m, d = rows.shape
    scaled = rows / units
    average = scaled.mean(axis=0)
    scatter = scaled.T @ scaled - m * np.outer(average, average)
    total = STRENGTH + m
    inverse_scale = np.eye(d) + scatter + STRENGTH * m / total * np.outer(average, average)
    return m / total * average, total, np.linalg.inv(inverse_scale), d + m


def many(rows, units, seed=0):
    rng = np.random.default_rng(seed)
    one_group = np.zeros(len(rows), np.int64)
    drawn = [draw_row_prior(rows / units, one_group, STRENGTH, rng) for _ in range(DRAWS)]
    return (
        np.array([getattr(prior, name)[0] for prior in drawn]) for name in ("mean", "precision")
    )


def rows_of(m, d, seed=5):
    rng = np.random.default_rng(seed)
    return 0.3 + rng.normal(size=(m, d)) @ rng.normal(size=(d, d)), rng.uniform(0.5, 3, size=d)


@pytest.mark.parametrize(("m", "d"), [(1, 1), (1, 2), (9, 1), (9, 3), (40, 2)])
def test_precisions_have_the_wishart_law(m, d):
    rows, units = rows_of(m, d)
    _, _, scale, degrees = normal_wishart(rows, units)
    _, precisions = many(rows, units)
    assert_wishart(precisions, scale, degrees)


@pytest.mark.parametrize(("m", "d"), [(1, 2), (9, 1), (9, 3)])
def test_means_have_their_normal_law_given_the_precision(m, d):
    rows, units = rows_of(m, d)
    centre, total, _, _ = normal_wishart(rows, units)
    means, precisions = many(rows, units)
    roots = np.linalg.cholesky(total * precisions)
    assert_standard_normal(np.einsum("kji,kj->ik", roots, means - centre))
