"""Probabilities of classes, data with their holes filled, and cells that are empty on purpose."""

import re
from ast import literal_eval
from functools import partial

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from helpers import check_all_refused, check_filled, people, stored, with_holes
from made_draws import made_up, plain
from scipy.special import expit
from scipy.stats import norm

import nmd_lab as nmd
from nmd_lab.result.files import export, filled_table
from nmd_lab.result.fill import skips_of

X = with_holes(people(50))


@pytest.fixture(scope="module")
def fit():
    return nmd.complete(X, 2, alpha=0.5, random_state=0)


def test_each_hole_has_its_prediction_or_its_most_probable_class_and_the_rest_is_kept(fit):
    before, holes = X.copy(), X.isna()
    filled, model = fit.impute(X), fit.reconstruct().to_pandas().round({"visits": 0})
    check_filled(filled, before)
    assert X.equals(before)
    for name in ("cm", "visits"):
        found, wanted = (each[name][holes[name]].astype(float) for each in (filled, model))
        np.testing.assert_allclose(found, wanted)
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


QUICK = {"draws": 10, "tune": 5, "groups": 1, "random_state": 0}


def survey(m=300, seed=0, share=0.1):
    """Return answers: only adults are asked whether they smoke, and only smokers how much."""
    rng = np.random.default_rng(seed)
    adult, smoker, mood = rng.random((3, m)) < [[0.7], [0.5], [0.4]]
    full = pd.DataFrame(
        {
            "is adult": pd.array(adult, dtype="boolean"),
            "smoker": np.where(smoker, "yes", "no"),
            "cigs": pd.array(rng.poisson(9, m), dtype="Int64"),
            "mood": np.where(mood, "good", "bad"),
            "age": rng.normal(40, 9, m),
        }
    )
    frame = full.mask(rng.random(full.shape) < share)
    frame["smoker"] = frame["smoker"].where(adult)
    frame["cigs"] = frame["cigs"].where(adult & smoker)
    return frame


@pytest.fixture(scope="module")
def answers():
    frame = survey()
    return frame, nmd.sample(frame, 2, **QUICK)


CONDITIONS = ["smoker == 'yes'", lambda filled: (filled["smoker"] == "yes").to_numpy()]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_cell_stays_empty_where_the_condition_does_not_hold_in_the_copy(answers, condition):
    X, posterior = answers
    whole = [posterior.impute(X), *posterior.impute(X, 3, random_state=1)]
    fill = {"cigs": condition}
    found = [posterior.impute(X, fill=fill), *posterior.impute(X, 3, fill=fill, random_state=1)]
    for some, every in zip(found, whole, strict=True):
        skipped = X["cigs"].isna() & (every["smoker"] == "no")
        assert skipped[X["smoker"].isna()].any()
        pd.testing.assert_frame_equal(some, every.assign(cigs=every["cigs"].mask(skipped)))


def test_a_condition_sees_the_cells_before_it_empty_and_does_not_hold_where_it_is_missing(answers):
    X, posterior = answers
    fill = {"smoker": "`is adult`", "cigs": lambda X: X["smoker"].map({"yes": True, "no": False})}
    filled = posterior.impute(X, fill=fill)
    adult, smoker = filled["is adult"].to_numpy(bool), filled["smoker"]
    assert (smoker.notna() == adult)[X["smoker"].isna()].all()
    assert (filled["cigs"].notna() == (smoker == "yes"))[X["cigs"].isna()].all()
    assert smoker[X["cigs"].isna() & adult].isin(["yes", "no"]).all()


@pytest.mark.parametrize("n", [None, 1])
def test_a_mask_is_that_of_the_cells_to_be_filled(frame, posterior, n):
    mask = pd.DataFrame(np.random.default_rng(0).random(frame.shape) < 0.5, *frame.axes)
    fills = None, mask.iloc[::-1, ::-1], np.zeros(frame.shape, bool)
    found = [posterior.impute(frame, n, fill=fill, random_state=0) for fill in fills]
    whole, some, none = found if n is None else (each[0] for each in found)
    pd.testing.assert_frame_equal(none, frame)
    for name in frame:
        wanted = whole[name].where(frame[name].notna() | mask[name])
        pd.testing.assert_series_equal(some[name], wanted)


def test_every_type_of_column_stays_what_it_is():
    X = people(60).assign(
        day=pd.date_range("2020", periods=60, tz="Europe/Berlin"),
        object=(np.arange(60) % 3 == 0).astype(object),
        text=np.array(["a", "b", "b"] * 20, dtype=object),
    )
    X = X.mask(np.eye(*X.shape) > 0)
    fill = dict.fromkeys(X, lambda X: np.zeros(60, bool))
    pd.testing.assert_frame_equal(nmd.impute(X, fill=fill, **QUICK), X)


@pytest.mark.parametrize("of", [np.asarray, np.ma.masked_invalid, list, xr.DataArray])
def test_a_mask_goes_with_arrays(of):
    X = np.random.default_rng(0).normal(size=(4, 5))
    X[0, :3] = np.nan
    mask = np.ones((4, 5), bool)
    mask[0, 1] = mask[2, 2] = False
    filled = made_up(X).impute(of(X), fill=mask)
    assert isinstance(filled, type(of(X)) if of is xr.DataArray else np.ndarray)
    np.testing.assert_array_equal(np.argwhere(np.isnan(np.asarray(filled))), [[0, 1]])
    np.testing.assert_array_equal(np.asarray(filled)[1:], X[1:])


def test_tables_of_other_libraries_have_conditions_too():
    pl = pytest.importorskip("polars")
    X = survey(60)
    of_polars = pl.DataFrame(X.astype(object).where(X.notna(), None).to_dict("list"))
    wanted = nmd.impute(X, 2, fill={"cigs": CONDITIONS[0]}, **QUICK)
    mask = pl.DataFrame({name: wanted[0][name].notna().tolist() for name in X})
    found = nmd.impute(of_polars, 2, fill={"cigs": CONDITIONS[0]}, **QUICK)
    found.append(nmd.impute(of_polars, 1, fill=mask, **QUICK)[0])
    for each, frame in zip(found, [*wanted, wanted[0]], strict=True):
        assert each.schema == of_polars.schema
        assert [value is None for value in each["cigs"]] == frame["cigs"].isna().tolist()


def test_what_fill_cannot_be_is_refused_before_any_draw():
    X = survey(60)

    def impute(fill, X=X):
        return nmd.impute(X, fill=fill, callback=pytest.fail)

    too_few = X["smoker"].to_numpy()[:3] == "yes"
    remedy = "give a condition such as \"smoker == 'yes'\", or a function of the filled DataFrame"
    check_all_refused([
        ("fill='cig' is unknown: did you mean 'cigs'", impute, {"cig": "smoker == 'yes'"}),
        (r"fill has shape \(2, 2\): give it the shape of X, \(60, 5\)", impute, np.eye(2) > 0),
        ("fill has dtype float64: give booleans", impute, np.full((60, 5), 0.5)),
        ("fill lacks the label 'mood' of X", impute, X.notna().drop(columns="mood")),
        (f"fails .*'smokes' is not defined.*{remedy}", impute, {"cigs": "smokes"}),
        (f"fails .*KeyError.*{remedy}", impute, {"cigs": lambda X: X["smokes"]}),
        (f"fails .*no booleans.*{remedy}", impute, {"cigs": "smoker"}, {"cigs": "age"}),
        (f"fails .*length.*{remedy}", impute, {"cigs": lambda X: too_few}),
        (r"fill has shape \(\): give it", partial(impute, X=np.eye(4)), {0: "1"}),
    ])  # fmt: skip


def test_a_report_has_code_that_leaves_skipped_questions_empty(answers):
    X, posterior = answers
    report = str(posterior.report(X))
    fill = literal_eval(re.search(r"stay so with fill=(.*)\.", report)[1])
    asked = "`is adult` != False"
    assert fill == {"smoker": asked, "cigs": f"{asked} and smoker != 'no'"}


def test_skips_are_found_by_any_kind_of_answer():
    rng, m = np.random.default_rng(0), 200
    for values in ([1.5, 2.0], ["it's", 'a "b"'], [True, False], pd.Categorical(["x", "y"])):
        gate = pd.Series(values).iloc[np.arange(m) % 2].reset_index(drop=True)
        X = pd.DataFrame({"class: 1 %?": gate, 7: rng.normal(size=m), "e": rng.normal(size=m)})
        X[7] = X[7].where(gate == values[1])
        found = skips_of(X)
        assert list(found) == [7]
        assert X.eval(found[7], engine="python").tolist() == X[7].notna().tolist()
        assert not skips_of(X.rename(columns={"class: 1 %?": "two\nlines"}))  # eval has no word


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_found_where_cells_are_missing_at_random(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.choice([40, 100, 1000]))
    w = rng.normal(size=(m, 2))
    kinds = [
        lambda x: x > 0.5,
        lambda x: np.digitize(x, [-1, 0, 1]),
        lambda x: np.maximum(x, 0),
        lambda x: np.take(list("abcdef"), rng.integers(0, 6, x.size)),
    ]
    X = pd.DataFrame({f"q{k}": kinds[k % 4](w.sum(axis=1) + rng.normal(size=m)) for k in range(20)})
    assert skips_of(X.mask(rng.random(X.shape) < 0.3)) == {}
    observed = np.where(w[:, :1] > 0, 0.45, 0.15)  # the probability depends on an observed number
    assert skips_of(X.mask(rng.random(X.shape) < observed).assign(w=w[:, 0])) == {}
