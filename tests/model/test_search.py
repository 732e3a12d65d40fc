"""The T-update of an f of the user's own is the global minimiser, also among several minima.

The nonlinearities and losses of the package are in `test_parts`.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import nmd_lab as nmd

pytestmark = pytest.mark.exhaustive


def softplus(t):
    return math.log1p(math.exp(-abs(t))) + max(t, 0.0)


def wave(t):
    return math.sin(t) + 0.1 * t


def power(t):
    return abs(t) ** 1.5


class Pseudo(nmd.losses.Loss):
    """A loss with values alone."""

    name = "pseudo_huber"

    @staticmethod
    def value(x, y, p):
        return math.sqrt(1.0 + (x - y) ** 2) - 1.0


def distance(d, x, y):
    """Textbook formulas, apart from the library."""
    with np.errstate(all="ignore"):
        if d == "frobenius":
            return (x - y) ** 2 / 2
        if d == "l1":
            return np.abs(x - y)
        if d == "kl":
            return np.where(y > 0, x * (y / x - 1 - np.log(y / x)), np.inf)
        return np.sqrt(1 + (x - y) ** 2) - 1


TEXTBOOK = {
    "softplus": lambda t: np.logaddexp(0, t),
    "wave": lambda t: np.sin(t) + 0.1 * t,
    "power": lambda t: np.abs(t) ** 1.5,
}


def lowest(f, d, v, x, rho, attained):
    """The lowest objective on nested grids that reach as far as the best value allows."""

    def g(t):
        return distance(d, x[:, None], TEXTBOOK[f](t)) + rho[:, None] / 2 * (t - v[:, None]) ** 2

    reach = np.sqrt(2 * attained / rho)[:, None] * (1 + 1e-9)
    near = np.concatenate([-np.logspace(0, -8, 150), [0.0], np.logspace(-8, 0, 150)])
    grid = v[:, None] + reach * np.union1d(near, np.linspace(-1, 1, 801))
    rows, values = np.arange(v.size), g(grid)
    best = values.min(axis=1)
    inner = (values[:, 1:-1] <= values[:, :-2]) & (values[:, 1:-1] <= values[:, 2:])
    order = np.argsort(np.where(inner, values[:, 1:-1], np.inf), axis=1)[:, :4] + 1
    for k in order.T:
        low, high = grid[rows, k - 1], grid[rows, k + 1]
        for _ in range(14):
            fine = np.linspace(low, high, 13, axis=1)
            at = g(fine)
            i = np.argmin(at, axis=1)
            best = np.minimum(best, at[rows, i])
            low, high = fine[rows, np.maximum(i - 1, 0)], fine[rows, np.minimum(i + 1, 12)]
    return best


@pytest.mark.parametrize(
    ("f", "d"),
    [(wave, "frobenius"), (wave, "l1"), (wave, "kl"), (power, "l1"), (softplus, Pseudo())],
)
def test_no_point_is_better(f, d):
    rng = np.random.default_rng(1)
    v, rho = 3 * rng.normal(size=400), 10 ** rng.uniform(-2, 3, 400)
    x = np.abs(rng.normal(size=400)) * 10 ** rng.uniform(-2, 0.7, 400)
    word = d if isinstance(d, str) else "pseudo"
    t = nmd.prox(v, x, rho, nonlinearity=nmd.nonlinearities.Smooth(f), loss=d)
    attained = distance(word, x, TEXTBOOK[f.__name__](t)) + rho / 2 * (t - v) ** 2
    best = lowest(f.__name__, word, v, x, rho, attained)
    assert np.all(attained <= best * (1 + 1e-8) + 1e-15)


def test_values_alone_are_enough_with_pieces():
    v, x, rho = np.array([3.0, -1.0, 0.2]), np.array([1.0, 2.0, 0.0]), np.array([1.0, 0.1, 5.0])
    t = nmd.prox(v, x, rho, nonlinearity="relu", loss=Pseudo())
    grid = np.linspace(-5, 5, 200_001)
    for i in range(3):
        g = distance("pseudo", x[i], np.maximum(grid, 0)) + rho[i] / 2 * (grid - v[i]) ** 2
        assert abs(t[i] - grid[np.argmin(g)]) <= 1e-4
