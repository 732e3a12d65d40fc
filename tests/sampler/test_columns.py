"""Draws in a table of several kinds: T of each kind against its law, and the whole chain."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import ndtr, ndtri

import nmd_lab as nmd
from nmd_lab.data.inputs import GivenLimits, observe
from nmd_lab.data.units import facts_of
from nmd_lab.request.options import SampleOptions
from nmd_lab.sampler.chain import Chain, ChainStart, draw_T
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
    start = ChainStart(np.zeros((M, 1)), np.column_stack([np.zeros(5), V]), seed=3)
    state = Chain().init(problem, start)
    state.rho, state.beta = RHO.copy(), BETA.copy()
    draw_T(problem, state)
    return state.T.reshape(M, 5), problem, state.cuts, at_most, weights


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
        ends = -math.inf if limited else cuts[j].ends[level], cuts[j].ends[level + 1]
    if j == 4:  # a normal density times exp(-β |x - t|)
        t = np.linspace(centre - 9 * sd, centre + 9 * sd, 40_001)
        mass = np.exp(-BETA[j] * abs(x - t) - 0.5 * ((t - centre) / sd) ** 2)
        return lambda z: np.interp(z, t, np.cumsum(mass) / mass.sum())
    if ends[0] == ends[1]:
        return ends[0]
    return stats.truncnorm(*((np.array(ends) - centre) / sd), centre, sd).cdf


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


def people(m=24):
    """Return three numbers and a yes/no that share a component, with holes."""
    rng = np.random.default_rng(4)
    w = rng.normal(size=m)
    numbers = 50 + 8 * np.outer(w, [1.0, -0.9, 0.8]) + 4 * rng.normal(size=(m, 3))
    frame = pd.DataFrame(numbers, columns=list("abc")).mask(rng.random((m, 3)) < 0.15)
    return frame.assign(yes=pd.array(w + 0.5 * rng.normal(size=m) > 0, dtype="boolean"))


def gibbs(frame, sweeps, tune, rng):
    """Return E x at all entries in each sweep of a plain Gibbs sampler of rank 1."""
    X = frame.astype("Float64").to_numpy(float, na_value=np.nan)
    (m, n), seen = X.shape, ~np.isnan(X)
    centre, size = np.nanmean(X[:, :3], axis=0), np.nanstd(X[:, :3], axis=0)
    cut = math.sqrt(2) * ndtri((np.sum(X[:, 3] == 0) + 0.5) / (m + 1))
    units = {True: np.array([0.5]), False: np.array([0.5, 0.25])}  # roots of 1/4, and 1/4
    W, H = rng.normal(size=(m, 1)), np.column_stack([rng.normal(size=n), np.zeros(n)])
    T, rho, found = (X[:, :3] - centre) / size, np.ones(n), []
    for sweep in range(sweeps + tune):
        v = W @ H[:, :1].T + H[:, 1]
        below, u = ndtr(cut - v[:, 3]), rng.random(m)
        latent = v[:, 3] + ndtri(np.where(X[:, 3] == 1, below + (1 - below) * u, below * u))
        Y = np.column_stack([T, latent])
        for by_rows, factor, partner in ((True, W, H), (False, H, W)):
            mean, precision = np.empty(factor.shape), np.empty((*factor.shape, factor.shape[1]))
            for some in [slice(None)] if by_rows else [slice(3), slice(3, 4)]:  # levels apart
                drawn = normal_wishart(factor[some] / units[by_rows], rng)
                mean[some] = drawn[0] * units[by_rows]
                precision[some] = drawn[1] / np.outer(units[by_rows], units[by_rows])
            P = partner[:, :1] if by_rows else np.column_stack([partner, np.ones(m)])
            tau = (seen * rho) if by_rows else (seen * rho).T
            y = Y - H[:, 1] if by_rows else Y.T
            full = precision + np.einsum("ij,ja,jb->iab", tau, P, P)
            b = np.einsum("iab,ib->ia", precision, mean) + np.einsum(
                "ij,ij,ja->ia", tau, np.where(tau > 0, y, 0), P
            )
            root = np.linalg.cholesky(np.linalg.inv(full))
            noise = np.einsum("iab,ib->ia", root, rng.standard_normal(b.shape))
            factor[:] = np.linalg.solve(full, b[..., None])[..., 0] + noise
        v = W @ H[:, :1].T + H[:, 1]
        squares = np.where(seen, Y - v, 0)[:, :3] ** 2
        rho[:3] = rng.gamma(1 + seen[:, :3].sum(0) / 2) / (0.01 + squares.sum(0) / 2)
        if sweep >= tune:
            found.append(np.column_stack([centre + size * v[:, :3], ndtr(v[:, 3] - cut)]))
    return np.array(found)


def normal_wishart(rows, rng):
    """Return a draw of mean and precision of some rows, from their conjugate posterior."""
    m, d = rows.shape
    mean = rows.mean(axis=0)
    scatter = np.eye(d) + (rows - mean).T @ (rows - mean)
    scatter += 2 * m / (m + 2) * np.outer(mean, mean)
    precision = np.atleast_2d(stats.wishart(d + m, np.linalg.inv(scatter)).rvs(random_state=rng))
    centre = m / (m + 2) * mean
    return rng.multivariate_normal(centre, np.linalg.inv(precision) / (m + 2)), precision


def test_posterior_of_a_mixed_table_is_that_of_a_plain_gibbs_sampler():
    frame, sweeps = people(), 2000
    posterior = nmd.sample(frame, 1, "identity", groups=1, draws=sweeps, tune=200, random_state=2)
    i, j = np.divmod(np.arange(frame.size), 4)
    ours = posterior._draws.linear_at(i, j)
    for noise, at, v in posterior._draws.by_noise(j, ours):
        ours[:, at] = noise.mean(v)
    theirs = gibbs(frame, sweeps, 200, np.random.default_rng(1)).reshape(sweeps, -1)
    for statistic in (lambda each: each, np.square):  # means, and second moments of each cell
        batches = [
            statistic(draws - theirs.mean(axis=0)).reshape(10, -1, i.size).mean(axis=1)
            for draws in (ours, theirs)
        ]
        gap = batches[0].mean(axis=0) - batches[1].mean(axis=0)
        error = np.sqrt(sum(each.var(axis=0, ddof=1) for each in batches) / 10)
        assert np.abs(gap / error).max() < 4.5
