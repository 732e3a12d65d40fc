"""`decompose` of large sparse matrices: memory, and a pass beside its bare products."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import nmd_lab as nmd
from benchmarks.common.memory import Peak, in_own_process
from nmd_lab.kernels.envelope import ENTRIES, ROWS

from .sparse_sets import documents
from .timing import seconds, table

SIZES = [(7000, 42_000, 40.0), (20_000, 50_000, 400.0)]
RANK = 16


def bare_products(W: np.ndarray, H: np.ndarray) -> None:
    """Do the products WH, G Hᵀ and Gᵀ W tile by tile, and nothing else."""
    (m, rank), n = W.shape, H.shape[1]
    gradient_W, gradient_H = np.zeros_like(W), np.zeros((n, rank), W.dtype)
    buffer, width = np.empty(ENTRIES, W.dtype), ENTRIES // ROWS
    for top in range(0, m, ROWS):
        rows = W[top : top + ROWS]
        for left in range(0, n, width):
            columns = H[:, left : left + width]
            A = buffer[: rows.shape[0] * columns.shape[1]].reshape(rows.shape[0], -1)
            np.dot(rows, columns, out=A)
            gradient_W[top : top + ROWS] += A @ columns.T
            gradient_H[left : left + width] += A.T @ rows


def measure(
    size: tuple[int, int, float], loss: str, dtype: str, passes: int
) -> tuple[int, float, float, float]:
    """Return stored entries, MiB beyond the input, seconds of a pass and those of the products."""
    warnings.simplefilter("ignore", nmd.warnings.NMDWarning)
    X = documents(*size).astype(dtype)
    options: dict[str, Any] = {"tol": 0, "random_state": 0, "compute": nmd.Compute(threads=1)}
    nmd.decompose(documents(60, 80, 20.0).astype(dtype), 3, "relu", loss, max_iter=3, **options)
    peak = Peak()
    fit = nmd.decompose(X, RANK, "relu", loss, max_iter=passes, **options)
    beyond = peak.beyond_start
    W, H = fit.W.values, fit.H.values
    own = float(np.median(np.diff(fit.history.seconds)))
    bare = float(np.median([seconds(lambda: bare_products(W, H)) for _ in range(5)]))
    return X.nnz, beyond, own, bare


def passes(quick: bool = False) -> str:
    """Return the table of sizes, losses and precisions."""
    rows = []
    for size in [(300, 400, 20.0)] if quick else SIZES:
        for loss in ("frobenius", "kl"):
            for dtype in ("float32", "float64"):
                count = 4 if quick else 20
                stored, beyond, own, bare = in_own_process(measure, size, loss, dtype, count)
                m, n, _ = size
                cells = (f"{beyond:.0f}", f"{own:.2f}", f"{own / bare:.2f}")
                rows.append((f"{m} x {n}, {stored} stored", loss, dtype, *cells))
    head = ("matrix", "loss", "precision", "MiB beyond the input", "seconds of a pass")
    return table((*head, "to the three bare products"), rows)
