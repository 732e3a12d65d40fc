"""Groups of rows in tables with two groups."""

import numpy as np
import pytest

import nmd_lab as nmd


@pytest.fixture(scope="module")
def crossed():
    """Return a generated table with two groups of rows, in which columns relate in two ways."""
    rng = np.random.default_rng(2)
    a, sign = rng.normal(size=200), rng.choice([-1, 1], 200)
    columns = [a, sign * a, 3 * sign, 3 * sign, a]
    truth = np.column_stack(columns) + 0.1 * rng.normal(size=(200, 5))
    X = np.where(rng.random(truth.shape) < 0.15, np.nan, truth)
    return X, truth


def posterior_of(X, groups):
    return nmd.sample(X, 3, groups=groups, draws=150, tune=100, random_state=0, progress=False)


def test_groups_find_relations_that_one_gaussian_has_not(crossed):
    X, truth = crossed
    hidden = np.isnan(X[:, 1])
    errors = {}
    for groups in (1, 3):
        posterior = posterior_of(X, groups)
        errors[groups] = nmd.metrics.rmse(truth[hidden, 1], posterior.reconstruct()[hidden, 1])
    assert errors[3] < 0.4 * errors[1]


def test_new_rows_have_the_groups(crossed):
    X, truth = crossed
    posterior = posterior_of(X[:150], 3)
    new = np.where(np.arange(5) == 1, np.nan, truth[150:])
    found = posterior.fold_in(new).predict(np.arange(50), 1)
    assert nmd.metrics.rmse(truth[150:, 1], found) < 0.3
