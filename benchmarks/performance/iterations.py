"""An iteration of Algorithm 1 beside its three bare matrix products, for every pair."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from nmd_lab.data.inputs import observe_dense
from nmd_lab.engines import iterates
from nmd_lab.engines.admm import Admm
from nmd_lab.model.model import make_model
from nmd_lab.problem.initialization import Start
from nmd_lab.problem.problem import Problem
from nmd_lab.request.penalty import PenaltyRule

from .timing import Ratio, in_turn, ratio, table

SIZES = [(2000, 2000, 32), (500, 784, 32)]
NONLINEARITIES = ("relu", "square", "minmax", "modulus", "identity")
LOSSES = ("frobenius", "l1", "kl")


def data(f: str, m: int, n: int, rank: int, dtype: Any) -> np.ndarray:
    """Return data that the pairs fit well: nonnegative, with zeros, up to 1 for MinMax."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n)) / np.sqrt(rank)
    X = np.maximum(A + 0.1 * rng.standard_normal((m, n)), 0)
    return (np.minimum(X, 1) if f == "minmax" else X).astype(dtype)


def measure(
    f: str, loss: str, size: tuple[int, int, int], dtype: Any, masked: bool, rounds: int
) -> tuple[Ratio, float]:
    """Return the ratio of an iteration to the products, and its median time in seconds."""
    m, n, rank = size
    rng = np.random.default_rng(1)
    X = data(f, m, n, rank, dtype)
    seen = rng.random((m, n)) < 0.6 if masked else None
    W, H = (rng.standard_normal(shape).astype(dtype) for shape in ((m, rank), (rank, n)))
    A, XHt, WtX = np.empty((m, n), dtype), np.empty((m, rank), dtype), np.empty((rank, n), dtype)

    def products() -> None:
        np.dot(W, H, out=A)
        np.dot(X, H.T, out=XHt)
        np.dot(W.T, X, out=WtX)

    problem = Problem(
        observe_dense(X, observed=seen), make_model(f, loss), PenaltyRule(factor=np.inf)
    )
    states = iterates(Admm(), problem, Start(0.3 * W, 0.3 * H, from_factors=True))
    times = in_turn((products, lambda: next(states)), rounds)
    return ratio(times, 1), float(np.median(times[:, 1]))


def ratios(quick: bool = False) -> str:
    """Return the table of all pairs."""
    rounds = 3 if quick else 15
    sizes = [(200, 300, 8)] if quick else SIZES
    rows = []
    for size, loss, f in product(sizes, LOSSES, NONLINEARITIES):
        cells, dense = [], []
        for masked, dtype in product((False, True), (np.float64, np.float32)):
            found, time = measure(f, loss, size, dtype, masked, rounds)
            cells.append(str(found))
            dense.append(time)
        m, n, rank = size
        rows.append((f"{m} x {n}, {rank}", f, loss, *cells, f"{dense[0] / dense[1]:.2f}"))
    head = ("size, rank", "f", "loss", "float64", "float32", "float64, 40 % missing")
    return table(
        (*head, "float32, 40 % missing", "float64 to float32, seconds of an iteration"), rows
    )
