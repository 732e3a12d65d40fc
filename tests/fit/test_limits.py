"""Fits to data of which some entries are limits."""

import numpy as np
import pandas as pd
import pytest
from helpers import some
from oracles import PAIRS, forward
from scipy.stats import norm

import nmd_lab as nmd


def concentrations(m=60):
    """Data, their truth and where they are below the limit of their column."""
    rng = np.random.default_rng(0)
    Y = rng.gamma(1, 1, (m, 2)) @ rng.gamma(1, 1, (2, 20)) + 0.01
    Y = Y * np.exp(0.05 * rng.normal(size=Y.shape))
    limit = np.quantile(Y, 0.4, axis=0)
    below = limit > Y
    return np.where(below, limit, Y), Y, below


@pytest.mark.parametrize(("f", "loss"), some(PAIRS, 2))
def test_a_limit_that_the_model_satisfies_costs_nothing(f, loss):
    rng = np.random.default_rng(0)
    Y = forward(f, np.abs(rng.normal(size=(30, 2))) @ np.abs(rng.normal(size=(2, 20))))
    limited = rng.random(Y.shape) < 0.2
    X = np.where(limited, np.minimum(Y + 0.5, 1.0) if f == "minmax" else Y + 0.5, Y)
    options = {"init": "random", "alpha": 0, "tol": 1e-6, "random_state": 0, "n_init": 4}
    exact_limits = nmd.ADMM(limit_noise=0)
    fit = nmd.decompose(X, 2, f, loss, at_most=limited, solver=exact_limits, **options)
    exact = nmd.decompose(X, 2, f, loss, **options)
    assert fit.objective < 0.05 * exact.objective


def test_pilot_finds_the_noise():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 40)) + 0.3 * rng.normal(size=(200, 40))
    below = Y < -0.5
    fit = nmd.decompose(np.where(below, -0.5, Y), 2, "identity", at_most=below, random_state=0)
    assert fit.parameters["limit_noise"] == pytest.approx(0.3, rel=0.15)
    assert fit.parameters["smallest_value"] == -np.inf


def test_limits_of_new_rows_are_matched_by_label():
    X, _, below = concentrations()
    frame = pd.DataFrame(X, columns=list("abcdefghijklmnopqrst"))
    fit = nmd.complete(frame[:40], 2, at_most=below[:40], alpha=0.1, random_state=0)
    new, mask = frame[40:], pd.DataFrame(below, columns=frame.columns)[40:]
    W = fit.fold_in(new, at_most=below[40:]).values
    np.testing.assert_allclose(fit.fold_in(new[new.columns[::-1]], at_most=mask), W, rtol=1e-6)
    assert not np.allclose(fit.fold_in(new), W, rtol=0.01)
    np.testing.assert_allclose(fit.append(new, at_most=mask).W.values[40:], W)


def test_estimators_take_limits():
    X, _, below = concentrations()
    model = nmd.MatrixCompletion(2, alpha=0.1, random_state=0).fit(X, at_most=below)
    assert model.decomposition_.parameters["limit_noise"] > 0
    sampled = nmd.MatrixCompletion(2, inference="sample", n_draws=20, n_tune=20, random_state=0)
    with pytest.warns(nmd.warnings.NMDWarning, match="draws below limits are negative"):
        posterior = sampled.fit(X, at_most=below).posterior_
    plain = nmd.MatrixCompletion(2, inference="sample", n_draws=20, n_tune=20, random_state=0)
    assert posterior.predict(*np.nonzero(below)).mean() < (
        plain.fit(X).posterior_.predict(*np.nonzero(below)).mean()
    )
    nmf = nmd.NMD(2, random_state=0).fit(X, at_most=below)
    assert nmf.decomposition_.parameters["smallest_value"] == 0


def levels(seed=0, m=25, n=6):
    """Levels 0 to 3, where they are upper limits and where lower ones."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(m, 1)) @ rng.normal(size=(1, n)) + rng.normal(size=(m, n))
    at_most = rng.random((m, n)) < 0.3
    X = np.digitize(z, [-1.0, 0.0, 1.0]).astype(float)
    return X, at_most, (rng.random((m, n)) < 0.2) & ~at_most


def test_a_limit_of_one_of_two_classes_is_the_class_or_says_nothing():
    X, at_most, _ = levels()
    X = (X > 1).astype(float)
    options = {"alpha": 0.5, "offsets": "none", "max_iter": 30, "random_state": 0}
    fit = nmd.complete(X, 1, "identity", "logistic", at_most=at_most, init="random", **options)
    hole = np.where(at_most & (X == 1), np.nan, X)
    same = nmd.complete(hole, 1, "identity", "logistic", init="random", **options)
    assert fit.objective == pytest.approx(same.objective, rel=1e-4)


def test_limits_go_with_ordered_columns_of_a_mixed_table():
    X, at_most, at_least = levels(1)
    frame = pd.DataFrame(X[:, :3], columns=list("abc"))
    frame["grade"] = pd.Categorical.from_codes(X[:, 3].astype(int), list("DCBA"), ordered=True)
    frame["pet"] = pd.Categorical(np.where(X[:, 4] > 1, "cat", "dog"))
    masks = [pd.DataFrame(each[:, :5], columns=frame.columns) for each in (at_most, at_least)]
    for mask in masks:
        mask["pet"] = False
    options = {"alpha": 0.5, "offsets": "none", "random_state": 0, "max_iter": 40}
    given = {"at_most": masks[0], "at_least": masks[1]}
    fit = nmd.complete(frame, 1, **given, **options)
    t, kinds = fit.W.values @ fit.H.values, fit._model.column_models
    total = 0.25 * (np.sum(fit.W.values**2) + np.sum(fit.H.values**2))
    for j in range(5):
        kind, values = kinds[j], t[:, j] * kinds[j].size + kinds[j].centre
        upper, lower = at_most[:, j], at_least[:, j]
        if j < 3:
            y = np.where(upper, np.minimum(values, X[:, j]), X[:, j])
            y = np.where(lower, np.maximum(values, X[:, j]), y)
            losses = 0.5 * (values - y) ** 2
        elif j == 3:
            ends, k = np.array([-np.inf, *kind.loss.cut_points, np.inf]), X[:, 3].astype(int)
            low, high = np.where(upper, -np.inf, ends[k]), np.where(lower, np.inf, ends[k + 1])
            losses = -np.log(norm.cdf(high - values) - norm.cdf(low - values))
        else:
            losses = np.log1p(np.exp(values)) - values * (X[:, 4] <= 1)
        total += kind.weight * losses.sum()
    assert fit.objective == pytest.approx(total, rel=1e-9)
    masks[0].loc[0, "pet"] = True
    with pytest.raises(ValueError, match="'pet', whose categories have no order"):
        nmd.complete(frame, 1, at_most=masks[0], **options)
