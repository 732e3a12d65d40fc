"""Factor analysis by a posterior: loadings, communalities, scores of rows, main columns."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from helpers import check_all_refused
from made_draws import posterior_of
from scipy.optimize import minimize
from sklearn.decomposition import FactorAnalysis

import nmd_lab as nmd
from nmd_lab.data.labels import labels_of
from nmd_lab.model.column_model import make_column_model
from nmd_lab.model.model import Model
from nmd_lab.result.loadings import oblimin_rotation

ITEMS = [f"{scale}{k}" for scale in "abc" for k in range(1, 5)]
SIMPLE = np.kron(np.diag([1.0, 0.95, 0.9]), np.array([[0.8], [0.7], [-0.6], [0.5]]))
"""Each item belongs to one of three scales; the third item of a scale is reversed."""
COMMUNALITY = np.sum(SIMPLE**2, axis=1)
PHI = np.array([[1, 0.4, -0.3], [0.4, 1, 0.2], [-0.3, 0.2, 1]])


def matched(values, loadings, truth=SIMPLE):
    """Return what belongs to factors in the order and with the signs that match the truth."""
    overlap = truth.T @ loadings
    order = np.abs(overlap).argmax(axis=1)
    assert sorted(order) == list(range(truth.shape[1]))
    return values[:, order] * np.sign(overlap[np.arange(order.size), order])


@pytest.fixture(scope="module")
def items():
    """Return standardised items and the scores of their rows."""
    rng, m = np.random.default_rng(0), 600
    scores = rng.normal(size=(m, 3))
    X = scores @ SIMPLE.T + rng.normal(size=(m, 12)) * np.sqrt(1 - COMMUNALITY)
    people = [f"person {i}" for i in range(m)]
    return pd.DataFrame((X - X.mean(axis=0)) / X.std(axis=0), people, ITEMS), scores


@pytest.fixture(scope="module")
def posterior(items):
    return nmd.sample(items[0], draws=150, random_state=0)


def test_known_loadings_and_their_number_are_recovered(items, posterior):
    """They are near the truth, and nearer to those of maximum likelihood with varimax."""
    found, analysis = posterior.loadings(), FactorAnalysis(3, rotation="varimax").fit(items[0])
    assert found.sizes["component"] == 3
    loadings, theirs = found["loading"].values, analysis.components_.T
    error = matched(loadings, loadings) - SIMPLE
    assert np.sqrt(np.mean(error**2)) < 0.05  # the standard error of a correlation is 0.04
    np.testing.assert_allclose(matched(loadings, loadings, theirs), theirs, atol=0.06)
    assert np.sqrt(np.mean((found["communality"].values - COMMUNALITY) ** 2)) < 0.07
    np.testing.assert_allclose(found["share"].sum(), COMMUNALITY.mean(), atol=0.03)


def test_intervals_hold_the_true_loadings_and_communalities(posterior):
    found = posterior.loadings(3, level=0.9)
    signs = np.sign(matched(np.ones((1, 3)), found["loading"].values))[0]
    ends = [matched(found[name].values, found["loading"].values) for name in ("low", "high")]
    low, high = np.where(signs > 0, ends, ends[::-1])
    assert np.mean((low <= SIMPLE) & (high >= SIMPLE)) > 0.75  # of 36
    low, high = found["communality_low"], found["communality_high"]
    assert np.mean((low <= COMMUNALITY) & (high >= COMMUNALITY)) > 0.6  # of 12
    wide = posterior.loadings(3, level=0.99)
    assert (wide["high"] - wide["low"] > found["high"] - found["low"]).all()


@pytest.mark.parametrize("rotation", ["none", "varimax", "oblimin", "promax"])
def test_loadings_explain_the_correlations(posterior, rotation):
    found, r = posterior.loadings(3, rotation), posterior.correlations()["mean"].values
    L, phi = found["loading"].values, found["factor_correlation"].values
    pairs = ~np.eye(12, dtype=bool)
    assert np.sqrt(np.mean((L @ phi @ L.T - r)[pairs] ** 2)) < 0.015
    np.testing.assert_allclose(np.diag(phi), 1)
    assert (rotation in ("oblimin", "promax")) == (np.abs(phi - np.eye(3)).max() > 1e-6)
    np.testing.assert_allclose(found["share"].sum(), np.mean(np.diag(L @ phi @ L.T)))
    assert (found["share"].diff("component") <= 0).all()


def exact_draws(loadings=SIMPLE, n_draws=6, m=40):
    """Return draws of one model, each in other coordinates, and its standardised scores.

    There are two groups of rows, and a component that only the first item has.
    """
    rng = np.random.default_rng(1)
    G = np.column_stack([loadings, 0.5 * np.eye(12)[0]])
    scores, sizes = rng.normal(size=(m, 4)), rng.uniform(0.5, 20, 12)
    noise = 1 / (sizes**2 * (1 - np.sum(G**2, axis=1)))
    shares, arrays = np.array([0.3, 0.7]), []
    for _ in range(n_draws):
        turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
        each = [a @ a.T + np.eye(4) for a in rng.normal(size=(2, 4, 4))]
        centres = rng.normal(size=(2, 4))
        centre, apart = shares @ centres, centres - shares @ centres
        total = sum(s * (c + np.outer(a, a)) for s, c, a in zip(shares, each, apart, strict=True))
        root = np.linalg.cholesky(total)
        W, H = centre + scores @ turn @ root.T, sizes[:, None] * G @ turn @ np.linalg.inv(root)
        arrays.append((W, H, centres, np.linalg.inv(each), shares))
    names = "W", "H", "row_mean", "row_precision", "row_share"
    drawn = posterior_of(
        labels_of(np.ones((m, 12))),
        rho=np.tile(noise, (1, n_draws, 1)),
        _model=Model((make_column_model("identity", "frobenius"),) * 12, np.arange(12)),
        noise=("gaussian",) * 12,
        **{name: np.array([each]) for name, *each in zip(names, *arrays, strict=True)},
    )
    return drawn, scores[:, :3]


def test_draws_in_other_coordinates_are_one_factor_analysis():
    drawn, scores = exact_draws()
    found = drawn.loadings(3)
    loadings = found["loading"].values
    np.testing.assert_allclose(matched(loadings, loadings), SIMPLE, atol=2e-4)
    np.testing.assert_allclose(found["high"], found["low"], atol=1e-3)
    np.testing.assert_allclose(found["communality"], COMMUNALITY, atol=1e-3)
    of_rows = drawn.factor_scores(factors=3)
    np.testing.assert_allclose(matched(of_rows["mean"].values, loadings), scores, atol=0.1)
    assert of_rows["sd"].max() < 0.02


@pytest.mark.parametrize("rotation", ["none", "varimax", "oblimin", "promax"])
def test_scores_times_loadings_are_what_columns_have_in_common(rotation):
    oblique = SIMPLE @ np.linalg.cholesky(PHI)
    drawn, scores = exact_draws(oblique)
    loadings = drawn.loadings(3, rotation)["loading"].values
    common = drawn.factor_scores(factors=3, rotation=rotation)["mean"].values @ loadings.T
    np.testing.assert_allclose(common, scores @ oblique.T, atol=0.1)
    if rotation in ("oblimin", "promax"):  # which find a perfect simple structure
        np.testing.assert_allclose(matched(loadings, loadings), SIMPLE, atol=4e-3)
        found = drawn.loadings(3, rotation)["factor_correlation"].values
        angles = matched(matched(found, loadings).T, loadings)
        np.testing.assert_allclose(angles, PHI, atol=0.03)


@pytest.mark.parametrize("seed", range(2))
def test_no_start_finds_a_smaller_criterion_of_oblimin(seed):
    """The loadings have no simple structure."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(15, 3)) / 2

    def criterion(x):
        T = x.reshape(3, 3)
        squares = (A @ np.linalg.inv(T / np.linalg.norm(T, axis=0)).T) ** 2
        return sum(squares[:, i] @ squares[:, j] for i in range(3) for j in range(i)) / 2

    best = min(minimize(criterion, rng.normal(size=9), tol=1e-9).fun for _ in range(8))
    T = oblimin_rotation(A)
    np.testing.assert_allclose(np.linalg.norm(T, axis=0), 1)
    assert criterion(T) == pytest.approx(best, rel=1e-5)


def test_new_rows_have_scores_and_less_sure_ones_with_holes(items, posterior):
    X, _ = items
    every = posterior.factor_scores(factors=3)
    assert list(every.indexes["row"][:2]) == ["person 0", "person 1"]
    some = posterior.factor_scores(X.iloc[[5, 2]], factors=3)
    xr.testing.assert_allclose(some, every.isel(row=[5, 2]))
    new = X.iloc[:50].rename(index="new {}".format)
    again = posterior.factor_scores(new, factors=3)
    assert again.indexes["row"][0] == "new person 0"
    assert np.abs(again["mean"].values - every["mean"].values[:50]).mean() < 0.15
    holes = posterior.factor_scores(new.assign(a1=np.nan, a2=np.nan, a3=np.nan), factors=3)
    of_a = np.abs(posterior.loadings(3)["loading"].sel(column="a1").values).argmax()
    wider = holes["sd"].mean("row") / again["sd"].mean("row")
    assert wider[of_a] > 1.3
    assert wider.drop_isel(component=of_a).max() < 1.1


def test_main_columns_are_those_of_largest_size(posterior):
    found = posterior.loadings(3)["loading"]
    top = posterior.top_of_components(4, factors=3)
    assert top.sizes == {"component": 3, "place": 4}
    np.testing.assert_array_equal(np.abs(top), -np.sort(-np.abs(found.values), axis=0)[:4].T)


def test_bad_arguments_are_refused_in_a_sentence(posterior):
    one = nmd.sample(np.arange(9.0)[:, None], 1, draws=5, tune=5, random_state=0)
    check_all_refused([
        ("factors=12 is too large for 12 columns .* at most 11", posterior.loadings, 12),
        ("factors=0 is too small", posterior.loadings, 0),
        ("factors=2.5 is not an integer", posterior.loadings, 2.5),
        ("did you mean 'varimax'", lambda name: posterior.loadings(2, name), "varimx"),
        ("level=90", lambda level: posterior.loadings(level=level), 90),
        ("X has 1 column", one.loadings, None),
    ])  # fmt: skip
