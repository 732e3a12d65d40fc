"""The memory that a fit takes at its peak, over the size of its X.

    python benchmarks/memory.py            # every case, 3000 x 3000
    python benchmarks/memory.py --size 1500

Each case runs in a process of its own, which has done the same with a small matrix before, so that
compiled code does not count.  The peak is that of the resident memory, as the kernel sees it, less
what there was before the fit: X itself is not counted, working copies of it are.  The size of a
sparse X is that of the stored values if absent entries are missing, and that of the dense matrix
if they are zeros, since T and U are as large.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is loaded

import argparse
import warnings
from typing import Any

import numpy as np
from common.memory import Peak, in_own_process
from scipy import sparse

import nmd_lab as nmd

RANK = 10
ITERATIONS = 40
PLAIN = nmd.ADMM(refine=False, homotopy=False, polish=False)
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "relu frobenius": ("dense", {"nonlinearity": "relu"}),
    "relu frobenius, plain": ("dense", {"nonlinearity": "relu", "solver": PLAIN}),
    "minmax frobenius": ("dense", {"nonlinearity": "minmax"}),
    "square frobenius": ("dense", {"nonlinearity": "square"}),
    "relu l1": ("dense", {"nonlinearity": "relu", "loss": "l1"}),
    "relu kl": ("dense", {"nonlinearity": "relu", "loss": "kl"}),
    "relu, random start": ("dense", {"nonlinearity": "relu", "init": "random"}),
    "relu, offsets": ("dense", {"nonlinearity": "relu", "offsets": "both", "alpha": 0.1}),
    "half of the entries": ("holes", {"nonlinearity": "relu"}),
    "weights": ("weighted", {"nonlinearity": "relu"}),
    "sparse with zeros": ("zeros", {"nonlinearity": "relu"}),
    "sparse, 5 % seen": ("few", {"nonlinearity": "minmax"}),
}  # fmt: skip


def data(kind: str, size: int, dtype: str) -> tuple[Any, dict[str, Any], int]:
    """Return X, further arguments, and the bytes that count as its size."""
    rng = np.random.default_rng(0)
    X = (rng.random((size, 4), dtype) @ rng.random((4, size), dtype)) / np.asarray(4, dtype)
    if kind == "dense":
        return X, {}, X.nbytes
    if kind == "weighted":
        return X, {"weights": rng.random(X.shape, dtype)}, X.nbytes
    if kind == "holes":
        X[rng.random(X.shape) < 0.5] = np.nan
        return X, {}, X.nbytes
    seen = rng.random(X.shape) < 0.05
    matrix = sparse.csr_array((X[seen], np.nonzero(seen)), shape=X.shape)
    return matrix, {}, X.nbytes if kind == "zeros" else matrix.data.nbytes


def peak_over_size(kind: str, options: dict[str, Any], size: int, dtype: str) -> float:
    """Return the peak of a fit over the size of X."""
    warnings.simplefilter("ignore", nmd.warnings.NMDWarning)
    verb = nmd.complete if kind == "few" else nmd.decompose
    one_thread = nmd.Compute(threads=1)
    options = {"max_iter": ITERATIONS, "random_state": 0, "compute": one_thread} | options
    small, arguments, _ = data(kind, 300, dtype)
    verb(small, RANK, **arguments, **options)
    X, arguments, nbytes = data(kind, size, dtype)
    peak = Peak()
    verb(X, RANK, **arguments, **options)
    return peak.beyond_start * 2**20 / nbytes


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="beginnings of names of cases")
    parser.add_argument("--size", type=int, default=3000, help="rows and columns of X")
    given = parser.parse_args()
    print("| case | float64 | float32 |\n|---|---|---|")
    for name, (kind, options) in CASES.items():
        if given.names and not any(name.startswith(each) for each in given.names):
            continue
        ratios = [
            in_own_process(peak_over_size, kind, options, given.size, dtype)
            for dtype in ("float64", "float32")
        ]
        print(f"| {name} | {ratios[0]:.2f} | {ratios[1]:.2f} |", flush=True)
