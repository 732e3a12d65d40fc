"""Probabilities of classes, and data with their holes filled, in results and in files."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from made_draws import made_up, plain
from people import check_filled, people, with_holes
from scipy.special import expit
from scipy.stats import norm
from stored import stored

import nmd_lab as nmd
from nmd_lab.result.files import export, filled_table

X = with_holes(people(50))


@pytest.fixture(scope="module")
def fit():
    return nmd.complete(X, 2, alpha=0.5, random_state=0)


def test_each_hole_has_its_prediction_or_its_most_probable_class_and_the_rest_is_kept(fit):
    before, holes = X.copy(), X.isna()
    filled, model = fit.impute(X), fit.reconstruct().to_pandas()
    check_filled(filled, before)
    assert X.equals(before)
    for name in ("cm", "visits"):
        wanted = model[name][holes[name]]
        wanted = wanted if name == "cm" else wanted.round()
        np.testing.assert_allclose(filled[name][holes[name]].astype(float), wanted)
    for name in ("smokes", "mood", "town"):
        likely = fit.probabilities(name).idxmax(axis=1)
        assert filled[name][holes[name]].tolist() == likely[holes[name]].tolist()


def test_probabilities_are_those_of_the_model(fit):
    scores = (fit.W.values @ fit.H.values).astype(float)
    labels = fit.reconstruct().to_pandas().columns.tolist()
    model = fit._model

    def score(label):
        kind = model.column_models[labels.index(label)]
        return kind, kind.centre + kind.size * scores[:, labels.index(label)]

    _, t = score("smokes")
    np.testing.assert_allclose(fit.probabilities("smokes")[True], expit(t), rtol=1e-10)
    np.testing.assert_allclose(fit.reconstruct().to_pandas()["smokes"], expit(t), rtol=1e-10)
    kind, t = score("mood")
    cuts = np.concatenate([[-np.inf], kind.loss.cut_points, [np.inf]])
    expected = np.diff(norm.cdf(cuts[None] - t[:, None]), axis=1)
    np.testing.assert_allclose(fit.probabilities("mood"), expected, atol=1e-8)
    towns = ["Ulm", "Bonn", "Köln"]
    odds = np.exp([score(f"town={town}")[1] for town in towns]).T
    expected = odds / odds.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fit.probabilities("town"), expected, rtol=1e-8)
    assert list(fit.probabilities("town").columns) == towns


def test_a_fit_of_one_loss_has_probabilities_too():
    rng = np.random.default_rng(0)
    A = 2 * rng.normal(size=(40, 1)) @ rng.normal(size=(1, 12))
    X = np.where(rng.random(A.shape) < expit(A), 1.0, -1.0)
    fit = nmd.complete(X, 1, "identity", "logistic", alpha=0.5, random_state=0)
    p = fit.probabilities(3)
    assert list(p.columns) == [-1.0, 1.0]
    np.testing.assert_allclose(2 * p[1.0] - 1, fit.reconstruct().values[:, 3], atol=1e-8)


def test_each_copy_is_one_draw_and_they_are_evenly_along_the_chain_of_each_member():
    X = np.ma.masked_greater(np.arange(12.0).reshape(4, 3), 5)
    member = np.random.default_rng(0).permuted(np.repeat([[0, 1, 2]], [5, 10, 15], axis=1), axis=1)
    member = np.concatenate([member, member[:, ::-1]])
    posterior = made_up(X, rho=np.full((2, 30), 1e14), member=member)
    of_draws = plain(posterior)[0][:, 2:]
    values = np.array([copy[2:] for copy in posterior.impute(X, n=30, random_state=0)])
    used = np.abs(values[:, None] - of_draws).max(axis=(2, 3)).argmin(axis=1)
    np.testing.assert_allclose(of_draws[used], values, atol=1e-5)
    places = np.argsort(np.argsort(member.ravel(), kind="stable"))
    gaps = np.diff(np.sort(places[used]))
    assert gaps.min() >= 1
    assert gaps.max() <= 4


# Tables for files --------------------------------------------------------------------------------

OPTIONS = {"alpha": 0, "max_iter": 3, "tol": 0}


@pytest.fixture
def numbers(rng):
    return np.where(rng.random((6, 4)) < 0.2, np.nan, rng.random((6, 4)) + 0.5)


@pytest.mark.parametrize("kind", ["array", "frame", "sparse", "several dimensions"])
def test_known_cells_stay_and_holes_are_predictions(kind, numbers):
    X = numbers
    fit = nmd.complete(X, 1, "identity", **OPTIONS)
    data = {"array": X, "frame": pd.DataFrame(X), "sparse": stored(X)}.get(kind)
    if data is None:
        data = xr.DataArray(X.reshape(6, 2, 2), dims=("time", "lat", "lon"))
        fit = nmd.complete(data, 1, "identity", sample_dims="time", **OPTIONS)
    filled, seen = filled_table(fit, data).to_numpy(), ~np.isnan(X)
    np.testing.assert_array_equal(filled[seen], X[seen])
    expected = fit._fitted.block()
    np.testing.assert_array_equal(filled[~seen], expected[~seen])
    np.testing.assert_array_equal(filled_table(fit, None), expected)


def test_absent_entries_that_are_zeros_stay_zeros(numbers):
    X = stored(numbers)
    fit = nmd.decompose(X, 1, "identity", max_iter=3, tol=0)
    np.testing.assert_array_equal(filled_table(fit, X), X.toarray())


@pytest.mark.parametrize("index", [None, pd.Index(list("uvwxyz"), name="id")])
@pytest.mark.parametrize("columns", [None, list("abcd")])
def test_a_file_has_the_labels_that_the_data_have(index, columns, numbers, tmp_path):
    frame = pd.DataFrame(np.nan_to_num(numbers), index, columns)
    export(nmd.decompose(frame, 1, "identity", max_iter=3), tmp_path / "o.csv", frame)
    frame.to_csv(tmp_path / "x.csv", index=index is not None, header=columns is not None)
    assert (tmp_path / "o.csv").read_text() == (tmp_path / "x.csv").read_text()
