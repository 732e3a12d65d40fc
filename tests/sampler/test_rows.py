"""Draws of rows, and of rows in order: streams, chunks, few missing cells, and strong memory.

The joint draws have all else.  Laws are worked out with NumPy and SciPy.
"""

from typing import NamedTuple

import numpy as np
import pytest
from densities import SIGNIFICANT, assert_standard_normal
from scipy import stats

from nmd_lab.data.inputs import observe
from nmd_lab.data.matching import RowPlaces
from nmd_lab.kernels.products import storage_of
from nmd_lab.sampler import row_updates
from nmd_lab.sampler.ordered_rows import PHIS, SHORTEST, RowOrder, draw_ordered_rows
from nmd_lab.sampler.priors import RowPrior
from nmd_lab.sampler.row_updates import OtherFactor, RowUpdate, StreamId


class Problem(NamedTuple):
    """A row of T, and all that it depends on."""

    T: np.ndarray
    rho: np.ndarray
    other: OtherFactor
    prior: RowPrior


def drawn(T, problem, key, weights=None, threads=1):
    """Return labels and vectors of rows of T, whose missing entries are NaN."""
    seen, weights = observe(T).as_sparse(), None if weights is None else weights[~np.isnan(T)]
    labels, rows = np.full(len(T), -1), np.zeros((len(T), problem.other.vectors.shape[1]))
    side = RowUpdate(storage_of(seen), None, weights, threads)
    side.draw(seen.values, rows, problem.other, problem.prior, problem.rho, key, labels)
    return labels, rows


def of_one_group(n, rho):
    """Return random vectors of columns and constants, and the prior of one group of rows."""
    rng = np.random.default_rng(0)
    other = OtherFactor(rng.normal(size=(n, 3)), rng.normal(size=n))
    return Problem(None, np.array([rho]), other, RowPrior(rng.normal(size=(1, 3)), np.eye(3)[None]))


def test_many_entries_in_a_row_are_gathered_in_chunks():
    """A row has more entries than are gathered at a time; with precise noise it is their fit."""
    T, problem = np.random.default_rng(1).normal(size=(2, 700)), of_one_group(700, 1e16)
    _, rows = drawn(T, problem, StreamId(1, 2, 0), np.ones(T.shape))  # which takes all entries
    other = problem.other
    expected = np.linalg.lstsq(other.vectors, (T - other.constants).T)[0].T
    np.testing.assert_allclose(rows, expected, rtol=1e-6)


def test_a_stream_belongs_to_seed_sweep_side_and_row():
    T, seen = np.random.default_rng(1).normal(size=(5, 7)), set()
    for key in (StreamId(1, 1, 0), StreamId(2, 1, 0), StreamId(1, 2, 0), StreamId(1, 1, 1)):
        rows, again = (drawn(T, of_one_group(7, 1.7), key)[1] for _ in "ab")
        np.testing.assert_array_equal(rows, again)
        seen |= set(rows.ravel().tolist())
    assert len(seen) == 4 * rows.size


# Few missing cells --------------------------------------------------------------------------------

N, D, ROWS = 9, 4, 4000

SHARES = np.array([0.5, 0.3, 0.2])
WEIGHTS = np.random.default_rng(3).uniform(0.5, 2, N)
PATTERNS = [(), (4,), (0, 3, 8), (1, 2, 5, 7)]
"""Missing cells of a row.  The last has as many as components, drawn as other rows are."""


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


@pytest.mark.parametrize(
    ("missing", "weights"),
    [*((list(missing), None) for missing in PATTERNS),
     *((missing, WEIGHTS) for missing in ([4], [1, 2, 3, 5, 6, 7, 8]))],
)  # fmt: skip
def test_labels_and_rows_have_their_joint_law(problem, missing, weights):
    T = np.tile(problem.T, (ROWS, 1))
    T[:, missing] = np.nan
    given = None if weights is None else np.tile(weights, (ROWS, 1))
    labels, rows = drawn(T, problem, StreamId(8, 10 * len(missing), 0), given)
    expected, found = law(problem, missing, 1.0 if weights is None else weights)
    counts = np.bincount(labels, minlength=SHARES.size)
    assert stats.chisquare(counts, ROWS * expected).pvalue > SIGNIFICANT
    for c in np.flatnonzero(counts > 200):
        mean, precision = found[c]
        assert_standard_normal(((rows[labels == c] - mean) @ np.linalg.cholesky(precision)).T)


def test_groups_stay_apart_with_many_missing_cells_and_precise_noise():
    """The determinant of the missing cells is smaller than any double."""
    n, groups, rng = 300, np.arange(300) % 2, np.random.default_rng(0)
    other = OtherFactor(3 * np.eye(n) + 0.1 * rng.normal(size=(n, n)), np.zeros(n))
    means = 0.5 * np.array([[1.0], [-1.0]]) * np.ones(n)
    T = (means[groups] + rng.normal(size=(n, n))) @ other.vectors.T
    T[:, :140] = np.nan
    prior = RowPrior(means, np.stack([np.eye(n)] * 2), np.full(2, 0.5))
    labels, _ = drawn(T, Problem(None, np.full(n, 1e6), other, prior), StreamId(8, 0, 0))
    np.testing.assert_array_equal(labels, groups)


def test_several_threads_draw_the_same_bits(problem, monkeypatch):
    monkeypatch.setattr(row_updates, "MIN_THREAD_ENTRIES", 1)
    T = np.tile(problem.T, (40, 1))
    T[np.arange(40), np.arange(40) % N] = np.nan
    one, three = (drawn(T, problem, StreamId(1, 2, 0), threads=threads) for threads in (1, 3))
    np.testing.assert_array_equal(one[0], three[0])
    np.testing.assert_array_equal(one[1], three[1])


# In order -----------------------------------------------------------------------------------------


def test_many_components_and_strong_memory_stay_finite():
    """The longest memory, the shortest steps, and more entries in a row than one chunk."""
    rng = np.random.default_rng(0)
    m, n, d = 60, 700, 12
    T = rng.normal(size=(m, n))
    T[5:40] = np.nan
    places = RowPlaces(np.cumsum(rng.choice([1e-9, 1.0, 1e6], m)), *np.zeros((2, m), np.int64))
    other = OtherFactor(rng.normal(size=(n, d)), np.zeros(n))
    seen, rows, order = observe(T).as_sparse(), np.zeros((m, d)), RowOrder.of(places)
    assert order.steps.min() == SHORTEST
    prior = RowPrior(np.zeros((1, d)), np.eye(d)[None], phi=np.full(d, PHIS[-1]))
    entries, key = (storage_of(seen), None, seen.values), StreamId(1, 1, 0)
    draw_ordered_rows(order, rows, *entries, other, prior, np.ones(1), key)
    assert np.isfinite(rows).all()
    assert np.abs(rows).max() < 10
