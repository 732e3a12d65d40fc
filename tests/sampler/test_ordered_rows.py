"""Draws of rows in order against the dense Gaussian and the closed form of an autoregression."""

import numpy as np
import pytest
from densities import SIGNIFICANT, assert_standard_normal, standardised
from scipy import stats
from scipy.linalg import block_diag

from nmd_lab.data.inputs import observe
from nmd_lab.data.row_places import RowPlaces
from nmd_lab.kernels.products import storage_of
from nmd_lab.sampler.ordered_rows import (
    ENDS_OF_PHIS,
    PHIS,
    SHORTEST,
    RowOrder,
    draw_ordered_rows,
)
from nmd_lab.sampler.priors import RowPrior
from nmd_lab.sampler.row_updates import OtherFactor, RowInputs, StreamId

M, N, RANK, MEAN = 7, 6, 3, 0.4
RHO = np.array([1.7, 0.6, 2.0, 1.0, 3.0, 0.8])
UNITS = np.array([0.5, 1.0, 3.0])
PHI = np.array([0.0, 0.6, 1 - 10**-1.5])
TIMES, SERIES = np.array([4.0, 9, 1, 2, 3, 3.5, 0]), np.array([0, 1, 1, 0, 0, 1, 0])
"""Uneven steps of two series, and rows in no order."""
PLACES = RowPlaces(TIMES, SERIES, np.zeros(M, np.int64))
DRAWS = 4000


def given(dtype=float):
    """Return T with holes, weights, and a factor with a column of ones and offsets."""
    rng = np.random.default_rng(3)
    T = rng.normal(size=(M, N))
    T[rng.random((M, N)) < 0.3] = np.nan
    T[[0, 5]] = np.nan
    weights = rng.uniform(0.5, 2, size=(M, N))
    vectors = np.hstack([rng.normal(size=(N, RANK - 1)), np.ones((N, 1))])
    other = OtherFactor(vectors.astype(dtype), (rng.normal(size=N) + MEAN).astype(dtype))
    return T.astype(dtype), weights.astype(dtype), other


def prior(phi):
    return RowPrior(np.zeros((1, RANK)), np.diag(UNITS**-2)[None], phi=phi)


def prior_covariance(phi, times=TIMES, series=SERIES, unit=1.0):
    """Return the covariance (m, m) of a component in its unit: φ to the power of the distance."""
    distance = np.abs(times[:, None] - times) / unit
    return np.where(series[:, None] == series, float(phi) ** distance, 0.0)


def dense_gaussian(T, weights, other, phi, unit):
    """Return mean (m d) and covariance of all rows, one row after another."""
    covariances = [s**2 * prior_covariance(p, unit=unit) for s, p in zip(UNITS, phi, strict=True)]
    of_rows = block_diag(*covariances).reshape(RANK, M, RANK, M)
    precision = np.linalg.inv(of_rows.transpose(1, 0, 3, 2).reshape(M * RANK, M * RANK))
    linear = np.zeros((M, RANK))
    each = []
    for i in range(M):
        seen = ~np.isnan(T[i])
        P, w = other.vectors[seen].astype(float), (RHO * weights[i])[seen]
        linear[i] = P.T @ (w * (T[i, seen] - other.constants[seen]))
        each.append((P.T * w) @ P)
    covariance = np.linalg.inv(precision + block_diag(*each))
    return covariance @ linear.ravel(), covariance


def draws_of(order, T, weights, other, phi, rows=None, count=DRAWS):
    """Return draws (count, m, rank) of all rows."""
    seen = observe(T, weights=weights, may_be_empty=True).as_sparse()
    rows = np.zeros((len(T), RANK), T.dtype) if rows is None else rows.copy()
    out = np.empty((count, *rows.shape))
    for sweep in range(count):
        inputs = RowInputs(other, prior(phi), RHO, StreamId(11, sweep, 0))
        draw_ordered_rows(order, storage_of(seen), seen.weights, seen.values, inputs, rows)
        out[sweep] = rows
    assert rows.dtype == T.dtype
    return out


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_have_the_dense_gaussian(dtype):
    T, weights, other = given(dtype)
    assert PLACES.median_step == 2.0  # of the steps 2, 1, 1 and 2.5, 5.5
    draws = draws_of(RowOrder.of(PLACES), T, weights, other, PHI).reshape(DRAWS, -1)
    law = dense_gaussian(T, weights, other, PHI, 2.0)
    assert_standard_normal(standardised(draws, *law))


@pytest.mark.parametrize("n_new", [1, 3, 5])
def test_rows_beside_known_ones_have_their_conditional(n_new):
    """Fitted rows stand behind the new ones; their median step is the unit."""
    T, weights, other = given()
    T[n_new:] = np.nan  # entries of fitted rows say nothing new
    new, fitted = (PLACES.at(at) for at in (np.arange(n_new), np.arange(n_new, M)))
    order = RowOrder.of(new, fitted)
    known = np.random.default_rng(1).normal(size=(M, RANK))
    draws = draws_of(order, T, weights, other, PHI, known)
    np.testing.assert_array_equal(draws[:, n_new:], np.broadcast_to(known, draws.shape)[:, n_new:])
    mean, covariance = dense_gaussian(T, weights, other, PHI, fitted.median_step)
    k = n_new * RANK
    precision = np.linalg.inv(covariance)
    conditional = np.linalg.inv(precision[:k, :k])
    away = known.ravel()[k:] - mean[k:]
    of_new = mean[:k] - conditional @ precision[:k, k:] @ away
    assert_standard_normal(standardised(draws[:, :n_new].reshape(DRAWS, -1), of_new, conditional))


def test_sweeps_are_independent_and_repeat():
    T, weights, other = given()
    order = RowOrder.of(PLACES)
    draws = draws_of(order, T, weights, other, PHI)
    np.testing.assert_array_equal(draws[:5], draws_of(order, T, weights, other, PHI, count=5))
    z = draws.reshape(DRAWS, -1).T
    z = (z - z.mean(axis=1, keepdims=True)) / z.std(axis=1, keepdims=True)
    np.testing.assert_allclose(z[:, 1:] @ z[:, :-1].T / DRAWS, 0, atol=5 / np.sqrt(DRAWS))


def test_many_components_and_strong_memory_stay_finite():
    """The longest memory, the shortest steps, and more entries in a row than one chunk."""
    rng = np.random.default_rng(0)
    m, n, d = 60, 700, 12
    T = rng.normal(size=(m, n))
    T[5:40] = np.nan
    places = RowPlaces(np.cumsum(rng.choice([1e-9, 1.0, 1e6], m)), *np.zeros((2, m), np.int64))
    other = OtherFactor(rng.normal(size=(n, d)), np.zeros(n))
    phi = np.full(d, PHIS[-1])
    seen, rows = observe(T).as_sparse(), np.zeros((m, d))
    order = RowOrder.of(places)
    assert order.steps.min() == SHORTEST
    given = RowInputs(
        other, RowPrior(np.zeros((1, d)), np.eye(d)[None], phi=phi), np.ones(1), StreamId(1, 1, 0)
    )
    draw_ordered_rows(order, storage_of(seen), None, seen.values, given, rows)
    assert np.isfinite(rows).all()
    assert np.abs(rows).max() < 10


def log_likelihood(w, phi, unit):
    """Return the log-density of a component, with the dense covariance."""
    covariance = prior_covariance(phi, unit=unit)
    return stats.multivariate_normal(np.zeros(len(w)), covariance).logpdf(w)


def test_phi_has_its_conditional_in_each_range():
    rng = np.random.default_rng(8)
    w = rng.normal(size=(M, 3))
    w[:, 1] = np.linalg.cholesky(prior_covariance(0.95, unit=2.0)) @ w[:, 1]
    w[:, 2] = 0.3 * np.linalg.cholesky(prior_covariance(0.9995, unit=2.0)) @ w[:, 2]
    order = RowOrder.of(PLACES)
    drawn = np.array([order.draw_phi(w, rng) for _ in range(20_000)])
    for k in range(3):
        logs = np.array([log_likelihood(w[:, k], phi, 2.0) for phi in PHIS])
        p = np.exp(logs - logs.max())
        p /= p.sum()
        counts, _ = np.histogram(drawn[drawn[:, k] > 0, k], ENDS_OF_PHIS[1:])
        counts = np.append((drawn[:, k] == 0).sum(), counts)
        assert counts.sum() == len(drawn)
        often = p * len(drawn) > 5
        assert often.sum() > 2
        rest = [counts[~often].sum(), (p * len(drawn))[~often].sum()]
        assert rest[0] < rest[1] + 5 * np.sqrt(rest[1] + 1)
        expected = p[often] * counts[often].sum() / p[often].sum()
        assert stats.chisquare(counts[often], expected).pvalue > SIGNIFICANT
