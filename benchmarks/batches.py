"""partial_fit over 20 batches of MovieLens 100K, against one fit to everything.

    NMD_LAB_DATA=... python benchmarks/batches.py --write

A tenth of the ratings is held out at random, and the users arrive in random order.  The settings
are given, or chosen on the training data alone by each method itself.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from common.pages import table, write_tables
from scipy import sparse

import nmd_lab as nmd

BATCHES = 20
SEEDS = 3
SETTINGS: dict[str, dict[str, Any]] = {
    "rank 10, alpha 9, offsets of both": {"n_components": 10, "alpha": 9.0, "offsets": "both"},
    "everything chosen": {},
}
MEMORIES = (10_000, 300)


def split(seed: int) -> tuple[sparse.csr_array, np.ndarray, np.ndarray, np.ndarray]:
    """Return training ratings, and rows, columns and ratings of the test."""
    frame = nmd.datasets.movielens_100k()
    rng = np.random.default_rng(seed)
    (_, rows), (_, columns) = (
        np.unique(frame[name], return_inverse=True) for name in ("user", "item")
    )
    rows = rng.permutation(rows.max() + 1)[rows]
    ratings = frame["rating"].to_numpy(float)
    test = rng.random(ratings.size) < 0.1
    shape = rows.max() + 1, columns.max() + 1
    X = sparse.csr_array((ratings[~test], (rows[~test], columns[~test])), shape=shape)
    return X, rows[test], columns[test], ratings[test]


def rmse(model: nmd.MatrixCompletion, rows: Any, columns: Any, ratings: Any) -> float:
    """Return the RMSE of clipped predictions."""
    errors = np.clip(model.predict(rows, columns), 1, 5) - ratings
    return float(np.sqrt(np.mean(errors**2)))


def rows_of_table() -> Iterator[list[str]]:
    """Return the RMSE and the seconds of each way, for all settings and seeds."""
    for name, settings in SETTINGS.items():
        for seed in range(SEEDS):
            X, *test = split(seed)
            began = time.perf_counter()
            model = nmd.MatrixCompletion(random_state=0, **settings).fit(X)
            cells = [f"{rmse(model, *test):.4f}", f"{time.perf_counter() - began:.1f}"]
            for memory in MEMORIES:
                began = time.perf_counter()
                model = nmd.MatrixCompletion(random_state=0, memory=memory, **settings)
                for rows in np.array_split(np.arange(X.shape[0]), BATCHES):
                    model.partial_fit(X[rows])
                cells += [f"{rmse(model, *test):.4f}", f"{time.perf_counter() - began:.1f}"]
            print(name, seed, *cells, flush=True)
            yield [name, str(seed), *cells]


def main() -> None:
    """Print the table, or write it into docs/scale.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the table into docs/scale.md")
    given = parser.parse_args()
    warnings.simplefilter("ignore", nmd.NMDWarning)
    ways = ["fit to everything", *(f"batches, memory {memory}" for memory in MEMORIES)]
    head = ["settings", "seed", *(word for way in ways for word in (way, "s"))]
    text = table(head, rows_of_table())
    if given.write:
        write_tables("scale", "batches", text)
    else:
        print(text)


if __name__ == "__main__":
    main()
