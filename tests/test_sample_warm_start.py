"""Chains that begin where those of another posterior ended, or at a fit."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import nmd_lab as nmd

QUICK = {"draws": 12, "tune": 8, "random_state": 0, "progress": False}


@pytest.fixture(scope="module")
def with_holes():
    rng = np.random.default_rng(1)
    truth = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20)) + 1
    X = truth + 0.2 * rng.normal(size=truth.shape)
    return np.where(rng.random(X.shape) < 0.3, np.nan, X)


def predictions(posterior):
    m, n = posterior.shape
    return posterior.predict(*np.divmod(np.arange(m * n), n))


@pytest.mark.parametrize(
    ("nonlinearity", "loss"),
    [("identity", "frobenius"), ("relu", "frobenius"), ("relu", "l1"), ("identity", "l1")],
)
def test_going_on_is_one_long_run(with_holes, nonlinearity, loss):
    given = (with_holes, 2, nonlinearity, loss)
    long = nmd.sample(*given, **QUICK | {"draws": 16})
    first = nmd.sample(*given, **QUICK)
    both = nmd.sample(*given, init=first, **QUICK | {"draws": 4, "tune": None})
    assert both.draws.sizes["draw"] == 16
    xr.testing.assert_identical(both.draws.isel(draw=slice(12)), first.draws)
    np.testing.assert_allclose(both.draws["rho"], long.draws["rho"], rtol=1e-3)
    np.testing.assert_allclose(predictions(both), predictions(long), rtol=1e-3, atol=1e-3)
    assert both.parameters["sweeps"] == long.parameters["sweeps"]


def test_going_on_with_cut_points(with_holes):
    levels = np.where(np.isnan(with_holes), np.nan, np.digitize(with_holes, [0, 1, 2]))
    first = nmd.sample(levels, 2, loss="ordinal", **QUICK)
    both = nmd.sample(levels, 2, loss="ordinal", init=first, **QUICK | {"draws": 1, "tune": 0})
    cuts = both.draws["cut_points"].values[0]
    np.testing.assert_array_equal(cuts[:, 0], cuts[0, 0])
    assert (np.diff(cuts, axis=1) > 0).all()


def test_a_fit_is_a_start(with_holes):
    fit = nmd.complete(with_holes, 2, offsets="both", max_iter=50, progress=False)
    posterior = nmd.sample(with_holes, 2, init=fit, **QUICK | {"tune": 0})
    seen = np.nonzero(~np.isnan(with_holes))
    error = np.sqrt(np.mean((posterior.predict(*seen) - with_holes[seen]) ** 2))
    assert error < 0.4
