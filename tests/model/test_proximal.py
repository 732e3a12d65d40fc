"""The T-update ``nmd_lab.prox`` is the exact global minimiser, for every pair."""

import functools
import itertools
import math

import numpy as np
import part_oracles
import pytest
from oracles import PAIRS

import nmd_lab
from nmd_lab.model.column_model import make_column_model
from nmd_lab.model.entry import compile_t_update


def test_broadcasting_scalars_and_layout(rng):
    v, x, rho = rng.normal(size=(4, 1)), rng.random(3), np.array([[[0.5]], [[2.0]]])
    t = nmd_lab.prox(v, x, rho, nonlinearity="relu", loss="l1")
    assert t.shape == (2, 4, 3)
    for k, i, j in itertools.product(range(2), range(4), range(3)):
        one = nmd_lab.prox(v[i, 0], x[j], rho[k, 0, 0], nonlinearity="relu", loss="l1")
        assert np.shape(one) == ()
        assert one == t[k, i, j]
    lists = nmd_lab.prox([1, 2], [3, 4], 1, nonlinearity="identity", loss="frobenius")
    np.testing.assert_allclose(lists, [2, 3])
    a = rng.random((6, 8))
    strided = nmd_lab.prox(a[::2, ::-1].T, 1.0, 1.0, nonlinearity="square", loss="kl")
    copied = nmd_lab.prox(a[::2, ::-1].T.copy(), 1.0, 1.0, nonlinearity="square", loss="kl")
    np.testing.assert_array_equal(strided, copied)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_keeps_dtype_and_inputs(dtype, rng):
    v, x = rng.normal(size=50).astype(dtype), rng.random(50).astype(dtype)
    before = v.copy(), x.copy()
    v.flags.writeable = x.flags.writeable = False
    for f, loss in PAIRS:
        t = nmd_lab.prox(v, x, 0.7, nonlinearity=f, loss=loss)
        assert isinstance(t, np.ndarray)
        assert t.dtype == dtype
        assert not np.shares_memory(t, v)
        assert not np.shares_memory(t, x)
    np.testing.assert_array_equal(v, before[0])
    np.testing.assert_array_equal(x, before[1])


# Losses and nonlinearities of the user's own ----------------------------------------------------


class Own(nmd_lab.losses.Loss):
    """Huber's loss, with its own proximal map."""

    name = "own"

    def __init__(self, delta=1.0):
        self.parameters = (delta,)

    @staticmethod
    def value(x, y, p):
        r = abs(x - y)
        return 0.5 * r * r if r <= p[0] else p[0] * (r - 0.5 * p[0])

    @staticmethod
    def proximal(q, x, rho, p):
        y = (x + rho * q) / (1.0 + rho)
        if abs(x - y) <= p[0]:
            return y
        return q + p[0] / rho if x > q else q - p[0] / rho


class Leaky(nmd_lab.nonlinearities.Nonlinearity):
    """A function with pieces."""

    name = "leaky"

    def __init__(self, slope):
        self.parameters = (slope,)

    @staticmethod
    def forward(t, p):
        return t if t > 0 else p[0] * t

    def pieces(self):
        slope = self.parameters[0]
        piece = nmd_lab.nonlinearities.Piece
        return piece(-np.inf, 0, slope, 0), piece(0, np.inf, 1, 0)


def test_exp_is_solved_far_below_zero():
    t = nmd_lab.prox(-240.0, 1.0, 0.01, nonlinearity="exp", loss="itakura_saito")
    slope = 1 - np.exp(-t) + 0.01 * (t + 240)  # of x e^-t + t + rho/2 (t - v)²
    assert abs(slope) < 1e-6


def test_models_of_the_users_own_are_solved_and_parameters_compile_nothing_anew(rng):
    v, x = 3 * rng.normal(size=200), 2 * np.abs(rng.normal(size=200))
    rho = 10 ** rng.uniform(-2, 2, size=200)
    for slope, delta in ((0.2, 0.5), (0.7, 1.0)):
        f, loss = Leaky(slope), Own(delta)
        t = nmd_lab.prox(v, x, rho, nonlinearity=f, loss=loss)
        _, lowest = part_oracles.brute_prox(v, x, rho, ("leaky_relu", slope), ("huber", delta))
        np.testing.assert_allclose(loss(x, f(t)) + rho / 2 * (t - v) ** 2, lowest, rtol=1e-9)
    first, second = (make_column_model(Leaky(slope), "l1") for slope in (0.1, 0.3))
    assert compile_t_update(first.structure) is compile_t_update(second.structure)


def wave(t):
    return math.sin(t) + 0.1 * t


class Pseudo(nmd_lab.losses.Loss):
    """A loss with values alone."""

    name = "pseudo_huber"

    @staticmethod
    def value(x, y, p):
        return math.sqrt(1.0 + (x - y) ** 2) - 1.0


WAVE, LOSSES = nmd_lab.nonlinearities.Smooth(wave), ["frobenius", "l1", "kl", Pseudo()]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("f", "d"), [*((WAVE, d) for d in LOSSES), (nmd_lab.ReLU(), Pseudo())])
def test_no_point_of_a_grid_is_better(f, d):
    loss = d if isinstance(d, Pseudo) else functools.partial(part_oracles.distance, (d,))
    rng = np.random.default_rng(1)
    v, rho = 3 * rng.normal(size=200), 10 ** rng.uniform(-2, 3, 200)
    x = np.abs(rng.normal(size=200)) * 10 ** rng.uniform(-2, 0.7, 200)
    t = nmd_lab.prox(v, x, rho, nonlinearity=f, loss=d)
    best = loss(x, f(t)) + rho / 2 * (t - v) ** 2
    for reach in (60.0, 1.0, 1e-2, 1e-4):
        grid = (v if reach == 60 else t)[:, None] + reach * np.linspace(-1, 1, 20_001)
        values = loss(x[:, None], f(grid)) + rho[:, None] / 2 * (grid - v[:, None]) ** 2
        assert np.all(best <= np.nanmin(values, axis=1) * (1 + 1e-8) + 1e-15)
