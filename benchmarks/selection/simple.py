"""Simple models to beat: means, and offsets with ridges that held-out entries chose."""

from __future__ import annotations

from itertools import product

import numpy as np

from .problems import Array, Problem

RIDGES = (0.1, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)
SWEEPS = 30

Entries = tuple[Array, Array, Array]


def errors(problem: Problem, seed: int = 0) -> dict[str, float]:
    """Return the test error of each simple model."""
    rows, columns, values = problem.observed()
    m, n = problem.X.shape
    mean = values.mean()
    of_rows, of_columns = _means(rows, values, m, mean), _means(columns, values, n, mean)
    offsets = tuned_offsets((rows, columns, values), (m, n), seed)
    return {
        "global mean": problem.rmse(np.full(problem.values.shape, mean)),
        "row means": problem.rmse(of_rows[problem.rows]),
        "column means": problem.rmse(of_columns[problem.columns]),
        "offsets": problem.rmse(_predict(offsets, problem.rows, problem.columns)),
    }


def tuned_offsets(
    entries: Entries, shape: tuple[int, int], seed: int
) -> tuple[float, Array, Array]:
    """Return mean, offsets of rows and of columns; a tenth of the entries chooses the ridges."""
    rows, columns, values = entries
    check = np.random.default_rng(seed).random(values.size) < 0.1
    if not 0 < check.sum() < values.size:
        return offsets(entries, shape, (10.0, 10.0))
    learn = tuple(part[~check] for part in entries)

    def error(ridges: tuple[float, float]) -> float:
        model = offsets(learn, shape, ridges)
        return float(np.mean((_predict(model, rows[check], columns[check]) - values[check]) ** 2))

    return offsets(entries, shape, min(product(RIDGES, RIDGES), key=error))


def offsets(
    entries: Entries, shape: tuple[int, int], ridges: tuple[float, float]
) -> tuple[float, Array, Array]:
    """Return mean, offsets of rows and of columns with these ridges, by sweeps over both."""
    rows, columns, values = entries
    (m, n), mean = shape, float(values.mean())
    b, c = np.zeros(m), np.zeros(n)
    counts = np.bincount(rows, minlength=m), np.bincount(columns, minlength=n)
    for _ in range(SWEEPS):
        b = np.bincount(rows, values - mean - c[columns], m) / (counts[0] + ridges[0])
        c = np.bincount(columns, values - mean - b[rows], n) / (counts[1] + ridges[1])
    return mean, b, c


def _predict(model: tuple[float, Array, Array], rows: Array, columns: Array) -> Array:
    mean, b, c = model
    return mean + b[rows] + c[columns]


def _means(lines: Array, values: Array, size: int, mean: float) -> Array:
    """Return the mean of each line, the global one where a line is empty."""
    counts = np.bincount(lines, minlength=size)
    sums = np.bincount(lines, values, size)
    return np.where(counts > 0, sums / np.maximum(counts, 1), mean)
