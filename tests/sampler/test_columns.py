"""Draws in a table of several kinds: T of each kind against its law."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from nmd_lab.data.inputs import GivenLimits, observe
from nmd_lab.data.units import facts_of
from nmd_lab.request.options import SampleOptions
from nmd_lab.sampler.chain import draw_T, new_state
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


@pytest.fixture(scope="module")
def drawn():
    """T of each column, the model, the cut points, and the limits and weights of the entries."""
    at_most, weights = np.zeros(X.shape, bool), np.ones(X.shape)
    at_most[:, 0], at_most[:, 3] = X[:, 0] == 170, (X[:, 3] == 2) & (np.arange(M) % 8 < 4)
    weights[::2, :4] = 3.0
    limits = GivenLimits(at_most=at_most)
    options = SampleOptions(rank=1, nonlinearity=FUNCTIONS, loss=LOSSES)
    seen = observe(X, weights=weights, limits=limits)
    problem = prepare_sample(seen, facts_of(seen, by_column=True), options)
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
