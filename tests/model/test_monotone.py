"""The learned monotone f: its first knots, and its update by least squares.

Columns that are linear in others, such as a height in two units, and a sum and its parts.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import ndtri

import nmd_lab as nmd
from nmd_lab.model.column_model import make_column_model
from nmd_lab.model.monotone import LINE, nearest_values, with_relations
from nmd_lab.nonlinearities import Monotone

Z = ndtri((np.arange(20) + 0.5) / 20)


@pytest.mark.parametrize("quantiles", [lambda z: 3 + 2 * z, np.exp], ids=["normal", "lognormal"])
def test_the_first_f_maps_normal_quantiles_to_those_of_the_data(quantiles):
    x = quantiles(np.random.default_rng(0).normal(size=200_000))
    f = Monotone().for_data(x)
    np.testing.assert_allclose(f.t, x.mean() + x.std() * Z)
    np.testing.assert_allclose(f.x, quantiles(Z), rtol=0.02, atol=0.01)
    centred = Monotone().for_data(x, centred=True)
    np.testing.assert_allclose(centred.t, x.std() * Z)
    assert centred.x == f.x


def test_a_share_draws_the_first_f_to_the_straight_line():
    x = np.exp(np.random.default_rng(0).normal(size=5000))
    whole, half = Monotone().for_data(x), Monotone(share=0.5).for_data(x)
    np.testing.assert_allclose(half.x, (np.array(whole.x) + whole.t) / 2, rtol=1e-12)


def test_few_values_have_the_straight_line():
    t = np.array([-3.0, 0.0, 2.5])
    f = Monotone().for_data(np.arange(7.0))
    np.testing.assert_array_equal(f(t), t)
    np.testing.assert_array_equal(Monotone().for_data(np.arange(7.0), centred=True)(t), t + 3)
    assert not f.learns
    assert Monotone().for_data(np.arange(8.0)).learns


def test_equal_values_stay_apart():
    x = np.append(np.zeros(500), np.random.default_rng(0).exponential(size=500))
    f = Monotone().for_data(x)
    np.testing.assert_array_less(0.0199, np.diff(f.x) / np.diff(f.t))


def test_f_within_two_numbers_is_f_between_them_and_constant_beyond():
    f = Monotone([-1, 0, 2], [-5, 1, 2])
    t = np.linspace(-4, 6, 41)
    for low, high in ((-7, 3), (-1, 1.5)):  # outside the knots, and inside
        within = f.within(low, high)
        np.testing.assert_allclose(within(t), np.clip(f(t), low, high), atol=1e-12)
        np.testing.assert_allclose(within.scaled(2)(t / 2), within(t) / 2, atol=1e-12)
        x = np.array([low - 5, low, high, high + 5.0])
        np.testing.assert_allclose(within(within.pseudo_inverse(x)), np.clip(x, low, high))
    far = Monotone([100, 101, 103], [150, 156, 157]).within(148, 158)  # 0 is beyond all knots
    t = far.pseudo_inverse(np.array([90.0, 148, 158, 200]))
    np.testing.assert_allclose(t, [far.t[0]] * 2 + [far.t[-1]] * 2)


def test_knots_are_not_learned_unless_asked():
    x = np.random.default_rng(0).normal(size=100)
    for f in (Monotone([0, 1], [0, 2]), Monotone([0, 1], [0, 2]).for_data(x)):
        assert not f.learns
        assert f.learned(x, x, np.ones(100)) is f


def made_up(seed, knots=8, n=300):
    """Return knots, values, smallest rises, and arguments, values and weights of data."""
    rng = np.random.default_rng(seed)
    t = np.cumsum(rng.uniform(0.2, 1, knots))
    values = np.sort(rng.normal(size=knots))
    at = rng.uniform(t[0] - 1, t[-1] + 1, n)
    data = rng.normal() * 3 + 2 * np.sin(at) + 0.3 * at + 0.5 * rng.normal(size=n)
    slowest = 0.2 * np.diff(values) * rng.random(knots - 1)
    return t, values, slowest, at, data, rng.uniform(0.2, 3, n)


def misfit(t, values, at, data, weights):
    """Return the weighted squared differences, with straight tails."""
    y = np.interp(at, t, values)
    for outside, a, b in ((at < t[0], 0, 1), (at > t[-1], -2, -1)):
        slope = (values[b] - values[a]) / (t[b] - t[a])
        y = np.where(outside, values[b] + slope * (at - t[b]), y)
    return float(np.sum(weights * np.square(data - y)))


@pytest.fixture
def least_squares(monkeypatch):
    """Least squares alone, without the pull and with any change of slope."""
    monkeypatch.setattr("nmd_lab.model.monotone.PULL", 0.0)
    monkeypatch.setattr("nmd_lab.model.monotone.TURN", np.inf)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.usefixtures("least_squares")
def test_the_update_is_the_constrained_minimum(seed):
    t, values, slowest, at, data, weights = made_up(seed)
    new = nearest_values(t, values, slowest, at, data, weights)
    assert np.all(np.diff(new) >= slowest - 1e-12)
    assert new[-1] - new[0] == pytest.approx(values[-1] - values[0], rel=1e-12)

    def objective(z):
        return misfit(t, np.cumsum(z), at, data, weights)

    brute = minimize(
        objective,
        np.append(data.mean(), np.diff(values)),
        method="SLSQP",
        bounds=[(None, None), *((low, None) for low in slowest)],
        constraints={"type": "eq", "fun": lambda z: z[1:].sum() - (values[-1] - values[0])},
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert misfit(t, new, at, data, weights) == pytest.approx(brute.fun, rel=1e-6)
    np.testing.assert_allclose(new, np.cumsum(brute.x), atol=1e-2)


@pytest.mark.parametrize("loss", ["frobenius", "l1", "huber"])
def test_the_loss_of_a_kind_never_rises(loss):
    changed = 0
    for seed in range(20):
        t, values, _, at, data, weights = made_up(seed, n=10 + 5 * seed)
        kind = make_column_model(Monotone(t, values, learns=True), loss)
        kind = kind._replace(centre=0.3, size=1.2)
        new = kind.learned(data, at, weights)
        after, before = (float(np.sum(weights * each.losses(data, at))) for each in (new, kind))
        assert after <= before
        changed += new != kind
    assert changed > 10


def test_few_noisy_data_make_no_staircase(monkeypatch):
    rng = np.random.default_rng(0)
    t, at = np.linspace(-2, 2, 20), rng.normal(size=150)
    data, weights = at + 0.5 * rng.normal(size=150), np.ones(150)
    smooth = nearest_values(t, t, np.zeros(19), at, data, weights)
    monkeypatch.setattr("nmd_lab.model.monotone.TURN", np.inf)
    steps = nearest_values(t, t, np.zeros(19), at, data, weights)
    errors = [float(np.sqrt(np.mean(np.square(each - t)))) for each in (smooth, steps)]
    assert errors[0] < 0.5 * errors[1]


N = 500


def table(seed, skewed=False):
    """Return a height in centimetres and in inches, a sum of two parts, and other columns."""
    rng = np.random.default_rng(seed)
    height = 150 + 10 * rng.gamma(2, 1, N) if skewed else rng.normal(170, 9, N)
    f, part, other = rng.normal(size=(3, N))
    frame = pd.DataFrame({"cm": height, "inch": height / 2.54, "weight": 0.9 * height})
    frame = frame.assign(part=10 * part, other=1000 + 15 * (0.5 * f + other), f=f)
    frame["sum"] = frame["part"] + frame["other"]
    noise = {"cm": 0.1, "inch": 0.04, "weight": 8, "sum": 0.3, "f": 1}
    frame[[*noise]] += rng.normal(size=(N, 5)) * [*noise.values()]
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
