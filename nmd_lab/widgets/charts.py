"""Records as numbers, tables of texts, and the components of a model, the largest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr

from nmd_lab._runtime.checks import many
from nmd_lab.data.labels import Labels
from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.result.loadings import canonical_form
from nmd_lab.result.selection import as_text

from .background import Array, Record, at_most, in_sample
from .pictures import Frame
from .words import Findings

MAX_GROUPS, MAX_COLORS = 12, 10  # values of a coordinate that colours points, and these colours

Rows = Sequence[Sequence[str]]


def curves_chart(curves: Mapping[str, Mapping[int, float]]) -> Record | None:
    """Return errors by iteration, for each label; None without any."""
    points = [{"label": name, "x": k, "y": y} for name, at in curves.items() for k, y in at.items()]
    drawn = chart("", "iteration", "error, log scale", points, joined=True, log=True)
    return drawn if points else None


def chart(title: str, x: str, y: str, points: Sequence[Any], **other: Any) -> Record:
    """Return a chart of points: each has `x` and `y`, and what it needs of all else.

    This is the `label` of its colour, its `panel`, the ends `low` and `high` of its whisker, its
    `name`, and the `id` that a click on it sends.  Those to be `joined` are in the order of x.
    """
    plain = {"color": "", "joined": False, "ticks": None, "diagonal": False, "log": False}
    return plain | {"title": title, "x": x, "y": y, "points": list(points)} | other


def trials_charts(tried: xr.Dataset) -> dict[str, Record]:
    """Return the lowest error of each rank among the trials of a choice; none without a choice.

    A point has the rank as its number: a click on it fits with that.
    """
    names = ["nonlinearity", "rank", "alpha", "error", "spread"]
    trials = tried[names].to_dataframe().sort_values("error", kind="stable")
    best = trials[np.isfinite(trials["error"])].drop_duplicates("rank").sort_values("rank")
    if len(best) < 2:
        return {}
    error, spread = best["error"], best["spread"].fillna(0)
    ends = {"y": error, "low": error - spread, "high": error + spread}
    # In percent: the errors of trials are at other entries than that of the sentence
    found = pd.DataFrame({name: 100 * (each / error.min() - 1) for name, each in ends.items()})
    found["x"] = found["id"] = best["rank"]
    models = zip(best["nonlinearity"], best["rank"], best["alpha"], strict=True)
    found["name"] = [f"{f}, {many(k, 'component')}, penalty {as_text(a)}" for f, k, a in models]
    points = found.to_dict("records")
    return {"ranks": chart("", "components", "% above the best", points, joined=True)}


def errors_by_shape(trials: xr.Dataset) -> dict[str, float]:
    """Return the lowest error of each f among the trials of a choice."""
    errors = trials[["nonlinearity", "error"]].to_dataframe()
    return dict(errors.groupby("nonlinearity")["error"].min())


def calibration_chart(found: Findings) -> Record:
    """Return how many values the intervals cover, against their probability."""
    points = [
        {"x": 100 * level, "y": 100 * share, "name": f"{100 * level:.0f} % intervals"}
        for level, share in found.held.items()
    ]
    return chart(found.summary, "% promised", "% covered", points, joined=True, diagonal=True)


def texts(labels: Labels, axis: Literal["rows", "columns"]) -> list[str]:
    """Return the labels of the rows or columns as texts; an empty list if there are none."""
    dims = labels.rows if axis == "rows" else labels.columns
    index = labels.index(dims[0]) if len(dims) == 1 else None
    if isinstance(index, pd.RangeIndex | None) or np.array_equal(index, np.arange(len(index))):
        return []
    return [str(label) for label in index]


def groups(labels: Labels) -> tuple[str, list[int], list[str]]:
    """Return a coordinate of the rows with few distinct values: its name, numbers and values."""
    for name, coordinate in labels.coords.coords.items():
        if coordinate.dims != labels.rows[:1] or name in labels.coords.indexes:
            continue
        values, numbers = np.unique(coordinate.values, return_inverse=True)
        if len(labels.rows) == 1 and 1 < len(values) <= MAX_GROUPS:
            return str(name), numbers.tolist(), [str(value) for value in values]
    return "", [], []


def colours(labels: Labels) -> tuple[str, list[int], list[str]]:
    """Return `groups`, those beyond the number of colours together as one."""
    name, numbers, names = groups(labels)
    if others := ", ".join(names[MAX_COLORS:]):
        names[MAX_COLORS:] = [f"other: {others}"]
    return name, np.minimum(numbers, MAX_COLORS).tolist(), names


def row_texts(labels: Labels) -> list[str]:
    """Return the labels of the rows, or the groups to which they belong, as texts."""
    name, numbers, names = groups(labels)
    return texts(labels, "rows") or [f"{name} {names[number]}" for number in numbers]


def table(name: str, head: Sequence[str], rows: Rows, caption: str = "", ids: Any = None) -> Record:
    """Return a table; `ids` has the row and column of each line, to be picked."""
    return {
        "name": name,
        "caption": caption,
        "head": list(head),
        "rows": [list(row) for row in rows],
        "ids": None if ids is None else np.asarray(ids).tolist(),
    }


MAX_COMPONENTS = 60  # largest number of components that are shown
SIDE, BARS = 56, 64  # pixels along a side, and bars of a component, at most
OFTEN = 0.25  # fraction of the rows of a group from which a negative use is named
EVERYWHERE = 0.9  # part of a group, the second highest, from which a component is strong in all
HINT = "{} component{}: point to see one, click to pin it, again to switch it off"


def points_of(labels: Labels) -> tuple[Array, Record]:
    """Return the rows that are drawn in a plane, and their labels with what colours them."""
    total = labels.matrix_shape[0]
    rows = np.flatnonzero(in_sample(total, at_most(20_000, 1500)))  # the same sample of more
    names, (color, numbers, values) = texts(labels, "rows"), colours(labels)
    return rows, {
        "labels": [names[row] for row in rows] if names else [],
        "groups": [numbers[row] for row in rows] if numbers else [],
        "color": color,
        "values": values,
        "total": total,
    }


def components_part(W: Array, H: Array, frame: Frame | None, labels: Sequence[str]) -> Record:
    """Return the components as pictures, lists of labels or bars, and what each contributes."""
    size, count = np.linalg.norm(W, axis=0)[:, None], min(H.shape[0], MAX_COMPONENTS)
    kind, values = "list" if labels else "bars", np.zeros((count, 0, 0))
    lists: list[list[list[Any]]] = []
    is_large = frame is not None and (frame.channels == 3 or min(frame.height, frame.width) > BARS)
    if frame is not None and (frame.picture is not None or (is_large and not labels)):
        kind = "image"
        values = np.stack([_image(W[:, k], size[k] * H[k], frame) for k in range(count)])
    elif labels:
        largest = np.argsort(-np.abs(H[:count]), axis=1, kind="stable")[:, :5]
        lists = [[[labels[j], float(h[j])] for j in at] for h, at in zip(H, largest, strict=False)]
    else:
        values = (size * H)[:count, None, :: max(1, -(-H.shape[1] // BARS))]
    squares = np.square(size[:, 0] * np.linalg.norm(H, axis=1)).astype(float)
    of = f"{count} of {H.shape[0]}" if H.shape[0] > count else str(count)
    shares = (squares / (squares.sum() or 1.0)).tolist()[:count]
    return {
        "kind": kind,
        "count": count,
        "height": values.shape[1],
        "width": values.shape[2],
        "values": np.ascontiguousarray(values, dtype="<f4").tobytes(),
        "shares": shares,
        "percents": [*map(percent, shares)],
        "lists": lists,
        "total": H.shape[0],
        "hint": HINT.format(of, "s" * (H.shape[0] != 1)),
    }


def plane_part(weights: Array, rows: Array) -> Record:
    """Return points whose places in a plane are two of their weights: rows or columns."""
    of = np.ascontiguousarray(weights, dtype="<f4").tobytes()
    plain: Record = {"groups": [], "color": "", "values": [], "total": rows.size}
    return plain | {"rank": weights.shape[1], "weights": of, "rows": rows.astype("<i4").tobytes()}


def leaning(w: Array) -> int:
    """Return the sign that most of the weights of a component have, the large ones above all."""
    return -1 if np.nansum(w * np.abs(w)) < 0 else 1


def component_words(fitted: FittedValues, shown: Mapping[str, Any], labels: Labels) -> list[str]:
    """Return a line for each component: its part of the model, and where it is strong."""
    name, numbers, values = groups(labels)
    lines = []
    for k in range(shown["count"]):
        words = [f"{shown['percents'][k]} of the model"]
        w, sign = np.asarray(fitted.W[:, k]), leaning(fitted.W[:, k])
        more, other = ("strong", "negative")[::sign]
        high = np.nanpercentile(sign * w, 98)
        if numbers and high > 0:
            of_groups = pd.DataFrame(np.outer(w, (sign, -sign)) > 0.5 * high).groupby(numbers)
            shares, below = of_groups.mean().to_numpy().T.tolist()
            first, second = np.argsort(shares)[::-1][:2]
            where = (
                f"{more} in {100 * shares[first]:.0f} % of {name} {values[first]}; "
                f"next {name} {values[second]} ({100 * shares[second]:.0f} %)"
            )
            words.append(f"{more} nearly everywhere" if shares[second] > EVERYWHERE else where)
            most = f"{other} in {100 * max(below):.0f} % of {name} {values[np.argmax(below)]}"
            words += [most] * (max(below) > OFTEN)
        if shown["lists"]:
            more, less = (
                ", ".join(label for label, h in shown["lists"][k] if (h < 0) == below)
                for below in (False, True)
            )
            words += [f"more {more}"] * bool(more) + [f"less {less}"] * bool(less)
        lines.append(": ".join([f"component {k}", ", ".join(words)]))
    return lines


def percent(share: float) -> str:
    """Return a part of 1 in percent.

    >>> percent(1.0), percent(0.0312), percent(2e-61)
    ('100 %', '3.1 %', 'under 0.1 %')
    """
    return f"{100 * share:.{int(share < 0.1)}f} %" if share >= 0.001 else "under 0.1 %"


def _image(w: Array, h: Array, frame: Frame) -> Array:
    """Return a component as a small picture, NaN where there is no pixel."""
    if frame.picture is None:
        side = at_most(SIDE, SIDE // 2)
        down, right = (max(1, -(-each // side)) for each in (frame.height, frame.width))
        rows, columns = frame.rows[::down], frame.columns[:: frame.channels][::right]
        return np.outer(w[rows] / (np.linalg.norm(w) or 1.0), h[columns])
    image = frame.picture(h)
    step = max(1, -(-max(image.shape) // SIDE))
    return image[::step, ::step]


def oriented(fitted: FittedValues) -> FittedValues:
    """Return the same model with its components as `Decomposition.rotate`, the largest first."""
    W, H = canonical_form(np.asarray(fitted.W), np.asarray(fitted.H), "size")
    return fitted._replace(W=W.astype(fitted.W.dtype), H=H.astype(fitted.H.dtype))
