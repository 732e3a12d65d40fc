"""Charts as numbers, tables, and the texts of the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nmd_lab.data.labels import Labels
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.selection import TRIAL, as_text

from .background import REMEMBERED, Recording, many
from .live_sample import Findings

MOST_POINTS = 800  # number of points above which a curve is thinned to half as many

# Colours of the curves (Okabe and Ito, 2008), as in ``front/dom.mjs``
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442")
HIDDEN = "held_out"  # key of the curve that has the second colour of a run
GRAY = "#8a8a8a"  # of what the fit still remembers

Chart = dict[str, Any]
Numbers = Sequence[float] | NDArray[Any]
Points = tuple[Sequence[float], Sequence[float]]  # iterations, and numbers


class Panel(NamedTuple):
    """One pair of axes."""

    title: str  # title above the axes
    labels: Mapping[str, str]  # label in the legend of each curve, by the curve's key
    lowest: str | None = None  # key of the curve whose lowest point is marked


def curves_part(
    panels: Sequence[Panel],
    recording: Recording | Any,
    past: Sequence[tuple[str, Recording]] = (),
    where: str = "",
    sizes: Mapping[str, float] = MappingProxyType({}),
) -> dict[str, Any] | None:
    """Return panels and their curves, errors multiplied by sizes; None if there are no points."""
    keys = [key for panel in panels for key in panel.labels]
    runs = [("", recording), *((f" {name}", run) for name, run in past)]
    found = [(name, points_of(run, keys, sizes)) for name, run in runs]
    if not found[0][1]:
        return None
    marked = not recording.remembers
    shown = [
        {"title": title, "curves": _curves(labels, found), "lowest": lowest if marked else None}
        for title, labels, lowest in panels
    ]
    return {"panels": shown, "caption": where}


def points_of(recording: Any, keys: Sequence[str], sizes: Mapping[str, float]) -> dict[str, Points]:
    """Return the points of those curves that have some, by key."""
    curves, held_out = recording.curves, recording.held_out
    iterations = curves.get("iteration", ())
    found: dict[str, Points] = {key: (iterations, curves[key]) for key in keys if key in curves}
    if "held_out" in keys:
        x, y = tuple(held_out), tuple(held_out.values())
        # A fit that begins at one that has seen the held-out entries forgets them while their error
        # rises to its highest: a curve of its own, which does not depend on the model
        end = int(np.argmax(y)) if recording.remembers and y else 0
        found["held_out"] = x[end:], y[end:]
        if end:
            found[REMEMBERED] = x[: end + 1], y[: end + 1]
    scaled = {key: (x, [sizes.get(key, 1.0) * each for each in y]) for key, (x, y) in found.items()}
    return {key: points for key, points in scaled.items() if len(points[0])}


def _curves(
    labels: Mapping[str, str], runs: Sequence[tuple[str, Mapping[str, Points]]]
) -> list[dict[str, Any]]:
    """Return the curves of a panel in each run, given the label of each by its key."""
    remembered = {REMEMBERED: "seen before"} if "held_out" in labels else {}
    return [
        {
            "key": f"{key}{name}",
            "label": f"{label}{name and ','}{name}",
            "color": GRAY if key == REMEMBERED else COLORS[(2 * k + (key == HIDDEN)) % len(COLORS)],
            "past": bool(name),
            "points": _thinned(*points[key]).tobytes() if key in points else None,
        }
        for k, (name, points) in enumerate(runs)
        for key, label in (*labels.items(), *remembered.items())
        if key in points or (not name and key in labels)
    ]


def _thinned(x: Sequence[float], y: Sequence[float]) -> Any:
    """Return points (2, n); thinning keeps the first, the last and the lowest positive one."""
    points = np.array([x, y], dtype="<f8")
    count = points.shape[1]
    if count <= MOST_POINTS:
        return points
    spaced = np.linspace(0, count - 1, MOST_POINTS // 2).astype(int)
    lowest_one = int(np.argmin(np.where(points[1] > 0, points[1], np.inf)))
    return points[:, np.union1d(spaced, lowest_one)]


def chart(title: str, x: str, y: str, panels: Sequence[dict[str, Any]], **other: Any) -> Chart:
    """Return a chart of panels side by side."""
    plain = {"color": "", "joined": False, "ticks": None, "diagonal": False}
    return plain | other | {"title": title, "x": x, "y": y, "panels": list(panels)}


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
    """Return the lowest error of each rank among the trials of a choice; none without them."""
    if fit is None or not fit.selection.sizes[TRIAL]:
        return {}
    trials = fit.selection
    names = ["nonlinearity", "loss", "rank", "alpha", "error", "spread"]
    table = trials[names].to_dataframe()
    table, lines = table[np.isfinite(table["error"])], []
    if table["rank"].nunique() < 2:
        return {}
    for (f, loss), model in table.groupby(["nonlinearity", "loss"], sort=False):
        ordered = model.sort_values("error", kind="stable")
        best = ordered.drop_duplicates("rank").sort_values("rank")
        ranks, alphas = best["rank"].tolist(), best["alpha"].tolist()
        said = [f"{f}, rank {k}, alpha {as_text(x)}" for k, x in zip(ranks, alphas, strict=True)]
        errors, spread = best["error"].to_numpy(), np.nan_to_num(best["spread"])
        ends = errors - spread, errors + spread
        lines.append(series(f"{f}, {loss}", ranks, errors, said, ends))
    measure, panels = trials.attrs.get("measure", "error"), [{"title": "", "series": lines}]
    titles = "lowest error of each rank", "rank", f"held-out {measure}"
    return {"ranks": chart(*titles, panels, joined=True, color="model")}


def calibration_chart(found: Findings) -> Chart:
    """Return how many values the intervals cover, against their probability."""
    promised, held = (np.multiply(100, list(each)) for each in (found.held, found.held.values()))
    line = series("", promised, held, [f"{p:.0f} % promised" for p in promised])
    titles = found.summary, "% promised", "% held"
    return chart(*titles, [{"title": "", "series": [line]}], joined=True, diagonal=True)


MEANS = "column means"  # name of the rival that has no rank
MOST_GROUPS, MOST_COLORS = 12, 8  # values of a coordinate that colours points, and these colours


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


def model_text(fit: Any) -> str:
    """Return rank, nonlinearity and ridge of a fit or a posterior in a few words."""
    names = {"identity": "linear", "relu": "ReLU", "minmax": "MinMax", "mixed": "by column"}
    f = str(fit.nonlinearity.name)
    words = [many(fit.rank, "component"), names.get(f, f)]
    alpha = fit.parameters.get("alpha")
    if isinstance(alpha, float | int) and alpha > 0:
        words.append(f"ridge {as_text(alpha, 3)}")
    return " · ".join(words)


def size_text(
    name: str, shape: tuple[int, int], share: float = 1.0, *, is_table: bool = False
) -> str:
    """Return the name and the size of data, and the fraction that is known if that is not all."""
    percent = as_text(100 * share, 2) if share < 0.995 else f"{min(100 * share, 99.9):.1f}"
    more = f", {percent} % known" if share < 1 else ""
    m, n = shape
    size = f": {many(m, 'row')}, {many(n, 'column')}" if is_table else f" {m} × {n}"
    return f"{name}{size}{more}"


def table(
    name: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    caption: str = "",
    ids: Sequence[Any] | None = None,
    best: Sequence[Sequence[bool]] | None = None,
) -> dict[str, Any]:
    """Return a table; `ids` has the column of each line, or its row and column, to be picked."""
    return {
        "name": name,
        "caption": caption,
        "head": list(head),
        "rows": [list(row) for row in rows],
        "ids": None if ids is None else np.asarray(ids).tolist(),
        "best": None if best is None else [list(row) for row in best],
    }


def number_text(number: float, digits: int) -> str:
    """Return a number with so many significant digits, and a dash for NaN."""
    return "–" if math.isnan(number) else f"{number:#.{digits}g}".rstrip(".")


def errors_table(errors: Mapping[str, float], rank: Any) -> list[dict[str, Any]]:
    """Return the held-out errors of a fit and of a linear model; the lowest stands out."""
    if not errors:
        return []
    ranked = {name: name if name == MEANS else f"{name}, rank {rank}" for name in errors}
    rows = [[ranked[name], number_text(error, 4)] for name, error in errors.items()]
    best = [[False, error == min(errors.values())] for error in errors.values()]
    return [table("errors", ("model", "held-out error"), rows, best=best)]
