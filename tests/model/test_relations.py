"""Columns that are linear in others, such as a height in two units, and a sum and its parts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import nmd_lab as nmd
from nmd_lab.model.monotone import LINE, Monotone, with_relations

N = 500


def table(seed, skewed=False):
    """Return a height in centimetres and in inches, a sum of two parts, and other columns."""
    rng = np.random.default_rng(seed)
    height = 150 + 10 * rng.gamma(2, 1, N) if skewed else rng.normal(170, 9, N)
    f, part, other = rng.normal(size=(3, N))
    frame = pd.DataFrame(
        {
            "cm": height + 0.1 * rng.normal(size=N),
            "inch": height / 2.54 + 0.04 * rng.normal(size=N),
            "weight": 0.9 * height + 8 * rng.normal(size=N),
            "part": 10 * part,
            "other": 1000 + 15 * (0.5 * f + other),
            "sum": 10 * part + 1000 + 15 * (0.5 * f + other) + 0.3 * rng.normal(size=N),
            "f": f + rng.normal(size=N),
        }
    )
    return frame, frame.mask(rng.random(frame.shape) < 0.25)


def errors(frame, holed, filled, name, others):
    """Return the error of missing cells whose others are known, as a multiple of that of OLS."""
    both = holed[[name, *others]].dropna()
    fit = np.linalg.lstsq(np.c_[np.ones(len(both)), both[others]], both[name])[0]
    at = holed[name].isna() & holed[others].notna().all(axis=1)
    best = np.c_[np.ones(at.sum()), frame[others][at]] @ fit - frame[name][at]
    squares = [np.mean((each[name] - frame[name])[at] ** 2) for each in filled]
    return np.sqrt(np.mean(squares) / np.mean(best**2))


RELATIONS = {
    "cm": ["inch"], "inch": ["cm"], "sum": ["part", "other"], "part": ["sum", "other"]
}  # fmt: skip


@pytest.mark.parametrize("skewed", [False, True])
def test_a_column_that_is_linear_in_others_is_predicted_like_by_ols(skewed):
    frame, holed = table(0, skewed)
    posterior = nmd.sample(holed, draws=100, random_state=0)
    assert posterior._joint is not None
    filled, copies = posterior.impute(holed), posterior.impute(holed, n=10, random_state=0)
    for name, others in RELATIONS.items():
        assert errors(frame, holed, [filled], name, others) < 1.2
        assert errors(frame, holed, copies, name, others) < 1.3 * np.sqrt(2)  # two noises


def functions(X):
    """Return the f of the columns of X."""
    return with_relations([Monotone(share=0.5)] * X.shape[1], X)


@pytest.mark.parametrize("slope", [1 / 2.54, -1000.0])
def test_a_copy_in_other_units_has_the_same_T(slope):
    x = np.random.default_rng(0).gamma(2, 1, 300)
    y = 7 + slope * x
    f, g = functions(np.column_stack([x, y]))
    T = np.column_stack([f.pseudo_inverse(x), g.pseudo_inverse(y)])
    np.testing.assert_allclose(T[:, 1], 7 + slope * T[:, 0])
    assert np.ptp(np.diff(f.x) / np.diff(f.t)) > 0.1  # and is no line


def test_a_sum_and_its_parts_are_straight_and_others_are_not():
    X = np.random.default_rng(0).gamma(2, 1, (300, 4))
    X[:, 3] = X[:, :2].sum(axis=1)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    found = functions(X)
    assert [each == LINE for each in found] == [True, True, False, True]
    assert found[2] == Monotone(share=0.5)


X = np.random.default_rng(0).gamma(2, 1, (300, 1))
NOISE = np.random.default_rng(1).normal(size=(300, 1))


@pytest.mark.parametrize(
    "others",
    [[X**2, X + 0.3 * NOISE], [np.ones_like(X), np.full_like(X, np.nan)]],
    ids=["nearly linear", "constant or empty"],
)
def test_what_is_not_linear_in_others_keeps_its_f(others):
    assert functions(np.hstack([X, *others])) == [Monotone(share=0.5)] * 3
