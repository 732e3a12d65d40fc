"""`check_imputer`: which cells are hidden, and its scores; errors at observed entries."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from helpers import people
from sklearn.impute import KNNImputer

import nmd_lab as nmd
from nmd_lab import metrics


@pytest.fixture
def frame():
    """Columns of several kinds; two of them are missing together in a third of the rows."""
    frame = people(300)[["cm", "visits", "town", "mood", "smokes"]]
    frame.loc[frame.index[:100], ["cm", "town"]] = None
    frame.loc[frame.index[100:120], "smokes"] = None
    return frame


def test_hidden_cells_have_the_shape_of_the_missing_ones_and_errors_are_those_of_numpy(frame):
    whole, tables = frame.bfill().ffill(), []
    spy = lambda table: tables.append(table) or whole.to_numpy()  # noqa: E731
    table = nmd.check_imputer({"spy": spy}, frame, random_state=0)
    seen = tables[-1]
    hidden = frame.notna() & seen.isna()
    of_row = {tuple(frame.columns[row]) for row in hidden.to_numpy()}
    assert of_row == {(), ("cm", "town"), ("smokes",)}
    assert 0.05 < hidden.to_numpy().sum() / frame.notna().to_numpy().sum() <= 0.11
    assert seen.dtypes.equals(frame.dtypes)
    assert table.loc["spy", "cells"].to_dict() == {
        **hidden.sum()[["cm", "town", "smokes"]],
        "all": hidden.to_numpy().sum(),
    }
    assert table.loc[("spy", "cm"), "error"] == 0
    assert table.loc[("spy", "town"), "correct"] == 1
    assert np.isnan(table.loc[("spy", "all"), "score"])
    gap = (frame["cm"] - seen["cm"].median())[hidden["cm"]]
    wanted = np.sqrt(np.mean(gap**2)) / seen["cm"].std(ddof=0)
    assert table.loc[("median", "cm"), "error"] == pytest.approx(wanted)
    right = np.mean(frame["town"][hidden["town"]] == seen["town"].mode()[0])
    assert table.loc[("median", "town"), "correct"] == pytest.approx(right)
    assert table.loc["median", "correct"].mean() == pytest.approx(
        table.loc[("median", "all"), "correct"]
    )
    nmd.check_imputer(spy, whole, random_state=0)
    assert tables[-1].isna().sum().min() > 0


def test_copies_of_the_right_distribution_have_coverage_and_crps(rng):
    frame = pd.DataFrame(rng.normal(5, 2, size=(2000, 3)), columns=list("abc"))
    frame = frame.mask(rng.random(frame.shape) < 0.3)

    def right(seen):
        return [seen.fillna(pd.DataFrame(rng.normal(5, 2, size=seen.shape), columns=seen.columns))
                for _ in range(19)]  # fmt: skip

    whole = nmd.check_imputer({"right": right}, frame, repeats=3, random_state=0).loc["right"]
    assert whole.loc["all", "coverage"] == pytest.approx(0.9, abs=0.025)
    of_normal = 1 / np.sqrt(np.pi)  # E|X - x| - E|X - X'|/2, over the standard deviation
    assert whole["score"][:3].mean() == pytest.approx(of_normal, rel=0.06)


def test_ours_and_an_imputer_of_sklearn(rng):
    frame = pd.DataFrame(rng.normal(size=(40, 3))).mask(rng.random((40, 3)) < 0.2)
    knn = KNNImputer()
    table = nmd.check_imputer({"ours": nmd.impute, "knn": knn}, frame, random_state=0)
    assert not hasattr(knn, "n_features_in_")
    assert table.loc[("knn", "all"), "seconds"] > 0
    assert (
        nmd.check_imputer(nmd.impute, frame, random_state=0)
        .drop(columns="seconds")
        .equals(table.loc[["median", "ours"]].drop(columns="seconds"))
    )


@pytest.mark.parametrize("fill", [lambda seen: seen, lambda seen: seen[["cm"]].fillna(0)])
def test_imputers_that_leave_cells_are_refused(frame, fill):
    with pytest.raises(ValueError, match="imputer 'own' left out cells or columns"):
        nmd.check_imputer({"own": fill}, frame, random_state=0)


@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 3, 4)])
def test_plain_arrays_of_any_shape(shape, rng):
    X, Y = rng.random(shape), rng.random(shape)
    X.flat[2] = np.nan
    mask = rng.random(shape) < 0.7
    used = mask & ~np.isnan(X)
    error = (X - Y)[used]
    for given in ({}, {"weights": rng.random(shape)}):
        w = given["weights"][used] if given else None
        found = metrics.rmse(X, Y, observed=mask, **given)
        assert found == pytest.approx(np.sqrt(np.average(error**2, weights=w)))
        found = metrics.mae(X, Y, observed=mask.tolist(), **given)
        assert found == pytest.approx(np.average(np.abs(error), weights=w))


@pytest.mark.parametrize("loss", ["frobenius", "l1", "kl"])
def test_a_whole_number_as_weight_counts_an_entry_so_often(loss, rng):
    X, Y, times = rng.random(20), rng.random(20), rng.integers(0, 4, 20)
    expected = metrics.relative_error(X.repeat(times), Y.repeat(times), loss=loss)
    assert metrics.relative_error(X, Y, loss=loss, weights=times) == pytest.approx(expected)


def test_energy_score_is_that_of_pairs(rng):
    x, draws = rng.normal(size=(4, 3)), rng.normal(size=(5, 4, 3))
    x[0] = x[1, 2] = np.nan
    wanted = []
    for i, at in ((1, [0, 1]), (2, [0, 1, 2]), (3, [0, 1, 2])):
        pairs = [np.linalg.norm(a[i, at] - b[i, at]) for a, b in permutations(draws, 2)]
        away = [np.linalg.norm(a[i, at] - x[i, at]) for a in draws]
        wanted.append((np.mean(away) - np.mean(pairs) / 2) / np.sqrt(len(at)))
    assert metrics.energy_score(x, draws) == pytest.approx(np.mean(wanted))
    with pytest.raises(ValueError, match=r"draws has shape \(1, 4, 3\): give two or more"):
        metrics.energy_score(x, draws[:1])
    with pytest.raises(ValueError, match="X has no observed entry to compare"):
        metrics.energy_score(x * np.nan, draws)
