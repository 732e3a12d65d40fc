"""Write the table and the figure of the README and the start page.

    python docs/start.py

takes some minutes.  The lines of real tables, ratings and photographs have their numbers from
docs/tables.md, docs/ratings.md and docs/pictures.md; digits are measured here, with five seeds.
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
MARK = "<!-- table: written by docs/start.py -->\n"
END = "<!-- end of the table -->\n"
HEAD = "| data | measure | nmd_lab | best alternative |\n| --- | --- | --- | --- |\n"

SEEDS = range(5)
OURS = "nmd.sample"
Table = dict[str, dict[str, float]]
"""The numbers of a table of a page, by row and column."""


def numbers_of(page: str, heading: str) -> Table:
    """Return the first table under a heading; a cell counts with its first number."""
    text = (HERE / page).read_text(encoding="utf-8").split(f"{heading}\n")[1]
    lines = re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)[0].splitlines()
    cells = [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in lines]
    names, _, *rows = cells
    found = [
        {name: re.match(r"-?[\d.]+", x) for name, x in zip(names, row, strict=True)} for row in rows
    ]
    return {
        row[0]: {name: float(number[0]) for name, number in each.items() if number}
        for row, each in zip(rows, found, strict=True)
    }


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
        f"[{len(gaps)} real tables, a fifth of the cells hidden](tables.md)",
        f"{measure}; difference {fmean(gaps):+.3f} ± {error:.3f}",
        f"{pair[0]} `impute`",
        f"{pair[1]} {label}",
    )


def line_of_coverage(rival: str) -> str:
    """Return the line of the intervals of docs/tables.md."""
    rows = numbers_of("tables.md", "### Coverage of 90 % intervals").values()
    shares = [[100 * row[name] for row in rows if name in row] for name in (OURS, rival)]
    ours, other = (f"{min(each):.1f} % to {max(each):.1f} %" for each in shares)
    return _line(
        f"[{len(rows)} real tables](tables.md#intervals-and-probabilities)",
        "hidden numbers inside 90 % intervals, lowest and highest table",
        f"**{ours}** `impute`",
        f"{other} quantile forest",
    )


def line_of_ratings() -> str:
    """Return the line of the split u1 of MovieLens 100K, of docs/ratings.md."""
    text = (HERE / "ratings.md").read_text(encoding="utf-8").split("## MovieLens 100K, u1\n")[1]
    ours, other = (
        re.search(rf"\| {name} \| ([\d.]+)( ± [\d.]+)", text).groups()
        for name in ("nmd.sample, Ordinal", "myFM")
    )
    return _line(
        "[MovieLens 100K, split u1, ratings alone](ratings.md)",
        "RMSE of the test ratings",
        f"**{ours[0]}**{ours[1]} `sample` with levels",
        f"{other[0]}{other[1]} myFM",
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
        f"[{len(rows)} photographs, {percent} % of the pixels missing](pictures.md)",
        "RMSE of the missing pixels, of 0 to 1, geometric mean",
        f"{pair[0]} `inpaint`",
        f"{pair[1]} {rival}",
    )


def lines_from_pages() -> list[str]:
    """Return the lines whose numbers other pages have."""
    return [
        line_of_tables("### Error of numbers", "error of hidden numbers, in their SD", "trees"),
        line_of_tables(
            "### Error of ordered levels", "error of hidden levels, in their SD", "trees"
        ),
        line_of_tables(
            "### Yes or no and classes: fraction of right answers",
            "hidden classes right", "trees", large=True,
        ),
        line_of_tables(
            "### Energy score of completed copies", "energy score of copies", "mice, cart"
        ),
        line_of_coverage("trees"),
        line_of_ratings(),
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
    """Fill pixels by the nearest pictures."""
    return KNNImputer(n_neighbors=count, weights="distance").fit_transform(X)


def digits(seed: int) -> tuple[float, float]:
    """Return the errors of a posterior and of nearest neighbours, 30 % of the pixels hidden."""
    X = nmd.datasets.digits().values
    hidden = np.random.default_rng(seed).random(X.shape) < 0.3
    seen = np.where(hidden, np.nan, X)
    ours = chosen(by_posterior, (20, 30), seen, seed)
    return rmse(ours, X, hidden), rmse(chosen(by_neighbours, (5, 10, 20), seen, seed), X, hidden)


MEASURED = (
    (digits, "Digits, 30 % of the pixels hidden", "`sample`, MinMax", "nearest neighbours"),
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
        data, "RMSE of the hidden pixels, of 0 to 1", f"{pair[0]} {ours}", f"{pair[1]} {other}"
    )


def figure() -> Any:
    """Return a dot plot: error of hidden numbers over that of the best other imputer."""
    rows = numbers_of("tables.md", "### Error of numbers")
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
    axes.set_xlabel("error of nmd.sample / error of the best other imputer")
    axes.set_title("Hidden numbers of sixteen real tables, five seeds", loc="left", fontsize=11)
    axes.grid(axis="x", alpha=0.3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return drawn


def for_readme(table: str) -> str:
    """Return lines of the table with links that lead from the README."""
    return re.sub(r"\((tables|ratings|pictures)\.md", r"(docs/\1.md", table)


def main() -> None:
    """Write the table and the figure."""
    warnings.simplefilter("ignore")
    figure().savefig(HERE / "figures" / "start.png", dpi=120)
    table = "".join([*lines_from_pages(), *(measured(*each) for each in MEASURED)])
    for page, text in ((HERE / "index.md", table), (HERE.parent / "README.md", for_readme(table))):
        before, _, after = page.read_text(encoding="utf-8").partition(MARK)
        _, _, after = after.partition(END)
        page.write_text(f"{before}{MARK}{HEAD}{text}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
