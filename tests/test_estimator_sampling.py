"""MatrixCompletion with inference="sample": the posterior of `nmd.sample` for scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from helpers import check_all_refused, check_filled, people, stored, with_holes
from sklearn.base import clone

import nmd_lab as nmd

SHORT = {"inference": "sample", "n_draws": 80, "n_tune": 40, "random_state": 0}


@pytest.fixture(scope="module")
def X():
    rng, of_noise = (np.random.default_rng(seed) for seed in (1, 2))
    X = rng.normal(size=(90, 2)) @ rng.normal(size=(2, 24)) + rng.normal(size=24)
    X += 0.2 * of_noise.normal(size=X.shape)
    X[of_noise.random(X.shape) < 0.3] = np.nan
    return X


@pytest.fixture(scope="module")
def model(X):
    return nmd.MatrixCompletion(4, **SHORT).fit(X[:70])


def test_it_is_the_posterior_of_the_command(model, X):
    posterior = nmd.sample(X[:70], 4, draws=80, tune=40, random_state=0)
    assert posterior.draws.identical(model.posterior_.draws)
    i, j = np.nonzero(np.isnan(X[:70]))
    filled = model.transform(X[:70])
    np.testing.assert_allclose(filled[i, j], posterior.predict(i, j), rtol=1e-12)
    np.testing.assert_array_equal(filled[~np.isnan(X[:70])], X[:70][~np.isnan(X[:70])])
    mean, std = model.predict(i, j, return_std=True)
    np.testing.assert_array_equal(mean, posterior.predict(i, j))
    np.testing.assert_array_equal(std, posterior.predict_std(i, j))
    np.testing.assert_array_equal(model.predict(np.stack([i, j], axis=1)), mean)
    assert (model.n_components_, model.n_iter_) == (4, 120)
    seen = ~np.isnan(X[:70])
    residual = (X[:70] - posterior.reconstruct().values)[seen]
    assert model.reconstruction_err_ == pytest.approx(np.linalg.norm(residual), rel=1e-9)


def test_rows_of_the_fit_are_recognised_in_any_order_and_form(model, X):
    order = np.random.default_rng(3).permutation(70)
    filled = model.transform(X[:70])
    np.testing.assert_array_equal(model.transform(X[order]), filled[order])
    for table in (stored(X[:70]), stored(X[:70], layout="coo")):
        np.testing.assert_array_equal(model.transform(table), filled)


def test_fitting_anew_forgets_the_other_inference(X):
    model = nmd.MatrixCompletion(2, **SHORT).fit(X)
    assert not hasattr(model, "components_")
    model.set_params(inference="fit", alpha=0.1, max_iter=5).fit(X)
    assert not hasattr(model, "posterior_")
    assert model.components_.shape == (2, 24)


@pytest.fixture(scope="module")
def table():
    return with_holes(people(60), 0.1).reset_index(drop=True)


@pytest.fixture(scope="module")
def of_table(table):
    return nmd.MatrixCompletion(2, **SHORT).fit(table[:50])


def test_a_table_of_several_kinds_keeps_its_types(of_table, table):
    filled = of_table.transform(table[:50])
    pd.testing.assert_frame_equal(filled, of_table.posterior_.impute(table[:50]))
    order = [30, 55, 7, 51, 2]  # rows of the fit and others
    some = of_table.transform(table.iloc[order])
    check_filled(some, table.iloc[order])
    pd.testing.assert_frame_equal(some.loc[[30, 7, 2]], filled.loc[[30, 7, 2]])
    assert list(of_table.get_feature_names_out()) == list(table)
    shown = clone(of_table).set_output(transform="pandas").fit(table).transform(table)
    check_filled(shown, table)
    assert of_table.score(table[:50]) > 0.3
    assert of_table.reconstruction_err_ < 0.5 * np.sqrt(180)


def test_copies_are_draws(of_table, table):
    first, second = of_table.sample_transform(table, 2, random_state=0)
    check_filled(first, table)
    assert not first.equals(second)
    pd.testing.assert_frame_equal(first, of_table.sample_transform(table, 2, random_state=0)[0])
    assert not hasattr(nmd.MatrixCompletion(2), "sample_transform")


@pytest.fixture(scope="module", params=["index", "column", "table"])
def series(request):
    """Days of oscillations and weeks in six columns, two gaps, and a model of the first 100."""
    t, rng = np.arange(130), np.random.default_rng(0)
    waves = np.column_stack([np.sin(t / 6), np.cos(t / 9)]) @ rng.normal(size=(2, 6))
    waves += np.sin(2 * np.pi * t / 7)[:, None]
    days = pd.date_range("2020-01-01", periods=130, name="day")
    X = pd.DataFrame(waves + 0.05 * rng.normal(size=waves.shape), days, list("abcdef"))
    X.iloc[[*range(20, 26), *range(60, 65)]] = np.nan
    if request.param == "table":
        X["high"] = (X["a"] > 0).astype("boolean").mask(X["a"].isna())
    X, order = (X.reset_index(), "day") if request.param == "column" else (X, None)
    return X, nmd.MatrixCompletion(3, **SHORT, order=order).fit(X[:100])


def test_later_rows_of_a_frame_are_forecast_as_by_the_posterior(series):
    X, model = series
    names = list("abcdef")
    later = X[100:].mask(np.isin(X.columns, [*names, "high"]) & X[100:].notna())
    wanted = model.posterior_.impute(later)[names]
    assert model.posterior_.draws.sizes["phase"] == 7
    both = pd.concat([X[90:100], later])
    filled, *copies = (
        pd.DataFrame(each, both.index, X.columns)[names][10:].astype(float)
        for each in (model.transform(both), *model.sample_transform(both, 80, random_state=0))
    )
    np.testing.assert_allclose(filled, wanted, rtol=1e-5, atol=1e-6)
    z = (np.mean(copies, axis=0) - wanted) / np.std(copies, axis=0) * np.sqrt(80)
    assert np.abs(z).max(axis=None) < 5


def test_rows_in_order_are_those_of_the_fit_by_entries_and_place(series):
    X, model = series
    wanted = model.posterior_.impute(X[:100])
    for rows in (range(100), [61, 7, 22]):  # equal rows of the gaps have places of their own
        found = pd.DataFrame(model.transform(X.iloc[rows]), X.index[rows], X.columns)
        pd.testing.assert_frame_equal(
            found.astype(wanted.dtypes), wanted.iloc[rows], check_freq=False
        )


def test_new_rows_without_a_place_are_refused(series):
    X, model = series
    words, rows = "X has no labels along 'day'", X[100:].reset_index(drop=True)
    if "day" not in X:
        calls = (model.transform, model.predict, model.sample_transform, model.posterior_.impute)
        check_all_refused([(words, call, rows) for call in calls])


def test_new_rows_have_no_place_in_an_order_by_an_array(X):
    model = nmd.MatrixCompletion(4, **SHORT, order=np.arange(70)).fit(X[:70])
    assert model.posterior_.draws.times.values.tolist() == list(range(70))
    assert np.isfinite(model.transform(X[:70])).all()
    with pytest.raises(ValueError, match="since order= was an array"):
        model.transform(X[70:])
