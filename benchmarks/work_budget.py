"""How the default compares with the plain method after the same time, side by side.

    python benchmarks/work_budget.py                  # every problem
    python benchmarks/work_budget.py sparse digits    # those whose names begin so

Both run on one thread, one after the other, for the same processor time, which on a quiet machine
is the time by the clock.  Compared are the best objectives so far at each moment of the plain run
while its relative error is above 2 %; the time counts from the end of the first iteration, up to
which both do the same.  The table has the largest ratio (the promise is at most 1.1), the
ratio at the end, and the fraction of the time after which the default is as good as the plain
method at its end.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is loaded

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

import nmd_lab as nmd
from nmd_lab import datasets

PLAIN: dict[str, Any] = {"solver": nmd.ADMM(refine=False, homotopy=False, polish=False)}
ITERATIONS = 400
REPEATS = 3
TOL = 1e-10
NEARLY_EXACT = 0.02
ROUNDING = 1e-12
"""Objectives below this fraction of the first one count as zero."""

Curve = tuple[np.ndarray, np.ndarray]


def problems() -> Iterator[tuple[str, Callable[..., nmd.Decomposition], tuple[Any, ...]]]:
    """Yield a name, `decompose` or `complete`, and its arguments."""
    rng = np.random.default_rng(0)
    digits = datasets.digits(400).values.reshape(400, -1).astype(float)
    digits /= digits.max()
    for f in ("relu", "minmax", "modulus", "square"):
        yield f"digits {f} frobenius", nmd.decompose, (digits, 16, f)
    for d in ("l1", "kl"):
        yield f"digits relu {d}", nmd.decompose, (digits, 16, "relu", d)
        yield f"digits minmax {d}", nmd.decompose, (digits, 16, "minmax", d)
    yield "sparse graph relu", nmd.decompose, (graph(1074, 0.02, rng), 16, "relu")
    yield "sparse counts relu", nmd.decompose, (counts(600, 800, 0.04, rng), 16, "relu")
    yield "sparse counts relu kl", nmd.decompose, (counts(400, 500, 0.05, rng), 8, "relu", "kl")
    picture = datasets.photograph("china").values.astype(float)
    picture = picture.reshape(picture.shape[0], -1)[:300, :400]
    picture /= picture.max()
    holes = np.where(rng.random(picture.shape) < 0.5, np.nan, picture)
    yield "picture with holes minmax", nmd.complete, (holes, 12, "minmax")
    yield "picture with holes relu", nmd.complete, (holes, 12, "relu")
    few = np.where(rng.random(picture.shape) < 0.8, np.nan, picture)
    yield "picture, 20 % seen, minmax", nmd.complete, (few, 8, "minmax")
    product = rng.normal(size=(300, 10)) @ rng.normal(size=(10, 250))
    yield "low rank relu", nmd.decompose, (np.maximum(product, 0), 10, "relu")
    noisy = np.maximum(product + rng.normal(size=product.shape), 0)
    yield "low rank with noise relu", nmd.decompose, (noisy, 10, "relu")
    table = datasets.movielens_small()
    (_, rows), (_, columns) = (np.unique(table[c], return_inverse=True) for c in ("user", "item"))
    ratings = sparse.csr_array((table["rating"].to_numpy(float), (rows, columns)))
    yield "ratings minmax", nmd.complete, (ratings, 8, nmd.MinMax(0.5, 5))
    yield "ratings identity l1", nmd.complete, (ratings, 8, "identity", "l1")


def graph(n: int, density: float, rng: np.random.Generator) -> sparse.csr_array:
    """A symmetric 0/1 matrix with communities and very unequal degrees."""
    sizes = rng.pareto(1.5, n) + 0.2
    group = rng.integers(0, 20, n)
    share = np.outer(sizes, sizes) * np.where(group[:, None] == group, 8.0, 1.0)
    share *= density / share.mean()
    upper = np.triu(rng.random((n, n)) < np.minimum(share, 0.9), 1)
    return sparse.csr_array((upper + upper.T).astype(float))


def counts(m: int, n: int, density: float, rng: np.random.Generator) -> sparse.csr_array:
    """Counts of words in documents: Poisson around a nonnegative product, mostly zeros."""
    rates = rng.gamma(0.3, size=(m, 12)) @ (rng.gamma(0.1, size=(12, n)))
    return sparse.csr_array(rng.poisson(rates * density / rates.mean()).astype(float))


def curve(fit: Callable[..., nmd.Decomposition], seconds: float, **options: Any) -> Curve:
    """Return the processor times of the iterations, and the best objectives so far."""
    times: list[float] = []
    values: list[float] = []

    def callback(state: Any) -> bool:
        times.append(time.process_time())
        values.append(state.objective if state.relative_error > NEARLY_EXACT else 0.0)
        return times[-1] - times[0] >= seconds

    fit(callback=callback, random_state=0, compute=nmd.Compute(threads=1), **options)
    return np.array(times) - times[0], np.minimum.accumulate(values)


def fastest(fit: Callable[..., nmd.Decomposition], seconds: float, **options: Any) -> Curve:
    """Return `curve` with the least time of each iteration in several runs, which are the same."""
    curves = [curve(fit, seconds, **options) for _ in range(REPEATS)]
    shortest = min(times.size for times, _ in curves)
    times = np.min([times[:shortest] for times, _ in curves], axis=0)
    return times, curves[0][1][:shortest]


def compare(plain: Curve, default: Curve) -> tuple[float, float, float, float]:
    """Return the largest ratio, its fraction of the time, the last ratio, and the time as good."""
    zero = ROUNDING * plain[1][0]
    # One iteration later: the curves are steps, which a microsecond would shift by a whole one.
    later = np.append(plain[0][1:], plain[0][-1])
    position = np.searchsorted(default[0], later, side="right") - 1
    there = (position >= 0) & (plain[1] > 0)
    ratios = (default[1][position[there]] + zero) / (plain[1][there] + zero)
    as_good = np.flatnonzero(default[1] <= plain[1][-1] * (1 + 1e-6) + zero)
    when = default[0][as_good[0]] / plain[0][-1] if as_good.size else np.inf
    worst = int(np.argmax(ratios))
    return float(ratios[worst]), float(plain[0][there][worst] / plain[0][-1]), ratios[-1], when


def main(names: list[str], iterations: int, out: str | None) -> None:
    """Print the table."""
    print("| problem | plain, s | iterations: plain, default | largest ratio | at | last ratio "
          "| as good after |\n|---|---|---|---|---|---|---|")  # fmt: skip
    curves: dict[str, np.ndarray] = {}
    for name, verb, arguments in problems():
        if names and not any(name.startswith(each) for each in names):
            continue

        def fit(**options: Any) -> nmd.Decomposition:
            return verb(*arguments, **options)  # noqa: B023

        for options in (PLAIN, {}):
            fit(max_iter=3, tol=0, **options)  # compile
        plain = fastest(fit, np.inf, max_iter=iterations, tol=TOL, **PLAIN)
        default = fastest(fit, plain[0][-1], max_iter=100 * iterations, tol=TOL)
        worst, where, last, when = compare(plain, default)
        print(f"| {name} | {plain[0][-1]:.2f} | {plain[0].size}, {default[0].size} "
              f"| {worst:.3f} | {where:.0%} | {last:.3f} | {when:.0%} |", flush=True)  # fmt: skip
        for key, (times, values) in (("plain", plain), ("default", default)):
            curves |= {f"{name}/{key}/t": times, f"{name}/{key}/f": values}
    if out:
        np.savez_compressed(out, **curves)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="beginnings of names of problems")
    parser.add_argument("--iterations", type=int, default=ITERATIONS, help="of the plain method")
    parser.add_argument("--out", help=".npz file for the curves")
    given = parser.parse_args()
    warnings.simplefilter("ignore", nmd.warnings.NMDWarning)
    main(given.names, given.iterations, given.out)
