"""The expected value of f(T) for a normal T, against numerical integration."""

import math

import numpy as np
import pytest
from oracles import NONLINEARITIES, forward
from scipy import stats

import nmd_lab
from nmd_lab.model.censored import moments
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


def integrate_all(f, mean, sd, kinks=()):
    return [integrate(f, m, s, kinks) for m, s in zip(mean, sd, strict=True)]


def normal_inputs(seed, n=300):
    rng = np.random.default_rng(seed)
    return rng.normal(size=n) * 10 ** rng.uniform(-2, 2, n), 10 ** rng.uniform(-3, 2, n)


@pytest.mark.parametrize("f", NONLINEARITIES)
def test_agrees_with_integration(f):
    mean, sd = normal_inputs(1)
    wanted = [
        integrate(lambda t: forward(f, t), m, s, (0, 1)) for m, s in zip(mean, sd, strict=True)
    ]
    np.testing.assert_allclose(expected_value(f, mean, sd), wanted, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(("a", "b"), [(1, 5), (-INF, 2), (-1, INF), (-INF, INF), (3, 3)])
def test_agrees_for_general_bounds(a, b):
    mean, sd = normal_inputs(2)
    wanted = [
        integrate(lambda t: forward("minmax", t, a, b), m, s, (a, b))
        for m, s in zip(mean, sd, strict=True)
    ]
    result = expected_value(nmd_lab.MinMax(a, b), mean, sd)
    np.testing.assert_allclose(result, wanted, rtol=1e-10, atol=1e-12)


class Tanh(nmd_lab.nonlinearities.Nonlinearity):
    name = "tanh in the tests of expectations"

    @staticmethod
    def forward(t, p):
        return math.tanh(t)


def test_any_other_f_is_integrated():
    rng = np.random.default_rng(3)
    mean, sd = rng.normal(size=50), rng.uniform(0.01, 1, 50)
    wanted = integrate_all(np.tanh, mean, sd)
    np.testing.assert_allclose(expected_value(Tanh(), mean, sd), wanted, atol=1e-6)


@pytest.mark.parametrize("f", [*NONLINEARITIES, nmd_lab.MinMax(-INF, 2), Tanh()])
def test_no_spread_gives_f_of_the_mean(f):
    mean = np.array([-2.0, 0.0, 0.4, 1.0, 3.0])
    exact = as_nonlinearity(f)(mean)
    np.testing.assert_allclose(expected_value(f, mean, 1e-300), exact, atol=1e-290)


def test_far_outside_a_limit():
    assert expected_value("relu", -40.0, 1.0) == pytest.approx(0, abs=1e-300)
    assert expected_value("minmax", 1e9, 1.0) == 1.0
    assert expected_value("relu", -6.0, 1.0) == pytest.approx(
        float(stats.norm.pdf(6) - 6 * stats.norm.sf(6)), rel=1e-9
    )


def test_shapes_and_types():
    result = expected_value("relu", np.zeros((3, 1), np.float32), np.ones(2))
    assert result.shape == (3, 2)
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, 1 / math.sqrt(2 * math.pi))
    assert expected_value("square", 3.0, 2.0) == 13.0
