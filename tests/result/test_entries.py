"""Fits compared with data: masks, weights, large sparse data and maps."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import nmd_lab
from nmd_lab import metrics


def test_masks_and_weights():
    rng = np.random.default_rng(0)
    X, test = rng.normal(size=(12, 2)) @ rng.normal(size=(2, 9)) + 4, rng.random((12, 9)) < 0.3
    frame, weights = pd.DataFrame(X), rng.uniform(0, 2, X.shape)
    options = {"alpha": 0, "max_iter": 5, "tol": 0, "random_state": 0, "dtype": "float32"}
    fit = nmd_lab.complete(frame.mask(test), 2, **options)
    error, w = (X - fit.reconstruct().values)[test], weights[test]
    expected = 1 - np.sum(w * error**2) / np.sum(w * X[test] ** 2)
    rmse = np.sqrt(np.sum(w * error**2) / w.sum())
    given = {"weights": weights, "observed": test}
    assert fit.predict(X).dtype == fit.fold_in(frame).dtype == np.float32
    assert fit.score(X, **given) == pytest.approx(expected)
    assert float(nmd_lab.compare(fit, X=X, **given).rmse[0]) == pytest.approx(rmse)
    assert metrics.rmse(X, fit.reconstruct(), **given) == pytest.approx(rmse)


def test_scores_of_perfect_and_zero_predictions():
    X = np.outer([1.0, 2.0, 3.0], [1.0, 2.0])
    fit = nmd_lab.complete(X, 1, alpha=0, random_state=0)
    assert fit.score(X) == pytest.approx(1)
    assert fit.score(np.zeros((3, 2))) < 1
    fit.W.values[:] = 0
    assert fit.score(X) == 0
    assert fit.score(np.zeros((3, 2))) == 1


def test_maps_over_time(rng):
    cube = xr.DataArray(
        rng.random((4, 6, 5)),
        dims=("lat", "time", "lon"),
        coords={"lat": [1, 2, 3, 4], "time": np.arange(6) * 10, "lon": list("abcde")},
    )
    fit = nmd_lab.decompose(cube, 2, sample_dims="time", max_iter=5, tol=0)
    part = cube.isel(time=[4, 1], lon=[3, 0]).transpose("lon", "lat", "time")
    predicted = fit.predict(part)
    assert predicted.dims == part.dims
    expected = fit.reconstruct().isel(time=[4, 1], lon=[3, 0]).transpose("lon", "lat", "time")
    np.testing.assert_allclose(predicted, expected)
    assert metrics.rmse(part, predicted) == pytest.approx(metrics.rmse(part, expected))
    assert metrics.rmse(part, fit.reconstruct()) == pytest.approx(metrics.rmse(part, expected))
    new, turned = (fit.fold_in(each.isel(time=[2, 0])) for each in (cube, cube.transpose()))
    assert new.dims == ("time", "component")
    np.testing.assert_allclose(turned, new, atol=1e-6)
