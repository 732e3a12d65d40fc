"""What an iteration costs as the data grow: ratings up to 100 million, and ranks of dense data."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

import nmd_lab as nmd
from benchmarks.common.memory import Peak, in_own_process

from .iterations import data
from .timing import table

COLUMNS, EACH, RANK = 17_700, 208, 8
COUNTS = (1_000_000, 10_000_000, 100_000_000)
BLOCK = 20_000
DENSE = ((1000, 1000), (2000, 2000), (4000, 4000))
RANKS = (8, 32, 128)


def many_ratings(count: int, columns: int = COLUMNS) -> sparse.csr_array:
    """Return generated ratings in float32, EACH in a row, made block by block of rows."""
    rng = np.random.default_rng(0)
    rows, each = count // EACH, min(EACH, columns // 4)
    width = columns // each
    H = rng.standard_normal((columns, RANK), dtype=np.float32)
    values = np.empty((rows, each), np.float32)
    indices = np.empty((rows, each), np.int32)
    for first in range(0, rows, BLOCK):
        own = slice(first, min(first + BLOCK, rows))
        size = own.stop - own.start
        indices[own] = np.arange(each) * width + rng.integers(0, width, (size, each))
        W = rng.standard_normal((size, RANK), dtype=np.float32)
        values[own] = np.einsum("ir,ikr->ik", W, H[indices[own]], optimize=True)
        values[own] += rng.standard_normal((size, each), dtype=np.float32)
    indptr = np.arange(rows + 1, dtype=np.int32) * each
    parts = (values.reshape(-1), indices.reshape(-1), indptr)
    return sparse.csr_array(parts, shape=(rows, columns))


def ratings_run(count: int, columns: int) -> tuple[float, float, float, float]:
    """Return seconds an iteration, those of the whole call, and MiB: of the data and in all."""
    warnings.simplefilter("ignore", nmd.warnings.NMDWarning)
    small = many_ratings(20_000, 800)
    options: dict[str, Any] = {
        "alpha": 1.0,
        "offsets": "none",
        "tol": 0,
        "compute": nmd.Compute(threads=1),
    }
    nmd.complete(small, RANK, "identity", max_iter=2, random_state=0, **options)
    X = many_ratings(count, columns)
    size = sum(part.nbytes for part in (X.data, X.indices, X.indptr)) / 2**20
    peak = Peak()
    fit = nmd.complete(X, RANK, "identity", max_iter=5, random_state=0, **options)
    each = float(np.median(np.diff(fit.history.seconds)))
    return each, float(fit.history.seconds[-1]), size, peak.total


def by_ratings(quick: bool = False) -> str:
    """Return the table of numbers of ratings."""
    rows = []
    for count in (50_000, 100_000) if quick else COUNTS:
        columns = 800 if quick else COLUMNS
        each, whole, size, total = in_own_process(ratings_run, count, columns)
        used = count // EACH * EACH
        rows.append(
            (
                *(f"{count:.0e}", f"{each:.3g}", f"{1e9 * each / used:.1f}"),
                *(f"{whole:.3g}", f"{size:.0f}", f"{total:.0f}"),
            )
        )
    heads = ("ratings", "s an iteration", "ns a rating", "s of 5", "data, MiB", "all memory, MiB")
    return table(heads, rows)


def dense_run(m: int, n: int, rank: int) -> float:
    """Return the seconds of a plain iteration of ReLU + Frobenius in float64."""
    rng = np.random.default_rng(1)
    X, start = data("relu", m, n, rank, float), (rng.random((m, rank)), rng.random((rank, n)))
    fit = nmd.decompose(
        X,
        rank,
        init=start,
        max_iter=8,
        tol=0,
        solver=nmd.ADMM(refine=False, homotopy=False, polish=False),
        compute=nmd.Compute(threads=1),
    )
    return float(np.median(np.diff(fit.history.seconds)[1:]))


def by_size(quick: bool = False) -> str:
    """Return the table of sizes and ranks of dense data."""
    rows = []
    for m, n in ((100, 100),) if quick else DENSE:
        for rank in (4,) if quick else RANKS:
            each = in_own_process(dense_run, m, n, rank)
            work = m * n * rank
            rows.append((f"{m} x {n}", rank, f"{1e3 * each:.3g}", f"{1e12 * each / work:.0f}"))
    return table(("size", "rank", "ms an iteration", "ps an entry and component"), rows)
