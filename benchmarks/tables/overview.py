"""All methods at one glance: error beside coverage, and differences over the tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.paper.report import prose, pyplot, save, table

Array = np.ndarray
Scores = dict[str, Array]
"""Means over the seeds (tables, methods) by score; our method is the first."""

PAIRED = {
    "number": "numeric RMSE", "level": "ordinal RMSE", "class": "accuracy", "log": "log score",
    "energy": "energy score", "crps": "CRPS",
}  # fmt: skip
"""Scores whose differences are shown, and their heads."""


def of_scores(scores: Scores, methods: list[str], figures: Path) -> list[str]:
    """Return the figure, and the table of differences, if there are two methods or more."""
    if len(methods) < 2 or len(scores["number"]) < 2:
        return []
    return [
        draw(scores, methods, figures),
        "### Differences between `nmd.sample` and each method",
        prose("""
        Means over the tables that both fill, nmd_lab minus the other method, with their standard
        errors. Errors, energy score and CRPS are better below 0, accuracy and the log score above.
        """),
        paired(scores, methods),
    ]


def paired(scores: Scores, methods: list[str]) -> str:
    """Return our scores less those of each method, as means over the tables."""
    body = []
    for k, name in enumerate(methods[1:], start=1):
        cells = [difference(scores[key][:, 0], scores[key][:, k]) for key in PAIRED]
        ratio = np.nansum(scores["seconds"][:, k]) / np.nansum(
            np.where(np.isnan(scores["seconds"][:, k]), np.nan, scores["seconds"][:, 0])
        )
        body.append([name, *cells, f"{ratio:.1f}"])
    return table(["method", *PAIRED.values(), "its seconds / seconds of nmd_lab"], body)


def difference(ours: Array, theirs: Array) -> str:
    """Return the mean difference over the tables, with its standard error."""
    gaps = (ours - theirs)[~np.isnan(ours - theirs)]
    if gaps.size < 2:
        return "–"
    return f"{gaps.mean():+.3f} ± {gaps.std(ddof=1) / np.sqrt(gaps.size):.3f}"


def draw(scores: Scores, methods: list[str], figures: Path) -> str:
    """Return the figure of the errors beside the coverage, a point a table."""
    figure, ax = pyplot().subplots(figsize=(6.4, 4.2), layout="constrained")
    ax.axhspan(0.87, 0.93, color="0.92", zorder=0)
    ax.axvline(1, color="0.6", lw=1)
    for k, name in enumerate(methods):
        others = np.delete(scores["number"], k, axis=1)
        ratio = scores["number"][:, k] / np.nanmin(others, axis=1)
        if not np.isnan(scores["coverage"][:, k]).all():
            ax.plot(ratio, scores["coverage"][:, k], "o", ms=5, alpha=0.8, label=name)
    ax.set_xscale("log")
    ticks = [0.7, 0.8, 1, 1.25, 1.5, 2, 3]
    ax.set_xticks(ticks, [str(t) for t in ticks])
    ax.minorticks_off()
    ax.set(xlabel="RMSE of numeric columns / lowest RMSE of another method",
           ylabel="coverage of 90 % intervals")  # fmt: skip
    figure.legend(loc="outside right upper", fontsize=8)
    caption = (
        "Each point is a table, each colour a method with intervals. Good is left of 1, where no "
        "other method has a lower error, and within the band from 87 to 93 %."
    )
    return save(figure, figures, "tables_overview", caption)
