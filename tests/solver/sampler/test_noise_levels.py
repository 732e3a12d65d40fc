"""Draws of the noise levels ρ and β, given T, against their Gamma laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from nmd_lab.data.inputs import observe
from nmd_lab.model.model import make_model
from nmd_lab.solver.sampler.chain import draw_noise
from nmd_lab.solver.sampler.priors import Prior
from nmd_lab.solver.sampler.problem import SampledProblem
from nmd_lab.solver.sampler.state import ChainState
from nmd_lab.solver.storage import storage_of

DRAWS = 3000
SIGNIFICANT = 1e-4
PRIOR = Prior(spread=3.0, spread_of_X=0.7, noise_shape=1.5, noise_rate=0.05)
COUNT, MISFIT, LOSSES = 20, 31.0, 7.0


def drawn(kind, loss):
    seen = observe(np.ones((5, 4)))
    model = make_model("identity", loss)
    values = np.ones(COUNT)
    offsets = False, False
    entries = storage_of(seen), values, None, 1
    problem = SampledProblem(model, (kind,), 1, *offsets, 0.0, PRIOR, *entries)
    state = ChainState(np.ones((5, 1)), np.ones((4, 1)), np.ones(1), np.ones(1), values.copy())
    rng = np.random.default_rng(0)
    found = np.empty((DRAWS, 2))
    for k in range(DRAWS):
        draw_noise(problem, state, np.array([MISFIT]), np.array([LOSSES]), rng)
        found[k] = state.rho[0], state.beta[0]
    return found.T, state


def gamma(shape, rate):
    return stats.gamma(shape, scale=1 / rate).cdf


@pytest.mark.parametrize(
    ("kind", "loss"),
    [("gaussian", "frobenius"), ("before", "frobenius"), ("after", "l1"), ("after", "kl")],
)
def test_precision_of_T(kind, loss):
    (rho, _), _ = drawn(kind, loss)
    law = gamma(1.5 + COUNT / 2, 0.05 * 3.0**2 + MISFIT / 2)
    assert stats.kstest(rho, law).pvalue > SIGNIFICANT


def test_precision_of_gaussian_noise_after_f():
    (_, beta), state = drawn("after", "frobenius")
    law = gamma(1.5 + COUNT / 2, 0.05 * 0.7**2 + LOSSES)  # the loss has the half in it
    assert stats.kstest(beta, law).pvalue > SIGNIFICANT
    rho, beta = state.rho[0], state.beta[0]
    gaussian = COUNT / 2 * math.log(rho) - rho * MISFIT / 2
    expected = gaussian + COUNT / 2 * math.log(beta) - beta * LOSSES
    assert state.log_likelihood == pytest.approx(expected)


@pytest.mark.parametrize(
    ("kind", "loss"), [("gaussian", "frobenius"), ("before", "frobenius"), ("after", "kl")]
)
def test_noise_without_a_level_after_f_has_a_precision_of_one(kind, loss):
    (_, beta), _ = drawn(kind, loss)
    assert (beta == 1).all()
