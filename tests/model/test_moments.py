"""The expected value of f(T) for a normal T, against numerical integration."""

import math
from functools import partial

import numpy as np
import pytest
from oracles import NONLINEARITIES, forward
from scipy import stats

import nmd_lab
from nmd_lab.model.column_model import moments
from nmd_lab.model.nonlinearities import as_nonlinearity

INF = math.inf
NODES, WEIGHTS = np.polynomial.legendre.leggauss(30)


def expected_value(f, mean, sd):
    mean, sd = np.broadcast_arrays(np.asarray(mean, float), np.asarray(sd, float))
    columns = (each.reshape(-1, 1).copy() for each in (mean, sd))
    return moments(as_nonlinearity(f), *columns)[0].reshape(mean.shape)


def integrate(f, mean, sd, kinks=()):
    """E f(T), cut at the kinks of f and at each standard deviation."""
    ends = [mean + sd * k for k in range(-39, 40)]
    cuts = np.unique(ends + [k for k in kinks if ends[0] < k < ends[-1]])
    half, middle = np.diff(cuts) / 2, (cuts[1:] + cuts[:-1]) / 2
    t = middle[:, None] + half[:, None] * NODES
    return float(np.sum((f(t) * stats.norm.pdf(t, mean, sd)) @ WEIGHTS * half))


TANH = nmd_lab.nonlinearities.Tanh()
CASES = [
    *((f, partial(forward, f), (0, 1), (2, 2)) for f in NONLINEARITIES),
    *((nmd_lab.MinMax(a, b), partial(forward, "minmax", a=a, b=b), (a, b), (2, 2))
      for a, b in [(1, 5), (-INF, 2), (-1, INF), (-INF, INF), (3, 3)]),
    (TANH, np.tanh, (), (0, 0)),  # any other f is integrated
]  # fmt: skip


@pytest.mark.parametrize(("f", "formula", "kinks", "powers"), CASES)
def test_agrees_with_integration(f, formula, kinks, powers):
    rng = np.random.default_rng(1)
    mean = rng.normal(size=200) * 10 ** rng.uniform(-2, powers[0], 200)
    sd = 10 ** rng.uniform(-3, powers[1], 200)
    wanted = [integrate(formula, m, s, kinks) for m, s in zip(mean, sd, strict=True)]
    exact = {"rtol": 1e-10, "atol": 1e-12} if kinks else {"atol": 1e-6}
    np.testing.assert_allclose(expected_value(f, mean, sd), wanted, **exact)


@pytest.mark.parametrize("f", [*NONLINEARITIES, nmd_lab.MinMax(-INF, 2), TANH])
def test_no_spread_gives_f_of_the_mean(f):
    mean = np.array([-2.0, 0.0, 0.4, 1.0, 3.0])
    exact = as_nonlinearity(f)(mean)
    np.testing.assert_allclose(expected_value(f, mean, 1e-300), exact, atol=1e-290)


def test_far_outside_a_limit():
    assert expected_value("relu", -40.0, 1.0) == pytest.approx(0, abs=1e-300)
    assert expected_value("minmax", 1e9, 1.0) == 1.0
    expected = float(stats.norm.pdf(6) - 6 * stats.norm.sf(6))
    assert expected_value("relu", -6.0, 1.0) == pytest.approx(expected, rel=1e-9)
