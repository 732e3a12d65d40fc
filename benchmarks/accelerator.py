"""Fits of dense matrices on an accelerator and on the processors of the same machine.

python benchmarks/accelerator.py           the table, a few minutes; without an accelerator a line
python benchmarks/accelerator.py --quick   small matrices
"""

from __future__ import annotations

import argparse
import warnings
from itertools import product
from typing import Any

import numpy as np

import nmd_lab as nmd
from benchmarks.performance.iterations import data
from benchmarks.performance.timing import table

PAIRS = (("relu", "frobenius"), ("relu", "kl"), ("minmax", "l1"))
SIZES = ((500, 784, 32), (2000, 2000, 32), (8000, 8000, 32), (8000, 8000, 128))
PRECISIONS = (np.float64, np.float32)
HEAD = (
    "size, rank",
    "f",
    "loss",
    "precision",
    "processors, ms",
    "accelerator, ms",
    "times as fast",
)


def measure(X: np.ndarray, rank: int, f: str, loss: str, device: str | None) -> tuple[float, float]:
    """Return the median seconds of an iteration, and the relative error after the last one."""
    compute = nmd.Compute(device=device)
    options: dict[str, Any] = {"tol": 0, "max_iter": 30, "random_state": 0, "init": "random"}
    plain = nmd.ADMM(refine=False, homotopy=False, polish=False)
    fit = nmd.decompose(X, rank, f, loss, solver=plain, compute=compute, **options)
    return float(np.median(np.diff(fit.history.seconds)[5:])), float(fit.relative_error)


def rows(sizes: Any) -> list[tuple[Any, ...]]:
    """Return the rows of the table, after errors were compared."""
    found = []
    for (m, n, rank), (f, loss), dtype in product(sizes, PAIRS, PRECISIONS):
        X = data(f, m, n, rank, dtype)
        (slow, error), (fast, other) = (measure(X, rank, f, loss, each) for each in (None, "cuda"))
        np.testing.assert_allclose(other, error, rtol=1e-6 if dtype is np.float64 else 1e-2)
        times = f"{1e3 * slow:.3g}", f"{1e3 * fast:.3g}", f"{slow / fast:.2g}"
        found.append((f"{m} x {n}, {rank}", f, loss, np.dtype(dtype).name, *times))
        print(found[-1], flush=True)
    return found


def main() -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small matrices")
    quick = parser.parse_args().quick
    try:
        import torch
    except ImportError:
        return print("PyTorch is not installed: pip install nmd-lab[torch].")
    if not torch.cuda.is_available():
        return print("This machine has no accelerator that PyTorch can use.")
    warnings.simplefilter("ignore", nmd.warnings.NMDWarning)
    print(torch.cuda.get_device_name())
    print(table(HEAD, rows([(200, 300, 8)] if quick else SIZES)))


if __name__ == "__main__":
    main()
