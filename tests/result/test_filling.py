"""Probabilities of classes, and data with their holes filled."""

import numpy as np
import pandas as pd
import pytest
from made_draws import made_up, plain
from scipy.special import expit
from scipy.stats import norm

import nmd_lab as nmd

PETS = ["cat", "dog", "fish"]


def frame(m=50):
    """Return a table of all kinds that two components explain, with holes."""
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(m, 2)) @ rng.normal(size=(2, 5))
    whole = pd.DataFrame(
        {
            "size": 3 + Z[:, 0],
            "count": pd.array(rng.poisson(np.exp(np.clip(Z[:, 1], -1, 1))), dtype="Int64"),
            "yes": pd.array(Z[:, 2] > 0, dtype="boolean"),
            "grade": pd.Categorical.from_codes(np.digitize(Z[:, 3], [-1, 1]), list("abc"), True),
            "pet": pd.Categorical.from_codes(np.digitize(Z[:, 4], [-0.5, 0.5]), PETS),
        },
        index=[f"row {i}" for i in range(m)],
    )
    return whole.mask(rng.random(whole.shape) < 0.2)


@pytest.fixture(scope="module")
def fit():
    return nmd.complete(frame(), 2, alpha=0.5, random_state=0)


def test_holes_are_filled_and_the_rest_is_kept(fit):
    X = frame()
    filled = fit.impute(X)
    assert not filled.isna().to_numpy().any()
    assert list(filled.index) == list(X.index)
    for name in X:
        known = X[name].notna()
        assert (filled[name][known] == X[name][known]).all()
        assert filled[name].dtype == X[name].dtype
    assert X.equals(frame())  # the input is not changed


def test_each_hole_has_its_prediction_or_its_most_probable_class(fit):
    X = frame()
    filled, model = fit.impute(X), fit.reconstruct().to_pandas()
    for name in ("size", "count"):
        hole = X[name].isna()
        wanted = model[name][hole] if name == "size" else model[name][hole].round()
        np.testing.assert_allclose(filled[name][hole].astype(float), wanted)
    for name in ("yes", "grade", "pet"):
        hole = X[name].isna()
        likely = fit.probabilities(name).idxmax(axis=1)
        assert filled[name][hole].tolist() == likely[hole].tolist()


def test_probabilities_are_those_of_the_model(fit):
    scores = (fit.W.values @ fit.H.values).astype(float)
    labels = fit.reconstruct().to_pandas().columns.tolist()
    model = fit._kinds

    def score(label):
        kind = model.kinds[labels.index(label)]
        return kind, kind.centre + kind.size * scores[:, labels.index(label)]

    _, t = score("yes")
    np.testing.assert_allclose(fit.probabilities("yes")[True], expit(t), rtol=1e-10)
    np.testing.assert_allclose(fit.reconstruct().to_pandas()["yes"], expit(t), rtol=1e-10)
    kind, t = score("grade")
    cuts = np.concatenate([[-np.inf], kind.loss.cut_points, [np.inf]])
    expected = np.diff(norm.cdf(cuts[None] - t[:, None]), axis=1)
    np.testing.assert_allclose(fit.probabilities("grade"), expected, atol=1e-8)
    odds = np.exp([score(f"pet={pet}")[1] for pet in PETS]).T
    expected = odds / odds.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fit.probabilities("pet"), expected, rtol=1e-8)
    assert list(fit.probabilities("pet").columns) == PETS


def test_a_fit_of_one_loss_has_probabilities_too():
    rng = np.random.default_rng(0)
    A = 2 * rng.normal(size=(40, 1)) @ rng.normal(size=(1, 12))
    X = np.where(rng.random(A.shape) < expit(A), 1.0, -1.0)
    fit = nmd.complete(X, 1, "identity", "logistic", alpha=0.5, random_state=0)
    p = fit.probabilities(3)
    assert list(p.columns) == [-1.0, 1.0]
    np.testing.assert_allclose(2 * p[1.0] - 1, fit.reconstruct().values[:, 3], atol=1e-8)


@pytest.mark.parametrize(
    ("container", "returned"),
    [(np.asarray, np.ndarray), (np.ma.masked_invalid, np.ndarray), (pd.DataFrame, pd.DataFrame)],
)
def test_numbers_come_back_in_their_container(container, returned):
    truth = np.outer(np.arange(1.0, 9), [1.0, 2.0, 4.0])
    X = truth.copy()
    X[2, 2] = X[5, 0] = np.nan
    fit = nmd.complete(X, 1, alpha=0, random_state=0)
    filled = fit.impute(container(X))
    assert type(filled) is returned
    np.testing.assert_allclose(np.asarray(filled), truth, rtol=1e-6)


def test_copies_have_draws_evenly_along_the_chain_of_each_member():
    X = np.ma.masked_greater(np.arange(12.0).reshape(4, 3), 10)
    member = np.random.default_rng(0).permuted(np.repeat([[0, 1, 2]], [5, 10, 15], axis=1), axis=1)
    member = np.concatenate([member, member[:, ::-1]])
    posterior = made_up(X, rho=np.full((2, 30), 1e14), member=member)
    of_draws = plain(posterior)[0][:, 3, 2]
    values = np.array([copy[3, 2] for copy in posterior.impute(X, n=30, random_state=0)])
    used = np.abs(values[:, None] - of_draws).argmin(axis=1)
    np.testing.assert_allclose(of_draws[used], values, atol=1e-5)
    places = np.argsort(np.argsort(member.ravel(), kind="stable"))
    gaps = np.diff(np.sort(places[used]))
    assert gaps.min() >= 1
    assert gaps.max() <= 4
