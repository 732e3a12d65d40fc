"""The T-update and the loss of entries of which only limits are known."""

import math

import numpy as np
import pytest
from helpers import some
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import PAIRS, distance, forward
from scipy import integrate
from scipy.stats import norm, truncnorm

from nmd_lab.kernels.passes import EntryPasses
from nmd_lab.model.column_model import CensoredFrobenius, LimitModel, make_column_model
from nmd_lab.model.entry import AT_LEAST, AT_MOST, BETWEEN, EXACT, losses_within
from nmd_lab.model.model import Model
from nmd_lab.model.ordinal import log_probability

N = 3000


def entries(positive, seed=0):
    """Values with limits of all kinds, and v, rho and upper limits."""
    rng = np.random.default_rng(seed)
    x = np.abs(rng.normal(size=N)) * rng.choice([0.0, 0.1, 1.0, 3.0], N)
    if not positive:
        x *= rng.choice([-1, 1], N)
    upper = x + rng.choice([1e-3, 0.3, 2.0], N)
    v, rho = rng.normal(size=N) * rng.choice([0.1, 1, 5], N), 10 ** rng.uniform(-2, 2, N)
    return v, x, rho, rng.integers(0, 4, N).astype(np.int8), upper


def limited_loss(loss, x, y, limits, upper, smallest, sd):
    """Loss of entries with limits, from the definition."""
    smallest = max(smallest, 0.0) if loss == "kl" else smallest
    low = np.where(limits == AT_MOST, np.minimum(smallest, x), x)
    high = np.select([limits == AT_LEAST, limits == BETWEEN], [np.inf, upper], x)
    nearest = np.clip(y, low, high)
    plain = distance(loss, nearest, y)
    if sd == 0 or loss != "frobenius":
        return plain
    with np.errstate(divide="ignore"):
        a, b = (low - y) / sd, (high - y) / sd
        mass = np.where(a > 0, norm.sf(a) - norm.sf(b), norm.cdf(b) - norm.cdf(a))
        tobit = -(sd**2) * np.log(mass)
    return np.where((limits == EXACT) | (low >= high), plain, tobit)


def solved(kind, v, x, rho, limits, upper):
    """T and loss at T of all entries, by the compiled functions."""
    t, u, losses = np.zeros(v.size), np.zeros(v.size), np.empty(v.size)
    passes = EntryPasses(Model((kind,)), limited=True)
    passes.update(x, v.copy(), 1 / rho, limits, upper, None, t, u, 1.0)
    losses_within(kind.structure)(x, t, limits, upper, kind.numbers, losses)
    return t, losses


CASES = [(f, loss, sd) for f, loss in PAIRS for sd in (0.0, 0.3) if sd == 0 or loss == "frobenius"]
"""Pairs with the size of the noise; the squared loss alone has another form where it is known."""


@pytest.mark.parametrize("smallest", [-math.inf, 0.0])
@pytest.mark.parametrize(("f", "loss", "sd"), some(CASES, 3))
def test_t_update_is_the_minimum(f, loss, sd, smallest):
    kind = make_column_model(f, loss)._replace(limits=LimitModel(smallest, sd))
    v, x, rho, limits, upper = entries(loss == "kl" or smallest == 0)
    t, losses = solved(kind, v, x, rho, limits, upper)
    rest = (limits, upper, smallest, sd)

    def objective(t):
        y = forward(f, t)
        return limited_loss(loss, x, y, *rest) + 0.5 * rho * (t - v) ** 2

    attained = losses + 0.5 * rho * (t - v) ** 2
    own = objective(t)
    scale = 1e-12 + np.abs(own)
    known = np.isfinite(own)  # the difference of two probabilities underflows in the oracle
    assert np.mean(known) > 0.9
    np.testing.assert_allclose(attained[known], own[known], rtol=1e-6, atol=1e-9)
    reach = np.abs(v) + np.abs(x) + np.sqrt(np.abs(x)) + upper - x + 1
    steps = 10.0 ** np.arange(-7, 1)
    near = (t + step for step in (*steps, *-steps))
    with np.errstate(invalid="ignore"):
        for other in (*(share * reach for share in np.linspace(-1.5, 1.5, 601)), *near):
            trial = objective(other)
            assert np.all((attained <= trial + 1e-9 * scale) | ~known | np.isnan(trial))


@pytest.mark.parametrize("f", some(["square", "exp"], 1))
def test_a_lower_limit_has_the_lowest_loss(f):
    kind = make_column_model(f, "frobenius")._replace(limits=LimitModel(0.0, 0.3))
    v, x, limits = np.array([1.0351332185865496]), np.array([1.9915189425240574]), [AT_LEAST]
    t, _ = solved(kind, v, x, np.array([0.7]), np.array(limits, np.int8), x)
    grid = np.linspace(-4, 4, 8001)
    y = np.exp(grid) if f == "exp" else grid**2
    x, limits, upper = (np.full(grid.size, each[0]) for each in (x, limits, x))
    losses = limited_loss("frobenius", x, y, limits, upper, 0.0, 0.3) + 0.35 * (grid - v) ** 2
    assert t == pytest.approx(grid[np.argmin(losses)], abs=2e-3)


@given(st.floats(-30, 30), st.floats(1e-6, 50), st.sampled_from(["both", "low", "high"]))
@settings(max_examples=300, deadline=None)
def test_derivatives_are_those_of_the_moments_between_limits(a, width, kind):
    low, high = (a if kind != "high" else -math.inf), (a + width if kind != "low" else math.inf)
    slope, curvature = CensoredFrobenius.derivatives(0.0, 0.0, (low, high, 1.0))
    mean, variance = -slope, 1.0 - curvature
    assert max(low, -60) - 1e-8 <= mean <= min(high, 60) + 1e-8
    assert 0 <= variance <= 1
    expected = truncnorm.mean(low, high)
    if np.isfinite(expected):
        assert mean == pytest.approx(expected, rel=1e-6, abs=1e-6)


NEAR = (-1, 2), (3, 4), (-np.inf, -9), (-np.inf, -11), (8, 8.001), (1, 1 + 1e-6), (-9, -8)
FAR = (30, 31), (45, 46), (-46, -45), (-np.inf, -45), (45, 45.001)  # below the smallest number


@pytest.mark.parametrize(("a", "b"), [*NEAR, *FAR])
def test_log_probability_is_an_integral(a, b):
    low = max(a, b - 20)
    peak = -0.5 * min(abs(low), abs(b)) ** 2 if low * b > 0 else 0.0
    mass, _ = integrate.quad(
        lambda z: math.exp(-0.5 * z * z - peak), low, b, epsabs=0, epsrel=1e-12
    )
    expected = math.log(mass) + peak - 0.5 * math.log(2 * math.pi)
    assert log_probability(float(a), float(b)) == pytest.approx(expected, rel=1e-9)


def test_without_noise_it_is_the_squared_distance_to_the_limit():
    y, p = np.linspace(1.5, 4, 20), (-math.inf, 1.0, 1e-4)
    losses = [CensoredFrobenius.value(0.0, each, p) for each in y]
    np.testing.assert_allclose(losses, 0.5 * (y - 1) ** 2, rtol=1e-4)
