"""Completion of ratings beside cmfrec, lenskit and scikit-surprise, on the same splits.

Run with ``python benchmarks/ratings.py``; with NMD_LAB_DATA it takes MovieLens 100K and 1M, without
it the ratings that ship.  Libraries that are not installed are left out with a message; none of
them is a dependency: ``pip install cmfrec lenskit scikit-surprise``.

Each split holds out a random tenth of the ratings for the test, and each method chooses its
settings and its number of iterations by a tenth of the other ratings.  Then it learns from all
training ratings.  Time is processor time on one thread, which on a quiet machine is the time by the
clock, and includes everything from the sparse matrix to the fitted model.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is loaded

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from common.memory import Peak, in_own_process
from common.rating_libraries import METHODS, installed
from scipy import sparse

from nmd_lab import datasets

SHARE = 0.1
CLOSE = 0.001
"""How near to the best error counts as having reached it."""

Array = np.ndarray


@dataclass
class Ratings:
    """Some of the ratings, for learning or judging."""

    matrix: sparse.coo_array
    scale: tuple[float, float]

    def split(self, seed: int) -> tuple[Ratings, Ratings]:
        """Hold out a random tenth."""
        X = self.matrix
        hidden = np.random.default_rng(seed).random(X.data.size) < SHARE
        parts = [
            sparse.coo_array((X.data[keep], (X.row[keep], X.col[keep])), shape=X.shape)
            for keep in (~hidden, hidden)
        ]
        return Ratings(parts[0], self.scale), Ratings(parts[1], self.scale)

    def errors(self, predict: Any) -> tuple[float, float]:
        """Return the RMSE of predictions as they come, and clipped to the scale."""
        X = self.matrix
        guess = np.asarray(predict(X.row, X.col), dtype=float)
        clipped = np.clip(np.nan_to_num(guess, nan=X.data.mean()), *self.scale)
        return tuple(float(np.sqrt(np.mean((p - X.data) ** 2))) for p in (guess, clipped))  # type: ignore[return-value]


def load(name: str) -> Ratings:
    table = datasets.movielens_small() if name == "small" else datasets.movielens(name)
    rows, columns = (np.unique(table[line], return_inverse=True)[1] for line in ("user", "item"))
    values = table["rating"].to_numpy(dtype=float)
    matrix = sparse.coo_array((values, (rows.astype(np.int32), columns.astype(np.int32))))
    return Ratings(matrix, (values.min(), values.max()))


@dataclass
class Record:
    """What a method did on a split."""

    setting: dict[str, Any]
    iterations: int
    seconds: dict[int, float] = field(default_factory=dict)
    errors: dict[int, tuple[float, float]] = field(default_factory=dict)

    def time_to(self, target: float) -> float:
        """Return the seconds of the quickest run whose clipped error is at most the target."""
        reached = [self.seconds[n] for n, (_, clipped) in self.errors.items() if clipped <= target]
        return min(reached, default=np.nan)

    @property
    def final(self) -> tuple[float, float]:
        """The errors of the chosen fit, as its predictions come and clipped."""
        return self.errors[self.iterations]

    @property
    def per_iteration(self) -> float:
        counts = sorted(self.seconds)[-2:]
        return (self.seconds[counts[1]] - self.seconds[counts[0]]) / (counts[1] - counts[0])


MEASURES: dict[str, Callable[[Record, float], float]] = {
    "seconds of the fit": lambda record, _: record.seconds[record.iterations],
    "seconds to close": lambda record, target: record.time_to(target),
    "ms an iteration": lambda record, _: 1e3 * record.per_iteration,
}
"""What is measured of a record, given the error to reach."""


def choose(method: Any, train: Ratings) -> tuple[dict[str, Any], int]:
    """Choose setting and iterations by held-out training ratings, in small sets three times."""
    scores: dict[tuple[int, int], float] = {}
    for repeat in range(3 if train.matrix.data.size < 500_000 else 1):
        learn, check = train.split(seed=100 + repeat)
        for k, setting in enumerate(method.settings):
            for n in method.iterations:
                error = check.errors(method.fit(learn.matrix, n, **setting))[1]
                scores[k, n] = scores.get((k, n), 0.0) + error
    k, n = min(scores, key=scores.__getitem__)
    return method.settings[k], n


def run(method: Any, train: Ratings, test: Ratings) -> Record:
    record = Record(*choose(method, train))
    for n in method.iterations:
        began = time.process_time()
        predict = method.fit(train.matrix, n, **record.setting)
        record.seconds[n] = time.process_time() - began
        record.errors[n] = test.errors(predict)
    return record


def peak_memory(name: str, data: str, setting: dict[str, Any], iterations: int) -> float:
    """Return the MiB that a fit needs beyond its input, in a process of its own."""
    method, train = METHODS[name], load(data).split(0)[0]
    small = sparse.random_array((40, 30), density=0.5, rng=np.random.default_rng(0), format="coo")
    small.data += 1
    method.fit(small, 2, **setting)  # imports and compiles
    peak = Peak()
    method.fit(train.matrix, iterations, **setting)
    return peak.beyond_start


def compare(data: str, names: list[str], splits: int) -> None:
    ratings = load(data)
    m, n = ratings.matrix.shape
    print(f"\n## {data}: {m} x {n}, {ratings.matrix.data.size} ratings, {splits} splits\n")
    records: dict[str, list[Record]] = {name: [] for name in names}
    for seed in range(splits):
        train, test = ratings.split(seed)
        for name in names:
            records[name].append(run(METHODS[name], train, test))
    print_table(data, records)


def print_table(data: str, records: dict[str, list[Record]]) -> None:
    """Print one line a method; times and memory also as ratios to the first."""
    reference = "cmfrec" if "cmfrec" in records else next(iter(records))
    targets = [record.final[1] + CLOSE for record in records[reference]]
    numbers = {
        what.replace("close", f"{reference}'s clipped RMSE + {CLOSE}"): [
            np.mean([measure(record, target) for record, target in zip(runs, targets, strict=True)])
            for runs in records.values()
        ]
        for what, measure in MEASURES.items()
    }
    numbers["peak MiB"] = [
        in_own_process(peak_memory, name, data, runs[0].setting, runs[0].iterations)
        for name, runs in records.items()
    ]
    headers = ["", "chosen (first split)", "RMSE", "clipped", "in hindsight"]
    headers += [header for what in numbers for header in (what, "ratio")]
    print("| " + " | ".join(headers) + " |\n|" + "---|" * len(headers))
    for row, (name, runs) in enumerate(records.items()):
        chosen = ", ".join(f"{k}={v}" for k, v in runs[0].setting.items())
        plain, clipped = np.mean([record.final for record in runs], axis=0)
        hindsight = np.mean([min(error for _, error in r.errors.values()) for r in runs])
        cells = [name, f"{chosen}, {runs[0].iterations} iterations"]
        cells += [
            f"{error:.4f}" if error < 100 else "huge" for error in (plain, clipped, hindsight)
        ]
        for values in numbers.values():
            cells += [f"{values[row]:.3g}", f"{values[row] / values[0]:.2f}"]
        print("| " + " | ".join(cells).replace("nan", "-") + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sets = ["100k", "1m"] if os.environ.get("NMD_LAB_DATA") else ["small"]
    parser.add_argument("--data", nargs="+", default=sets, help="editions, or small: what ships")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--splits", type=int, default=3)
    options = parser.parse_args()
    names = [name for name in options.methods if installed(name)]
    for name in options.methods:
        if name not in names:
            print(f"{name} is left out: pip install {METHODS[name].package}")
    print(
        "Rank 10, one thread; RMSE on the test sets (mean over splits), settings chosen on training"
    )
    print("ratings only; 'in hindsight' is the lowest clipped RMSE over all numbers of iterations.")
    print("Ratios are to the first line.")
    for data in options.data:
        compare(data, names, options.splits)


if __name__ == "__main__":
    main()
