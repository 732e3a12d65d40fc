"""Draws at entries of which only limits are known, against integrals and in coverage."""

import numpy as np
import pytest
from densities import many_draws
from scipy import sparse
from scipy.stats import kstest, laplace, norm, poisson
from some import some

import nmd_lab as nmd
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


def logarithms(seed=0, m=120, n=20, noise=0.2):
    """Logarithms of concentrations, and where they are below the limit of their column."""
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(m, 2)) @ rng.normal(size=(2, n)) + noise * rng.normal(size=(m, n))
    limit = np.quantile(Y, 0.4, axis=0)
    return np.where(limit > Y, limit, Y), Y, limit > Y


@pytest.mark.parametrize("storage", ["dense", "masked", "sparse"])
def test_intervals_cover_the_hidden_values(storage):
    X, Y, below = logarithms()
    data, mask = X, below
    if storage != "dense":
        data = np.where(np.random.default_rng(1).random(X.shape) < 0.8, X, np.nan)
        mask = below & ~np.isnan(data)
    if storage == "sparse":
        data, mask = sparse.csr_array(np.nan_to_num(data)), sparse.csr_array(mask)
    posterior = nmd.sample(data, 4, at_most=mask, draws=150, random_state=0)
    at = np.nonzero(
        below if storage == "dense" else np.asarray(mask.todense() if storage == "sparse" else mask)
    )
    low, high = posterior.predict_interval(*at, level=0.9).T
    true = Y[at]
    cover = np.mean((low <= true) & (true <= np.minimum(high, X[at])))
    assert 0.85 <= cover <= 0.95
    error = np.sqrt(np.mean((posterior.predict(*at) - true) ** 2))
    assert error < 0.6 * np.sqrt(np.mean((X[at] - np.log(2) - true) ** 2))


@pytest.mark.parametrize(
    ("f", "loss"), some([("relu", "kl"), ("relu", "l1"), ("square", "frobenius")], 1)
)
@pytest.mark.filterwarnings("ignore:.*of the draws below limits are negative")
def test_noise_after_f(f, loss):
    rng = np.random.default_rng(0)
    mean = 3 * rng.gamma(1, 1, (80, 2)) @ rng.gamma(1, 1, (2, 20))
    Y = rng.poisson(mean).astype(float)
    limit = np.maximum(np.quantile(Y, 0.4, axis=0), 1)
    below = limit >= Y
    X = np.where(below, limit, Y)
    posterior = nmd.sample(X, 2, f, loss, at_most=below, noise="after", draws=60, random_state=0)
    error = np.sqrt(np.mean((posterior.reconstruct().values - mean)[below] ** 2))
    assert error < np.sqrt(np.mean((X - mean)[below] ** 2))
