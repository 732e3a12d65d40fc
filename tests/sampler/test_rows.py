"""Draws of rows and columns against the closed form of their Gaussian, worked out with NumPy."""

import numpy as np
import pytest
from densities import assert_standard_normal, standardised
from scipy import sparse

from nmd_lab.data.inputs import observe
from nmd_lab.kernels.products import storage_of
from nmd_lab.sampler.priors import RowPrior
from nmd_lab.sampler.row_updates import DenseUpdate, OtherFactor, RowInputs, SparseUpdate, StreamId

M, N, RANK, RHO, MEAN = 5, 7, 3, 1.7, 0.4
DRAWS = 4000


def problem(dtype, seed=3):
    """Return T with holes, weights, a other with a column of ones, and a prior."""
    rng = np.random.default_rng(seed)
    T = rng.normal(size=(M, N))
    T[rng.random((M, N)) < 0.3] = np.nan
    T[4] = np.nan
    weights = rng.uniform(0.5, 2, size=(M, N))
    vectors = np.hstack([rng.normal(size=(N, RANK - 1)), np.ones((N, 1))])
    A = rng.normal(size=(RANK, RANK))
    prior = RowPrior(rng.normal(size=(1, RANK)), (A @ A.T + np.eye(RANK))[None])
    other = OtherFactor(vectors.astype(dtype), (rng.normal(size=N) + MEAN).astype(dtype))
    return T.astype(dtype), weights.astype(dtype), other, prior


def closed_form(T, weights, other, prior, i):
    """Return mean and covariance of row i."""
    seen = ~np.isnan(T[i])
    P, w = other.vectors[seen].astype(float), RHO * weights[i, seen].astype(float)
    y = T[i, seen].astype(float) - other.constants[seen]
    covariance = np.linalg.inv(prior.precision[0] + (P.T * w) @ P)
    return covariance @ (prior.precision[0] @ prior.mean[0] + P.T @ (w * y)), covariance


def sparse_side(T, weights, *, transposed=False):
    """Return the side of the rows of T, or of the columns of its transposed matrix."""
    if transposed:
        seen = observe(T.T, weights=weights.T).as_sparse()
        of_columns, order = storage_of(seen).transposed()
        weights = None if seen.weights is None else seen.weights[order]
        return SparseUpdate(of_columns, order, weights, 1), seen.values
    seen = observe(T, weights=weights).as_sparse()
    return SparseUpdate(storage_of(seen), None, seen.weights, 1), seen.values


def draws_of(side, target, other, prior, dtype, rho=(RHO,)):
    """Return many draws of all rows."""
    rows, out = np.zeros((M, RANK), dtype), np.empty((DRAWS, M, RANK))
    for sweep in range(DRAWS):
        side.draw(target, RowInputs(other, prior, np.array(rho), StreamId(11, sweep, 0)), rows)
        out[sweep] = rows
    return out


def check(draws, expected):
    """Test every row."""
    for i, law in enumerate(expected):
        assert_standard_normal(standardised(draws[:, i], *law))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dense", [False, True])
def test_rows_have_their_gaussian(dense, dtype, transposed):
    T, weights, other, prior = problem(dtype)
    if dense:
        T, weights = np.random.default_rng(1).normal(size=(M, N)).astype(dtype), np.ones((M, N))
        given = np.ascontiguousarray(T.T) if transposed else T
        side, values = DenseUpdate(given.shape, transposed, 1), given.ravel()
    else:
        side, values = sparse_side(T, weights, transposed=transposed)
    draws = draws_of(side, values, other, prior, dtype)
    check(draws, [closed_form(T, weights, other, prior, i) for i in range(M)])


@pytest.mark.parametrize("rho_of", ["rows", "columns"])
def test_rows_with_few_holes_have_their_gaussian_with_noise_of_their_own(rho_of):
    """A row that stores more than half takes the sum over all columns less the others."""
    T, _, other, prior = problem(float)
    T[:2] = np.random.default_rng(5).normal(size=(2, N))
    T[:2, [1, 4]] = np.nan
    rho = np.random.default_rng(2).uniform(0.5, 4, M if rho_of == "rows" else N)
    weights = np.broadcast_to(rho[:, None] if rho_of == "rows" else rho, (M, N)) / RHO
    T[2, 1:6] = np.nan  # and one that stores less
    seen = observe(T).as_sparse()
    side = SparseUpdate(storage_of(seen), None, None, 1, rho_of == "rows")
    draws = draws_of(side, seen.values, other, prior, float, rho)
    check(draws, [closed_form(T, weights, other, prior, i) for i in range(M)])


def test_rows_and_sweeps_are_independent():
    T, weights, other, prior = problem(float)
    side, values = sparse_side(T, weights)
    draws = draws_of(side, values, other, prior, float)
    laws = [closed_form(T, weights, other, prior, i) for i in range(M)]
    z = np.stack([standardised(draws[:, i], *laws[i]) for i in range(M)]).reshape(M * RANK, DRAWS)
    limit = 5 / np.sqrt(DRAWS)
    np.testing.assert_allclose(np.corrcoef(z), np.eye(M * RANK), atol=limit)
    lagged = np.corrcoef(z[:, 1:], z[:, :-1])[: M * RANK, M * RANK :]
    np.testing.assert_allclose(lagged, 0, atol=limit)


def test_many_entries_in_a_row_are_gathered_in_chunks():
    """A row has more entries than are gathered at a time; dense and sparse means agree."""
    n, rng = 700, np.random.default_rng(0)
    T = rng.normal(size=(2, n))
    _, _, _, prior = problem(float)
    other = OtherFactor(rng.normal(size=(n, RANK)), rng.normal(size=n) + MEAN)
    pattern = storage_of(observe(sparse.csr_array(T)).as_sparse())
    sides = SparseUpdate(pattern, None, None, 1), DenseUpdate((2, n), False, 1)
    found = []
    for side in sides:
        rows = np.zeros((2, RANK))
        given = RowInputs(other, prior, np.array([1e16]), StreamId(1, 2, 0))
        side.draw(T.ravel(), given, rows)
        found.append(rows)
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_a_stream_belongs_to_seed_sweep_side_and_row():
    T, weights, other, prior = problem(float)
    side, values = sparse_side(T, weights)
    seen = set()
    for key in (StreamId(1, 1, 0), StreamId(2, 1, 0), StreamId(1, 2, 0), StreamId(1, 1, 1)):
        rows, again = np.zeros((2, M, RANK))
        side.draw(values, RowInputs(other, prior, np.array([RHO]), key), rows)
        side.draw(values, RowInputs(other, prior, np.array([RHO]), key), again)
        np.testing.assert_array_equal(rows, again)
        seen |= set(rows.ravel().tolist())
    assert len(seen) == 4 * M * RANK
