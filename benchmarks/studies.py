"""Studies: what processes and records cost, and what the choice on held-out ratings is worth.

Run on a quiet machine:

    python benchmarks/studies.py

The last table needs NMD_LAB_DATA with MovieLens 100K in it.
"""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import nmd_lab as nmd
from nmd_lab import datasets
from nmd_lab.studies.cell import write_record

GRID: dict[str, Any] = {
    "nonlinearity": ["relu", "square", "minmax", "modulus"],
    "loss": ["frobenius", "l1", "kl"],
    "rank": [4, 8, 16],
    "missing": [0.1, 0.3, 0.5],
    "n_splits": 3,
    "max_iter": 1000,
    "tol": 0,
}


def timed(path: Path | None, n_jobs: int, progress: bool = False) -> float:
    study = nmd.Study(datasets.digits(100), **GRID)
    began = time.perf_counter()
    study.run(path, n_jobs=n_jobs, progress=progress)
    return time.perf_counter() - began


def processes() -> None:
    cells = 4 * 3 * 3 * 3 * 3
    timed(None, 2)  # compiles, and starts the processes
    with tempfile.TemporaryDirectory() as folder:
        one = timed(Path(folder) / "one.nc", 1, progress=True)
        two = timed(Path(folder) / "two.nc", 2)
        began = time.perf_counter()
        for k in range(100):
            record = {"key": str(k), "scores": dict.fromkeys("abcdefgh", k / 7)}
            write_record(Path(folder) / "records", record)
        added = (time.perf_counter() - began) / 100
    print(
        f"{cells} fits of 1000 iterations, 4 nonlinearities x 3 losses x 3 ranks x 3 fractions x 3"
    )
    print(f"  one process             {one:7.1f} s")
    print(f"  two processes           {two:7.1f} s, {one / two:.2f} times as fast")
    print(f"  a record on the disk    {1e3 * added:7.1f} ms")


def ratings() -> None:
    folder = os.environ.get("NMD_LAB_DATA")
    if not folder or not (Path(folder) / "movielens-100k").is_dir():
        print("MovieLens 100K: not there, set NMD_LAB_DATA")
        return
    X = nmd.observations_from_table(datasets.movielens_100k())
    ranks, alphas = [2, 5, 10, 15], [4, 8, 12, 16]
    options: dict[str, Any] = {"offsets": "both", "max_iter": 60}
    print("MovieLens 100K, 90/10: rank and alpha chosen on held-out entries of the training part")
    for seed in range(3):
        train, test = nmd.split_observed(X, 0.1, random_state=seed)

        def error(fit: nmd.Decomposition, test: Any = test) -> float:
            return nmd.metrics.rmse(test, fit.predict(test))

        study = nmd.Study(train, rank=ranks, alpha=alphas, missing=0.1, **options)
        study.run(progress=False, n_jobs=2)
        parameters, fit = study.best("rmse")
        hindsight = min(
            error(nmd.complete(train, rank, alpha=alpha, random_state=0, **options))
            for rank, alpha in itertools.product(ranks, alphas)
        )
        print(
            f"  split {seed}: rank {parameters['rank']}, alpha {parameters['alpha']}: test RMSE "
            f"{error(fit):.4f}, best cell in hindsight {hindsight:.4f}"
        )


if __name__ == "__main__":
    processes()
    ratings()
