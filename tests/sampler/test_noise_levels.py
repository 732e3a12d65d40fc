"""Draws of the noise levels ρ and β, given T, against their Gamma laws."""

import math

import numpy as np
import pytest
from scipy import stats

from nmd_lab.data.inputs import observe
from nmd_lab.model.model import make_model
from nmd_lab.problem.scaling import NO_OFFSET_COLUMNS, Scaling
from nmd_lab.sampler.chain import ChainState, draw_noise
from nmd_lab.sampler.priors import Prior
from nmd_lab.sampler.problem import SampledProblem

DRAWS = 3000
SIGNIFICANT = 1e-4
PRIOR = Prior(spread=3.0, spread_of_X=0.7, noise_shape=1.5, noise_rate=0.05)
COUNT, MISFIT, LOSSES = 20, 31.0, 7.0


def test_precision_and_likelihood_of_gaussian_noise_after_f():
    X, scaling = observe(np.ones((5, 4))), Scaling(make_model("identity", "frobenius"))
    problem = SampledProblem(scaling, ("after",), 1, NO_OFFSET_COLUMNS, PRIOR, X, 1)
    state = ChainState(np.ones((5, 1)), np.ones((4, 1)), np.ones(1), np.ones(1), np.ones(COUNT))
    rng, found = np.random.default_rng(0), np.empty(DRAWS)
    for k in range(DRAWS):
        draw_noise(problem, state, np.array([MISFIT]), np.array([LOSSES]), rng)
        found[k] = state.beta[0]
    rate = 0.05 * 0.7**2 + LOSSES  # the loss has the half in it
    law = stats.gamma(1.5 + COUNT / 2, scale=1 / rate)
    assert stats.kstest(found, law.cdf).pvalue > SIGNIFICANT
    rho, beta = state.rho[0], state.beta[0]
    gaussian = COUNT / 2 * math.log(rho) - rho * MISFIT / 2
    expected = gaussian + COUNT / 2 * math.log(beta) - beta * LOSSES
    assert state.log_likelihood == pytest.approx(expected)
