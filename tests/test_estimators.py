"""The estimators are scikit-learn's in every respect, better than simple ones, and take batches."""

import dataclasses
import inspect
import pickle
import typing

import numpy as np
import pandas as pd
import pytest
from helpers import people, with_holes
from scipy import sparse
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

import nmd_lab
from nmd_lab import NMD, MatrixCompletion
from nmd_lab.estimators.factor_model import EstimatorOptions
from nmd_lab.request.options import MODEL, DataOptions, FitOptions, Options

BOTH = [NMD, MatrixCompletion]
SAMPLED = MatrixCompletion(2, inference="sample", n_draws=8, n_tune=4)
ALL = [
    NMD(2, nonlinearity="relu", max_iter=10),
    MatrixCompletion(2, nonlinearity="identity", loss="kl", alpha=0, max_iter=10),
    SAMPLED,
]
"""A loss for all data, one for nonnegative data, and draws."""


@pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning")  # of random sparse data
@parametrize_with_checks(ALL)
def test_scikit_learn_accepts_them(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning")
@pytest.mark.exhaustive
@parametrize_with_checks([NMD(), MatrixCompletion()])
def test_scikit_learn_accepts_what_chooses_for_itself(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "estimator",
    [
        NMD(2, max_iter=10),
        MatrixCompletion(2, alpha=0, max_iter=10),
        MatrixCompletion(2, alpha=0, max_iter=10, add_indicator=True, keep_empty_features=True),
        SAMPLED,
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "check",
    [
        "check_transformer_get_feature_names_out",
        "check_transformer_get_feature_names_out_pandas",
        "check_set_output_transform",
        "check_set_output_transform_pandas",
        "check_global_output_transform_pandas",
        "check_dataframe_column_names_consistency",
    ],
)
def test_feature_names_and_set_output(estimator, check):
    getattr(estimator_checks, check)(type(estimator).__name__, clone(estimator))


@pytest.mark.parametrize(
    ("estimator", "verb"), [(NMD, "decompose"), (MatrixCompletion, "complete")]
)
def test_parameters_and_defaults_are_those_of_the_command(estimator, verb):
    """Type checkers see them, too."""
    own, of_verb = estimator().get_params(), inspect.signature(getattr(nmd_lab, verb)).parameters
    checked = set(typing.get_type_hints(FitOptions))
    data = {*DataOptions.__annotations__, *MODEL, "absent_are_zeros"}
    assert checked == {field.name for field in dataclasses.fields(Options)} - data
    shared = set(typing.get_type_hints(EstimatorOptions))
    assert shared == checked | {"nonlinearity", "loss", "dtype"}
    assert {name: own.pop(name) for name in shared} == {
        name: of_verb[name].default for name in shared
    }
    of_the_data = {"X", "rank", "observed", "weights", "sample_dims"}
    assert set(of_verb) - shared == of_the_data | {"at_most", "at_least", "upper"}
    others = {"add_indicator": False, "keep_empty_features": False, "order": None}
    others |= {"inference": "fit", "n_draws": 300, "n_tune": None}
    assert own == {"n_components": "auto"} | (others if verb == "complete" else {})
    with pytest.raises(TypeError, match="max_iters"):
        estimator(max_iters=3)


def test_negative_data_are_a_matter_of_the_loss(planted):
    for loss, positive in {"frobenius": False, "l1": False, "kl": True}.items():
        assert NMD(loss=loss).__sklearn_tags__().input_tags.positive_only == positive
    with pytest.raises(ValueError, match="Negative values in data"):
        MatrixCompletion(loss="kl").fit(-np.ones((5, 4)))
    chosen = MatrixCompletion(2, loss="auto", random_state=0)
    assert not chosen.__sklearn_tags__().input_tags.positive_only
    assert chosen.fit(-planted).decomposition_.loss in (nmd_lab.Frobenius(), nmd_lab.L1())


@pytest.fixture
def planted(rng):
    return np.maximum(rng.normal(size=(60, 3)) @ rng.normal(size=(3, 25)), 0)


def test_a_fit_is_that_of_the_command(planted):
    model = NMD(3, loss="l1", random_state=4, max_iter=30).fit(planted)
    fit = nmd_lab.decompose(planted, 3, "relu", "l1", random_state=4, max_iter=30)
    np.testing.assert_array_equal(model.components_, fit.H.values)
    assert model.n_iter_ == fit._n_iter == 30
    assert model.decomposition_.stop_reason == fit.stop_reason
    error = np.abs(planted - fit.reconstruct().values).sum()
    assert model.reconstruction_err_ == pytest.approx(error)
    model = NMD(3).fit(planted)
    error = np.linalg.norm(planted - model.decomposition_.reconstruct().values)
    assert model.reconstruction_err_ == pytest.approx(error, rel=1e-6)


def test_transform_finds_new_rows_and_inverse_transform_gives_them_back(planted):
    model = NMD(3, random_state=0).fit(planted[:40])
    new = planted[40:]
    np.testing.assert_allclose(model.inverse_transform(model.transform(new)), new, atol=1e-3)
    again = clone(model).fit_transform(planted[:40])
    np.testing.assert_array_equal(again, model.transform(planted[:40]))
    holes = np.where(np.random.default_rng(0).random(new.shape) < 0.3, np.nan, new)
    np.testing.assert_allclose(model.inverse_transform(model.transform(holes)), new, atol=1e-2)


@pytest.mark.parametrize("add_indicator", [False, True])
@pytest.mark.parametrize("keep_empty_features", [False, True])
@pytest.mark.parametrize("inference", ["fit", "sample"])
@pytest.mark.filterwarnings("ignore")  # of the empty column
def test_indicators_and_empty_columns_are_those_of_scikit_learn(
    add_indicator, keep_empty_features, inference, planted
):
    frame = pd.DataFrame(planted[:, :5], columns=list("abcde"))
    frame = frame.assign(b=np.nan).mask(
        np.random.default_rng(0).random((60, 5)) < [0.2, 0, 0, 0.2, 0]
    )
    same = {"add_indicator": add_indicator, "keep_empty_features": keep_empty_features}
    options = {"alpha": 0.1, "max_iter": 10} if inference == "fit" else {"n_draws": 4, "n_tune": 2}
    ours = MatrixCompletion(2, inference=inference, random_state=0, **same, **options)
    theirs = SimpleImputer(**same)
    train, new = frame[:40], frame[40:].assign(e=np.nan)
    expected = theirs.set_output(transform="pandas").fit(train).transform(new)
    found = ours.set_output(transform="pandas").fit(train).transform(new)
    assert list(found) == list(expected) == ours.get_feature_names_out().tolist()
    flags = [name for name in found if name.startswith("missingindicator")]
    assert len(flags) == 3 * add_indicator
    np.testing.assert_array_equal(found[flags], expected[flags])
    assert not found.isna().any(axis=None)
    revived = pickle.loads(pickle.dumps(ours)).set_output(transform="default")
    np.testing.assert_array_equal(revived.transform(new), found)
    if ours.inference == "sample":
        assert ours.sample_transform(new, 2)[1].shape == found.shape


def test_grid_search_in_a_pipeline(planted):
    pipeline = make_pipeline(MinMaxScaler(), NMD(random_state=0, max_iter=60))
    grid = {"nmd__n_components": [1, 3], "nmd__nonlinearity": ["relu", "identity"],
            "nmd__loss": ["frobenius", "kl"]}  # fmt: skip
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(planted)
    assert search.best_params_["nmd__n_components"] == 3
    assert search.best_params_["nmd__nonlinearity"] == "relu"
    assert search.best_score_ > 0.9


@pytest.mark.parametrize("estimator", BOTH)
def test_the_score_does_not_reward_rank_itself(estimator, rng):
    X = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 30)) + 0.3 * rng.normal(size=(80, 30))
    train, test = X[:50], X[50:]
    scores = [
        estimator(r, nonlinearity="identity", alpha=0).fit(train).score(test)
        for r in (1, 2, 3, 8, 15)
    ]
    assert np.argmax(scores) == 2
    assert scores[2] > 0.9
    assert scores == sorted(scores[:3]) + sorted(scores[3:], reverse=True)


def test_completion_predicts_pairs_and_rows(planted):
    X = planted.copy()
    X[::3, 1] = np.nan
    model = MatrixCompletion(3, nonlinearity="relu", alpha=0, random_state=0).fit(X)
    expected = model.decomposition_.reconstruct().values
    np.testing.assert_allclose(model.predict([0, 3], [1, 1]), expected[[0, 3], 1])
    np.testing.assert_allclose(model.predict(np.array([[0, 1], [3, 1]])), expected[[0, 3], 1])
    np.testing.assert_allclose(model.predict([(0, 1), (3, 1)]), expected[[0, 3], 1])
    np.testing.assert_allclose(model.predict(X[:5]), expected[:5], atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("estimator", BOTH)
@pytest.mark.parametrize("fill", [np.nan, 0.0])
def test_sparse_columns_are_a_way_to_store_a_table(fill, estimator, dtype, planted, rng):
    """As for `complete`: what they do not store is their fill value, and NaN is missing."""
    hole = rng.random(planted.shape) < 0.3
    frame = pd.DataFrame(np.where(hole, fill, planted), dtype=dtype).add_prefix("gene ")
    stored = frame.astype(pd.SparseDtype(dtype, fill))
    partly = frame.astype(dict.fromkeys(frame.columns[:5], pd.SparseDtype(dtype, fill)))
    kept = stored.copy()
    model = estimator(3, nonlinearity="relu", alpha=0, max_iter=10, random_state=0)
    expected = clone(model).fit_transform(frame)
    assert expected.dtype == dtype
    for table in (stored, partly):
        np.testing.assert_array_equal(clone(model).fit_transform(table), expected)
    fitted = clone(model).fit(stored)
    assert list(fitted.feature_names_in_) == list(frame.columns)
    assert fitted.decomposition_.parameters["n_observed"] == frame.notna().to_numpy().sum()
    pd.testing.assert_frame_equal(stored, kept)


def test_columns_of_several_kinds_are_fitted_as_by_complete():
    X = with_holes(people(45))
    options = {"alpha": 1.0, "max_iter": 20, "random_state": 0}
    model, fit = MatrixCompletion(1, **options).fit(X), nmd_lab.complete(X, 1, **options)
    np.testing.assert_array_equal(model.components_, fit._factors[1])
    filled, names = model.transform(X), fit.reconstruct()["column"].values.tolist()
    assert list(model.get_feature_names_out()) == names
    expected = fit._model.expected(
        fit.fold_in(X).values @ fit._factors[1], 0, np.arange(len(names))
    )
    at, numbers = names.index("cm"), X["cm"].to_numpy()
    np.testing.assert_allclose(filled[:, at], np.where(np.isnan(numbers), expected[:, at], numbers))
    towns, hole = [names.index(f"town={name}") for name in ("Ulm", "Bonn")], X["town"].isna()
    np.testing.assert_allclose(filled[hole][:, towns], expected[hole][:, towns])
    with pytest.raises(ValueError, match="give those of the fit"):
        model.transform(X[["cm", "town"]])


# Batches ------------------------------------------------------------------------------------------


OPTIONS = {"n_components": 3, "alpha": 0.3, "random_state": 0}


@pytest.fixture
def ratings(rng):
    truth = 3 + rng.normal(size=(120, 3)) @ rng.normal(size=(3, 30))
    seen = rng.random(truth.shape) < 0.5
    return np.where(seen, truth + 0.3 * rng.normal(size=truth.shape), np.nan), truth


def in_batches(model, X, number=4):
    for rows in np.array_split(np.arange(X.shape[0]), number):
        model.partial_fit(X[rows])
    return model


def test_batches_end_near_a_fit_to_everything(ratings):
    X, truth = ratings
    hidden = np.nonzero(np.isnan(X))
    options = {"n_components": 3, "offsets": "both", "random_state": 0}  # alpha is chosen
    model = in_batches(MatrixCompletion(**options), X, 3)  # with four, the last fit is a whole one
    whole = MatrixCompletion(**options).fit(X)
    errors = [np.linalg.norm(each.predict(*hidden) - truth[hidden]) for each in (model, whole)]
    assert errors[0] < 1.1 * errors[1]
    assert model.decomposition_._shape == X.shape
    assert model.decomposition_._n_iter <= 20


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_rows_of_another_kind_do_not_take_the_place_of_earlier_ones(kind, rng):
    first, second = (rng.random((60, 2)) @ rng.random((2, 20)) for _ in range(2))
    data = kind(np.maximum(np.vstack([first, second]) - 0.5, 0))
    model = in_batches(NMD(4, random_state=0), data, 2)
    rows = data[:60]
    errors = [
        np.linalg.norm(each.inverse_transform(each.transform(rows)) - rows)
        for each in (model, NMD(4, random_state=0).fit(data))
    ]
    assert errors[0] < 1.2 * errors[1] + 0.02 * np.linalg.norm(np.asarray(first))


def test_a_component_that_the_first_batch_does_not_need_is_learned_later(rng):
    X = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 20))
    X[:40] *= 1e-4  # the ridge makes both components zero
    options = {"n_components": 2, "alpha": 10.0, "offsets": "none", "random_state": 0}
    model = in_batches(MatrixCompletion(**options), X, 2)
    whole = MatrixCompletion(**options).fit(X)
    assert model.reconstruction_err_ < 1.05 * whole.reconstruction_err_


def test_a_batch_may_change_after_the_call_and_fit_begins_anew(ratings):
    X, _ = ratings
    model, other = (MatrixCompletion(**OPTIONS) for _ in range(2))
    batch = X[:60].copy()
    model.partial_fit(batch)
    batch[:] = 0
    model.partial_fit(X[60:])
    assert np.array_equal(in_batches(other, X, 2).components_, model.components_)
    model.fit(X)
    assert np.array_equal(model.components_, MatrixCompletion(**OPTIONS).fit(X).components_)
    assert model.partial_fit(X[:20]).decomposition_._shape == (20, 30)
