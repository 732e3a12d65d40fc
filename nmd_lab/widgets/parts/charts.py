"""Charts of points that ``front/dots.mjs`` draws: trials of a choice, intervals of a posterior."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.selection import TRIAL, as_text
from nmd_lab.widgets.live.sample import Findings

Chart = dict[str, Any]
Numbers = Sequence[float] | NDArray[Any] | pd.Series


def chart(title: str, x: str, y: str, panels: Sequence[dict[str, Any]], **other: Any) -> Chart:
    """Return a chart of panels side by side."""
    plain = {"color": "", "joined": False, "ticks": None, "diagonal": False}
    return plain | other | {"title": title, "x": x, "y": y, "panels": list(panels)}


def series(
    label: str,
    x: Numbers,
    y: Numbers,
    names: Sequence[str] | pd.Series,
    spread: tuple[Numbers, Numbers] | None = None,
    ids: Sequence[int] | None = None,
) -> dict[str, Any]:
    """Return the points of one colour."""
    low, high = (None, None) if spread is None else spread
    numbers = {"x": x, "y": y, "low": low, "high": high}
    return {
        "label": label,
        **{
            name: each if each is None else list(map(float, each)) for name, each in numbers.items()
        },
        "ids": None if ids is None else list(ids),
        "names": list(names),
    }


def trials_charts(fit: Decomposition | None) -> dict[str, Chart]:
    """Return the held-out errors of the trials of a choice by rank; none without."""
    trials = None if fit is None else fit.selection
    if trials is None or not trials.sizes[TRIAL]:
        return {}
    names = ("nonlinearity", "loss", "rank", "alpha", "error", "spread")
    table = pd.DataFrame({name: trials[name].values for name in names})
    table = table[np.isfinite(table["error"])]
    models = zip(*(table[name].tolist() for name in ("nonlinearity", "rank", "alpha")), strict=True)
    table["name"] = [f"{f}, rank {rank}, alpha {as_text(alpha)}" for f, rank, alpha in models]
    measure = f"held-out {trials.attrs.get('measure', 'error')}"
    return {"ranks": _by_rank(table, measure)} if table["rank"].nunique() > 1 else {}


def _by_rank(trials: pd.DataFrame, measure: str) -> Chart:
    """Return the lowest error of each rank, with its spread, for each nonlinearity and loss."""
    lines = []
    for (f, loss), model in trials.groupby(["nonlinearity", "loss"], sort=False):
        ordered = model.sort_values("error", kind="stable")
        best = ordered.drop_duplicates("rank").sort_values("rank")
        errors, spread = best["error"].to_numpy(), np.nan_to_num(best["spread"])
        ends = errors - spread, errors + spread
        lines.append(series(f"{f}, {loss}", best["rank"], errors, best["name"], ends))
    panels = [{"title": "", "series": lines}]
    return chart("lowest error of each rank", "rank", measure, panels, joined=True, color="model")


def intervals_chart(found: Findings) -> Chart:
    """Return predicted against observed values, with the intervals of a posterior.

    Columns of a table, which have units of their own, are shown in their standard deviations.
    """
    rows, columns, x = found.entries.entries()
    names = [f"row {i}, column {j}" for i, j in zip(rows.tolist(), columns.tolist(), strict=True)]
    centre, size, unit = np.zeros(x.shape), np.ones(x.shape), ""
    if found.entries.labels.table is not None:
        counts = np.maximum(np.bincount(columns), 1)
        means = np.bincount(columns, x) / counts
        spreads = np.sqrt(np.bincount(columns, (x - means[columns]) ** 2) / counts)
        centre, size = means[columns], np.where(spreads > 0, spreads, 1)[columns]
        unit = ", in deviations of the column"
    x, mean, low, high = ((each - centre) / size for each in (x, found.mean, found.low, found.high))
    panels = [{"title": "", "series": [series("", x, mean, names, (low, high))]}]
    return chart(found.summary, f"observed{unit}", "predicted", panels, diagonal=True)
