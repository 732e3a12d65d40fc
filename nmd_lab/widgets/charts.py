"""Charts as numbers, and tables of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nmd_lab.data.labels import Labels
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.selection import TRIAL, as_text

from .live_sample import Findings

MOST_GROUPS, MOST_COLORS = 12, 8  # values of a coordinate that colours points, and these colours

Chart = dict[str, Any]
Numbers = Sequence[float] | NDArray[Any]
Rows = Sequence[Sequence[str]]


def curves_chart(curves: Mapping[str, Mapping[int, float]]) -> Chart | None:
    """Return errors by iteration, for each label; None without any."""
    lines = [series(name, [*at], [*at.values()], []) for name, at in curves.items() if at]
    if not lines:
        return None
    return chart("", "iteration", "error, log scale", lines, joined=True, log=True)


def chart(title: str, x: str, y: str, lines: Sequence[Any], **other: Any) -> Chart:
    """Return a chart of lines, or of the `panels` side by side that are given in their place."""
    plain = {"color": "", "joined": False, "ticks": None, "diagonal": False, "log": False}
    plain |= {"panels": [{"title": "", "series": list(lines)}]}
    return plain | {"title": title, "x": x, "y": y} | other


def series(
    label: str,
    x: Numbers,
    y: Numbers,
    names: Sequence[str],
    spread: tuple[Numbers, Numbers] | None = None,
    ids: Sequence[int] = (),
) -> dict[str, Any]:
    """Return the points of one colour."""
    low, high = ([], []) if spread is None else spread
    numbers = {"x": x, "y": y, "low": low, "high": high}
    floats = {name: [float(number) for number in each] for name, each in numbers.items()}
    return {"label": label, **floats, "ids": list(ids), "names": list(names)}


def trials_charts(fit: Decomposition | None) -> dict[str, Chart]:
    """Return the lowest error of each rank among the trials of a choice; none without them.

    A point has the rank as its number: a click on it fits with that.
    """
    if fit is None or not fit.selection.sizes[TRIAL]:
        return {}
    names = ["nonlinearity", "rank", "alpha", "error", "spread"]
    trials = fit.selection[names].to_dataframe().sort_values("error", kind="stable")
    best = trials[np.isfinite(trials["error"])].drop_duplicates("rank").sort_values("rank")
    if len(best) < 2:
        return {}
    ranks, errors, spread = best["rank"].tolist(), best["error"], best["spread"].fillna(0)
    models = zip(best["nonlinearity"], ranks, best["alpha"], strict=True)
    said = [f"{f}, {k} components, penalty {as_text(alpha)}" for f, k, alpha in models]
    # In percent: the errors of trials are at other entries than that of the sentence
    more, low, high = (
        100 * (e / errors.min() - 1) for e in (errors, errors - spread, errors + spread)
    )
    line = series("", ranks, more, said, (low, high), ranks)
    return {"ranks": chart("", "components", "% above the best", [line], joined=True)}


def errors_by_shape(fit: Decomposition | None) -> dict[str, float]:
    """Return the lowest error of each f among the trials of a choice."""
    if fit is None or not fit.selection.sizes[TRIAL]:
        return {}
    table = fit.selection[["nonlinearity", "error"]].to_dataframe()
    return {str(f): float(e) for f, e in table.groupby("nonlinearity")["error"].min().items()}


def calibration_chart(found: Findings) -> Chart:
    """Return how many values the intervals cover, against their probability."""
    promised, held = (np.multiply(100, list(each)) for each in (found.held, found.held.values()))
    line = series("", promised, held, [f"{p:.0f} % intervals" for p in promised])
    return chart(found.summary, "% promised", "% covered", [line], joined=True, diagonal=True)


def texts(labels: Labels, axis: Literal["rows", "columns"]) -> list[str]:
    """Return the labels of the rows or columns as texts; an empty list if there are none."""
    dims = labels.rows if axis == "rows" else labels.columns
    if len(dims) != 1 or dims[0] not in labels.coords.indexes:
        return []
    index = labels.coords.indexes[dims[0]]
    if isinstance(index, pd.RangeIndex) or np.array_equal(index, np.arange(len(index))):
        return []
    return [str(label) for label in index]


def groups(labels: Labels) -> tuple[str, list[int], list[str]]:
    """Return a coordinate of the rows with few distinct values: its name, numbers and values."""
    for name, coordinate in labels.coords.coords.items():
        if coordinate.dims != labels.rows[:1] or name in labels.coords.indexes:
            continue
        values, numbers = np.unique(coordinate.values, return_inverse=True)
        if len(labels.rows) == 1 and 1 < len(values) <= MOST_GROUPS:
            return str(name), numbers.tolist(), [str(value) for value in values]
    return "", [], []


def colours(labels: Labels) -> tuple[str, list[int], list[str]]:
    """Return `groups`, those beyond the number of colours together as one."""
    name, numbers, names = groups(labels)
    if others := ", ".join(names[MOST_COLORS:]):
        names[MOST_COLORS:] = [f"other: {others}"]
    return name, np.minimum(numbers, MOST_COLORS).tolist(), names


def row_texts(labels: Labels) -> list[str]:
    """Return the labels of the rows, or the groups to which they belong, as texts."""
    name, numbers, names = groups(labels)
    return texts(labels, "rows") or [f"{name} {names[number]}" for number in numbers]


def table(name: str, head: Sequence[str], rows: Rows, caption: str = "", ids: Any = None) -> Chart:
    """Return a table; `ids` has the row and column of each line, to be picked."""
    return {
        "name": name,
        "caption": caption,
        "head": list(head),
        "rows": [list(row) for row in rows],
        "ids": None if ids is None else np.asarray(ids).tolist(),
    }
