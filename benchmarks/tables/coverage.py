"""Intervals and probabilities of `nmd.sample(frame)`: do they hold what they promise?

The held-out cells are those of the comparison above, all seeds together. A column has about as many
as the table has rows. For each numeric column with at least a hundred held-out cells, the table has
the fraction of them in their 90 % intervals. For ordinal, binary and categorical columns it
compares the probability of the most probable value (ten bins) with the accuracy. The expected
calibration error is the mean distance of the two, weighted by the cells of the bins. The last
column is the same error by chance, for right probabilities.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.journals import Journals
from benchmarks.paper.report import prose, pyplot, save, table
from nmd_lab.studies.cell import Record

from .compared import OURS, records_of
from .scores import LEVEL, calibration_error, error_by_luck
from .sizes import Size

TITLE = "Intervals and probabilities"

FEWEST, BOUNDS = 100, (0.83, 0.96)
"""Hidden cells of a column that is shown, and what the fraction of a column should lie within."""


def section(journals: Journals, size: Size, figures: Path) -> str:
    """Do what is missing, and return the table and the diagram."""
    records = records_of(journals, size, OURS)
    by_table = {name: [r for r in records if r["table"] == name] for name in size.tables}
    rows, outside = [], []
    for name, own in by_table.items():
        if own:
            shares = coverage(own, FEWEST if size.rows is None else 1)
            outside += [
                f"{name} {c} {s:.2f}" for c, s in shares.items() if not BOUNDS[0] <= s <= BOUNDS[1]
            ]
            rows.append([name, *row(list(shares.values()), own)])
    low, high = BOUNDS
    head = ["table", "columns of numbers", "mean", "lowest", "highest"]
    head += ["calibration error", "by chance"]
    said = prose((__doc__ or "").split("\n\n", 1)[1])
    names = f"Columns with coverage outside {low} to {high}: {', '.join(outside) or 'none'}."
    diagram = "" if not any("bins" in r for r in records) else draw(records, figures)
    return "\n\n".join([said, table(head, rows), names, diagram]).strip()


def coverage(records: list[Record], fewest: int) -> dict[str, float]:
    """Return the fraction of the hidden cells of each column that lie in their intervals."""
    inside: dict[str, Any] = {}
    for record in records:
        for name, counts in record.get("columns", {}).items():
            inside[name] = inside.get(name, np.zeros(2)) + counts
    return {name: float(held / n) for name, (held, n) in inside.items() if n >= fewest}


def row(shares: list[float], records: list[Record]) -> list[str]:
    """Return the numbers of a table."""
    words = ["0", "–", "–", "–"]
    if shares:
        words = [str(len(shares)), *(f"{f(shares):.3f}" for f in (np.mean, np.min, np.max))]
    each = [r["bins"] for r in records if "bins" in r]
    if not each:
        return [*words, "–", "–"]
    bins = np.sum(each, axis=0)
    return [*words, f"{calibration_error(bins):.3f}", f"{error_by_luck(bins):.3f}"]


def draw(records: list[Record], figures: Path) -> str:
    """Return the reliability diagram of all tables together."""
    bins = np.sum([r["bins"] for r in records if "bins" in r], axis=0)
    number, sure, right = bins[:, bins[0] > 0]
    figure, ax = pyplot().subplots(figsize=(4.2, 3.8), layout="constrained")
    share, p = right / number, sure / number
    error = 2 * np.sqrt(share * (1 - share) / number)
    ax.plot([0, 1], [0, 1], color="0.6", lw=1)
    ax.errorbar(p, share, error, fmt="o")
    ax.set(xlabel="probability of the most probable class", ylabel="fraction that is right",
           xlim=(0, 1.02), ylim=(0, 1.02))  # fmt: skip
    caption = (
        f"Ordinal, binary and categorical columns: {int(number.sum())} held-out cells of all "
        f"tables, with two standard errors. Expected calibration error: "
        f"{calibration_error(bins):.3f}; level of the intervals in the table: {LEVEL:.0%}."
    )
    return save(figure, figures, "tables_reliability", caption)
