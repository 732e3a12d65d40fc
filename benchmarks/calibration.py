"""Is the posterior right: ranks of true parameters among their draws are uniform.

Run with ``python benchmarks/calibration.py``; it takes about half an hour.  Names of models
restrict the run, for example ``python benchmarks/calibration.py "ReLU, before"``.  The coverage of
intervals is in coverage.py.

This is simulation-based calibration (S. Talts and others, "Validating Bayesian inference algorithms
with simulation-based calibration", 2018).  Parameters are drawn from the prior, data from the
model, and a chain from the posterior.  The rank of a parameter among its draws is then uniform.
The prior has long tails, and now and then gives data from which nothing can be learned, and in
which a chain hardly moves.  Such data are left out by a rule that looks at the data alone, which
keeps the ranks uniform.  A chain begins at the true parameters, so that nothing is to be burnt.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is loaded

import argparse
import time
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

import nmd_lab as nmd
from nmd_lab.data.inputs import observe
from nmd_lab.model.model import make_model
from nmd_lab.problem.problem import OffsetColumns, Scaling
from nmd_lab.sampler.chain import ChainState, new_state, one_sweep
from nmd_lab.sampler.priors import Prior
from nmd_lab.sampler.problem import SampledProblem
from nmd_lab.sampler.sampled_model import NoiseKind

Array = np.ndarray


class Case(NamedTuple):
    """A model of the calibration."""

    nonlinearity: Any
    loss: str
    kind: NoiseKind
    rank: int = 1
    offsets: bool = True
    weighted: bool = False
    thin: int = 15


BOUNDS = nmd.MinMax(-1.0, 1.0)
CASES = {
    "Identity, Frobenius": Case("identity", "frobenius", "gaussian", 2),
    "Identity, Frobenius, weights": Case("identity", "frobenius", "gaussian", weighted=True),
    "Identity, L1": Case("identity", "l1", "after"),
    "ReLU, before": Case("relu", "frobenius", "before", thin=30),
    "ReLU, before, weights": Case("relu", "frobenius", "before", weighted=True, thin=30),
    "ReLU, Frobenius": Case("relu", "frobenius", "after", 2, offsets=False, thin=30),
    "ReLU, L1": Case("relu", "l1", "after", weighted=True, thin=30),
    "ReLU, KL": Case("relu", "kl", "after", thin=30),
    "MinMax, before": Case(BOUNDS, "frobenius", "before"),
    "MinMax, Frobenius": Case(BOUNDS, "frobenius", "after", weighted=True, thin=30),
    "MinMax, L1": Case(BOUNDS, "l1", "after", thin=30),
    "Modulus, before": Case("modulus", "frobenius", "before", offsets=False),
    "Modulus, Frobenius": Case("modulus", "frobenius", "after", offsets=False),
    "Modulus, L1": Case("modulus", "l1", "after", offsets=False),
    "Square, Frobenius": Case("square", "frobenius", "after", offsets=False),
}
"""All models of the calibration."""

SHAPE = 8, 6
HOLES = 0.2
MEAN = 0.3
PRIOR = Prior(2.0, np.array([1.5]), share=0.5, strength=4.0, noise_shape=3.0, noise_rate=0.2)
DRAWS, BINS = 15, 8
PROBES = (0, 2, 7), (0, 3, 5)
"""Rows and columns of the entries whose WH is ranked."""


class Truth(NamedTuple):
    """Data of a model, and the state of a chain at the true parameters."""

    problem: SampledProblem
    state: ChainState
    X: Array


def draw_rows(count: int, units: Array, rng: np.random.Generator) -> Array:
    """Draw rows of a factor from the prior: precision, mean, rows."""
    d = units.size
    covariance = np.linalg.inv(np.atleast_2d(stats.wishart(d, np.eye(d)).rvs(random_state=rng)))
    mean = rng.multivariate_normal(np.zeros(d), covariance / PRIOR.strength)
    return rng.multivariate_normal(mean, covariance, size=count) * units


def noisy(case: Case, y: Array, scale: Array, rng: np.random.Generator) -> Array:
    """Add the noise after f; `scale` is β times the weight."""
    if case.loss == "kl":
        return rng.poisson(y).astype(float)
    if case.loss == "l1":
        return y + rng.laplace(scale=1 / scale)
    return y + rng.standard_normal(y.shape) / np.sqrt(scale)


def generate(case: Case, rng: np.random.Generator) -> Truth:
    """Draw parameters from the prior, and data from the model."""
    rank, offsets = case.rank, case.offsets
    model = make_model(case.nonlinearity, case.loss)
    power = 1 if case.loss == "l1" else 2
    rho, beta = rng.gamma(PRIOR.noise_shape, size=2) / PRIOR.noise_rate
    rho, beta = rho / PRIOR.spread**2, beta / PRIOR.spreads_of_X[0] ** power
    beta = 1.0 if case.loss == "kl" else beta
    rows, columns = (draw_rows(count, PRIOR.units(rank, offsets), rng) for count in SHAPE)
    weights = rng.uniform(0.5, 2, SHAPE) if case.weighted else np.ones(SHAPE)
    mean = MEAN if offsets else 0.0
    v = rows[:, :rank] @ columns[:, :rank].T + mean
    if offsets:
        v = v + rows[:, rank:] + columns[:, rank]
    own = rho * weights if case.kind != "after" else rho
    T = v + rng.standard_normal(SHAPE) / np.sqrt(own)
    X = model.nonlinearity(T)
    if case.kind == "after":
        X = noisy(case, X, beta * weights, rng)
    X[rng.random(SHAPE) < HOLES] = np.nan
    seen = observe(X, weights=weights if case.weighted else None).as_sparse()
    problem = SampledProblem(
        observations=seen,
        scaling=Scaling(model),
        noises=(case.kind,),
        rank=rank,
        offset_columns=OffsetColumns("both" if offsets else "none", mean),
        prior=PRIOR,
        threads=1,
    )
    state = new_state(problem, rows, columns)
    state.rho[0], state.beta[0] = rho, beta
    if case.kind != "gaussian":
        state.T[:] = T[~np.isnan(X)]
    return Truth(problem, state, X)


def teaches(truth: Truth) -> bool:
    """Return whether something can be learned from the data, and a chain moves."""
    x, f = truth.problem.values, truth.problem.model.nonlinearity
    flat = [piece.intercept for piece in f.pieces() or () if piece.slope == 0]
    away = (
        0.3 if truth.problem.noises[0] == "after" else 0.0
    )  # from the limits, which noise after f hides
    inside = (x > flat[0] + away) if flat else np.isfinite(x)
    if len(flat) > 1:
        inside &= x < flat[1] - away
    return bool(np.abs(x).max() < 20 and np.mean(inside) > 0.4)


def quantities(truth: Truth, state: ChainState) -> dict[str, float]:
    """Return what is ranked: parameters, and a number that depends on the data, too."""
    problem = truth.problem
    A, B = problem.augmented(state.rows, state.columns)
    v = A @ B.T
    seen = f_of(problem, v) if problem.model.nonlinearity.even else v
    found = {f"v{i}{j}": seen[i, j] for i, j in zip(*PROBES, strict=True)}
    found |= {
        "misfit": np.nanmean(np.abs(truth.X - f_of(problem, v))),
        "log rho": np.log(state.rho[0]),
    }
    if problem.noises[0] == "after":
        found["mean T"] = float(np.mean(np.abs(state.T)))
        if problem.model.loss.name != "kl":
            found["log beta"] = np.log(state.beta[0])
    return found


def f_of(problem: SampledProblem, v: Array) -> Array:
    """Return f(v)."""
    return problem.model.nonlinearity(v)


def ranks_of(case: Case, seed: int) -> dict[str, int]:
    """Return the ranks of the truth among the draws, for one set of data."""
    rng = np.random.default_rng(seed)
    truth = generate(case, rng)
    while not teaches(truth):
        truth = generate(case, rng)
    problem, state = truth.problem, truth.state
    state.seed = seed
    right = quantities(truth, state)
    ranks = dict.fromkeys(right, 0)
    for _ in range(DRAWS):
        for _ in range(case.thin):
            state = one_sweep(problem, state)
        for name, value in quantities(truth, state).items():
            ranks[name] += int(value < right[name])
    return ranks


def p_values(ranks: list[dict[str, int]]) -> dict[str, float]:
    """Return for each quantity the probability of ranks as uneven as these, if they are uniform."""
    found = {}
    for name in ranks[0]:
        own = np.array([rank[name] for rank in ranks])
        counts = np.bincount(own * BINS // (DRAWS + 1), minlength=BINS)
        found[name] = float(stats.chisquare(counts).pvalue)
        spread = (own + np.random.default_rng(0).random(own.size)) / (DRAWS + 1)
        found[f"{name} (KS)"] = float(stats.kstest(spread, "uniform").pvalue)
    return found


def print_ranks(names: list[str], number: int) -> list[float]:
    """Print p-values of the ranks of each model, and return all of them."""
    together = []
    for name in names:
        began = time.perf_counter()
        found = p_values([ranks_of(CASES[name], seed) for seed in range(number)])
        chi, ks = ([p for q, p in found.items() if ("(KS)" in q) == is_ks] for is_ks in (0, 1))
        together += chi
        each = "  ".join(f"{q} {p:.3f}" for q, p in found.items() if "(KS)" not in q)
        took = time.perf_counter() - began
        print(f"{name:30} {each}  | least by KS {min(ks):.4f} | {took:.0f} s", flush=True)
    return together


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Calibration of the sampler.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--problems", type=int, default=200)
    asked = parser.parse_args()
    names = [name for name in CASES if not asked.names or name in asked.names]
    p = print_ranks(names, asked.problems)
    together = stats.kstest(p, "uniform").pvalue
    print(f"{len(p)} p-values: least {min(p):.4f}; uniform with p = {together:.3f}")
