"""Do intervals of `sample` cover as many held-out entries as their level?

Run with ``python benchmarks/coverage.py``; it takes some minutes.  Kinds of noise restrict the run,
for example ``python benchmarks/coverage.py Laplace Poisson``.  Data are generated with factors of
rank 2, and sampled with an upper bound of 4, so that scales and ranks are to be found.

Intervals of discrete data hold more than their level.  What is counted for them is how far the
probability of an entry lies within the interval, by the randomised distribution function.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is loaded

import argparse
import warnings
from typing import Any

import numpy as np

import nmd_lab as nmd
from nmd_lab.model.nonlinearities import as_nonlinearity

Array = np.ndarray

LEVELS = 0.5, 0.8, 0.9, 0.95
KINDS = {
    "Gaussian": ("identity", "frobenius", "auto"),
    "Laplace": ("identity", "l1", "auto"),
    "ReLU, before": ("relu", "frobenius", "before"),
    "ReLU, after": ("relu", "frobenius", "after"),
    "ReLU, L1": ("relu", "l1", "after"),
    "MinMax, before": (nmd.MinMax(-1.5, 1.5), "frobenius", "before"),
    "MinMax, after": (nmd.MinMax(-1.5, 1.5), "frobenius", "after"),
    "Modulus, before": ("modulus", "frobenius", "before"),
    "Modulus, after": ("modulus", "frobenius", "after"),
    "Square, after": ("square", "frobenius", "after"),
    "Poisson": ("relu", "kl", "after"),
    "ordinal": ("identity", "ordinal", "auto"),
}
"""Kinds of noise whose intervals are checked: nonlinearity, loss, place of the noise."""


def generate_table(kind: str, rng: np.random.Generator, shape: tuple[int, int] = (80, 60)) -> Array:
    """Return complete data of rank 2 with noise of this kind."""
    nonlinearity, loss, noise = KINDS[kind]
    f = as_nonlinearity(nonlinearity)
    v = rng.normal(size=(shape[0], 2)) @ rng.normal(size=(2, shape[1]))
    if not f.even:
        v += 0.5 * rng.normal(size=(shape[0], 1)) + 0.5 * rng.normal(size=shape[1])
    if loss == "ordinal":
        return np.digitize(v + rng.standard_normal(shape), [-1.5, -0.5, 0.5, 1.5]) + 1.0
    if noise != "after" and loss != "l1":
        return f(v + 0.4 * rng.standard_normal(shape))
    y = f(v + 0.2 * rng.standard_normal(shape))
    if loss == "kl":
        return rng.poisson(y).astype(float)
    noise_after = rng.laplace if loss == "l1" else rng.normal
    return y + noise_after(scale=0.3, size=shape)


def coverage(kind: str, seed: int, draws: int = 300) -> tuple[Array, int]:
    """Return the fraction of held-out entries in the intervals of each level, and their number."""
    nonlinearity, loss, noise = KINDS[kind]
    rng = np.random.default_rng(seed)
    X = generate_table(kind, rng)
    hidden = rng.random(X.shape) < 0.3
    given: Any = {"noise": noise, "draws": draws, "random_state": seed, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nmd.warnings.NotConvergedWarning)
        posterior = nmd.sample(
            np.where(hidden, np.nan, X),
            4,
            nonlinearity,
            loss,
            compute=nmd.Compute(threads=1),
            **given,
        )
    i, j = np.nonzero(hidden)
    x = X[i, j]
    if not has_atoms(kind):
        ends = (posterior.predict_interval(i, j, level=level).T for level in LEVELS)
        return np.array([np.mean((low <= x) & (x <= high)) for low, high in ends]), x.size
    u = randomised(posterior, i, j, x, rng)
    return np.array([np.mean(np.abs(u - 0.5) <= level / 2) for level in LEVELS]), x.size


def has_atoms(kind: str) -> bool:
    """Return whether single values have a probability."""
    return kind in ("ReLU, before", "MinMax, before", "Poisson", "ordinal")


def randomised(posterior: Any, i: Array, j: Array, x: Array, rng: np.random.Generator) -> Array:
    """Return P(observation < x) plus a random fraction of P(observation = x), for each entry."""
    below, above = np.empty(x.size), np.empty(x.size)
    for k in range(x.size):
        at = i[k], j[k]
        above[k] = posterior.probability(*at, above=x[k])[0]
        below[k] = 1 - posterior.probability(*at, above=np.nextafter(x[k], -np.inf))[0]
    return below + rng.random(x.size) * (1 - above - below)


def print_coverage(names: list[str], number: int) -> None:
    """Print the coverage of intervals of each kind of noise."""
    print(f"{'held-out entries':20} {'  '.join(f'{level:6.0%}' for level in LEVELS)}")
    for name in names:
        found = [coverage(name, seed) for seed in range(number)]
        mean = np.average([shares for shares, _ in found], axis=0, weights=[n for _, n in found])
        print(f"{name:20} {'  '.join(f'{share:6.1%}' for share in mean)}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Coverage of intervals.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--tables", type=int, default=5)
    asked = parser.parse_args()
    print_coverage([name for name in KINDS if not asked.names or name in asked.names], asked.tables)
