"""What ratings need: offsets, validation, tables, predictions by label, recommendations."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import nmd_lab as nmd
from nmd_lab.model.fitted_values import Offsets
from nmd_lab.solver.scaling import OffsetColumns


@pytest.fixture(scope="module")
def ratings():
    """Rank-2 ratings with offsets, half of them observed."""
    rng = np.random.default_rng(0)
    m, n = 120, 80
    b, c = 0.5 * rng.normal(size=m), 0.7 * rng.normal(size=n)
    X = 3.5 + b[:, None] + c + 0.5 * rng.normal(size=(m, 2)) @ rng.normal(size=(2, n))
    seen = rng.random((m, n)) < 0.5
    return X, seen, sparse.csr_array(np.where(seen, X, 0))


@pytest.mark.parametrize("split", ["everywhere", "observed"])
def test_offsets_explain_a_table_of_sums(split):
    rng = np.random.default_rng(0)
    X = 3.5 + rng.normal(size=50)[:, None] + rng.normal(size=40)
    seen = rng.random(X.shape) < 0.6
    fit = nmd.complete(
        X,
        1,
        observed=seen,
        offsets="both",
        alpha=0.01,
        max_iter=2000,
        solver=nmd.ADMM(split=split),
    )
    np.testing.assert_allclose(fit.reconstruct(), X, atol=0.01)
    assert fit.offsets.mean == pytest.approx(X[seen].mean())
    rows, columns = fit.fitted.offsets_at(slice(None), slice(None))
    assert rows.shape == (50,)
    assert columns.shape == (40,)


@pytest.mark.parametrize("kind", ["global", "rows", "columns", "both"])
def test_offsets_are_the_least_squares_ones(kind, ratings):
    """With no component to speak of, the fit is ridge regression on the two sets of dummies."""
    X, seen, matrix = ratings
    alpha = 2.0
    fit = nmd.complete(
        matrix,
        1,
        offsets=kind,
        alpha=alpha,
        max_iter=400,
        tol=0,
        init=(np.zeros((120, 1)), np.zeros((1, 80))),
        solver=nmd.ADMM(rho=1.0, split="observed"),
    )
    np.testing.assert_allclose(fit.factors[0] @ fit.factors[1], 0, atol=1e-12)
    mean = X[seen].mean()
    rows, columns = np.nonzero(seen)
    design = np.zeros((rows.size, 200))
    if kind in ("rows", "both"):
        design[np.arange(rows.size), rows] = 1
    if kind in ("columns", "both"):
        design[np.arange(rows.size), 120 + columns] = 1
    best = np.linalg.solve(design.T @ design + alpha * np.eye(200), design.T @ (X[seen] - mean))
    expected = mean + best[:120, None] + best[120:]
    np.testing.assert_allclose(fit.reconstruct(), expected, atol=1e-8)


def test_offsets_stand_inside_f(ratings):
    X, seen, _ = ratings
    clipped = np.clip(X, 1, 5)
    fit = nmd.complete(clipped, 2, nmd.MinMax(1, 5), observed=seen, offsets="both", alpha=0.1)
    W, H = fit.factors
    rows, columns = fit.fitted.offsets_at(slice(None), slice(None))
    inside = W @ H + rows[:, None] + columns
    np.testing.assert_array_equal(fit.reconstruct(), np.clip(inside, 1, 5))
    assert inside.max() > 5  # so that the order of f and the offsets matters


@pytest.mark.parametrize("kind", ["none", "global", "rows", "columns", "both"])
def test_an_extension_gives_back_what_it_took(kind):
    rng = np.random.default_rng(0)
    W, H = rng.normal(size=(5, 2)), rng.normal(size=(2, 4))
    given = Offsets(1.5, rng.normal(size=5), rng.normal(size=4))
    columns = OffsetColumns(kind, 1.5)
    W_aug, H_aug = columns.extend(W, H, given)
    expected = W @ H
    if kind != "none":
        expected = expected + 1.5
    if kind in ("rows", "both"):
        expected = expected + given.rows[:, None]
    if kind in ("columns", "both"):
        expected = expected + given.columns
    np.testing.assert_allclose(W_aug @ H_aug, expected)
    back_W, back_H, _ = columns.split(W_aug, H_aug)
    np.testing.assert_array_equal(back_W, W)
    np.testing.assert_array_equal(back_H, H)


def test_rows_and_columns_without_entries_fall_back_to_the_offsets(ratings):
    X, seen, _ = ratings
    seen = seen.copy()
    seen[7], seen[:, 11] = False, False
    for split in ("everywhere", "observed"):
        solver = nmd.ADMM(split=split)
        options = {"offsets": "both", "alpha": 1.0, "max_iter": 300, "solver": solver}
        fit = nmd.complete(np.where(seen, X, np.nan), 2, **options)
        rows, columns = fit.fitted.offsets_at(slice(None), slice(None))
        np.testing.assert_allclose(fit.reconstruct()[7], rows[7] + columns)
        np.testing.assert_allclose(fit.reconstruct()[:, 11], rows + columns[11])
        assert rows[7] == pytest.approx(fit.offsets.mean, abs=1e-6)
        with pytest.warns(
            nmd.warnings.UnobservedWarning, match="in 1 row and 1 column, whose .* offsets="
        ):
            plain = nmd.complete(
                np.where(seen, X, np.nan), 2, alpha=0, solver=nmd.ADMM(split=split)
            )
        np.testing.assert_array_equal(plain.reconstruct()[7], 0)


def test_offsets_do_not_go_with_zeros_that_count(ratings):
    with pytest.raises(ValueError, match="offsets='both'"):
        nmd.decompose(ratings[2], 2, offsets="both")


def test_validation_is_the_rmse_of_each_iteration(ratings):
    X, _, matrix = ratings
    train, held = nmd.split_observed(matrix, 0.2, 0)
    errors = []

    def record(state):
        model = state.W_aug @ state.H_aug
        rows, columns = held.tocoo().row, held.tocoo().col
        errors.append(np.sqrt(np.mean((model[rows, columns] - X[rows, columns]) ** 2)))

    fit = nmd.complete(
        train,
        2,
        offsets="both",
        alpha=0,
        validation=held,
        max_iter=15,
        callback=record,
        solver=nmd.ADMM(patience=100),
    )
    np.testing.assert_allclose(fit.history["validation_rmse"], errors, rtol=1e-10)
    best = int(np.argmin(errors))
    assert fit.parameters["iteration"] == best + 1
    rows, columns = held.tocoo().row, held.tocoo().col
    error = nmd.metrics.rmse(X[rows, columns], fit.predict(rows, columns))
    assert error == pytest.approx(errors[best])


def test_validation_stops_a_fit_that_learns_noise():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 50))
    X[rng.random(X.shape) < 0.4] = np.nan
    fit = nmd.complete(
        X, 8, alpha=0, validation=0.3, max_iter=300, random_state=0, solver=nmd.ADMM(patience=4)
    )
    assert "validation: no lower error for 4 iterations" in fit.stop_reason
    assert fit.n_iter == fit.parameters["iteration"] + 4


def test_a_share_for_validation_is_not_trained_on(ratings):
    _, _, matrix = ratings
    fit = nmd.complete(matrix, 2, alpha=0, validation=0.25, random_state=0, max_iter=3)
    assert fit.parameters["n_observed"] == matrix.nnz - round(0.25 * matrix.nnz)


@pytest.mark.parametrize("given", [0.0, 1.5, -0.2])
def test_a_bad_share_is_refused(ratings, given):
    with pytest.raises(ValueError, match="validation="):
        nmd.complete(ratings[2], 2, validation=given)


@pytest.fixture
def table():
    return pd.DataFrame(
        {
            "user": ["cy", "ann", "bo", "ann", "cy", "bo", "dee"],
            "item": [30, 10, 10, 20, 10, 30, 20],
            "rating": [1.0, 4.0, 5.0, 3.0, 2.0, 4.0, 5.0],
        }
    )


def test_a_table_becomes_labelled_observations(table):
    observed = nmd.observations_from_table(table)
    frame = table.pivot_table(index="user", columns="item", values="rating")
    dense = np.full(observed.shape, np.nan)
    dense[observed.rows, observed.indices] = observed.values
    np.testing.assert_array_equal(dense, frame.to_numpy())
    fit = nmd.complete(observed, 1, offsets="both", alpha=1.0, random_state=0)
    assert fit.W.dims == ("user", "component")
    assert list(fit.W["user"].values) == list(frame.index)
    assert list(fit.H["item"].values) == list(frame.columns)
    whole = fit.reconstruct()
    assert whole.name == "rating"
    labels = (["ann", "dee"], [30, 10])
    expected = [float(whole.sel(user=u, item=i)) for u, i in zip(*labels, strict=True)]
    np.testing.assert_allclose(fit.predict(*labels), expected)
    with pytest.raises(KeyError, match="'zoe'"):
        fit.predict(["ann", "zoe"], 10)


def test_a_pair_that_comes_twice_is_named(table):
    twice = pd.concat([table, table.iloc[[2]]])
    with pytest.raises(ValueError, match="user=bo, item=10 more than once"):
        nmd.observations_from_table(twice)
    with pytest.raises(KeyError, match="value='stars'"):
        nmd.observations_from_table(table, value="stars")


def test_the_best_of_a_row(ratings):
    _, seen, matrix = ratings
    fit = nmd.complete(matrix, 2, offsets="both", alpha=0.5)
    scores = fit.reconstruct().values[5]
    best = fit.top(5, k=7)
    np.testing.assert_array_equal(best["position"], np.argsort(-scores)[:7])
    np.testing.assert_allclose(best, np.sort(scores)[::-1][:7])
    known = np.flatnonzero(seen[5])
    mask = np.where(seen, 1.0, np.nan)
    for exclude in (matrix, seen, mask, known):
        new = fit.top(5, k=80, exclude=exclude)
        assert set(new["position"].values) == set(range(80)) - set(known)
        assert np.all(np.diff(new.values) <= 0)
    with pytest.raises(IndexError, match="row"):
        fit.top(1000)
    with pytest.raises(ValueError, match="k="):
        fit.top(0, k=0)
