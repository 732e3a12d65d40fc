"""Two threads beside one: iterations of a dense, a sparse and a small problem."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import nmd_lab as nmd
from benchmarks.common.memory import in_own_process

from .iterations import data
from .ratings import ratings
from .sparse_sets import documents
from .timing import table


def problem(kind: str, quick: bool) -> tuple[Any, dict[str, Any]]:
    """Return data and options."""
    options: dict[str, Any] = {"tol": 0, "random_state": 0}
    if kind == "dense 100 x 80, rank 8":
        return data("relu", 100, 80, 8, float), {"rank": 8, "max_iter": 300, **options}
    if kind == "dense 2000 x 2000, rank 32":
        size = (200, 200, 8) if quick else (2000, 2000, 32)
        return data("relu", *size, float), {"rank": size[2], "max_iter": 12, **options}
    if kind == "sparse zeros, 7000 x 42000, rank 16":
        X = documents(*((300, 400, 20.0) if quick else (7000, 42_000, 40.0)))
        return X, {"rank": 16, "max_iter": 12, **options}
    X = ratings(*((200, 150, 4000) if quick else (138_000, 27_000, 8_000_000))).tocsr()
    split: Any = "observed" if "observed" in kind else "everywhere"
    solver = nmd.ADMM(split=split, refine=False, polish=False)
    how: dict[str, Any] = {"alpha": 10.0, "init": "random", "solver": solver}
    return X, {"rank": 16, "max_iter": 8, **how, **options}


def measure(kind: str, threads: int, quick: bool) -> float:
    """Return the median seconds of an iteration."""
    warnings.simplefilter("ignore", nmd.warnings.NMDWarning)
    X, options = problem(kind, quick)
    method = nmd.complete if "ratings" in kind else nmd.decompose
    f = "identity" if "ratings" in kind else "relu"
    fit = method(X, nonlinearity=f, compute=nmd.Compute(threads=threads), **options)
    return float(np.median(np.diff(fit.history.seconds)[2:]))


KINDS = (
    "dense 100 x 80, rank 8",
    "dense 2000 x 2000, rank 32",
    "sparse zeros, 7000 x 42000, rank 16",
    "8 million ratings, rank 16, everywhere",
    "8 million ratings, rank 16, observed",
)


def speed_up(quick: bool = False) -> str:
    """Return the table of problems."""
    rows = []
    for kind in KINDS:
        one, two = (in_own_process(measure, kind, threads, quick) for threads in (1, 2))
        rows.append((kind, f"{1e3 * one:.3g}", f"{1e3 * two:.3g}", f"{one / two:.2f}"))
    return table(("problem", "one thread, ms", "two threads, ms", "times as fast"), rows)
