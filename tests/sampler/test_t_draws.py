"""Draws of T for noise after f: against the density by integration, for every pair."""

import math

import numpy as np
import pytest
from densities import Distribution, any_inputs, density_of, t_draws
from oracles import PAIRS
from part_oracles import distance, forward
from scipy import stats

import nmd_lab
from nmd_lab.model.model import make_model
from nmd_lab.sampler.latent_draws import compile_t_draw

N_INPUTS, N_DRAWS = 20, 3000


def p_value(t, distribution):
    return float(stats.kstest(t, distribution.cdf).pvalue)


def assert_uniform(p_values):
    assert min(p_values) > 1e-3 / len(p_values)
    assert stats.kstest(p_values, "uniform").pvalue > 1e-3


def p_values(f, loss, all_inputs):
    """Return one for the draws at each v, x, rho and beta."""
    return [
        p_value(t_draws(f, loss)(*inputs, N_DRAWS, seed), density_of(f, loss, *inputs))
        for seed, inputs in enumerate(all_inputs)
    ]


@pytest.mark.parametrize(("f", "loss"), PAIRS)
def test_draws_follow_the_density(f, loss):
    assert_uniform(p_values(f, loss, any_inputs(N_INPUTS, loss, 11)))
    t_draws(f, loss)(math.nan, 1.0, 1.0, 1.0, 1, 0)  # it ends


@pytest.mark.parametrize(("f", "loss"), PAIRS)
@pytest.mark.exhaustive
def test_extreme_ratios_and_distances(f, loss):
    extremes = [
        (0.4, 0.7, 1.0, 1e8), (0.4, 0.7, 1e4, 1e-4), (-3.0, 0.0, 1.0, 1e8), (40.0, 0.7, 1.0, 1e3),
        (-40.0, 0.7, 1.0, 1.0), (-40.0, 0.0, 1.0, 100.0), (40.0, 0.0, 1.0, 1e-8),
        (0.01, 0.7, 1e-4, 1e4), (0.0, 0.0, 1e4, 1e-4), (0.0, 1e-3, 1.0, 1e6),
    ]  # fmt: skip
    p = p_values(f, loss, extremes)
    assert min(p) > 1e-4, extremes[int(np.argmin(p))]


def test_the_parts_of_a_bounded_model_share_their_limits():
    """Far outside the bounds, terms of 5e11 cancel; the masses of the pieces must not."""
    v, x, rho, beta = 0.5, -100.0, 1.0, 1e8
    t = t_draws("minmax", "frobenius")(v, x, rho, beta, 20_000, 0)
    # Left of 0 the density is that of N(v, 1) with the mass below; right of it, it falls at once.
    right = np.mean(t > 0)
    left_mass = math.sqrt(2 * math.pi) * stats.norm.cdf(-v) * math.exp(v * v / 2)
    wanted = 1 / (beta * abs(x)) / left_mass
    assert right <= wanted + 5 * math.sqrt(wanted / t.size) + 1e-6
    assert p_value(t, Distribution(lambda s: (s - v) ** 2 / 2, [0], v, 1, within=(-50, 0))) > 1e-3


# Steps from an old T ----------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["frobenius", "l1"])
def test_a_step_keeps_the_density(loss):
    draws, p = t_draws("square", loss), []
    for seed, inputs in enumerate(any_inputs(N_INPUTS, loss, 12)):
        exact = density_of("square", loss, *inputs)
        t_old = exact.sample(np.random.default_rng(seed).random(N_DRAWS))
        t = draws(*inputs, N_DRAWS, seed, t_old, steps=1)
        assert np.mean(t != t_old) > 0.9
        p.append(p_value(t, exact))
    assert_uniform(p)


@pytest.mark.parametrize("t_old", [-1e6, 1e3, 0.0])
@pytest.mark.exhaustive
def test_steps_leave_an_unlikely_point(t_old):
    for loss in ("frobenius", "l1"):
        inputs = (0.5, 2.0, 0.7, 1.5)
        t = t_draws("square", loss)(*inputs, N_DRAWS, 0, t_old)
        assert p_value(t, density_of("square", loss, *inputs)) > 1e-3


# Other models -----------------------------------------------------------------------------------

HUBER, TANH = nmd_lab.losses.Huber(0.5), nmd_lab.nonlinearities.Tanh()
OTHERS = [
    (nmd_lab.ReLU(), HUBER, "relu", ("huber", 0.5)),
    (nmd_lab.Modulus(), HUBER, "modulus", ("huber", 0.5)),
    (TANH, HUBER, "tanh", ("huber", 0.5)),
    (TANH, nmd_lab.L1(), "tanh", ("l1",)),
    (TANH, nmd_lab.KL(), "tanh", ("kl",)),
]


@pytest.mark.parametrize(("f", "loss", "name", "formula"), OTHERS)
@pytest.mark.exhaustive
def test_models_without_pieces_or_with_another_loss(f, loss, name, formula):
    draws, p = t_draws(f, loss), []
    for seed, (v, x, rho, beta) in enumerate(any_inputs(12, "kl", 13)):
        x, rho, beta = x + 0.1, min(rho, 50.0), min(beta, 50.0)

        def energy(t, v=v, x=x, rho=rho, beta=beta):
            return beta * distance(formula, x, forward((name,), t)) + rho / 2 * (t - v) ** 2

        special = [0, x, -x, x - 0.5, x + 0.5, 0.5 - x, -0.5 - x]
        exact = Distribution(energy, special, v, 1 / math.sqrt(rho))
        p.append(p_value(draws(v, x, rho, beta, N_DRAWS, seed), exact))
    assert_uniform(p)


class Wave(nmd_lab.nonlinearities.Nonlinearity):
    """An f of the user's own."""

    name = "wave of these tests"

    @staticmethod
    def forward(t, p):
        return math.sin(3.0 * t)


@pytest.mark.parametrize("inputs", [(0.0, 0.5, 1.0, 10.0), (1.0, 1.5, 3.0, 1.0)])
@pytest.mark.exhaustive
def test_several_modes(inputs):
    v, x, rho, beta = inputs

    def energy(t):
        return beta * (x - np.sin(3 * t)) ** 2 / 2 + rho / 2 * (t - v) ** 2

    exact = Distribution(energy, [0], v, 1 / math.sqrt(rho))
    t = t_draws(Wave(), "frobenius")(*inputs, N_DRAWS, 0, steps=300)
    assert p_value(t, exact) > 1e-3


def test_one_structure_is_compiled_once():
    first, second = (make_model(nmd_lab.MinMax(*ab), "l1").structure for ab in ((0, 1), (2, 5)))
    assert compile_t_draw(first) is compile_t_draw(second)
