"""Multiple imputation of generated mixed tables: do pooled 95 % intervals hold the coefficients?

Protocol, fixed before the first run:

- A table is generated: 400 rows of three independent factors. Each column has random loadings
  (standard normal) and noise of variance 1, and is then divided by its standard deviation. Numeric
  columns are age, marker, dose and outcome, in different units. Smoker is binary, pain is ordinal
  with four values, and clinic is categorical with three categories: the largest of three such
  scores.
- Age is always observed. A cell of another column is missing with a probability that depends on age
  alone, logistic with slope 1.5 a standard deviation, on average 25 %.
- Outcome is regressed on marker, smoker (0, 1) and pain (0 to 3) by least squares. The truth is the
  least-squares coefficient of infinitely many rows, in closed form from bivariate normal
  probabilities. As age is no regressor, complete cases may be biased.
- Intervals have the level 95 %: before hiding (the best possible), of complete cases, of the table
  filled once by point predictions, and pooled by Rubin's rules over 20 completed copies: of
  `nmd.sample(table).impute(table, n=20)`, and of R's mice with predictive mean matching for numeric
  columns and its own choice for the others, all with defaults.
"""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import nmd_lab as nmd
from benchmarks.common.journals import Journals
from benchmarks.paper.report import prose, table

from .data import codes
from .pooling import Estimate, least_squares, pool
from .sizes import Size
from .with_r import completed

Array = np.ndarray

TITLE = "Regressions on generated mixed tables"

ROWS, COPIES = 400, 20
UNITS = {"age": (50.0, 12.0), "marker": (3.0, 0.8), "dose": (20.0, 5.0), "outcome": (100.0, 15.0)}
"""Centre and standard deviation of the numbers."""
SMOKER, PAIN = np.array([0.3]), np.array([-0.8, 0.0, 0.9])
"""Cut points of standardised T."""
COLUMNS = [*UNITS, "smoker", "pain"]
REGRESSORS = ["marker", "smoker", "pain"]
SLOPE, INTERCEPT = 1.5, -1.552
"""Of the logit of a missing cell in the standardised age; on average 25 %."""
OURS, MICE = "pooled, nmd.sample", "pooled, mice"
METHODS = ["before hiding", "complete cases", "filled once", OURS, MICE]


def generated(rng: np.random.Generator, rows: int) -> tuple[pd.DataFrame, Array]:
    """Return a complete table, and the true coefficients of the regression."""
    loadings = rng.normal(size=(len(COLUMNS) + 3, 3))
    T = rng.normal(size=(rows, 3)) @ loadings.T + rng.normal(size=(rows, len(loadings)))
    covariance = loadings @ loadings.T + np.eye(len(loadings))
    sizes = np.sqrt(np.diag(covariance))
    T /= sizes
    frame = pd.DataFrame({name: c + s * T[:, k] for k, (name, (c, s)) in enumerate(UNITS.items())})
    frame["smoker"] = pd.array(T[:, 4] > SMOKER[0], dtype="boolean")
    words = ["none", "some", "strong", "worst"]
    pain = np.searchsorted(PAIN, T[:, 5])
    frame["pain"] = pd.Categorical.from_codes(pain, words, ordered=True)
    frame["clinic"] = pd.Categorical.from_codes(T[:, 6:].argmax(axis=1), ["A", "B", "C"])
    return frame, coefficients((covariance / np.outer(sizes, sizes))[: len(COLUMNS)])


def coefficients(correlation: Array) -> Array:
    """Return the regression of infinitely many rows, given the correlations of T."""
    marker, outcome = COLUMNS.index("marker"), COLUMNS.index("outcome")
    parts = [(marker, None), (4, SMOKER), (5, PAIN), (outcome, None)]
    C = np.array([[_covariance(correlation[a, b], of_a, of_b, a == b) for b, of_b in parts]
                  for a, of_a in parts])  # fmt: skip
    scale = np.array([UNITS["marker"][1], 1, 1, UNITS["outcome"][1]])
    C *= np.outer(scale, scale)
    return np.linalg.solve(C[:3, :3], C[:3, 3])


def _covariance(r: float, first: Array | None, second: Array | None, same: bool) -> float:
    """Return the covariance of two columns of correlation r, of which some are cut into levels."""
    if first is None and second is None:
        return 1.0 if same else r
    if first is None or second is None:
        cuts = second if first is None else first
        return r * stats.norm.pdf(cuts).sum()
    tails = [(a, b) for a in first for b in second]
    return sum(_both_above(a, b, r, same) - stats.norm.sf(a) * stats.norm.sf(b) for a, b in tails)


def _both_above(a: float, b: float, r: float, same: bool) -> float:
    """Return the probability that both of two normal numbers are above a and b."""
    if same:
        return float(stats.norm.sf(max(a, b)))
    return float(stats.multivariate_normal.cdf([-a, -b], cov=[[1, r], [r, 1]]))


def with_holes(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return the table with missing cells."""
    centre, size = UNITS["age"]
    logit = INTERCEPT + SLOPE * (frame["age"].to_numpy() - centre) / size
    missing = rng.random(frame.shape) < 1 / (1 + np.exp(-logit[:, None]))
    missing[:, frame.columns.get_loc("age")] = False
    return frame.mask(missing)


def regression(frame: pd.DataFrame) -> Estimate:
    """Return the regression on the rows of a table without holes."""
    return regression_of_codes(frame, np.column_stack([codes(frame[name]) for name in frame]))


def regression_of_codes(frame: pd.DataFrame, values: Array) -> Estimate:
    """Return the regression on rows of numbers and positions, in the columns of a table."""
    at = [frame.columns.get_loc(name) for name in (*REGRESSORS, "outcome")]
    return least_squares(values[:, at[:-1]], values[:, at[-1]])


def tables(seed: int, rows: int) -> tuple[pd.DataFrame, pd.DataFrame, Array]:
    """Return a table before hiding and after it, and the truth."""
    rng = np.random.default_rng([6, seed])
    frame, truth = generated(rng, rows)
    return frame, with_holes(frame, rng), truth


def work(*, seed: int, rows: int, copies: int, sweeps: dict[str, Any]) -> dict[str, Any]:
    """Return the truth of a table and the intervals of each method but mice."""
    frame, holes, truth = tables(seed, rows)
    posterior = nmd.sample(holes, random_state=seed, progress=False, **sweeps)
    copies = posterior.impute(holes, n=copies, random_state=seed)
    found = {
        "before hiding": regression(frame),
        "complete cases": regression(holes.dropna(subset=[*REGRESSORS, "outcome"])),
        "filled once": regression(posterior.impute(holes)),
        OURS: pool([regression(copy) for copy in copies]),
    }
    return {"truth": truth.tolist()} | {name: each.record() for name, each in found.items()}


def work_of_mice(*, seed: int, rows: int, copies: int, sweeps: dict[str, Any]) -> dict[str, Any]:
    """Return the intervals of mice."""
    _, holes, _ = tables(seed, rows)
    each = completed(holes, seed, "default", copies)
    return {MICE: pool([regression_of_codes(holes, copy) for copy in each]).record()}


def section(journals: Journals, size: Size) -> str:
    """Do what is missing, and return the table."""
    cells = [
        {
            "seed": seed,
            "rows": size.rows or ROWS,
            "copies": size.copies or COPIES,
            "sweeps": size.sweeps,
        }
        for seed in range(size.regressions)
    ]
    records = journals.collect("regression", work, cells)
    if shutil.which("Rscript") or journals.is_stored:
        of_mice = journals.collect("regression, mice", work_of_mice, cells, peer=completed)
        records = [a | b for a, b in zip(records, of_mice, strict=bool(of_mice))]
    methods = [name for name in METHODS if all(name in record for record in records)]
    truth = np.array([r["truth"] for r in records])
    ends = {name: np.array([[r[name][k] for k in ("value", "low", "high")] for r in records])
            for name in methods}  # fmt: skip
    width = ends["before hiding"][:, 2] - ends["before hiding"][:, 1]
    body = []
    for name, each in ends.items():
        value, low, high = each.transpose(1, 0, 2)
        held = (low <= truth) & (truth <= high)
        bias = np.sign(truth) * (value - truth) / (width / 2 / 1.96)
        words = [f"{100 * share:.1f}" for share in (held.mean(), *held.mean(axis=0))]
        body.append([name, *words, f"{bias.mean():+.2f}", f"{np.mean((high - low) / width):.2f}"])
    head = ["intervals", "cover the truth, %", *(f"{name}, %" for name in REGRESSORS)]
    head += ["bias, in standard errors before hiding", "width"]
    said = prose((__doc__ or "").split("\n\n", 1)[1])
    note = (
        f"{len(records)} tables. The coverage of all coefficients has a standard error of at most "
        f"{100 * np.sqrt(0.05 * 0.95 / max(len(records), 1)):.1f} points. A negative bias is "
        "towards zero. Widths are multiples of those before hiding."
    )
    return f"{said}\n\n{table(head, body)}\n\n{prose(note)}"
