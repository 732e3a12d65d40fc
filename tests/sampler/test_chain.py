"""The whole chain on tiny data against importance sampling from the prior.

Parameters and T are drawn from the prior with NumPy and SciPy, and weighted by the likelihood of
the data.  Nothing here is shared with the sampler but the meaning of the model.
"""

import numpy as np
import pytest
from scipy import stats
from some import some

from nmd_lab.data.inputs import observe
from nmd_lab.model.model import make_model
from nmd_lab.problem.problem import OffsetColumns, Scaling
from nmd_lab.sampler.chain import Chain
from nmd_lab.sampler.priors import Prior
from nmd_lab.sampler.problem import SampledProblem

PARTICLES, SWEEPS, MEAN = 200_000, 4100, 0.2
PRIOR = Prior(1.5, np.array([2.0]), share=0.7, strength=3, noise_shape=3.0, noise_rate=0.5)
X = np.array([[1.2, 0.0], [0.7, np.nan]])
ABOVE = np.array([[5.0, 3.0], [4.0, np.nan]])
"""For ReLU with noise after f: at zeros WH may be anything below, where a chain moves slowly."""

WEIGHTS = np.array([[1.0, 2.0], [0.5, 1.0]])
CASES = {
    "gaussian": ("identity", "frobenius", "gaussian", WEIGHTS),
    "Laplace": ("identity", "l1", "after", WEIGHTS),
    "ReLU before": ("relu", "frobenius", "before", WEIGHTS),
    "ReLU after": ("relu", "frobenius", "after", None),
    "ReLU Poisson": ("relu", "kl", "after", None),
    "Modulus after": ("modulus", "l1", "after", None),
    "Square after": ("square", "frobenius", "after", None),
}


def rows_from_prior(count, rng):
    """Return particles of `count` rows: a component and an offset each."""
    units = np.array([np.sqrt(0.7 * 1.5), 0.7 * 1.5])
    wishart = stats.wishart(2, np.eye(2)).rvs(PARTICLES, random_state=rng)
    root = np.linalg.cholesky(np.linalg.inv(wishart))
    noise = rng.standard_normal((1 + count, PARTICLES, 2))
    drawn = np.einsum("pab,kpb->kpa", root, noise)
    return (drawn[1:] + drawn[0] / np.sqrt(PRIOR.strength)) * units


def particles(case, data, rng):
    """Return v (2, 2, particle), log ρ, and normalised weights of the particles."""
    name, loss, kind, weights = CASES[case]
    f = make_model(name, loss).nonlinearity
    weights = np.ones((2, 2)) if weights is None else weights
    rows, columns = rows_from_prior(2, rng), rows_from_prior(2, rng)
    v = np.array([[w[:, 0] * h[:, 0] + w[:, 1] + h[:, 1] + MEAN for h in columns] for w in rows])
    rho = rng.gamma(3, size=PARTICLES) / (0.5 * 1.5**2)
    log_weight, misfit = np.zeros(PARTICLES), np.zeros(PARTICLES)
    for i, j in zip(*np.nonzero(~np.isnan(data)), strict=True):
        x, w = data[i, j], weights[i, j]
        if kind != "after":
            sd = 1 / np.sqrt(rho * w)
            at_limit = kind == "before" and x == 0
            law = stats.norm(v[i, j], sd)
            log_weight += law.logcdf(0) if at_limit else law.logpdf(x)
            continue
        y = f(v[i, j] + rng.standard_normal(PARTICLES) / np.sqrt(rho))
        if loss == "kl":
            log_weight += stats.poisson(np.maximum(y, 1e-300)).logpmf(x)
        else:
            misfit += w * (abs(x - y) if loss == "l1" else (x - y) ** 2 / 2)
    if kind == "after" and loss != "kl":  # β, whose prior is Gamma(3, rate), is integrated out
        rate, shape = (0.5 * 2.0, 3) if loss == "l1" else (0.5 * 2.0**2, 1.5)
        log_weight -= (3 + shape) * np.log(rate + misfit)  # for three entries
    weight = np.exp(log_weight - log_weight.max())
    return v, np.log(rho), weight / weight.sum()


def problem_of(case, data):
    name, loss, kind, weights = CASES[case]
    seen = observe(data, weights=weights).as_sparse()
    scaling, offsets = Scaling(make_model(name, loss)), OffsetColumns("both", MEAN)
    return SampledProblem(scaling, (kind,), 1, offsets, PRIOR, seen, 1)


@pytest.mark.parametrize("case", some(list(CASES), 1))
def test_posterior_of_tiny_data(case):
    data = ABOVE if case in ("ReLU after", "ReLU Poisson") else X
    rng = np.random.default_rng(0)
    v, log_rho, weight = particles(case, data, rng)
    effective = 1 / np.sum(weight**2)  # as good as so many draws from the posterior
    assert effective > 500
    problem = problem_of(case, data)
    chain, found = Chain(), np.empty((SWEEPS, 5))
    state = chain.init(problem, *rng.normal(size=(2, 2, 2)), seed=7)
    for k in range(SWEEPS):
        state = chain.step(problem, state)
        A, B = problem.augmented(state.rows, state.columns)
        found[k] = [*(A @ B.T).ravel(), np.log(state.rho[0])]
    expected = [*v.reshape(4, -1), log_rho]
    for own, theirs in zip(found[100:].T, expected, strict=True):
        order = np.argsort(theirs)
        ends = theirs[order][np.searchsorted(np.cumsum(weight[order]), [0.1, 0.3, 0.5, 0.7, 0.9])]
        for end, share in zip(ends, (0.1, 0.3, 0.5, 0.7, 0.9), strict=True):
            below = own < end
            batches = below.reshape(20, -1).mean(axis=1)  # for the error of a correlated chain
            error = batches.std(ddof=1) / np.sqrt(20) + 0.5 / np.sqrt(effective)
            assert abs(below.mean() - share) < 4.5 * error
