"""Alternating least squares on ratings: seconds and objective beside cmfrec, if it is installed."""

from __future__ import annotations

import importlib.util
import time
import warnings
from typing import Any

import numpy as np
from scipy import sparse

import nmd_lab as nmd
from benchmarks.common.memory import in_own_process

from .timing import table

SIZE = (6040, 3706, 1_000_000)
RANKS = (10, 40, 100)
RIDGE = 10.0
FEW, MANY = 2, 12


def ratings(m: int, n: int, count: int) -> sparse.coo_array:
    """Return generated ratings."""
    made = nmd.datasets.make_ratings(m, n, count, random_state=0)
    where = (made["user"].to_numpy(), made["item"].to_numpy())
    return sparse.coo_array((made["rating"].to_numpy().astype(float), where), shape=(m, n))


def objective(X: Any, A: Any, B: Any, mean: float, rows: Any, columns: Any) -> float:
    """Return the squared errors, halved, and the ridge of factors and offsets."""
    i, j = X.coords
    errors = X.data - (mean + rows[i] + columns[j] + np.einsum("ij,ij->i", A[i], B[j]))
    squares = sum(float(np.sum(part**2)) for part in (A, B, rows, columns))
    return 0.5 * float(errors @ errors) + 0.5 * RIDGE * squares


def ours(size: tuple[int, int, int], rank: int, dtype: str) -> tuple[float, float]:
    """Return seconds an iteration and the objective at the end."""
    warnings.simplefilter("ignore", nmd.warnings.NMDWarning)
    X = ratings(*size).tocsr().astype(dtype)
    options: dict[str, Any] = {
        "alpha": RIDGE,
        "offsets": "both",
        "tol": 0,
        "compute": nmd.Compute(threads=1),
    }
    fit = nmd.complete(X, rank, "identity", max_iter=MANY, random_state=0, **options)
    return float(np.median(np.diff(fit.history.seconds))), fit.objective


def theirs(size: tuple[int, int, int], rank: int, how: str) -> tuple[float, float]:
    """Return the same for cmfrec, whose seconds are those of its later iterations."""
    from cmfrec import CMF

    X, taken = ratings(*size), []
    for count in (FEW, MANY):
        model = CMF(
            k=rank, lambda_=RIDGE, niter=count, use_cg=how == "conjugate gradients",
            finalize_chol=False, nthreads=1, use_float=False, verbose=False,
        )  # fmt: skip
        began = time.perf_counter()
        model.fit(sparse.coo_matrix(X))
        taken.append(time.perf_counter() - began)
    parts = (model.A_, model.B_, model.glob_mean_, model.user_bias_, model.item_bias_)
    return (taken[1] - taken[0]) / (MANY - FEW), objective(X, *parts)


def beside_cmfrec(quick: bool = False) -> str:
    """Return the table of ranks."""
    size = (200, 150, 4000) if quick else SIZE
    has_cmfrec = importlib.util.find_spec("cmfrec") is not None
    rows = []
    for rank in (4,) if quick else RANKS:
        for dtype in ("float64", "float32"):
            each, reached = in_own_process(ours, size, rank, dtype)
            rows.append((rank, f"nmd_lab, {dtype}", f"{each:.3f}", f"{reached:.0f}"))
        for how in ("conjugate gradients", "Cholesky") if has_cmfrec else ():
            each, reached = in_own_process(theirs, size, rank, how)
            rows.append((rank, f"cmfrec, {how}", f"{each:.3f}", f"{reached:.0f}"))
    return table(("rank", "library", "seconds an iteration", f"objective after {MANY}"), rows)
