"""New rows of a posterior in order: forecasts, rows between fitted ones, and other series."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from densities import assert_standard_normal
from helpers import DAYS, series

import nmd_lab as nmd

M, N, RANK = 80, 6, 2
FIRST, STEP = pd.Timestamp("2020-01-01"), pd.Timedelta("2D")


def dates(places):
    """Return dates, given as rows from the first fitted one, which may be no whole numbers."""
    return FIRST + np.asarray(places, float) * STEP


def rows_at(places, X=None):
    X = np.full((len(places), N), np.nan) if X is None else X
    return xr.DataArray(X, dims=("time", "place"), coords={"time": dates(places)})


@pytest.fixture(scope="module")
def fitted():
    X = series(M, N, (0.97, 0.8), seed=1) + 3
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    X[60:64] = np.nan
    options = {"draws": 400, "tune": 100, "random_state": 0}
    return nmd.sample(rows_at(range(M), X), RANK, order="time", sample_dims="time", **options)


def states(posterior):
    """Return W (draws, m, rank) of a posterior, in units of its prior, and φ (draws, rank)."""
    draws = posterior.draws.isel(chain=0)
    units = np.diagonal(draws["row_precision"].values[:, 0], axis1=1, axis2=2) ** -0.5
    return draws["W"].values / units[:, None, :RANK], draws["phi"].values[:, :RANK]


def columns_of(posterior):
    """Return H (draws, rank, n) for states in their unit, offsets, and the units of the columns."""
    draws = posterior.draws.isel(chain=0)
    units = np.diagonal(draws["row_precision"].values[:, 0], axis1=1, axis2=2) ** -0.5
    offsets = draws["column_offsets"].values[:, None] + posterior._draws.mean
    kinds = posterior._draws.model.column_models
    centre, size = np.array([(kind.centre, kind.size) for kind in kinds]).T
    return draws["H"].values * units[:, :RANK, None], offsets, centre, size


def innovations(w, phi, steps):
    """Return what is new in each row, given that before it, (number, draw)."""
    a = phi[:, None] ** np.asarray(steps)[:, None]
    return ((w[:, 1:] - a * w[:, :-1]) / np.sqrt(1 - a**2)).reshape(len(w), -1).T


def test_forecasts_follow_the_last_row_and_each_other_in_any_order(fitted):
    """Steps count in units of the median step of the fitted rows, two days."""
    places = np.array([M + 1.5, M, M + 4, M + 1])
    (w, phi), (new, _) = states(fitted), states(fitted.fold_in(rows_at(places)))
    w = np.concatenate([w[:, -1:], new[:, np.argsort(places)]], axis=1)
    assert_standard_normal(innovations(w, phi, np.diff([M - 1, *np.sort(places)])))


def test_entries_of_new_rows_count_beside_both_neighbours(fitted):
    """Half-way between two rows, with two entries: the Gaussian of the state given all."""
    X = np.full((1, N), np.nan)
    X[0, [1, 4]] = 4.0, 1.0
    between = fitted.fold_in(rows_at([20.5], X))
    (w, phi), (new, _) = states(fitted), states(between)
    H, offsets, centre, size = (each[..., [1, 4]] for each in columns_of(fitted))
    rho = fitted.draws["rho"].values[0][:, [1, 4]]
    y = (X[0, [1, 4]] - centre) / size - offsets[:, 0]
    z = []
    for s in range(len(new)):
        precision = np.diag((1 + phi[s]) / (1 - phi[s])) + (H[s] * rho[s]) @ H[s].T
        of_both = np.sqrt(phi[s]) / (1 - phi[s]) * (w[s, 20] + w[s, 21])
        mean = np.linalg.solve(precision, of_both + H[s] @ (rho[s] * y[s]))
        z.append(np.linalg.cholesky(precision).T @ (new[s, 0] - mean))
    assert_standard_normal(np.transpose(z))


def test_forecasts_repeat_and_follow_their_seed(fitted):
    first, again, other = (fitted.fold_in(rows_at([M]), random_state=k) for k in (0, 0, 1))
    xr.testing.assert_identical(first.draws, again.draws)
    assert not np.array_equal(first.draws["W"], other.draws["W"])


def test_rows_of_another_series_are_at_the_stationary_distribution():
    X = series(60, N, (0.95, 0.7), 0.3)
    index = pd.MultiIndex.from_product([["x", "y"], DAYS[:30]], names=["station", "day"])
    options = {"draws": 400, "tune": 30, "random_state": 0, "sample_dims": "row"}
    labelled = xr.DataArray(X, dims=("row", "place"), coords={"row": index})
    posterior = nmd.sample(labelled, RANK, order="day", **options)
    new = pd.MultiIndex.from_arrays([[*"zyz"], DAYS[[30, 30, 31]]], names=index.names)
    rows = xr.DataArray(np.full((3, N), np.nan), dims=("row", "place"), coords={"row": new})
    ahead = posterior.fold_in(rows)
    (w, phi), (fresh, _) = states(posterior), states(ahead)
    assert_standard_normal(fresh[:, 0].T)
    assert_standard_normal(innovations(fresh[:, [0, 2]], phi, [1]))
    assert_standard_normal(innovations(np.stack([w[:, 59], fresh[:, 1]], axis=1), phi, [1]))


def test_new_rows_have_their_phase_of_the_season():
    """Rows from 8 to 17 hours alone: the day has 24 phases, and 8 hours come 15 after 17 hours."""
    hours = pd.date_range("2024-01-01", periods=24 * 20, freq="h", name="hour")
    hours = hours[(hours.hour >= 8) & (hours.hour < 18)]
    rng = np.random.default_rng(0)
    X = np.sin(hours.hour.to_numpy()[:, None] / [2, 3, 4]) + series(hours.size, 3, (0.95,), 0.3)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[-10], X[-9:] = [-1.0, 0.5, 1.0], np.nan
    data = xr.DataArray(X, dims=("hour", "place"), coords={"hour": hours})
    options = {"draws": 400, "tune": 50, "random_state": 0, "sample_dims": "hour"}
    fit = nmd.sample(data[:-10], 1, order="hour", **options)
    assert fit.draws.sizes["phase"] == 24
    later = fit.fold_in(data[-10:])
    np.testing.assert_array_equal(later.draws["phases"], (hours[-10:].hour - 8) % 24)
    (w, phi), (new, _) = states(fit), states(later)
    H, offsets, centre, size = columns_of(fit)
    y = (X[-10] - centre) / size - offsets[:, 0] - fit.draws["season"].values[0, :, 0]
    a, weights = phi[:, 0] ** 15, fit.draws["rho"].values[0] * H[:, 0]
    precision = 1 / (1 - a**2) + np.sum(weights * H[:, 0], axis=1)
    mean = (a / (1 - a**2) * w[:, -1, 0] + np.sum(weights * y, axis=1)) / precision
    assert_standard_normal((np.sqrt(precision) * (new[:, 0, 0] - mean))[None])
