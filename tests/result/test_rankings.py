"""Fits compared with data, and with each other: masks, weights, maps, scores.

The best columns of rows, which are named by label or position, and those of components.
"""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import nmd_lab
from nmd_lab import metrics

USERS = [f"user {i}" for i in range(1, 13)]
ITEMS = [f"item {j}" for j in range(9)]
COORDS = {"lat": [1, 2, 3, 4], "time": np.arange(6) * 10, "lon": list("abcde")}
CUBE = xr.DataArray(np.random.default_rng(20240229).random((4, 6, 5)), COORDS, [*COORDS])


@pytest.fixture
def X(rng):
    return rng.normal(size=(12, 2)) @ rng.normal(size=(2, 9)) + 4


@pytest.fixture
def fit(X):
    frame = pd.DataFrame(X, pd.Index(USERS, name="user"), pd.Index(ITEMS, name="item"))
    return nmd_lab.complete(frame, 2, alpha=0, max_iter=5, tol=0, random_state=0)


@pytest.mark.parametrize(("rows", "named", "positions"), [
    (USERS, ["user 3", -1, 0, "user 1"], [2, 11, 0, 0]),
    (np.arange(12) * 10, [10, 30], [1, 3]),  # integers among integer labels are labels
    (np.arange(12), [-1, 3], [11, 3]),  # these labels are positions
    ([*range(1, 12), "x"], [1, "x"], [0, 11]),
    (np.arange(12) + 0.5, [0.5, 1], [0, 1]),
    (pd.date_range("2020-01-01", periods=12), [pd.Timestamp("2020-01-02"), 0], [1, 0]),
    (pd.MultiIndex.from_product([list("abc"), [1, 2, 3, 4]]), [("b", 2), 0], [5, 0]),
], ids=["text", "integers", "counted", "some integers", "numbers", "dates", "levels"])  # fmt: skip
def test_rows_are_named_by_label_or_position(X, rows, named, positions):
    fit = nmd_lab.complete(pd.DataFrame(X, rows, ITEMS), 2, alpha=0, max_iter=5, tol=0)
    expected = fit.reconstruct().values
    np.testing.assert_allclose(fit.predict(named, "item 1"), expected[positions, 1])
    for one, position in zip(named, positions, strict=True):
        np.testing.assert_allclose(fit.top(one, 9).values, -np.sort(-expected[position]))
    best = fit.top(named, 9)
    assert best.dims == ("row", "place")
    np.testing.assert_allclose(best.values, -np.sort(-expected[positions]))
    np.testing.assert_array_equal(best.position, np.argsort(-expected[positions]))


def test_columns_are_left_out_by_label(fit):
    best = fit.top(3, k=4)
    names = [str(name) for name in best["item"].values[:2]]
    rest = fit.top(3, k=2, exclude=best.position.values[:2])
    np.testing.assert_array_equal(rest.position, best.position[2:])
    of_several = [fit.top([3], k=2, exclude=some) for some in (names, best.position.values[:2])]
    xr.testing.assert_identical(*of_several)
    rated = pd.Series([4.0, np.nan, 2.0, 1.0], index=[names[0], "item 1", names[1], "another"])
    kept = [name for name in names if name != "item 1"]
    assert len(kept) == 2
    for left_out in (names, rated, rated.notna()):
        xr.testing.assert_identical(fit.top(3, k=2, exclude=left_out), rest)


def test_rows_and_columns_of_several_dimensions():
    fit = nmd_lab.decompose(CUBE, 2, sample_dims="time", max_iter=5, tol=0)
    whole = fit.reconstruct()
    best = fit.top([30, 0], k=2)
    assert best.dims == ("time", "place")
    first = whole.isel(time=3)
    assert float(best[0, 0]) == pytest.approx(float(first.max()))
    place = first.sel(lat=best.lat[0, 0].item(), lon=best.lon[0, 0].item())
    assert float(place) == pytest.approx(float(first.max()))
    fit = nmd_lab.decompose(CUBE, 2, sample_dims=["lat", "lon"], max_iter=5, tol=0)
    assert fit.top([0, 7], k=3).shape == (2, 3)
    assert fit.top(np.array([], dtype=int), k=3).shape == (0, 3)
    assert fit.top(7, k=3).lon.item() == "c"


def test_names_of_x_that_the_result_uses_too_keep_their_labels(X):
    names = pd.Index(USERS, name="place"), pd.Index(ITEMS, name="position")
    fit = nmd_lab.complete(pd.DataFrame(X, *names), 2, alpha=0, max_iter=5, tol=0)
    best = fit.top(USERS[3], k=4)
    assert list(best.X_position.values) == [ITEMS[j] for j in best.position.values]
    assert best.X_place.item() == USERS[3]


# Of components ----------------------------------------------------------------------------------


def test_columns_come_by_the_size_of_the_numbers_of_their_component():
    names = [f"term {j}" for j in range(7)]
    terms = np.maximum(np.random.default_rng(0).normal(size=(12, 7)), 0)
    fit = nmd_lab.decompose(pd.DataFrame(terms, columns=names), 3, max_iter=5, random_state=0)
    top = fit.top_of_components(4)
    assert top.sizes == {"component": 3, "place": 4}
    assert (top < 0).any()
    for c in range(3):
        series = pd.Series(fit.H.values[c], names).sort_values(key=np.abs, ascending=False)[:4]
        assert list(top.column.values[c]) == list(series.index)
        np.testing.assert_array_equal(top.values[c], series)
        np.testing.assert_array_equal(fit.H.values[c][top.position[c]], series)


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


def test_maps_over_time():
    fit = nmd_lab.decompose(CUBE, 2, sample_dims="time", max_iter=5, tol=0)
    part = CUBE.isel(time=[4, 1], lon=[3, 0]).transpose("lon", "lat", "time")
    predicted = fit.predict(part)
    assert predicted.dims == part.dims
    expected = fit.reconstruct().isel(time=[4, 1], lon=[3, 0]).transpose("lon", "lat", "time")
    np.testing.assert_allclose(predicted, expected)
    assert metrics.rmse(part, predicted) == pytest.approx(metrics.rmse(part, expected))
    assert metrics.rmse(part, fit.reconstruct()) == pytest.approx(metrics.rmse(part, expected))
    new, turned = (fit.fold_in(each.isel(time=[2, 0])) for each in (CUBE, CUBE.transpose()))
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
