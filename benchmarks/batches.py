"""partial_fit over 20 batches of MovieLens 100K, against one fit to everything.

    NMD_LAB_DATA=... python benchmarks/batches.py

A tenth of the ratings is held out at random, and the users arrive in random order.  The settings
are given, or chosen on the training data alone by each method itself.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
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


def main() -> None:
    """Print a table."""
    warnings.simplefilter("ignore", nmd.NMDWarning)
    print(
        "| settings | seed | fit to everything | s | batches, memory 10000 | s | memory 300 | s |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
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
            print(f"| {name} | {seed} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
