"""New rows get the w that is best for them and become rows of a fit; maps: test_rankings.py."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from helpers import DAYS, some, stored
from oracles import PAIRS, errors, forward
from scipy import sparse
from scipy.optimize import minimize

import nmd_lab

RANK = 3


def planted(f: str, m: int, seed: int = 0):
    """Return H, and rows of a model that has both zeros and positive entries."""
    rng = np.random.default_rng(seed)
    H = rng.normal(size=(RANK, 24))
    W = rng.normal(size=(m, RANK))
    if f == "identity":
        W, H = np.abs(W), np.abs(H)
    if f == "minmax":
        W, H = 0.4 * W, H + 0.3
    return H, forward(f, W @ H)


def noisy(X, d: str, size: float = 0.1):
    """Return rows with noise that leaves the loss finite at the model."""
    noise = size * np.random.default_rng(7).normal(size=X.shape)
    return X * np.exp(noise) if d == "kl" else np.maximum(X + noise, 0)


def fit_with(H, f="identity", d="frobenius", **options):
    """Return a fit that has this H."""
    options = {"alpha": 0, "max_iter": 1, "random_state": 0} | options
    fit = nmd_lab.complete(np.ones((4, H.shape[1])) * 0.5, RANK, f, d, **options)
    fit.H.values[:] = H
    return fit


def objective(w, x, H, f, d, alpha):
    return errors(x, w @ H, f, d, x > -np.inf, 1e-12)[0] + 0.5 * alpha * w @ w


@pytest.mark.parametrize(("f", "d"), some(PAIRS, 2))
def test_no_general_optimiser_does_better(f, d):
    alpha = 0.05
    H, X = planted(f, 4, seed=3)
    X, rng = noisy(X, d), np.random.default_rng(5)
    seen = rng.random(X.shape) < 0.8
    W = fit_with(H, f, d, alpha=alpha).fold_in(X, observed=seen).values
    slack = 1.001 if d == "frobenius" else 1.02
    for w, x, s in zip(W, X, seen, strict=True):
        row = x[s], H[:, s], f, d, alpha
        starts = (w, *rng.normal(size=(2, RANK)))
        best = min(minimize(objective, start, row, method="Powell").fun for start in starts)
        assert objective(w, *row) <= best * slack


def same(X):
    return X


def table(X):
    words = np.take(["no", "maybe", "yes"], np.digitize(np.nan_to_num(X[:, 2]), [-1, 1]))
    frame = pd.DataFrame(X[:, :6]).rename(columns=str).assign(word=words, yes=X[:, 4] > 0)
    return frame.astype({"yes": "boolean"}).mask(np.isnan(X[:, :8]))


@pytest.fixture(scope="module", params=[same, stored, table])
def drawn(request):
    """A container, its new rows (two equal ones, one without entries), and a posterior for them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 2)) @ rng.normal(size=(2, 9)) + 0.05 * rng.normal(size=(70, 9))
    X[rng.random(X.shape) < 0.2] = np.nan
    X[3], X[5] = X[2], np.nan
    fitted = request.param(X[10:])
    posterior = nmd_lab.sample(fitted, 2, draws=24, tune=12, random_state=0)
    model = nmd_lab.MatrixCompletion(2, inference="sample", n_draws=24, n_tune=12, random_state=0)
    return request.param, X[:10], posterior, model.fit(fitted)


@pytest.mark.parametrize("of", ["posterior", "model"])
def test_a_row_is_filled_alike_alone_and_with_others(drawn, of):
    container, X, posterior, model = drawn
    if container is stored and of == "posterior":
        pytest.skip("a posterior fills no sparse data")
    fill = posterior.impute if of == "posterior" else model.transform
    whole, order = pd.DataFrame(fill(container(X))), np.random.default_rng(1).permutation(10)
    assert whole.notna().all(axis=None)
    for rows in (order, *np.arange(10)[:, None]):
        found = pd.DataFrame(fill(container(X[rows])))
        wanted = whole.iloc[rows].reset_index(drop=True)
        pd.testing.assert_frame_equal(found, wanted, rtol=1e-6, check_categorical=False)


def test_equal_new_rows_have_draws_of_their_own_in_copies(drawn):
    """Those without entries are as far apart as rows of the fit."""
    container, X, posterior, model = drawn
    if container is not same:
        pytest.skip("the numbers of an array are enough")
    nothing = np.full((300, X.shape[1]), np.nan)
    spread = posterior.predict_std(*np.indices((60, 9)).reshape(2, -1), noise=True).mean()
    copies = posterior.impute(nothing, 3, random_state=0), model.sample_transform(nothing, 3)
    assert min(copy.std(axis=0).min() for each in copies for copy in each) > 2 * spread


def test_some_columns_by_label_are_enough():
    """A new user has rated a few items; the others are missing."""
    _, X = planted("relu", 9)
    X = X + 0.01
    columns = [f"gene {j}" for j in range(24)]
    fit = nmd_lab.decompose(pd.DataFrame(X, columns=columns), RANK, max_iter=50)
    some = [7, 2, 19, 11, 5]
    holes = np.full((1, 24), np.nan)
    holes[0, some] = X[4, some]
    expected = fit.fold_in(holes).values
    frame = pd.DataFrame(X[4:5, some], index=["new"], columns=[columns[j] for j in some])
    table = frame.melt(var_name="column", value_name="value", ignore_index=False)
    table = table.rename_axis("row").reset_index()
    for rows in (
        frame,
        frame.iloc[0],
        xr.DataArray(frame, dims=("sample", "column")).transpose(),
        nmd_lab.observations_from_table(table, "row", "column", "value"),
        nmd_lab.observations_from_sparse(sparse.csr_array(frame), ["new"], frame.columns),
    ):
        W = fit.fold_in(rows)
        np.testing.assert_array_equal(W.values, expected)
        assert W[W.dims[0]].values.tolist() == ["new"]


# Appended rows ------------------------------------------------------------------------------------


USERS = [f"user {i}" for i in range(12)]
ITEMS = [f"item {j}" for j in range(9)]


RNG = np.random.default_rng(0)
X = RNG.normal(size=(15, 2)) @ RNG.normal(size=(2, 9)) + RNG.normal(size=(15, 1)) + 4


def make_fit(data=None, **options):
    data = pd.DataFrame(X[:12], USERS, ITEMS) if data is None else data
    options = {"alpha": 0, "max_iter": 20, "tol": 0, "random_state": 0} | options
    return nmd_lab.complete(data, 2, **options)


@pytest.mark.parametrize("offsets", ["none", "both"])
def test_new_rows_are_predicted_and_ranked(offsets):
    fit = make_fit(offsets=offsets, alpha=0.1)
    before = fit.W.copy(deep=True)
    new = pd.DataFrame(X[12:], ["ann", "bo", "cy"], ITEMS)
    W = fit.fold_in(new)
    more = fit.append(new)
    xr.testing.assert_identical(fit.W, before)
    assert more._shape == (15, 9)
    np.testing.assert_array_equal(more.W.values[:12], fit.W.values)
    np.testing.assert_array_equal(more.W.values[12:], W.values)
    assert list(more.W["row"].values) == [*USERS, "ann", "bo", "cy"]
    expected = W.values @ fit.H.values + fit.offsets.mean
    if offsets == "both":
        expected += W.offset.values[:, None] + fit.offsets.columns
    np.testing.assert_allclose(more.reconstruct().sel(row=["ann", "bo", "cy"]), expected)
    np.testing.assert_allclose(more.predict("bo", "item 4"), expected[1, 4])
    assert float(more.top("cy", 1)[0]) == pytest.approx(expected[2].max())
    assert more.objective == fit.objective
    assert more.relative_error == fit.relative_error
    assert "108 of 108 entries, 3 appended rows" in repr(more)
    again = fit.append(W)
    xr.testing.assert_identical(again.W, more.W)
    one_by_one = fit
    for name, row in new.iterrows():
        one_by_one = one_by_one.append(row.rename(name))
    np.testing.assert_allclose(one_by_one.W, more.W, rtol=1e-6)
    assert one_by_one.parameters["appended_rows"] == 3


def test_other_coordinates_and_levels_of_the_rows(read_back):
    digit, place = ("day", np.arange(15), {"units": "1"}), ("day", [f"p{i}" for i in range(15)])
    coords = {"day": DAYS[:15], "item": ITEMS, "digit": digit, "place": place}
    data = xr.DataArray(X, coords, ("day", "item"))
    fit = make_fit(data[:12])
    more = fit.append(data[12:])
    for name in ("day", "digit", "place"):
        np.testing.assert_array_equal(more.W[name], data[name])
    assert more.W.digit.attrs == {"units": "1"}
    bare = fit.append(data[12:].drop_vars(["digit", "place"]))
    assert np.isnan(bare.W.digit.values[12:]).all()
    assert list(bare.W.place.values[11:]) == ["p11", "", "", ""]
    xr.testing.assert_identical(read_back(bare).reconstruct(), bare.reconstruct())
    index = pd.MultiIndex.from_product([["a", "b", "c"], range(5)], names=["city", "year"])
    frame = pd.DataFrame(X, index, ITEMS)
    more = make_fit(frame[:12]).append(frame[12:])
    assert more.W.indexes["row"].equals(index)
    assert more.predict(("c", 4), "item 1") == more.predict(14, 1)


def test_complete_rows_have_the_same_draws_alone_and_with_others():
    X = np.random.default_rng(0).normal(size=(50, 2)) @ np.random.default_rng(1).normal(size=(2, 6))
    posterior = nmd_lab.sample(X[:40], 2, draws=24, tune=12, random_state=0)
    whole = posterior.fold_in(X[40:], random_state=1).draws["W"]
    for k in (0, 9):
        alone = posterior.fold_in(X[40 + k : 41 + k], random_state=1).draws["W"]
        np.testing.assert_allclose(alone, whole.isel(row=[k]), rtol=1e-6)
