"""Nonnegative factors: the objective after equal seconds, beside NMF of scikit-learn.

Run with ``python benchmarks/constraints.py``; it prints a table with a line for each data
set, loss, rank and budget.  Compilation is not counted.  scikit-learn has no time limit: its number
of iterations is such that a run takes the budget, or a little more; of two starts, its default
("nndsvda") and "random", the better one counts.  Options: ``--budgets 0.1 0.5 2 10``,
``--ranks 5 10 30``.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is loaded

import argparse
import time
import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF
from sklearn.feature_extraction.text import CountVectorizer

import nmd_lab as nmd

Array = np.ndarray

DIFFERENCE = 1e-6
"""Relative difference that counts as equal: the local minimum is the same."""


def generated_counts(m: int = 400, n: int = 300, rank: int = 10, seed: int = 0) -> Array:
    """Return Poisson counts of nonnegative factors."""
    rng = np.random.default_rng(seed)
    W, H = rng.gamma(0.5, size=(m, rank)), rng.gamma(0.5, size=(rank, n))
    return rng.poisson(4 * W @ H).astype(float)


def word_counts() -> Array:
    """Return how often words occur in the descriptions of scikit-learn's data sets."""
    from sklearn import datasets

    loaders = ("iris", "wine", "breast_cancer", "diabetes", "digits", "linnerud")
    texts = [getattr(datasets, f"load_{name}")().DESCR for name in loaders]
    lines = [line for text in texts for line in text.split("\n") if len(line.split()) > 3]
    counts = CountVectorizer(min_df=2).fit_transform(lines).toarray().astype(float)
    counts = counts[counts.sum(axis=1) > 0]
    return counts[:, counts.sum(axis=0) > 0]


DATA = {
    "digits": lambda: load_digits().data.astype(float),
    "counts": generated_counts,
    "words": word_counts,
}


def objective(X: Array, W: Array, H: Array, loss: str) -> float:
    """Return half the squared error, or the divergence, by the same formula for both."""
    Y = W @ H
    if loss == "frobenius":
        return 0.5 * float(np.sum((X - Y) ** 2))
    known = X > 0
    x, y = X[known], np.maximum(Y[known], 1e-12 * X[known])
    return float(np.sum(x * np.log(x / y)) - X.sum() + Y.sum())


def ours(X: Array, rank: int, loss: str, seconds: float) -> tuple[float, float]:
    """Return objective and seconds of a default fit with a time limit."""
    began = time.perf_counter()
    fit = nmd.decompose(
        X,
        rank,
        "identity",
        loss,
        w_constraint="nonnegative",
        h_constraint="nonnegative",
        time_limit=seconds,
        max_iter=10**7,
        tol=0,
        random_state=0,
    )
    passed = time.perf_counter() - began
    return objective(X, fit.W.values, fit.H.values, loss), passed


def theirs(X: Array, rank: int, loss: str, seconds: float, init: str) -> tuple[float, float]:
    """Return objective and seconds of scikit-learn's NMF, which gets at least the budget."""
    solver, beta = ("cd", "frobenius") if loss == "frobenius" else ("mu", "kullback-leibler")
    n_iter, best, passed = 10, np.inf, 0.0
    for _ in range(6):
        model = NMF(
            rank, init=init, solver=solver, beta_loss=beta, tol=0, max_iter=n_iter, random_state=0
        )
        began = time.perf_counter()
        W = model.fit_transform(X)
        passed = time.perf_counter() - began
        best = min(best, objective(X, W, model.components_, loss))
        if passed >= 0.95 * seconds or model.n_iter_ < n_iter:
            break
        n_iter = max(n_iter + 1, int(n_iter * min(1.05 * seconds / passed, 50.0)))
    return best, passed


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budgets", type=float, nargs="+", default=[0.1, 0.5, 2.0, 10.0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[5, 10, 30])
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=list(DATA))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print("objective after equal seconds; ours / theirs <= 1 is at or below scikit-learn")
    print("data    shape      loss       rank  seconds       ours  nndsvda   random   ratio")
    above = 0
    for name in arguments.data:
        X = DATA[name]()
        for loss in ("frobenius", "kl"):
            ours(X, 2, loss, 0.2)  # compiles
            for rank in arguments.ranks:
                for seconds in arguments.budgets:
                    mine, _ = ours(X, rank, loss, seconds)
                    a, b = (
                        theirs(X, rank, loss, seconds, init)[0] for init in ("nndsvda", "random")
                    )
                    ratio = mine / min(a, b)
                    above += ratio > 1 + DIFFERENCE
                    print(
                        f"{name:7s} {X.shape[0]:4d}x{X.shape[1]:<5d} {loss:10s} {rank:4d} "
                        f"{seconds:8g} {mine:10.1f} {a:8.1f} {b:8.1f} {ratio:7.4f}",
                        flush=True,
                    )
    print(f"{above} lines above scikit-learn")


if __name__ == "__main__":
    main()
