"""Draws in a table of several kinds: T of each kind, and noise levels, against their laws."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from nmd_lab.data.inputs import GivenLimits, observe
from nmd_lab.data.units import facts_of
from nmd_lab.request.options import SampleOptions
from nmd_lab.sampler.chain import draw_noise, draw_rows, draw_T, new_state, sums_of_squares
from nmd_lab.sampler.priors import RowPrior
from nmd_lab.sampler.problem import prepare_sample

SIGNIFICANT = 1e-4
M = 3000
X = np.column_stack(
    [
        np.resize([170.0, 180.0, 190.0], M),  # numbers, of which some are limits
        np.resize([0.0, 2.0, 5.0], M),  # zeros of max(0, ·)
        np.resize([1.0, 0.0], M),  # yes and no
        np.resize([1.0, 2.0, 3.0, 3.0], M),  # ordered levels, of which some are limits
        np.resize([2.0, 4.0, 9.0], M),  # noise after f
    ]
)
LOSSES = ["frobenius", "frobenius", "logistic", "ordinal", "l1"]
FUNCTIONS = ["identity", "relu", "identity", "identity", "identity"]
V = np.array([0.4, -0.7, 0.3, 0.2, 0.1])
RHO, BETA = np.array([4.0, 2.0, 1.0, 1.0, 9.0]), np.array([1.0, 1.0, 1.0, 1.0, 0.6])


def problem_of(X, functions, losses, **how):
    """Return the problem of a table with parts of its own for each column."""
    seen = observe(X, **how)
    options = SampleOptions(rank=1, nonlinearity=functions, loss=losses, groups=1)
    return prepare_sample(seen, facts_of(seen, by_column=True), options)


@pytest.fixture(scope="module")
def drawn():
    """T of each column, the model, the cut points, and the limits and weights of the entries."""
    at_most, weights = np.zeros(X.shape, bool), np.ones(X.shape)
    at_most[:, 0], at_most[:, 3] = X[:, 0] == 170, (X[:, 3] == 2) & (np.arange(M) % 8 < 4)
    weights[::2, :4] = 3.0
    limits = GivenLimits(at_most=at_most)
    problem = problem_of(X, FUNCTIONS, LOSSES, weights=weights, limits=limits)
    state = new_state(problem, np.zeros((M, 1)), np.column_stack([np.zeros(5), V]), seed=3)
    state.rho, state.beta = RHO.copy(), BETA.copy()
    draw_T(problem, state)
    centre, size = problem.units_of_kinds.T
    return centre + size * state.T.reshape(M, 5), problem, state.ends, at_most, weights


def law_of(j, x, limited, weight, problem, cuts):
    """Return the distribution function of T of column j, in the units of the column."""
    kind = problem.model.column_models[j]
    centre, sd = kind.centre + kind.size * V[j], kind.size / math.sqrt(RHO[j] * weight)
    ends = -math.inf, math.inf
    if j == 0:
        ends = (-math.inf, x) if limited else (x, x)
    elif j == 1:
        ends = (-math.inf, 0.0) if x == 0 else (x, x)
    elif j in (2, 3):
        level = int(x) if j == 2 else int(x) - 1
        ends = -math.inf if limited else cuts[j, level], cuts[j, level + 1]
    if j == 4:  # a normal density times exp(-β |x - t|)
        t = np.linspace(centre - 9 * sd, centre + 9 * sd, 40_001)
        mass = np.exp(-BETA[j] * abs(x - t) - 0.5 * ((t - centre) / sd) ** 2)
        return lambda z: np.interp(z, t, np.cumsum(mass) / mass.sum())
    if ends[0] == ends[1]:
        return ends[0]
    return stats.truncnorm(*((np.array(ends) - centre) / sd), centre, sd).cdf


def test_units_of_the_prior_and_first_cut_points(drawn):
    _, problem, cuts, *_ = drawn
    np.testing.assert_allclose(problem.units[1], [0.5, 0.25])  # of a component and an offset
    below = (0.5 * M + 0.5) / (M + 1)  # no
    assert cuts[2, 1] == pytest.approx(math.sqrt(2) * ndtri(below))


@pytest.mark.parametrize("j", range(5), ids=["number", "relu", "yes/no", "levels", "l1"])
def test_T_of_each_kind_has_its_law(drawn, j):
    T, problem, cuts, at_most, weights = drawn
    keys = np.column_stack([X[:, j], at_most[:, j], weights[:, j]])
    for x, limited, weight in np.unique(keys, axis=0):
        at = (keys == (x, limited, weight)).all(axis=1)
        law = law_of(j, x, bool(limited), 1.0 if j == 4 else weight, problem, cuts)
        if callable(law):
            assert stats.kstest(T[at, j], law).pvalue > SIGNIFICANT
        else:
            np.testing.assert_allclose(T[at, j], law)


def test_each_column_has_its_noise_levels():
    """A precision times its rate has a Gamma law of scale 1, whatever T and WH are by then."""
    rng, m = np.random.default_rng(0), 24
    three, count = np.resize([0.0, 1.0, 2.0], m), rng.poisson(3, m)
    z = rng.normal(size=(m, 4)) * [30, 0.1, 5, 2]
    X = np.column_stack(
        [z[:, 0], np.maximum(z[:, 1], 0), three, z[:, 2], count, z[:, 3], 2 - three]
    )
    X[rng.random(X.shape) < 0.2] = np.nan
    weights = rng.uniform(0.5, 2, X.shape)
    losses = ["frobenius", "frobenius", "ordinal", "l1", "kl", "frobenius", "ordinal"]
    functions = ["identity", "relu", "identity", "identity", "relu", "relu", "identity"]
    problem = problem_of(X, functions, losses, weights=weights)
    state = new_state(problem, rng.normal(size=(m, 1)), rng.normal(size=(7, 2)), seed=3)
    state.row_prior = RowPrior(np.zeros((1, 1)), np.ones((1, 1, 1)))
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
