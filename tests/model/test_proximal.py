"""The T-update ``nmd_lab.prox`` is the exact global minimiser, for every pair."""

import functools
import itertools
import math

import numpy as np
import part_oracles
import pytest
from oracles import PAIRS

import nmd_lab


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


def test_exp_is_solved_far_below_zero():
    t = nmd_lab.prox(-240.0, 1.0, 0.01, nonlinearity="exp", loss="itakura_saito")
    slope = 1 - np.exp(-t) + 0.01 * (t + 240)  # of x e^-t + t + rho/2 (t - v)²
    assert abs(slope) < 1e-6


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
