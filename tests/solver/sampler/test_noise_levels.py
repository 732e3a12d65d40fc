"""Draws of the noise levels ρ and β, given T, against their Gamma laws, and of these laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from nmd_lab.data.inputs import observe
from nmd_lab.model.model import make_model
from nmd_lab.solver.sampler import hyperparameters as priors
from nmd_lab.solver.sampler.chain import draw_noise
from nmd_lab.solver.sampler.problem import SampledProblem
from nmd_lab.solver.sampler.state import ChainState
from nmd_lab.solver.storage import storage_of

DRAWS = 3000
SIGNIFICANT = 1e-4
PRIOR = priors.Prior(spread=3.0, spread_of_X=0.7, noise_shape=1.5, noise_rate=0.05)
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


def test_rate_of_laplace_noise():
    (_, beta), _ = drawn("after", "l1")
    law = gamma(1.5 + COUNT, 0.05 * 0.7 + LOSSES)
    assert stats.kstest(beta, law).pvalue > SIGNIFICANT


@pytest.mark.parametrize("kind", ["gaussian", "before"])
def test_no_noise_after_f(kind):
    (_, beta), _ = drawn(kind, "frobenius")
    assert (beta == 1).all()


def test_poisson_noise_has_no_precision():
    (_, beta), _ = drawn("after", "kl")
    assert (beta == 1).all()


# The levels of rows ----------------------------------------------------------------------------

HOLES = np.array([[1, 1, 1, 1], [1, 0, 0, 1], [0, 0, 0, 0]], bool)
LAWS = priors.NoisePriors(priors.GammaPrior(2.0, 3.0), priors.GammaPrior(4.0, 0.5))


@pytest.mark.parametrize("loss", ["frobenius", "l1"])
def test_each_row_has_levels_from_the_law_of_all(loss):
    seen = observe(np.where(HOLES, 1.0, np.nan)).as_sparse()
    model, values = make_model("identity", loss), np.ones(6)
    entries = storage_of(seen), values, None, 1
    problem = SampledProblem(
        model, ("after",), 1, False, False, 0.0, PRIOR, *entries, noise_by="rows"
    )
    levels = np.ones((2, 3))
    state = ChainState(np.ones((3, 1)), np.ones((4, 1)), *levels, values, noise_priors=LAWS)
    misfits, losses = np.array([5.0, 40.0, 0.0]), np.array([2.0, 9.0, 0.0])
    rng, found = np.random.default_rng(0), np.empty((DRAWS, 2, 3))
    for k in range(DRAWS):
        draw_noise(problem, state, misfits, losses, rng)
        found[k] = state.rho, state.beta
    counts, half = np.array([4, 2, 0]), 1.0 if loss == "l1" else 0.5
    for i in range(3):
        rho = gamma(2.0 + counts[i] / 2, 3.0 + misfits[i] / 2)
        beta = gamma(4.0 + half * counts[i], 0.5 + losses[i])
        assert stats.kstest(found[:, 0, i], rho).pvalue > SIGNIFICANT
        assert stats.kstest(found[:, 1, i], beta).pvalue > SIGNIFICANT


@pytest.mark.parametrize("spread", [1.2, 0.05])
def test_the_law_of_all_levels(spread):
    """Its shape and rate against sums over a grid of their joint density."""
    unit = 5.0
    levels = 0.7 * np.exp(spread * np.random.default_rng(1).standard_normal(12)) / unit
    v = np.exp(np.linspace(-6, 6, 60_001))  # in units of the variance
    logs = np.array(
        [
            stats.gamma(a, scale=1 / (a * v[:, None] * unit)).logpdf(levels).sum(axis=1)
            for a in priors.SHAPES
        ]
    )
    mass = np.exp(logs - logs.max()) * stats.expon(scale=0.1).pdf(v) * v
    mass /= mass.sum()
    rng = np.random.default_rng(0)
    drawn = np.array([priors.draw_gamma_prior(levels, unit, rng) for _ in range(DRAWS)])
    counts = np.array([np.isclose(drawn[:, 0], a).sum() for a in priors.SHAPES])
    expected = DRAWS * mass.sum(axis=1)
    often = expected > 5
    assert counts[~often].sum() < 30
    chi2 = np.sum((counts[often] - expected[often]) ** 2 / expected[often])
    assert stats.chi2(often.sum()).sf(chi2) > SIGNIFICANT
    below = np.cumsum(mass.sum(axis=0))
    mean_noise = drawn[:, 1] / drawn[:, 0] / unit  # v
    u = np.interp(np.log(mean_noise), np.log(v), below)
    assert stats.kstest(u, "uniform").pvalue > SIGNIFICANT
