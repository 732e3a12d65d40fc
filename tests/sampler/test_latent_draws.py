"""Draws of T for noise before f, of T and of x between limits, and of cut points for known WH."""

import math

import numpy as np
import pytest
from densities import many_draws, p_of_truncated
from scipy import stats
from scipy.special import expit

import nmd_lab
from nmd_lab.model.model import make_model
from nmd_lab.model.nonlinearities import Piece
from nmd_lab.sampler import latent_draws
from nmd_lab.sampler.latent_draws import Levels, compile_latent_draw, first_cuts

INF = math.inf


def draws(f, v, x, rho, n=4000, seed=0):
    pair = make_model(f, "frobenius")
    sample = many_draws(compile_latent_draw(pair.structure))
    return sample((float(v), rho**-0.5, float(x), float(x), pair.only.arguments[0]), n, seed)


BOUNDS, FLAT = nmd_lab.MinMax(-0.3, 0.1), nmd_lab.MinMax(1, 5)
LIMITS = [("relu", 0.0, -INF, 0), (FLAT, 1.0, -INF, 1), (FLAT, 5.0, 5, INF)]
BEYOND = [
    *((f, v, x, rho, low, high) for f, x, low, high in LIMITS
      for v in (-2.0, 0.0, 1.0, 5.0) for rho in (0.1, 4.0)),
    # a value that f does not take counts as the nearest
    ("relu", 0.5, -0.3, 1.0, -INF, 0), ("minmax", 0.5, 1.2, 1.0, 1, INF),
    # a limit in single precision is recognised
    (BOUNDS, 0.0, np.float32(0.1), 1.0, 0.1, INF), (BOUNDS, 0.0, np.float32(-0.3), 1.0, -INF, -0.3),
    (nmd_lab.MinMax(2, 2), 1.0, 2.0, 4.0, -INF, INF),  # bounds that coincide leave all open
]  # fmt: skip


@pytest.mark.parametrize(("f", "v", "x", "rho", "low", "high"), BEYOND)
def test_a_value_at_a_limit_is_drawn_beyond_it(f, v, x, rho, low, high):
    assert p_of_truncated(draws(f, v, x, rho), v, rho**-0.5, low, high) > 1e-3


@pytest.mark.parametrize(
    ("f", "x", "t"),
    [
        *((f, x, x) for f in ("identity", "relu", nmd_lab.MinMax(0, 5), nmd_lab.MinMax(0, INF))
          for x in (2.5, 1e-9)),
        *((f, -1.0, 0.0) for f in ("modulus", "square")),  # the nearest that f takes
    ],
)  # fmt: skip
def test_a_value_that_one_t_has_is_kept(f, x, t):
    assert np.all(draws(f, -3.0, x, 9.0, n=10) == t)


@pytest.mark.parametrize(("f", "size"), [("modulus", 2.0), ("square", math.sqrt(2.0))])
@pytest.mark.parametrize("v", [-0.5, 0.0, 0.3, 60.0])
def test_even_models_choose_the_sign_by_its_density(f, size, v):
    t = draws(f, v, 2.0, 0.8, n=20_000)
    np.testing.assert_allclose(np.abs(t), size)
    share = expit(2 * 0.8 * v * size)
    assert stats.binomtest(int(np.sum(t > 0)), t.size, share).pvalue > 1e-3
    assert np.all(draws(f, v, 0.0, 0.8, n=10) == 0)


class Valley(nmd_lab.nonlinearities.Nonlinearity):
    """Flat at 1, down with slope -1 to 0 at t = 0, up with slope 2, and flat at 1 again."""

    name = "valley of these tests"

    @staticmethod
    def forward(t, p):
        return min(1.0, -t if t < 0.0 else 2.0 * t)

    def pieces(self):
        return (
            Piece(-INF, -1.0, 0.0, 1.0),
            Piece(-1.0, 0.0, -1.0, 0.0),
            Piece(0.0, 0.5, 2.0, 0.0),
            Piece(0.5, INF, 0.0, 1.0),
        )


def test_several_points_are_weighed_by_density_and_slope():
    v, rho, x, width = 0.1, 3.0, 0.4, 1e-6
    t = draws(Valley(), v, x, rho, n=20_000)
    assert set(np.unique(t)) == {-0.4, 0.2}
    normal = stats.norm(v, 1 / math.sqrt(rho))  # mass of what f sends to a narrow interval
    left = normal.cdf(-x + width) - normal.cdf(-x - width)
    right = normal.cdf((x + width) / 2) - normal.cdf((x - width) / 2)
    share = left / (left + right)
    assert stats.binomtest(int(np.sum(t < 0)), t.size, share).pvalue > 1e-3


def test_several_flat_pieces_are_weighed_by_their_mass():
    v, rho = -0.2, 1.5
    t = draws(Valley(), v, 1.0, rho, n=20_000)
    normal = stats.norm(v, 1 / math.sqrt(rho))
    share = normal.cdf(-1) / (normal.cdf(-1) + normal.sf(0.5))
    assert stats.binomtest(int(np.sum(t < 0)), t.size, share).pvalue > 1e-3
    assert p_of_truncated(t[t < 0], v, rho**-0.5, -INF, -1) > 1e-3
    assert p_of_truncated(t[t > 0], v, rho**-0.5, 0.5, INF) > 1e-3


# Limits of which x lies between -----------------------------------------------------------------

N = 20_000


@pytest.mark.parametrize(("low", "high"), [(-INF, 0.5), (0.5, 4.0), (2.0, 3.0), (3.0, INF)])
def test_laplace_between_limits(low, high):
    x = many_draws(latent_draws.draw_laplace)((1.0, 2.0, low, high), N, 1)
    noise = stats.laplace(1.0, 0.5)
    start, end = noise.cdf(low), noise.cdf(high)
    assert stats.kstest(x, lambda z: (noise.cdf(z) - start) / (end - start)).pvalue > 1e-3


@pytest.mark.parametrize(("low", "high"), [(0.0, 3.0), (2.5, 6.2), (9.0, INF)])
def test_poisson_between_limits(low, high):
    x = many_draws(latent_draws.draw_poisson)((4.0, 1.0, low, high), N, 1)
    k = np.arange(np.ceil(low), min(np.floor(high), 60) + 1)
    mass = stats.poisson(4.0).pmf(k) / stats.poisson(4.0).pmf(k).sum()
    shares = np.array([np.mean(x == each) for each in k])
    assert np.abs(shares - mass).max() < 4 / np.sqrt(4 * N)


@pytest.mark.parametrize("f", ["relu", "modulus", "minmax", "square"])
def test_T_before_f_is_normal_where_f_satisfies_the_limits(f):
    pair, (low, high), (v, sd) = make_model(f, "frobenius"), (0.0, 0.7), (0.2, 0.8)
    draw = compile_latent_draw(pair.structure)
    t = many_draws(draw)((v, sd, low, high, pair.only.arguments[0]), N, 1)
    grid = np.linspace(-6, 6, 20_001)
    y = pair.nonlinearity(grid)
    density = stats.norm.pdf(grid, v, sd) * ((y >= low) & (y <= high))
    cdf = np.cumsum(density) / density.sum()
    assert stats.kstest(t, lambda z: np.interp(z, grid, cdf)).pvalue > 1e-3


# Cut points -----------------------------------------------------------------------------------


def levels_of(v, cuts, rng):
    return np.digitize(v + rng.standard_normal(v.size), cuts).astype(float)


def weight_on(grid, codes, v, first):
    """Return the density, up to a factor, of the other cut points on a grid of each of them."""
    level, shape = codes.astype(int), (grid.size,) * (int(codes.max()) - 1)
    logs = np.full(shape, -np.inf)
    for at in np.ndindex(shape):
        ends = np.concatenate([[-np.inf, first], grid[list(at)], [np.inf]])
        if np.all(np.diff(ends) > 0):
            mass = stats.norm.cdf(ends[level + 1] - v) - stats.norm.cdf(ends[level] - v)
            logs[at] = np.log(np.maximum(mass, 1e-300)).sum()
    return np.exp(logs - logs.max())


def chain_of(codes, number, v, sweeps, tune=500):
    """Return draws of the cut points."""
    rng, kept = np.random.default_rng(1), []
    levels = Levels(codes, codes, number)
    ends, steps = (each[0] for each in first_cuts([levels]))
    for k in range(tune + sweeps):
        levels.draw(v, ends, steps, rng, tune=k < tune)
        kept.append(ends[1:-1].copy())
    return np.array(kept[tune:])


@pytest.mark.parametrize(("cuts", "step"), [([-0.5, 0.9], 0.005), ([-0.5, 0.3, 1.1], 0.03)])
def test_cut_points_have_their_posterior(cuts, step):
    rng = np.random.default_rng(0)
    v = rng.normal(size=60)
    codes = levels_of(v, cuts, rng)
    kept = chain_of(codes, len(cuts) + 1, v, 12_000)
    first = kept[0, 0]
    assert (kept[:, 0] == first).all()
    thinned = kept[::20, 1:]
    grid = np.arange(first + step / 2, first + 4, step)
    weight = weight_on(grid, codes, v, first)
    for axis, own in enumerate(thinned.T):
        others = tuple(other for other in range(weight.ndim) if other != axis)
        marginal = np.cumsum(weight.sum(axis=others))
        law = np.interp(own, grid + step / 2, marginal / marginal[-1])
        assert stats.kstest(law, "uniform").pvalue > 1e-3


def test_steps_are_accepted_about_half_the_time_and_absent_levels_keep_the_order():
    rng = np.random.default_rng(0)
    v = rng.normal(size=400)
    kept = chain_of(levels_of(v, [-0.5, 0.5, 1.5], rng), 4, v, 2000)
    moved = np.mean(np.diff(kept[:, 1:], axis=0) != 0, axis=0)
    assert ((moved > 0.3) & (moved < 0.6)).all()
    assert (np.diff(chain_of(np.where(v > 0, 3.0, 0.0), 4, v, 500), axis=1) > 0).all()


def test_weights_and_intervals_of_levels():
    """A weight is a precision of T; of an interval of levels only its two ends count."""
    rng = np.random.default_rng(0)
    v, weights = rng.normal(size=90), rng.uniform(0.5, 2, 90)
    low = levels_of(v, [-0.8, 0.2, 1.0], rng)
    high = np.where(rng.random(90) < 0.3, np.minimum(low + rng.integers(0, 4, 90), 3), low)
    levels = Levels(low, high, 4, weights)
    ends, steps = (each[0] for each in first_cuts([levels]))
    for _ in range(30):
        likelihood = levels.draw(v, ends, steps, rng, tune=True)
    of_entries = (ends[each.astype(int)] for each in (low, high + 1))
    below, above = (stats.norm.cdf(np.sqrt(weights) * (end - v)) for end in of_entries)
    assert likelihood == pytest.approx(np.log(above - below).sum(), rel=1e-9)
    assert (low < high).any()
