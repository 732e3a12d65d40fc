"""The T-update of an f of the user's own is the global minimiser, also among several minima.

The nonlinearities and losses of the package are in `test_parts`.
"""

import functools
import math

import numpy as np
import part_oracles
import pytest

import nmd_lab as nmd

pytestmark = pytest.mark.exhaustive


def wave(t):
    return math.sin(t) + 0.1 * t


class Pseudo(nmd.losses.Loss):
    """A loss with values alone."""

    name = "pseudo_huber"

    @staticmethod
    def value(x, y, p):
        return math.sqrt(1.0 + (x - y) ** 2) - 1.0


WAVE, LOSSES = nmd.nonlinearities.Smooth(wave), ["frobenius", "l1", "kl", Pseudo()]


@pytest.mark.parametrize(("f", "d"), [*((WAVE, d) for d in LOSSES), (nmd.ReLU(), Pseudo())])
def test_no_point_of_a_grid_is_better(f, d):
    loss = d if isinstance(d, Pseudo) else functools.partial(part_oracles.distance, (d,))
    rng = np.random.default_rng(1)
    v, rho = 3 * rng.normal(size=200), 10 ** rng.uniform(-2, 3, 200)
    x = np.abs(rng.normal(size=200)) * 10 ** rng.uniform(-2, 0.7, 200)
    t = nmd.prox(v, x, rho, nonlinearity=f, loss=d)
    best = loss(x, f(t)) + rho / 2 * (t - v) ** 2
    for reach in (60.0, 1.0, 1e-2, 1e-4):
        grid = (v if reach == 60 else t)[:, None] + reach * np.linspace(-1, 1, 20_001)
        values = loss(x[:, None], f(grid)) + rho[:, None] / 2 * (grid - v[:, None]) ** 2
        assert np.all(best <= np.nanmin(values, axis=1) * (1 + 1e-8) + 1e-15)
