"""Draws that belong to columns of a table against their laws: noise and cut points."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from nmd_lab.data.inputs import observe
from nmd_lab.data.units import facts_of
from nmd_lab.model.model import make_model
from nmd_lab.problem.problem import NO_OFFSET_COLUMNS, Scaling
from nmd_lab.request.options import SampleOptions
from nmd_lab.sampler.chain import (
    Chain,
    ChainState,
    draw_cut_points,
    draw_noise,
    draw_rows,
    draw_T,
    sums_of_squares,
    without_units,
)
from nmd_lab.sampler.priors import Prior, RowPrior
from nmd_lab.sampler.problem import SampledProblem, prepare_sample

SIGNIFICANT = 1e-4


def asked(nonlinearity, loss):
    return SampleOptions(rank=1, nonlinearity=nonlinearity, loss=loss, groups=1)


LOSSES = ["frobenius", "frobenius", "ordinal", "l1", "kl", "frobenius", "ordinal"]
FUNCTIONS = ["identity", "relu", "identity", "identity", "relu", "relu", "identity"]


@pytest.fixture
def table():
    """Return a table of seven columns with holes and weights, its problem and state."""
    rng, m = np.random.default_rng(0), 24
    three, count = np.resize([0.0, 1.0, 2.0], m), rng.poisson(3, m)
    z = rng.normal(size=(m, 4)) * [30, 0.1, 5, 2]
    X = np.column_stack(
        [z[:, 0], np.maximum(z[:, 1], 0), three, z[:, 2], count, z[:, 3], 2 - three]
    )
    X[rng.random(X.shape) < 0.2] = np.nan
    weights = rng.uniform(0.5, 2, X.shape)
    seen = observe(X, weights=weights)
    problem = prepare_sample(seen, facts_of(seen, by_column=True), asked(FUNCTIONS, LOSSES))
    state = Chain().init(problem, rng.normal(size=(m, 1)), rng.normal(size=(7, 2)), seed=3)
    state.row_prior = RowPrior(np.zeros((1, 1)), np.ones((1, 1, 1)))
    return X, weights, problem, state


def test_each_column_has_its_noise_levels(table):
    """A precision times its rate has a Gamma law of scale 1, whatever T and WH are by then."""
    X, weights, problem, state = table
    weights, rng = np.where(np.isnan(X), 0, weights), np.random.default_rng(1)
    i, j = np.nonzero(weights)
    after = np.array([each == "after" for each in problem.noises])
    assert list(after) == [False, False, False, True, True, True, False]
    kinds, prior, draws = problem.model.column_models, problem.prior, 1500
    centre, size = np.array([(kind.centre, kind.size) for kind in kinds]).T
    of_rho, of_beta = np.empty((2, draws, 7))
    for k in range(draws):
        state.sweep = k
        losses, plain_T = draw_T(problem, state), without_units(problem, state.T)
        draw_rows(problem, state, plain_T)
        draw_noise(problem, state, sums_of_squares(problem, state, plain_T), losses, rng)
        T, v = np.zeros(X.shape), state.rows @ state.columns[:, :1].T + state.columns[:, 1]
        T[i, j] = state.T
        squares = np.where(after, weights > 0, weights) * ((T - centre) / size - v) ** 2
        of_rho[k] = state.rho * (0.01 + squares.sum(axis=0) / 2)
        spread, laplace, gaussian = prior.spreads_of_X, np.abs(X - T), X - np.maximum(T, 0)
        loss = np.nansum(weights * laplace, axis=0)[3]
        of_beta[k, 3] = state.beta[3] * (0.01 * spread[3] + loss)
        loss = np.nansum(weights * gaussian**2, axis=0)[5] / 2
        of_beta[k, 5] = state.beta[5] * (0.01 * spread[5] ** 2 + loss)
    counts = (weights > 0).sum(axis=0)
    for column in (0, 1, 3, 4, 5):
        law = stats.gamma(1 + counts[column] / 2)
        assert stats.kstest(of_rho[:, column], law.cdf).pvalue > SIGNIFICANT
    for column, shape in ((3, counts[3]), (5, counts[5] / 2)):
        law = stats.gamma(1 + shape)
        assert stats.kstest(of_beta[:, column], law.cdf).pvalue > SIGNIFICANT
    assert (state.rho[[2, 6]] == 1).all()
    assert (state.beta[[2, 4, 6]] == 1).all()


@pytest.mark.parametrize("j", [2, 6])
def test_each_column_has_its_cut_points(table, j):
    X, weights, problem, state = table
    rng, kept = np.random.default_rng(2), []
    for sweep in range(6200):
        state.tuning = int(sweep < 200)
        draw_cut_points(problem, state, rng)
        kept.append(state.cuts[j].ends[2])
    first, v = state.cuts[j].ends[1], state.rows[:, 0] * state.columns[j, 0] + state.columns[j, 1]
    grid = first + np.arange(0.005, 8, 0.01)
    root = np.sqrt(weights[:, j])
    below, above = X[:, j] == 1, X[:, j] == 2
    masses = ndtr(root * (grid[:, None] - v)), ndtr(root * (first - v))
    logs = np.log(masses[0] - masses[1])[:, below].sum(axis=1)
    logs += np.log(ndtr(root * (v - grid[:, None])))[:, above].sum(axis=1)
    law = np.cumsum(np.exp(logs - logs.max()))
    u = np.interp(kept[200::20], grid + 0.005, law / law[-1])
    assert stats.kstest(u, "uniform").pvalue > SIGNIFICANT
    assert stats.ttest_1samp((2 * u - 1) ** 2, 1 / 3).pvalue > SIGNIFICANT  # their spread


PRIOR = Prior(spread=3.0, spreads_of_X=np.array([0.7]), noise_shape=1.5, noise_rate=0.05)
COUNT, MISFIT, LOSS_SUM = 20, 31.0, 7.0


def test_likelihood_of_gaussian_noise_after_f():
    X, scaling = observe(np.ones((5, 4))), Scaling(make_model("identity", "frobenius"))
    problem = SampledProblem(scaling, ("after",), 1, NO_OFFSET_COLUMNS, PRIOR, X, 1)
    state = ChainState(np.ones((5, 1)), np.ones((4, 1)), np.ones(1), np.ones(1), np.ones(COUNT))
    sums = np.array([MISFIT]), np.array([LOSS_SUM])  # the loss has the half in it
    draw_noise(problem, state, *sums, np.random.default_rng(0))
    rho, beta = state.rho[0], state.beta[0]
    gaussian = COUNT / 2 * math.log(rho) - rho * MISFIT / 2
    expected = gaussian + COUNT / 2 * math.log(beta) - beta * LOSS_SUM
    assert state.log_likelihood == pytest.approx(expected)
