"""Table 3: multiples of the data, and rows in another order."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import nmd_lab as nmd
from benchmarks.paper.report import prose, table

from .fits import problem_of
from .problems import Problem, available
from .store import Answer, Store

TITLE = "Multiples of the data, and rows in another order"
SETS = ("digits, 60 %", "digits, fixed block", "low rank, SNR 3, 50 % missing")
SETS += ("MovieLens 100K, u1", "china, 60 %")
FACTORS = (1000.0, 1e-3)
SEEDS = 4


def run(store: Store, quick: bool = False, names: tuple[str, ...] = ()) -> list[Answer]:
    """Return one record a set."""
    there = [name for name in SETS if name in available() or name.startswith("low rank")]
    names = names or tuple(there[:3] if quick else there)
    return [{"name": name, **store.get(compare, name=name, seeds=SEEDS)} for name in names]


def compare(*, name: str, seeds: int) -> Answer:
    """Return ranks and differences for multiples, and errors for seeds and orders."""
    problem = problem_of(name)
    original, fit = _prediction(problem.X, problem, 0)
    answer: Answer = {"rank": [fit.parameters["rank"]], "difference": []}
    for factor in FACTORS:
        prediction, fit = _prediction(problem.X * factor, problem, 0)
        answer["rank"].append(fit.parameters["rank"])
        off = np.abs(prediction / factor - original).max()
        answer["difference"].append(float(off / problem.values.std()))
    answer["rmse"] = [problem.rmse(original)]
    answer["shuffled"] = []
    for seed in range(1, seeds):
        answer["rmse"].append(problem.rmse(_prediction(problem.X, problem, seed)[0]))
        order = np.random.default_rng(seed).permutation(problem.X.shape[0])
        place = np.argsort(order)
        moved = Problem(problem.X[order], place[problem.rows], problem.columns, problem.values)
        answer["shuffled"].append(problem.rmse(_prediction(moved.X, moved, 0)[0]))
    return answer


def _prediction(X: object, problem: Problem, seed: int) -> tuple[np.ndarray, nmd.Decomposition]:
    fit = nmd.complete(X, random_state=seed, compute=nmd.Compute(threads=1))
    return fit.predict(problem.rows, problem.columns), fit


def section(records: list[Answer], figures: Path) -> str:
    """Return the section of the page."""
    text = prose(
        """
        Ranks chosen for X, 1000 X and X / 1000 with the same seed, and the largest difference of
        their predictions, divided by the factor, as a fraction of the standard deviation of the
        test entries. Then test errors: their range over {seeds} seeds, and that over {orders}
        orders of the rows.
        """,
        seeds=SEEDS,
        orders=SEEDS - 1,
    )
    header = ("data", "ranks", "difference × 1000", "difference / 1000", "error, seeds")
    rows = [
        (
            record["name"],
            ", ".join(map(str, record["rank"])),
            *(f"{difference:.1e}" for difference in record["difference"]),
            *(f"{min(v):.4f}–{max(v):.4f}" for v in (record["rmse"], record["shuffled"])),
        )
        for record in records
    ]
    return "\n\n".join([text, table((*header, "error, orders"), rows)])
