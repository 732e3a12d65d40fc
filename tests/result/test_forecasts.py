"""New rows of a posterior in order: forecasts, rows between fitted ones, and other series."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from in_order import DAYS, autoregression
from scipy import stats

import nmd_lab as nmd

M, N, RANK = 80, 6, 2
FIRST, STEP = pd.Timestamp("2020-01-01"), pd.Timedelta("2D")
SIGNIFICANT = 1e-4


def dates(places):
    """Return dates, given as rows from the first fitted one, which may be no whole numbers."""
    return FIRST + np.asarray(places, float) * STEP


def rows_at(places, X=None):
    X = np.full((len(places), N), np.nan) if X is None else X
    return xr.DataArray(X, dims=("time", "place"), coords={"time": dates(places)})


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(1)
    W = autoregression(M, np.array([0.97, 0.8]), rng)
    X = W @ rng.normal(size=(RANK, N)) + 0.2 * rng.normal(size=(M, N)) + 3
    X[rng.random(X.shape) < 0.2] = np.nan
    X[60:64] = np.nan
    options = {"draws": 400, "tune": 100, "random_state": 0}
    return nmd.sample(rows_at(range(M), X), RANK, order="time", sample_dims="time", **options)


def states(posterior):
    """Return W (draws, m, rank) of a posterior, in units of its prior, and φ (draws, rank)."""
    draws = posterior.draws.isel(chain=0)
    units = np.diagonal(draws["row_precision"].values[:, 0], axis1=1, axis2=2) ** -0.5
    return draws["W"].values / units[:, None, :RANK], draws["phi"].values[:, :RANK]


def assert_standard_normal(z):
    """Test numbers (draws, ...), each column for itself and together with the others."""
    z = z.reshape(len(z), -1)
    for column in z.T:
        assert stats.kstest(column, "norm").pvalue > SIGNIFICANT
    limit = 5 / np.sqrt(len(z))
    np.testing.assert_allclose(np.corrcoef(z.T), np.eye(z.shape[1]), atol=limit)


def columns_of(posterior):
    """Return H (draws, rank, n) for states in their unit, offsets, and the units of the columns."""
    draws = posterior.draws.isel(chain=0)
    units = np.diagonal(draws["row_precision"].values[:, 0], axis1=1, axis2=2) ** -0.5
    offsets = draws["column_offsets"].values[:, None] + posterior._draws.mean
    kinds = posterior._draws.model.column_models
    centre, size = np.array([(kind.centre, kind.size) for kind in kinds]).T
    return draws["H"].values * units[:, :RANK, None], offsets, centre, size


def innovations(w, phi, steps):
    """Return what is new in each row, given the row before it; `steps` are between them."""
    a = phi[:, None] ** np.asarray(steps)[:, None]
    return (w[:, 1:] - a * w[:, :-1]) / np.sqrt(1 - a**2)


def test_forecasts_follow_the_last_row(fitted):
    """Steps count in units of the median step of the fitted rows, two days."""
    places = [M, M + 1, M + 1.5, M + 4]
    ahead = fitted.fold_in(rows_at(places))
    w, phi = states(fitted)
    new, _ = states(ahead)
    w = np.concatenate([w[:, -1:], new], axis=1)
    assert_standard_normal(innovations(w, phi, np.diff([M - 1, *places])))


def test_the_order_of_new_rows_does_not_matter(fitted):
    """Their states depend on their places; those that nothing was observed of, on their keys."""
    places = np.array([M + 3, M, M + 1])
    w, phi = states(fitted)
    new, _ = states(fitted.fold_in(rows_at(places)))
    in_order = np.concatenate([w[:, -1:], new[:, np.argsort(places)]], axis=1)
    assert_standard_normal(innovations(in_order, phi, [1, 1, 2]))


def test_mean_and_deviation_of_forecasts_are_those_of_the_autoregression(fitted):
    """The closed form for each draw, and the mixture of all; 400 draws have errors of 5 %."""
    far, (w, phi) = np.array([0, 2, 9, 39]), states(fitted)
    ahead = fitted.fold_in(rows_at(M + far))
    i, j = (each.ravel() for each in np.indices((len(far), N)))
    H, offsets, centre, size = columns_of(fitted)
    a = phi[:, None] ** (far + 1)[:, None]
    each = np.einsum("stk,skj->stj", a * w[:, -1:], H) + offsets
    variances = np.einsum("stk,skj->stj", 1 - a**2, H**2)
    mean, deviation = each.mean(axis=0), np.sqrt(each.var(axis=0) + variances.mean(axis=0))
    found = ahead._draws.linear_at(i, j).reshape(-1, len(far), N)
    z = (found.mean(axis=0) - mean) / deviation * np.sqrt(len(found))
    assert np.abs(z).max() < 5  # calibrated intervals keep the mean
    np.testing.assert_allclose(found.std(axis=0), deviation, rtol=0.2)
    predicted = ahead.predict(i, j).reshape(mean.shape)
    np.testing.assert_allclose((predicted - centre) / size, found.mean(axis=0), atol=1e-4)


def test_rows_between_fitted_ones_depend_on_both(fitted):
    """Empty rows a quarter and three quarters of the way from row 20 to row 21."""
    between = fitted.fold_in(rows_at([20.25, 20.75]))
    (w, phi), (new, _) = states(fitted), states(between)
    quarter, half = phi**0.25, phi**0.5
    z = []
    for s in range(2):  # given the other new row, and then one after the other
        ends = w[:, 20 + s], w[:, 21 - s]
        a, b = quarter, phi**0.75
        precision = 1 / (1 - a**2) + b**2 / (1 - b**2)
        mean = (a * ends[0] / (1 - a**2) + b * ends[1] / (1 - b**2)) / precision
        z.append((new[:, s] - mean) * np.sqrt(precision))
    for each in z:
        for component in each.T:
            assert stats.kstest(component, "norm").pvalue > SIGNIFICANT
    precision = 1 / (1 - half**2) + quarter**2 / (1 - quarter**2)
    mean = (half * new[:, 0] / (1 - half**2) + quarter * w[:, 21] / (1 - quarter**2)) / precision
    second = (new[:, 1] - mean) * np.sqrt(precision)
    assert_standard_normal(np.stack([z[0], second], axis=1))


def test_entries_of_new_rows_count_beside_their_neighbours(fitted):
    """One row behind the last, with two entries: the Gaussian of the state given both."""
    X = np.full((1, N), np.nan)
    X[0, [1, 4]] = 4.0, 1.0
    ahead = fitted.fold_in(rows_at([M], X))
    (w, phi), (new, _) = states(fitted), states(ahead)
    H, offsets, centre, size = (each[..., [1, 4]] for each in columns_of(fitted))
    rho = fitted.draws["rho"].values[0][:, [1, 4]]
    y = (X[0, [1, 4]] - centre) / size - offsets[:, 0]
    z = []
    for s in range(len(new)):
        own = np.diag(1 / (1 - phi[s] ** 2))
        precision = own + (H[s] * rho[s]) @ H[s].T
        mean = np.linalg.solve(precision, own @ (phi[s] * w[s, -1]) + H[s] @ (rho[s] * y[s]))
        z.append(np.linalg.cholesky(precision).T @ (new[s, 0] - mean))
    assert_standard_normal(np.array(z))


def test_intervals_of_later_rows_grow_and_then_stay(fitted):
    far = np.array([0, 1, 3, 10, 30, 1000, 2000, 3000])
    ahead = fitted.fold_in(rows_at(M + far))
    for j in range(N):
        sd = ahead.predict_std(np.arange(far.size), np.full(far.size, j), noise=True)
        assert all(b > 0.85 * a for a, b in pairwise(sd)), sd
        assert sd[5] > sd[0]
        np.testing.assert_allclose(sd[5:], sd[5:].mean(), rtol=0.15)
    assert_standard_normal(states(ahead)[0][:, 5:])


def test_forecasts_repeat_and_follow_their_seed(fitted):
    first, again, other = (fitted.fold_in(rows_at([M]), random_state=k) for k in (0, 0, 1))
    xr.testing.assert_identical(first.draws, again.draws)
    assert not np.array_equal(first.draws["W"], other.draws["W"])


def test_forecasts_of_a_loaded_posterior_are_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "drawn.nc")
    loaded = nmd.load(tmp_path / "drawn.nc")
    for name in ("phi", "times", "series"):
        np.testing.assert_array_equal(loaded.draws[name], fitted.draws[name])
    new = rows_at([M, 10.5, M + 2])
    before, after = (each.fold_in(new) for each in (fitted, loaded))
    for name in ("W", "times", "series"):
        np.testing.assert_array_equal(after.draws[name], before.draws[name])
    i = np.arange(3)
    for k in range(N):
        at = i, np.full(3, k)
        np.testing.assert_array_equal(after.predict(*at), before.predict(*at))


def test_rows_of_another_series_are_at_the_stationary_distribution():
    rng = np.random.default_rng(0)
    W = autoregression(60, np.array([0.95, 0.7]), rng)
    X = W @ rng.normal(size=(RANK, N)) + 0.3 * rng.normal(size=(60, N))
    index = pd.MultiIndex.from_product([["x", "y"], DAYS[:30]], names=["station", "day"])
    options = {"draws": 400, "tune": 30, "random_state": 0, "sample_dims": "row"}
    labelled = xr.DataArray(X, dims=("row", "place"), coords={"row": index})
    posterior = nmd.sample(labelled, RANK, order="day", **options)
    new = pd.MultiIndex.from_tuples(
        [("z", DAYS[30]), ("y", DAYS[30]), ("z", DAYS[31])], names=index.names
    )
    ahead = posterior.fold_in(
        xr.DataArray(np.full((3, N), np.nan), dims=("row", "place"), coords={"row": new})
    )
    (w, phi), (fresh, _) = states(posterior), states(ahead)
    assert_standard_normal(fresh[:, 0])
    assert_standard_normal(innovations(fresh[:, [0, 2]], phi, [1]))
    assert_standard_normal(innovations(np.stack([w[:, 59], fresh[:, 1]], axis=1), phi, [1]))


@pytest.mark.parametrize("order", [np.arange(20), list(range(20)), DAYS[:20]])
def test_new_rows_have_no_places_in_an_array(order):
    X = np.random.default_rng(0).normal(size=(20, 4))
    posterior = nmd.sample(X, 1, order=order, draws=4, tune=2, random_state=0)
    with pytest.raises(ValueError, match="order= was an array: give the name of a dimension"):
        posterior.fold_in(X)


def test_phases_without_rows_keep_the_period_of_the_season():
    """Rows from 8 to 17 hours alone: the day still has 24 phases, and a new row its own."""
    hours = pd.date_range("2024-01-01", periods=24 * 20, freq="h", name="hour")
    hours = hours[(hours.hour >= 8) & (hours.hour < 18)]
    rng = np.random.default_rng(0)
    X = np.sin(hours.hour.to_numpy()[:, None] / [2, 3, 4]) + 0.1 * rng.normal(size=(hours.size, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    frame = pd.DataFrame(X, hours, list("abc"))
    fit = nmd.sample(frame[:-10], 1, order="hour", groups=1, draws=20, tune=20, random_state=0)
    assert fit.draws.sizes["phase"] == 24
    later = fit.fold_in(frame[-10:])
    np.testing.assert_array_equal(later.draws["phases"], (hours[-10:].hour - 8) % 24)
