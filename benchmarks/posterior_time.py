"""How long a posterior takes: compared with fits, and for tables of more and more rows.

    python benchmarks/posterior_time.py --write

The three run in turn on the ratings that ship and on pictures of digits with 30 % of the pixels
missing, on one thread; the table of ``docs/sampling.md`` has medians of three rounds.  Generated
tables of fifty columns, with a tenth of the cells missing, get ten copies on all cores, once.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is loaded

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from common.pages import table, write_tables
from scipy import sparse

import nmd_lab as nmd

RANK, ROUNDS, COPIES = 20, 3, 10
ROWS = 1_000, 10_000, 100_000


def ratings() -> Any:
    """Return the ratings that ship, as a sparse matrix."""
    frame = nmd.datasets.movielens_small()
    at = tuple(np.unique(frame[name], return_inverse=True)[1] for name in ("user", "item"))
    return sparse.csr_array((frame["rating"].to_numpy(dtype=float), at))


def digits() -> Any:
    """Return pictures of digits of which 30 % of the pixels are missing."""
    X = nmd.datasets.digits()
    return X.where(np.random.default_rng(0).random(X.shape) > 0.3)


def seconds(call: Callable[[], Any]) -> float:
    """Return the seconds that a call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def row(name: str, X: Any) -> list[str]:
    """Return the medians of the rounds."""
    chosen = nmd.complete(X, random_state=0)  # compiles, and gives the settings
    settings = {key: chosen.parameters[key] for key in ("alpha", "offsets", "offset_alpha")}
    nmd.sample(X, RANK, draws=2, tune=2, random_state=0)
    found = np.median(
        [
            [
                seconds(lambda: nmd.complete(X, random_state=0)),
                seconds(lambda: nmd.complete(
                    X, chosen.parameters["rank"], chosen.nonlinearity, random_state=0, **settings
                )),
                seconds(lambda: nmd.sample(X, RANK, random_state=0)),
            ]
            for _ in range(ROUNDS)
        ],
        axis=0,
    )  # fmt: skip
    return [name, *(f"{each:.1f}" for each in found)]


def mixed(m: int) -> pd.DataFrame:
    """Return a generated table of thirty numbers, eight answers, six scores and six classes."""
    rng = np.random.default_rng(0)
    T = rng.normal(size=(m, 8)) @ rng.normal(size=(8, 50)) + 1.5 * rng.normal(size=(m, 50))
    frame = pd.DataFrame(T, columns=[f"column {j}" for j in range(50)])
    for j, name in enumerate(frame):
        levels = np.digitize(T[:, j], [-2, 0, 2])
        if 30 <= j < 38:
            frame[name] = pd.array(T[:, j] > 0, dtype="boolean")
        elif j >= 38:
            frame[name] = pd.Categorical(levels, ordered=j < 44)
    return frame.mask(rng.random(frame.shape) < 0.1)


def row_of_size(m: int) -> list[str]:
    """Return the seconds in which the copies of a table of m rows are there."""
    frame, cores = mixed(m), nmd.Compute(threads=os.cpu_count())

    def copies() -> None:
        posterior = nmd.sample(frame, draws=COPIES, random_state=0, compute=cores)
        posterior.impute(frame, n=COPIES)

    found = seconds(copies)
    return [f"{m:,} x {frame.shape[1]}", f"{found:.0f}", f"{1000 * found / m:.1f}"]


def main() -> None:
    """Print the tables, or write them into docs/sampling.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the tables into the page")
    given = parser.parse_args()
    head = [
        "data", "`complete(X)`, s", "`complete` with given settings, s",
        f"`sample(X, {RANK})`, 400 sweeps, s",
    ]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nmd.warnings.NMDWarning)
        text = table(head, [row("MovieLens small", ratings()), row("digits", digits())])
        nmd.sample(mixed(300), draws=3, tune=3, random_state=0)  # compiles
        head = ["generated table", f"{COPIES} imputations on all cores, s", "for each row, ms"]
        text += "\n" + table(head, map(row_of_size, ROWS))
    if given.write:
        write_tables("sampling", "posterior_time", text)
    else:
        print(text)


if __name__ == "__main__":
    main()
