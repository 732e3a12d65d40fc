"""Write the tables and the figure of the README and the start page.

    python docs/start.py

takes some minutes.  The lines have their numbers from docs/paper.md, selection.md, ratings.md,
tables.md and pictures.md; digits are measured here, with five seeds.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.impute import KNNImputer

import nmd_lab as nmd

HERE = Path(__file__).parent
MARK = "<!-- tables: written by docs/start.py -->\n"
END = "<!-- end of the tables -->\n"
RULE = "| --- | --- | --- | --- |\n"
METHOD = "| the algorithm | measure | nmd_lab | compared with |\n" + RULE
PREDICTIONS = "| predictions | measure | nmd_lab | best alternative |\n" + RULE

SEEDS = range(5)
OURS = "nmd.sample"
Table = dict[str, dict[str, float]]
"""The numbers of a table of a page, by row and column."""


def cells_of(page: str, heading: str) -> dict[str, dict[str, str]]:
    """Return the texts of the first table under a heading, by row and column."""
    text = (HERE / page).read_text(encoding="utf-8").split(f"{heading}\n")[1]
    lines = re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)[0].splitlines()
    names, _, *rows = [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in lines]
    return {row[0]: dict(zip(names, row, strict=True)) for row in rows}


def numbers_of(page: str, heading: str) -> Table:
    """Return the first table under a heading; a cell counts with its first number."""
    return {
        name: {key: float(number[0]) for key, text in row.items()
               if (number := re.match(r"-?\d[\d.]*", text))}
        for name, row in cells_of(page, heading).items()
    }  # fmt: skip


def lines_of_the_paper() -> list[str]:
    """Return the lines of the algorithm, of docs/paper.md."""
    solved = numbers_of("paper.md", "## Convergence on synthetic data").values()
    printed, default = (
        int(sum(row[f"below 1e-06, {settings}"] for row in solved))
        for settings in ("the paper's settings", "by default")
    )
    digits = numbers_of("paper.md", "## ReLU solvers over time")
    of_paper = digits["ours, the paper's settings"]["MNIST, the paper's number"]
    ours, adam = (
        digits[name]["MNIST, ours"] for name in ("ours by default", "Adam, 0.01, from the SVD")
    )
    faces = {
        name: row["CBCL, 80%"]
        for name, row in cells_of("paper.md", "## Completion of faces").items()
    }
    rivals = ("LMaFit, clipped", "soft-impute", "RTRMC", "BMF", "WLRA")
    rival = min(rivals, key=faces.__getitem__)
    of_admm = faces["ADMM, the paper's number"].split(" ")[0]
    error, spread = faces["ours, alpha chosen"].split(" ", 1)
    digits = [
        f"**{each:.4f}**" if each <= min(ours, adam) else f"{each:.4f}" for each in (ours, adam)
    ]
    return [
        _line(
            f"[{len(solved)} models, 10 generated matrices each]"
            "(paper.md#convergence-on-synthetic-data)",
            "runs solved to an error of 1e-6",
            f"**{default} of {10 * len(solved)}** `decompose`",
            f"{printed} with the settings printed in the paper",
        ),
        _line(
            "[MNIST, ReLU, rank 32, 10 seconds](paper.md#relu-solvers-over-time)",
            "relative error",
            f"{digits[0]} `decompose`",
            f"{digits[1]} Adam; {of_paper:.4f} in the paper",
        ),
        _line(
            "[CBCL faces, 80 % missing, rank 5](paper.md#completion-of-faces)",
            "RMSE of the test entries",
            f"**{error.strip('*')}** {spread.strip('*')} `complete`",
            f"{faces[rival]} {rival}; {of_admm} in the paper",
        ),
    ]


def line_of_ranks() -> str:
    """Return the line of the chosen rank, of docs/selection.md."""
    text = (HERE / "selection.md").read_text(encoding="utf-8")
    within, exact = re.search(r"Over all cells these are ([\d.]+ %) and ([\d.]+ %)", text).groups()
    return _line(
        "[Generated matrices of known rank](selection.md#the-true-rank)",
        "chosen rank at most one off; exactly right",
        f"{within}; {exact} `complete`",
        "–",
    )


def line_of_tables(heading: str, measure: str, rival: str, *, large: bool = False) -> str:
    """Return the line of a table of docs/tables.md: means over its rows, and their difference.

    Rows without the rival are left out.
    """
    rows = [row for row in numbers_of("tables.md", heading).values() if rival in row]
    ours, other = fmean(row[OURS] for row in rows), fmean(row[rival] for row in rows)
    gaps = [row[OURS] - row[rival] for row in rows]
    error = stdev(gaps) / len(gaps) ** 0.5
    better = (ours > other) == large
    pair = [f"{number:.3f}" for number in (ours, other)]
    pair[0 if better else 1] = f"**{pair[0 if better else 1]}**"
    label = {"mice, cart": "mice of R, cart"}.get(rival, rival)
    return _line(
        f"[{len(gaps)} real tables](tables.md)",
        f"{measure}; mean difference {fmean(gaps):+.3f} ± {error:.3f}",
        f"{pair[0]} `impute`",
        f"{pair[1]} {label}",
    )


def line_of_coverage(rival: str) -> str:
    """Return the line of the intervals of docs/tables.md: their coverage and their width."""
    coverage, width = (
        numbers_of("tables.md", f"### {name} of 90 % intervals") for name in ("Coverage", "Width")
    )
    texts = []
    for name in (OURS, rival):
        shares = [100 * row[name] for row in coverage.values()]
        mean = fmean(row[name] for row in width.values())
        texts.append((f"{min(shares):.1f} to {max(shares):.1f} %", f"{mean:.2f}"))
    (ours, narrow), (other, wide) = texts
    return _line(
        f"[{len(coverage)} real tables](tables.md#intervals-and-probabilities)",
        "coverage of 90 % intervals, lowest and highest table; mean width (column SD = 1)",
        f"{ours}; **{narrow}** `impute`",
        f"{other}; {wide} {rival}",
    )


def line_of_ratings() -> str:
    """Return the line of the split u1 of MovieLens 100K, of docs/ratings.md."""
    rows = cells_of("ratings.md", "## MovieLens 100K, u1")
    ours, other = rows["nmd.sample"], rows["myFM"]
    return _line(
        "[MovieLens 100K, split u1](ratings.md)",
        "RMSE of the test ratings; time as a multiple of one tuned fit",
        f"**{ours['RMSE']}**; {ours['one fit']} `sample`",
        f"{other['RMSE']}; {other['one fit']} myFM",
    )


def line_of_photographs(percent: int) -> str:
    """Return the line of a table of docs/pictures.md: geometric means over its photographs."""
    rows = numbers_of("pictures.md", f"### {percent} % missing")
    errors = rows.pop("geometric mean")
    ours = errors.pop("nmd.inpaint")
    rival = min(errors, key=errors.__getitem__)
    pair = [f"{number:.4f}" for number in (ours, errors[rival])]
    best = int(ours > errors[rival])
    pair[best] = f"**{pair[best]}**"
    return _line(
        f"[{len(rows)} photographs, {percent} % missing](pictures.md)",
        "RMSE of the missing pixels (range 0 to 1), geometric mean",
        f"{pair[0]} `inpaint`",
        f"{pair[1]} {rival}",
    )


def lines_of_the_method() -> list[str]:
    """Return the lines of the first table: the algorithm."""
    return [*lines_of_the_paper(), line_of_ranks()]


def lines_of_predictions() -> list[str]:
    """Return the lines of the second table whose numbers other pages have."""
    return [
        line_of_ratings(),
        line_of_tables(
            "### RMSE of numeric columns",
            "RMSE of held-out numeric cells (column SD = 1)", "trees",
        ),
        line_of_tables(
            "### Binary and categorical columns: accuracy",
            "accuracy of held-out categorical cells", "trees", large=True,
        ),
        line_of_coverage("IterativeImputer"),
        line_of_photographs(60),
    ]  # fmt: skip


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


def rmse(predicted: Any, X: np.ndarray, hidden: np.ndarray) -> float:
    """Return the root mean squared error at hidden entries."""
    return float(np.sqrt(np.mean(np.square(np.asarray(predicted) - X)[hidden])))


def chosen(fill: Callable[..., Any], values: tuple[int, ...], X: np.ndarray, seed: int) -> Any:
    """Return X filled with the value that is best at a tenth of the known entries."""
    known = np.argwhere(~np.isnan(X))
    some = np.random.default_rng(seed).choice(known, len(known) // 10, replace=False)
    hidden = np.zeros(X.shape, bool)
    hidden[tuple(some.T)] = True
    trials = {v: rmse(fill(np.where(hidden, np.nan, X), v, seed), X, hidden) for v in values}
    return fill(X, min(trials, key=trials.__getitem__), seed)


def by_posterior(X: np.ndarray, rank: int, seed: int) -> Any:
    """Fill pixels by the posterior mean of a MinMax model."""
    return nmd.sample(X, rank, nmd.MinMax(0, 1), random_state=seed).impute(X)


def by_neighbours(X: np.ndarray, count: int, _: int) -> Any:
    """Fill pixels by the nearest images."""
    return KNNImputer(n_neighbors=count, weights="distance").fit_transform(X)


def digits(seed: int) -> tuple[float, float]:
    """Return the errors of a posterior and of nearest neighbours, 30 % of the pixels held out."""
    X = nmd.datasets.digits().values
    hidden = np.random.default_rng(seed).random(X.shape) < 0.3
    seen = np.where(hidden, np.nan, X)
    ours = chosen(by_posterior, (20, 30), seen, seed)
    return rmse(ours, X, hidden), rmse(chosen(by_neighbours, (5, 10, 20), seen, seed), X, hidden)


MEASURED = (
    (digits, "Digits, 30 % of the pixels held out", "`sample`, MinMax", "nearest neighbours"),
)


def measured(scores: Callable[[int], tuple[float, float]], *words: str) -> str:
    """Return the line of what is measured here, with the standard deviation over the seeds."""
    data, ours, other = words
    errors = np.array([scores(seed) for seed in SEEDS])
    means, spreads = errors.mean(axis=0), errors.std(axis=0, ddof=1)
    pair = [f"{m:.3f} ± {s:.3f}" for m, s in zip(means, spreads, strict=True)]
    best = int(np.argmin(means))
    pair[best] = f"**{means[best]:.3f}** ± {spreads[best]:.3f}"
    return _line(
        data,
        "RMSE of the held-out pixels (range 0 to 1)",
        f"{pair[0]} {ours}",
        f"{pair[1]} {other}",
    )


def figure() -> Any:
    """Return a dot plot: RMSE of numeric cells over the lowest RMSE of the other imputers."""
    rows = numbers_of("tables.md", "### RMSE of numeric columns")
    ratio = {
        name: row[OURS] / min(error for method, error in row.items() if method != OURS)
        for name, row in rows.items()
    }
    names = sorted(ratio, key=ratio.__getitem__, reverse=True)
    values = [ratio[name] for name in names]
    drawn, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    axes.axvline(1, color="0.6", linewidth=1)
    colors = ["#0072b2" if value <= 1 else "#d55e00" for value in values]
    axes.hlines(names, 1, values, colors=colors, linewidth=1.5)
    axes.scatter(values, names, c=colors, zorder=3)
    axes.set_xlabel("RMSE of nmd.impute / lowest RMSE of the other imputers")
    axes.set_title(
        "Held-out numeric cells of sixteen real tables, five seeds", loc="left", fontsize=11
    )
    axes.grid(axis="x", alpha=0.3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return drawn


def for_readme(table: str) -> str:
    """Return lines of the table with links that lead from the README."""
    return re.sub(r"\]\((\w+)\.md", r"](docs/\1.md", table)


def text_of(predictions: list[str]) -> str:
    """Return both tables."""
    return "".join([METHOD, *lines_of_the_method(), "\n", PREDICTIONS, *predictions])


def main() -> None:
    """Write the tables and the figure."""
    warnings.simplefilter("ignore")
    figure().savefig(HERE / "figures" / "start.png", dpi=120)
    table = text_of([*lines_of_predictions(), *(measured(*each) for each in MEASURED)])
    for page, text in ((HERE / "index.md", table), (HERE.parent / "README.md", for_readme(table))):
        before, _, after = page.read_text(encoding="utf-8").partition(MARK)
        _, _, after = after.partition(END)
        page.write_text(f"{before}{MARK}{text}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
