"""How low the default gets: on exact data, beside fixed penalties, and beside the plain method.

Run with ``python benchmarks/optimisation.py``; it prints three tables.  No time is measured: what
counts is objectives and iterations.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is loaded

import itertools
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

import nmd_lab as nmd

NONLINEARITIES = ("relu", "square", "minmax", "modulus")
LOSSES = ("frobenius", "l1", "kl")
PAIRS = tuple(itertools.product(NONLINEARITIES, LOSSES))
FIXED = (0.01, 0.1, 1.0, 10.0, 100.0)
STARTING = (0.1, 1.0, 10.0)
PLAIN = nmd.ADMM(refine=False, homotopy=False, polish=False)
N_PROBLEMS = 200

Array = np.ndarray


def hard_case(f: str, seed: int, noise: float = 0.0) -> Array:
    """The paper's synthetic data, 100 x 80 of rank 5; noise relative to its norm, cut to f."""
    rng = np.random.default_rng(seed)
    return noisy(f, rng.normal(size=(100, 5)) @ rng.normal(size=(5, 80)), noise, rng)


def noisy(f: str, product: Array, noise: float, rng: np.random.Generator) -> Array:
    """f of a product, with noise."""
    exact = {
        "relu": lambda t: np.maximum(t, 0),
        "square": np.square,
        "minmax": lambda t: np.clip(t, 0, 1),
        "modulus": np.abs,
        "identity": lambda t: t,
    }[f](product)
    if not noise:
        return exact
    error = rng.normal(size=exact.shape)
    X = exact + noise * np.linalg.norm(exact) / np.linalg.norm(error) * error
    return {"minmax": np.clip(X, 0, 1), "identity": X}.get(f, np.maximum(X, 0))


def exact_data() -> None:
    """The relative error per pair over ten data sets, five starts of at most 1000 iterations."""
    print("| pair | at most 1e-6 | median | largest | starts needed |\n|---|---|---|---|---|")
    for f, loss in PAIRS:
        fits = [
            nmd.decompose(
                hard_case(f, seed), 5, f, loss, n_init=5, max_iter=1000, tol=1e-10, random_state=0
            )
            for seed in range(10)
        ]
        errors = np.array([fit.relative_error for fit in fits])
        needed = max(int((fit.starts.n_iter > 0).sum()) for fit in fits)
        print(
            f"| {f} + {loss} | {(errors <= 1e-6).sum()} of 10 | {np.median(errors):.0e} "
            f"| {errors.max():.0e} | {needed} |"
        )


def fixed_penalties() -> None:
    """The objective after 300 iterations over that of the plain method with the best fixed ρ."""
    names = [f"from {start:g}" for start in STARTING]
    print(f"| pair | best fixed ρ | {' | '.join(['by default', *names])} |")
    print("|---" * (3 + len(names)) + "|")
    for f, loss in PAIRS:
        ratios, best = [], []
        for seed in range(5):
            X = hard_case(f, seed, 0.05)
            options: dict[str, Any] = {"max_iter": 300, "tol": 1e-10, "random_state": 0}
            fixed = [
                nmd.decompose(X, 5, f, loss, solver=replace(PLAIN, rho=rho), **options).objective
                for rho in FIXED
            ]
            best.append(FIXED[int(np.argmin(fixed))])
            found = [
                nmd.decompose(
                    X, 5, f, loss, solver=nmd.ADMM(initial_rho=start), **options
                ).objective
                for start in (None, *STARTING)
            ]
            ratios.append(np.array(found) / min(fixed))
        worst = np.max(ratios, axis=0)
        print(f"| {f} + {loss} | {np.median(best):g} | {' | '.join(f'{r:.4f}' for r in worst)} |")


def small_problems() -> None:
    """Random small problems of all pairs: never worse than plain, and how much sooner as good."""
    pairs = [*PAIRS, *(("identity", loss) for loss in LOSSES)]
    worse, iterations, ends = {"auto": 0, "balanced": 0}, [], []
    for index in range(N_PROBLEMS):
        rng = np.random.default_rng(5000 + index)
        f, loss = pairs[index % len(pairs)]
        m, n, rank = (int(k) for k in (*rng.integers(20, 60, 2), rng.integers(2, 7)))
        product = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))
        X = noisy(f, product, rng.choice([0.0, 0.05, 0.2, 1.0]), rng)
        X = np.maximum(X, 0) if loss == "kl" else X
        options: dict[str, Any] = {"max_iter": 300, "tol": 1e-10, "random_state": 0}
        fit = nmd.decompose(X, rank, f, loss, **options)
        size = fit.objective / fit.relative_error ** (2 if loss == "frobenius" else 1)
        zero = 1e-9 * size if loss != "frobenius" else 1e-18 * size
        for rule in worse:
            plain = nmd.decompose(X, rank, f, loss, solver=replace(PLAIN, rho=rule), **options)
            worse[rule] += fit.objective > plain.objective * (1 + 1e-9) + zero
        low = np.flatnonzero(fit.history.objective.values <= plain.objective * (1 + 1e-9) + zero)
        iterations.append(low[0] + 1 if low.size else np.inf)
        ends.append(np.log((fit.objective + zero) / (plain.objective + zero)))
    print("| problems | worse than plain | worse than plain 'balanced' | median iterations to "
          "plain's 300 | geometric mean of the objectives' ratio |")  # fmt: skip
    print("|---|---|---|---|---|")
    print(f"| {N_PROBLEMS} | {worse['auto']} | {worse['balanced']} "
          f"| {np.median(iterations):g} | {np.exp(np.mean(ends)):.2g} |")  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore", nmd.warnings.NMDWarning)
    for title, table in (
        ("Exact data, default arguments but n_init=5", exact_data),
        ("5 % noise: default over the best fixed penalty, the largest of five data sets",
         fixed_penalties),
        ("Random small problems", small_problems),
    ):  # fmt: skip
        print(f"\n{title}\n")
        table()
