"""Full tables of numbers against a Bayesian factor model whose rows are integrated out.

Given columns and noise, the rows of a full table are independent Gaussians, and mean and variance
of WH have closed forms.  Columns, noise and the prior of the rows are drawn from their prior with
NumPy, and weighted by the density of the table.  No numbers are drawn by turns, and nothing is
shared with the library but the meaning of the model.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

import nmd_lab as nmd
from nmd_lab.data.inputs import observe
from nmd_lab.solver.sampler.chain import Chain, ChainStart
from nmd_lab.solver.sampler.prepare import prepare_sample
from nmd_lab.solver.sampler.sampled_model import SampleOptions

PARTICLES, SWEEPS, BATCHES = 150_000, 1600, 20
Z = np.array([[1.2, 0.7, -0.4], [-0.9, -1.1, 0.2], [0.5, -0.3, 0.9], [-0.4, 0.8, -1.3]])
Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)


class Noise(NamedTuple):
    """The prior of the precision of the noise, of all columns or of each, and the proposal."""

    shape: float
    rate: float
    proposed_rate: float
    by_column: bool


ONE, BY_COLUMN = Noise(1.0, 0.01, 1.0, False), Noise(4.0, 1.0, 1.0, True)
"""That of arrays, and one that keeps a column from being the copy of the component."""


def factor_model(X, noise, share=0.25, strength=2.0):
    """Return E WH and E (WH)² of each entry (m, n), E log ρ (1 or n,) and the number of particles.

    With rank 1, an offset for each column, and data in units of their spread.
    """
    rng, n = np.random.default_rng(0), X.shape[1]
    rho = rng.gamma(noise.shape, size=(PARTICLES, n if noise.by_column else 1))
    rho /= noise.proposed_rate
    precision_of_w = rng.chisquare(1, PARTICLES) / share
    mean_of_w = rng.standard_normal(PARTICLES) / np.sqrt(strength * precision_of_w)
    root = np.linalg.inv(rng.standard_normal((PARTICLES, 2, 2)))  # of an inverse Wishart matrix
    z = rng.standard_normal((n + 1, PARTICLES, 2))
    z = z[:n] + z[n] / np.sqrt(strength)
    H, offsets = np.moveaxis(np.einsum("pba,jpb->pja", root, z), 2, 0)
    H, offsets = np.sqrt(share) * H, share * offsets
    precision = precision_of_w + (rho * H**2).sum(axis=1)
    log_weight, v = ((noise.proposed_rate - noise.rate) * rho).sum(axis=1), []
    for x in X:
        off = x - offsets - H * mean_of_w[:, None]
        moved = (rho * H * off).sum(axis=1)
        log_weight += 0.5 * (np.log(rho).sum(axis=1) * (n / rho.shape[1]))
        log_weight += 0.5 * (np.log(precision_of_w / precision) + moved**2 / precision)
        log_weight -= 0.5 * (rho * off**2).sum(axis=1)
        v.append(offsets + H * (mean_of_w + moved / precision)[:, None])
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    variance = H**2 / precision[:, None]
    moments = [np.array([weight @ each for each in v])]
    moments.append(np.array([weight @ (each**2 + variance) for each in v]))
    return *moments, weight @ np.log(rho), 1 / np.sum(weight**2)


def assert_equal(draws, expected, particles):
    """Compare the mean of draws (sweep, ...) with the one expected, within 4.5 errors of both."""
    batches = draws.reshape(BATCHES, -1, *draws.shape[1:]).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(BATCHES) + draws.std(axis=0) / np.sqrt(particles)
    assert np.abs((draws.mean(axis=0) - expected) / error).max() < 4.5


def check(v, rho, noise):
    """Compare draws of WH and ρ with the factor model."""
    mean, square, log_rho, particles = factor_model(Z, noise)
    assert particles > 2000
    assert_equal(v, mean, particles)
    assert_equal(v**2, square, particles)
    assert_equal(np.log(rho), log_rho, particles)


def test_a_table_with_one_noise():
    X = 3 * Z + 50
    draws = {"draws": SWEEPS, "tune": 200, "random_state": 0, "progress": False}
    frame = pd.DataFrame(X, columns=list("abc"))
    posterior = nmd.sample(frame, 1, offsets="columns", noise_by="one", groups=1, **draws)
    i, j = np.divmod(np.arange(X.size), 3)
    v = (posterior._fitted.linear_at(i, j).reshape(SWEEPS, *X.shape) - 50) / 3
    check(v, 9 * posterior.draws["rho"].to_numpy().reshape(SWEEPS, 1), ONE)


def test_a_table_with_noise_by_column():
    X = Z * [3.0, 1.0, 0.2] + [50.0, 0.0, -1.0]
    options = SampleOptions(rank=1, nonlinearity="identity", noise_by="columns", groups=1)
    problem = prepare_sample(observe(X), options).problem
    prior = replace(problem.prior, noise_shape=BY_COLUMN.shape, noise_rate=BY_COLUMN.rate)
    problem = replace(problem, prior=prior)
    chain, v, rho = Chain(), np.empty((SWEEPS, 4, 3)), np.empty((SWEEPS, 3))
    state = chain.init(problem, ChainStart(np.ones((4, 1)), np.ones((3, 2)), seed=1))
    for k in range(-200, SWEEPS):
        state = chain.step(problem, state)
        v[k] = state.rows @ state.columns[:, :1].T + state.columns[:, 1]
        rho[k] = state.rho
    check(v, rho, BY_COLUMN)
