"""Draws that belong to columns of a table against their laws: noise and cut points."""

import numpy as np
import pytest
from scipy import stats

from nmd_lab.data.inputs import observe
from nmd_lab.data.units import facts_of
from nmd_lab.request.options import SampleOptions
from nmd_lab.sampler.chain import (
    draw_noise,
    draw_rows,
    draw_T,
    new_state,
    sums_of_squares,
)
from nmd_lab.sampler.priors import RowPrior
from nmd_lab.sampler.problem import prepare_sample

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
    state = new_state(problem, rng.normal(size=(m, 1)), rng.normal(size=(7, 2)), seed=3)
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
        losses = draw_T(problem, state)
        draw_rows(problem, state, state.T)
        draw_noise(problem, state, sums_of_squares(problem, state, state.T), losses, rng)
        T, v = np.zeros(X.shape), state.rows @ state.columns[:, :1].T + state.columns[:, 1]
        T[i, j] = state.T
        squares = np.where(after, weights > 0, weights) * (T - v) ** 2
        T = centre + size * T
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
