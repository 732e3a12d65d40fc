"""Draws at entries of which only limits are known, against integrals."""

import numpy as np
import pytest
from densities import many_draws
from scipy.stats import kstest, laplace, norm, poisson

from nmd_lab.model.model import make_model
from nmd_lab.sampler import latent_draws
from nmd_lab.sampler.latent_draws import compile_latent_draw

N = 20_000


@pytest.mark.parametrize(("low", "high"), [(-np.inf, 0.5), (0.5, 4.0), (2.0, 3.0), (3.0, np.inf)])
def test_laplace_between_limits(low, high):
    x = many_draws(latent_draws.draw_laplace)((1.0, 2.0, low, high), N, 1)
    noise = laplace(1.0, 0.5)
    start, end = noise.cdf(low), noise.cdf(high)
    assert kstest(x, lambda z: (noise.cdf(z) - start) / (end - start)).pvalue > 1e-3


@pytest.mark.parametrize(("low", "high"), [(0.0, 3.0), (2.5, 6.2), (9.0, np.inf)])
def test_poisson_between_limits(low, high):
    x = many_draws(latent_draws.draw_poisson)((4.0, 1.0, low, high), N, 1)
    k = np.arange(np.ceil(low), min(np.floor(high), 60) + 1)
    mass = poisson(4.0).pmf(k) / poisson(4.0).pmf(k).sum()
    shares = np.array([np.mean(x == each) for each in k])
    assert np.abs(shares - mass).max() < 4 / np.sqrt(4 * N)


@pytest.mark.parametrize("f", ["relu", "modulus", "minmax", "square"])
def test_T_before_f_is_normal_where_f_satisfies_the_limits(f):
    pair, (low, high), (v, sd) = make_model(f, "frobenius"), (0.0, 0.7), (0.2, 0.8)
    draw = compile_latent_draw(pair.structure)
    t = many_draws(draw)((v, sd, low, high, pair.only.arguments[0]), N, 1)
    grid = np.linspace(-6, 6, 20_001)
    y = pair.nonlinearity(grid)
    density = norm.pdf(grid, v, sd) * ((y >= low) & (y <= high))
    cdf = np.cumsum(density) / density.sum()
    assert kstest(t, lambda z: np.interp(z, grid, cdf)).pvalue > 1e-3
