"""How long a posterior takes beside a fit whose settings are chosen, and one with given settings.

    python benchmarks/posterior_time.py --write

The three run in turn on the ratings that ship and on pictures of digits with 30 % of the pixels
missing, on one thread; the table of ``docs/sampling.md`` has the medians of three rounds.
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
from common.pages import table, write_tables
from scipy import sparse

import nmd_lab as nmd

RANK, ROUNDS = 20, 3


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


def main() -> None:
    """Print the table, or write it into docs/sampling.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the table into the page")
    given = parser.parse_args()
    head = [
        "data", "`complete(X)`, s", "`complete` with given settings, s",
        f"`sample(X, {RANK})`, 400 sweeps, s",
    ]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nmd.warnings.NMDWarning)
        text = table(head, [row("MovieLens small", ratings()), row("digits", digits())])
    if given.write:
        write_tables("sampling", "posterior_time", text)
    else:
        print(text)


if __name__ == "__main__":
    main()
