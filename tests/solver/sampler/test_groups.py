"""Groups of rows against draws from their prior, closed forms, and tables with two groups."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import nmd_lab as nmd
from nmd_lab.data.inputs import observe
from nmd_lab.solver.sampler.priors import FREEDOM, Groups, RowPrior, draw_group_priors
from nmd_lab.solver.sampler.row_updates import OtherFactor, SparseUpdate, StreamId
from nmd_lab.solver.storage import storage_of

M, D, NUMBER, STEPS = 6, 2, 3, 6000
UNITS = np.array([0.5, 2.0])


def from_prior(rng):
    """Return S, κ, labels and rows, drawn from the prior with SciPy."""
    nu = D + rng.choice(FREEDOM)
    scale = stats.wishart(D, np.eye(D)).rvs(random_state=rng)
    strength = rng.gamma(0.5, 2.0)
    of_group = stats.wishart(nu, np.linalg.inv(nu * scale))
    precisions = np.array([of_group.rvs(random_state=rng) for _ in range(NUMBER)])
    means = [rng.multivariate_normal(np.zeros(D), np.linalg.inv(strength * P)) for P in precisions]
    shares = rng.dirichlet(np.full(NUMBER, 1 / NUMBER))
    labels = rng.choice(NUMBER, M, p=shares)
    rows = np.array(
        [rng.multivariate_normal(means[c], np.linalg.inv(precisions[c])) for c in labels]
    )
    return Groups(labels, scale, strength), rows * UNITS


def numbers(groups, rows):
    """Return numbers of a state, whose distribution says whether it is from the prior."""
    scaled = rows / UNITS
    return [
        np.log(np.linalg.det(groups.scale)),
        np.log(groups.strength),
        np.unique(groups.labels).size,
        np.log(np.abs(scaled[0]) + 1e-300).sum(),
        np.log(np.linalg.norm(scaled[0] - scaled[1])),
    ]


def test_draws_of_the_priors_leave_the_prior_as_it_is():
    rng = np.random.default_rng(0)
    expected = np.array([numbers(*from_prior(rng)) for _ in range(STEPS // 2)])
    found = []
    for _ in range(STEPS // 20):
        groups, rows = from_prior(rng)
        for _ in range(3):
            prior = draw_group_priors(groups, NUMBER, rows, UNITS, rng)
            groups.labels = rng.choice(NUMBER, M, p=prior.shares / prior.shares.sum())
            rows = np.array(
                [
                    rng.multivariate_normal(prior.mean[c], np.linalg.inv(prior.precision[c]))
                    for c in groups.labels
                ]
            )
        found.append(numbers(groups, rows))
    for ours, theirs in zip(np.array(found).T, expected.T, strict=True):
        assert stats.ks_2samp(ours, theirs).pvalue > 1e-3


def test_a_label_has_the_probability_of_its_marginal_density():
    rng = np.random.default_rng(1)
    n, rho, draws = 4, 1.3, 4000
    vectors, constants = rng.normal(size=(n, D)), rng.normal(size=n)
    means, shares = 1.5 * rng.normal(size=(NUMBER, D)), np.array([0.5, 0.3, 0.2])
    roots = rng.normal(size=(NUMBER, D, D))
    precisions = roots @ roots.transpose(0, 2, 1) + np.eye(D)
    T = rng.normal(size=(1, n))
    densities = [
        stats.multivariate_normal(
            vectors @ mean + constants,
            vectors @ np.linalg.inv(precision) @ vectors.T + np.eye(n) / rho,
        ).pdf(T[0])
        for mean, precision in zip(means, precisions, strict=True)
    ]
    expected = shares * densities / np.sum(shares * densities)
    seen = observe(T).as_sparse()
    side = SparseUpdate(storage_of(seen), None, None, 1)
    drawn, rows = np.empty(draws, int), np.zeros((1, D))
    for sweep in range(draws):
        labels = np.array([-1])
        side.draw(
            seen.values, OtherFactor(vectors, constants, 0.0), RowPrior(means, precisions, shares),
            np.array([rho]), StreamId(5, sweep, 0), rows, labels,
        )  # fmt: skip
        drawn[sweep] = labels[0]
    counts = np.bincount(drawn, minlength=NUMBER)
    assert stats.chisquare(counts, draws * expected).pvalue > 1e-3


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


def test_new_rows_and_files_know_the_groups(crossed, tmp_path):
    X, truth = crossed
    posterior = posterior_of(X[:150], 3)
    new = np.where(np.arange(5) == 1, np.nan, truth[150:])
    found = posterior.fold_in(new).predict(np.arange(50), 1)
    assert nmd.metrics.rmse(truth[150:, 1], found) < 0.3
    posterior.save(tmp_path / "posterior.nc")
    again = nmd.load(tmp_path / "posterior.nc")
    assert again.draws.identical(posterior.draws)
    np.testing.assert_array_equal(again.fold_in(new).predict(np.arange(50), 1), found)
