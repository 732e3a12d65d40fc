"""Draws of rows with few missing cells against their law, worked out with NumPy and SciPy."""

from typing import NamedTuple

import numpy as np
import pytest
from densities import SIGNIFICANT, assert_standard_normal
from scipy import stats

from nmd_lab.data.inputs import observe
from nmd_lab.kernels.products import storage_of
from nmd_lab.sampler import row_updates
from nmd_lab.sampler.priors import RowPrior
from nmd_lab.sampler.row_updates import OtherFactor, RowUpdate, StreamId

N, D, ROWS = 9, 4, 4000

SHARES = np.array([0.5, 0.3, 0.2])
WEIGHTS = np.random.default_rng(3).uniform(0.5, 2, N)
PATTERNS = [(), (4,), (0, 3, 8), (1, 2, 5, 7)]
"""Missing cells of a row.  The last has as many as components, drawn as other rows are."""


class Problem(NamedTuple):
    """A row of T, and all that it depends on."""

    T: np.ndarray
    rho: np.ndarray
    other: OtherFactor
    prior: RowPrior


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(2)
    roots = rng.normal(size=(SHARES.size, D, D))
    precisions = roots @ roots.transpose(0, 2, 1) + 0.3 * np.eye(D)
    means = rng.normal(size=(SHARES.size, D))
    other = OtherFactor(rng.normal(size=(N, D)), rng.normal(size=N) + 0.3)
    return Problem(
        rng.normal(size=N), rng.uniform(0.2, 3, N), other, RowPrior(means, precisions, SHARES)
    )


def draws(problem, missing, weights=None):
    """Return labels and vectors of many rows with the same T and missing."""
    T = np.tile(problem.T, (ROWS, 1))
    T[:, missing] = np.nan
    weights = None if weights is None else np.tile(weights, (ROWS, 1))
    seen = observe(T, weights=weights).as_sparse()
    side = RowUpdate(storage_of(seen), None, seen.weights, 1)
    labels, rows = np.full(ROWS, -1), np.zeros((ROWS, D))
    key = StreamId(8, 10 * len(missing), 0)
    side.draw(seen.values, rows, problem.other, problem.prior, problem.rho, key, labels)
    return labels, rows


def law(problem, missing, weights=1.0):
    """Return the probability of each group, and the mean and precision of a row in each."""
    T, rho, (vectors, constants), (means, precisions, *_) = problem
    seen = np.setdiff1d(np.arange(N), missing)
    P, tau, y = vectors[seen], (rho * weights)[seen], T[seen] - constants[seen]
    densities, found = np.empty(SHARES.size), []
    for c, (m, Lambda) in enumerate(zip(means, precisions, strict=True)):
        spread = P @ np.linalg.inv(Lambda) @ P.T + np.diag(1 / tau)
        densities[c] = stats.multivariate_normal(P @ m, spread).pdf(y)
        precision = Lambda + (P.T * tau) @ P
        found.append((np.linalg.solve(precision, Lambda @ m + P.T @ (tau * y)), precision))
    return SHARES * densities / np.sum(SHARES * densities), found


def check(labels, rows, expected, found):
    """Test the labels, and the rows of each group."""
    counts = np.bincount(labels, minlength=SHARES.size)
    assert stats.chisquare(counts, ROWS * expected).pvalue > SIGNIFICANT
    for c in np.flatnonzero(counts > 200):
        mean, precision = found[c]
        assert_standard_normal(((rows[labels == c] - mean) @ np.linalg.cholesky(precision)).T)


@pytest.mark.parametrize(
    ("missing", "weights"),
    [*((list(missing), None) for missing in PATTERNS),
     *((missing, WEIGHTS) for missing in ([4], [1, 2, 3, 5, 6, 7, 8]))],
)  # fmt: skip
def test_labels_and_rows_have_their_joint_law(problem, missing, weights):
    found = draws(problem, missing, weights=weights)
    check(*found, *law(problem, missing, 1.0 if weights is None else weights))


def test_groups_stay_apart_with_many_missing_cells_and_precise_noise():
    """The determinant of the missing cells is smaller than any double."""
    n, groups, rng = 300, np.arange(300) % 2, np.random.default_rng(0)
    other = OtherFactor(3 * np.eye(n) + 0.1 * rng.normal(size=(n, n)), np.zeros(n))
    means = 0.5 * np.array([[1.0], [-1.0]]) * np.ones(n)
    T = (means[groups] + rng.normal(size=(n, n))) @ other.vectors.T
    T[:, :140] = np.nan
    prior = RowPrior(means, np.stack([np.eye(n)] * 2), np.full(2, 0.5))
    seen, labels = observe(T).as_sparse(), np.full(n, -1)
    given = other, prior, np.full(n, 1e6), StreamId(8, 0, 0), labels
    RowUpdate(storage_of(seen), None, None, 1).draw(seen.values, np.zeros((n, n)), *given)
    np.testing.assert_array_equal(labels, groups)


def test_several_threads_draw_the_same_bits(problem, monkeypatch):
    monkeypatch.setattr(row_updates, "MIN_THREAD_ENTRIES", 1)
    T = np.tile(problem.T, (40, 1))
    T[np.arange(40), np.arange(40) % N] = np.nan
    seen, found = observe(T).as_sparse(), []
    for threads in (1, 3):
        side = RowUpdate(storage_of(seen), None, None, threads)
        rows, labels = np.zeros((40, D)), np.full(40, -1)
        side.draw(seen.values, rows, *problem[2:], problem.rho, StreamId(1, 2, 0), labels)
        found.append(np.column_stack([rows, labels]))
    np.testing.assert_array_equal(*found)
