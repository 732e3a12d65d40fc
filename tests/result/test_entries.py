"""Fits compared with data, and with each other: masks, weights, large sparse data, maps, scores."""

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


# Several fits -------------------------------------------------------------------------------------


def test_scores_of_fits_and_of_held_out_entries(small, rng):
    fits = {f"{f} {d}": nmd_lab.decompose(small, 2, f, d, max_iter=20) for f in ("relu", "identity")
            for d in ("frobenius", "l1")}  # fmt: skip
    held_out = rng.random(small.shape) < 0.2
    scores = nmd_lab.compare(fits, small, observed=held_out)
    assert list(scores.fit.values) == list(fits)
    for name, fit in fits.items():
        one = scores.sel(fit=name)
        assert one.relative_error == fit.relative_error
        assert one.objective == fit.objective
        assert one.stop_reason == fit.stop_reason
        assert one["rank"] == 2
        for measure in (metrics.rmse, metrics.mae):
            expected = measure(small, fit.reconstruct().values, observed=held_out)
            assert float(one[measure.__name__]) == pytest.approx(expected, rel=1e-12)
    assert len(set(scores.observations_hash.values)) == 1


def test_a_list_is_numbered_and_needs_no_data(small):
    fits = [nmd_lab.decompose(small * k, 2, max_iter=3) for k in (1, 2)]
    scores = nmd_lab.compare(fits)
    assert list(scores.fit.values) == [0, 1]
    assert "rmse" not in scores
    assert len(set(scores.observations_hash.values)) == 2
    assert scores.to_dataframe().shape == (2, 9)


def test_its_sentence_says_which_is_best_and_what_should_worry(small, rng):
    a, b = (nmd_lab.decompose(small, rank, max_iter=300, random_state=0) for rank in (1, 4))
    scores = nmd_lab.compare({"a": a, "b": b}, small)
    assert scores.rmse[1] < scores.rmse[0]
    excess = float(scores.rmse[0] - scores.rmse[1])
    best = f"b has the lowest root mean squared error, {float(scores.rmse[1]):.4g}."
    assert best in scores.sentence
    assert f"a is second and differs from it, with {excess:.2g} ± " in scores.sentence
    assert "does not differ significantly" in nmd_lab.compare({"b": b, "a": b}, small).sentence
    assert "different data" not in scores.sentence
    other = nmd_lab.decompose(2 * small, 4, max_iter=2, random_state=0)
    worried = nmd_lab.compare(b, other).sentence
    assert worried.startswith("Give X= for errors that compare.")
    assert worried.endswith("Not converged: 1. The fits are of different data.")
