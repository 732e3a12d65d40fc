"""What one sweep of the sampler costs, beside one of myFM, on MovieLens 1M at rank 20 and 64.

    python benchmarks/sampler.py                   # without NMD_LAB_DATA: the ratings that ship
    python benchmarks/sampler.py --ranks 20 --rounds 3

Ours runs on one thread and on two, myFM on the one that it uses, in turn, in one process: each
round has each of them once, and the table has the medians of the rounds and of their ratios.  The
time of a sweep, by the clock, is the difference of a long and of a short run, divided by the
difference of their numbers of sweeps, so that no preparation counts.  Without myFM (``pip install
myfm``) only ours is timed.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is loaded

import argparse
import contextlib
import importlib.util
import io
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import sparse

import nmd_lab as nmd

sys.path.insert(0, str(Path(__file__).parents[1]))  # the benchmarks are not installed

from benchmarks.ratings_table.peers import one_hot

RANKS = (20, 64)
SHORT, LONG = 5, 15
"""Numbers of sweeps of the two runs."""
TUNE = 2
"""Sweeps before the draws that are kept, in both runs."""

Run = Callable[[sparse.csr_array, int, int], None]
"""Runs a sampler on ratings at a rank for a number of sweeps."""


def ratings() -> tuple[str, sparse.csr_array]:
    """Return MovieLens 1M and its name, or the ratings that ship."""
    with_data = bool(os.environ.get("NMD_LAB_DATA"))
    table = nmd.datasets.movielens_1m() if with_data else nmd.datasets.movielens_small()
    rows, columns = (np.unique(table[name], return_inverse=True)[1] for name in ("user", "item"))
    X = sparse.csr_array((table["rating"].to_numpy(dtype=float), (rows, columns)))
    return ("MovieLens 1M" if with_data else "MovieLens latest-small"), X


def ours(threads: int) -> Run:
    """Return our sampler on a number of threads."""

    def run(X: sparse.csr_array, rank: int, sweeps: int) -> None:
        nmd.sample(
            X,
            rank=rank,
            draws=sweeps - TUNE,
            tune=TUNE,
            random_state=0,
            progress=False,
            compute=nmd.Compute(threads=threads),
        )

    return run


def myfm(X: sparse.csr_array, rank: int, sweeps: int) -> None:
    """Run myFM with a prior for users and one for items."""
    from myfm import MyFMRegressor

    entries = X.tocoo()
    model = MyFMRegressor(rank=rank, random_seed=0)
    with contextlib.redirect_stderr(io.StringIO()):  # its progress bar
        model.fit(
            one_hot(entries.row, entries.col, X.shape),
            entries.data,
            group_shapes=list(X.shape),
            n_iter=sweeps,
            n_kept_samples=sweeps - TUNE,
        )


def seconds_a_sweep(run: Run, X: sparse.csr_array, rank: int) -> float:
    """Return the time of a sweep in seconds."""
    times = []
    for sweeps in (SHORT, LONG):
        began = time.perf_counter()
        run(X, rank, sweeps)
        times.append(time.perf_counter() - began)
    return (times[1] - times[0]) / (LONG - SHORT)


def samplers() -> dict[str, Run]:
    """Return the samplers that are there, by name."""
    found: dict[str, Run] = {}
    if hasattr(nmd, "sample"):
        found |= {"ours, one thread": ours(1), "ours, two threads": ours(2)}
    else:
        print("This version of nmd_lab has no sampler.")
    if importlib.util.find_spec("myfm"):
        found["myFM"] = myfm
    else:
        print("myFM is left out: pip install myfm")
    return found


def compare(runs: dict[str, Run], X: sparse.csr_array, rank: int, rounds: int) -> None:
    """Print a line for each sampler: seconds a sweep, and the ratios to all."""
    small = X[:200, :200]
    for run in runs.values():
        run(small, rank, SHORT)  # compiles and loads
    found = [
        {name: seconds_a_sweep(run, X, rank) for name, run in runs.items()} for _ in range(rounds)
    ]
    for name in runs:
        seconds = np.median([each[name] for each in found])
        ratios = [np.median([each[name] / each[other] for each in found]) for other in runs]
        words = " | ".join(f"{ratio:.2f}" for ratio in ratios)
        print(f"| {rank} | {name} | {seconds:.3f} | {words} |")


def main() -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", nargs="+", type=int, default=list(RANKS))
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    name, X = ratings()
    runs = samplers()
    print(f"{name}: {X.shape[0]} x {X.shape[1]}, {X.nnz} ratings, {given.rounds} rounds")
    header = ["rank", "", "seconds a sweep", *(f"as multiple of {other}" for other in runs)]
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for rank in given.ranks:
        compare(runs, X, rank, given.rounds)


if __name__ == "__main__":
    main()
