"""Regression after imputation where the truth is not low rank: columns that follow one another.

Protocol, fixed before the first run:

- A table is generated: 300 rows of ten standard normal columns, an autoregression of order 1. Each
  column has the correlation .7 with its predecessor.
- 25 % of the cells are missing at random.
- Two coefficients, both .70 in truth: that of a column on the one before it alone (the mean of nine
  such regressions), and that of column 9 in the regression of column 10 on all others.
- Least squares before hiding, of complete cases, and pooled by Rubin's rules over 40 completed
  copies: of `nmd.sample(table).impute(table, n=40)`, and of chained equations, which are 40 runs of
  `IterativeImputer(sample_posterior=True)` with its defaults.
- The bias is the mean of estimate - .70 over the tables, less that before hiding, which has only
  the sampling variation of the rows.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

import nmd_lab as nmd
from benchmarks.common.journals import Journals
from benchmarks.paper.report import prose, table

from .pooling import Estimate, least_squares, pool
from .sizes import Size

Array = np.ndarray

TITLE = "Regressions where the truth is not low rank"

ROWS, COLUMNS, TRUTH, MISSING, COPIES = 300, 10, 0.7, 0.25, 40
METHODS = ["before hiding", "complete cases", "chained equations", "pooled"]


def generated(rng: np.random.Generator, rows: int = ROWS) -> Array:
    """Return a complete table."""
    X = rng.normal(size=(rows, COLUMNS))
    for j in range(1, COLUMNS):
        X[:, j] = TRUTH * X[:, j - 1] + np.sqrt(1 - TRUTH**2) * X[:, j]
    return X


def regression(X: Array, y: int, others: list[int]) -> Estimate:
    """Return the regression of a column on others, of the rows where none of them is missing."""
    rows = ~np.isnan(X[:, [y, *others]]).any(axis=1)
    return least_squares(X[np.ix_(rows, others)], X[rows, y])


def coefficients(copies: list[Array]) -> dict[str, Any]:
    """Return both coefficients, pooled over the copies of a table."""

    def pooled(y: int, others: list[int]) -> Estimate:
        each = [regression(X, y, others) for X in copies]
        return pool(each) if len(each) > 1 else each[0]

    last = COLUMNS - 1
    pairs = [pooled(j, [j - 1]).record() for j in range(1, COLUMNS)]
    return {
        "one": {key: [pair[key][0] for pair in pairs] for key in pairs[0]},
        "all": {key: [ends[-1]] for key, ends in pooled(last, list(range(last))).record().items()},
    }


def chained(X: Array, seed: int, n: int) -> list[Array]:
    """Return copies that chained equations complete."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # draws do not settle
        return [
            IterativeImputer(sample_posterior=True, random_state=1000 * seed + k).fit_transform(X)
            for k in range(n)
        ]


def sampled(X: Array, seed: int, n: int, **sweeps: Any) -> list[Array]:
    """Return copies that the posterior completes."""
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(1, COLUMNS + 1)])
    posterior = nmd.sample(frame, random_state=seed, progress=False, **sweeps)
    return [copy.to_numpy() for copy in posterior.impute(frame, n=n, random_state=seed)]


def work(*, seed: int, copies: int, sweeps: dict[str, Any]) -> dict[str, Any]:
    """Return both coefficients of a table by each method."""
    rng = np.random.default_rng([7, seed])
    X = generated(rng)
    holes = np.where(rng.random(X.shape) < MISSING, np.nan, X)
    return {
        "before hiding": coefficients([X]),
        "complete cases": coefficients([holes]),
        "chained equations": coefficients(chained(holes, seed, copies)),
        "pooled": coefficients(sampled(holes, seed, copies, **sweeps)),
    }


def section(journals: Journals, size: Size) -> str:
    """Do what is missing, and return the table."""
    copies = size.copies or COPIES
    cells = [
        {"seed": seed, "copies": copies, "sweeps": size.sweeps}
        for seed in range(size.autoregressions)
    ]
    records = journals.collect("autoregressive", work, cells)
    body = [
        [name, *(word for which in ("one", "all") for word in row(records, name, which))]
        for name in METHODS
    ]
    head = ["completed copies", "on the one before: bias", "intervals cover, %"]
    head += ["on all others: bias", "intervals cover, %"]
    said = prose((__doc__ or "").split("\n\n", 1)[1])
    note = f"{len(records)} tables; biases with the standard error of the mean over the tables."
    return f"{said}\n\n{table(head, body)}\n\n{note}"


def row(records: list[Any], name: str, which: str) -> list[str]:
    """Return the bias of a coefficient with its standard error, and the coverage."""
    value, low, high = (
        np.array([r[name][which][key] for r in records]) for key in ("value", "low", "high")
    )
    before = np.array([r["before hiding"][which]["value"] for r in records])
    bias = np.mean((before - TRUTH) if name == "before hiding" else (value - before), axis=1)
    spread = f" ± {bias.std(ddof=1) / np.sqrt(bias.size):.4f}" if bias.size > 1 else ""
    held = np.mean((low <= TRUTH) & (high >= TRUTH))
    return [f"{bias.mean():+.4f}{spread}", f"{100 * held:.1f}"]
