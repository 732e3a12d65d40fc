"""Records as numbers, tables of texts, and the components of a model, the largest first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from nmd_lab._runtime.checks import many
from nmd_lab.data.cell_numbers import date_text
from nmd_lab.data.labels import Labels
from nmd_lab.data.typed_table import TypedColumn, TypedTable
from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.result.entries import entries_at
from nmd_lab.result.loadings import canonical_form
from nmd_lab.result.posterior import Posterior
from nmd_lab.result.predict import mean_shares
from nmd_lab.result.report import cells_at
from nmd_lab.result.selection import as_text

from .background import Array, Record, at_most, in_sample
from .pictures import Frame
from .words import LEVEL, MAX_CHECKED, Findings, doubt

MAX_GROUPS, MAX_COLORS = 12, 10  # values of a coordinate that colours points, and these colours


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


def table(name: str, head: Any, rows: Any, caption: str = "", ids: Any = None) -> Record:
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


SEEN, HIDDEN, MISSING = 0, 1, 2  # cells: seen by the fit, hidden from it, or missing in the data


@dataclass
class Order:
    """Which rows are shown: from which one on, and the column by which they are sorted."""

    column: int | None = None  # its first column of the matrix
    reverse: bool = False
    begin: int = 0
    sought: int | None = None  # a row that was picked, to whose page the table turns once

    def arrange(self, message: Mapping[str, Any]) -> None:
        """Follow a click on the head of a column, or on a button of the pages."""
        column, self.begin = message.get("column"), message.get("begin", 0)
        if column is not None:
            self.reverse = column == self.column and not self.reverse
            self.column = column


class Grid(NamedTuple):
    """A table with its predictions: by the draws if there are some, otherwise by the fit."""

    table: TypedTable  # columns of the table
    original: Array  # data, and what the fit sees of them
    observed: Array
    fitted: FittedValues | None  # the model
    posterior: Posterior | None  # draws of it

    def shown(self, rows: Array | None, names: list[str], order: Order) -> Record:
        """Return the columns and the cells of a page of some rows, or of all."""
        rows = np.arange(len(self.original)) if rows is None else rows
        for column, at in self.table.blocks():
            if at[0] == order.column:
                values = self._known(column, at)[rows]
                rows = rows[np.argsort(-values if order.reverse else values, kind="stable")]
        most = at_most(200, 80)
        sought, order.sought = np.flatnonzero(rows == order.sought), None
        order.begin = int(sought[0]) // most * most if sought.size else order.begin
        begin = order.begin if order.begin < rows.size else 0
        page = rows[begin : begin + most]
        return {
            "column": order.column,
            "reverse": order.reverse,
            "begin": begin,
            "page": most,
            "total": rows.size,
            "rows": page.tolist(),
            "labels": [names[row] if names else str(row) for row in page],
            "columns": [self._column(column, at, page) for column, at in self.table.blocks()],
        }

    def _column(self, column: TypedColumn, at: Array, rows: Array) -> Record:
        """Return the head and the cells of a column; the model is that of cells it has not seen."""
        data = self._numbers(column, self.original[:, at])
        low, high, bars = _scale(column, self._known(column, at))
        shown, model, size = data[rows], np.full(rows.size, np.nan), (high - low) or 1.0
        sure, ends = np.full(rows.size, "", object), np.full(rows.size, None, object)
        state = np.where(np.isnan(self.observed[rows][:, at[0]]), HIDDEN, SEEN)
        state[np.isnan(shown)] = MISSING
        if (unseen := np.flatnonzero(state != SEEN)).size:
            model[unseen] = self._expected(column, rows[unseen], at)
            sure[unseen], drawn = self._sure(column, rows[unseen], at)
            for k, pair in zip(unseen, drawn, strict=False):
                ends[k] = np.clip((pair - low) / size, 0, 1).round(3).tolist()
        has_order = column.kind not in ("boolean", "categories")
        share = np.where(state == MISSING, model, shown) - low
        share = np.clip(np.nan_to_num(share * has_order / size), 0, 1)
        return {
            "name": str(column.name),
            "at": int(at[0]),
            "bars": bars,
            "low": self._text(column, low, at),
            "high": self._text(column, high, at),
            "state": state.tolist(),
            "data": [self._text(column, x, at) for x in shown],
            "model": [self._text(column, x, at, 3) for x in model],
            "sure": sure.tolist(),
            "share": share.round(3).tolist(),
            "ends": ends.tolist(),
            "zero": float(np.clip(-low / size, 0, 1).round(3)),
        }

    def _known(self, column: TypedColumn, at: Array) -> Array:
        """Return one number a row: of the data, or of the predictions without any data."""
        data = self._numbers(column, self.original[:, at])
        if np.isfinite(data).any():
            return data
        return self._expected(column, np.arange(len(self.original)), at)

    def _expected(self, column: TypedColumn, rows: Array, at: Array) -> Array:
        """Return the predictions for some rows, one number each."""
        if (shares := self._shares(column, rows, at)) is not None:
            return np.asarray(shares.argmax(axis=1), dtype=float)
        if self.posterior is not None:
            cells = entries_at(rows, np.full(rows.size, at[0]))
            return np.asarray(self.posterior.predict(cells), dtype=float)
        if self.fitted is None:
            return np.full(rows.size, np.nan)
        return self._numbers(column, self.fitted.block(rows, at))

    def _numbers(self, column: TypedColumn, values: Array) -> Array:
        """Return one number a row: the position of the class for a block of indicators."""
        if column.is_class and column.kind != "boolean":
            positions = column.nearest(np.nan_to_num(values)).astype(float)
            positions[np.isnan(values).any(axis=1)] = np.nan
            return positions
        return np.asarray(values[:, 0], dtype=float)

    def _sure(self, column: TypedColumn, rows: Array, at: Array) -> tuple[list[str], Array]:
        """Return the uncertainty of the predictions in words, and the intervals of the draws."""
        if (shares := self._shares(column, rows, at)) is not None:
            return [_likely(column, each) for each in shares], np.empty((0, 2))
        if self.posterior is None:
            return [""] * rows.size, np.empty((0, 2))
        cells = entries_at(rows, np.full(rows.size, at[0]))
        ends = np.asarray(self.posterior.predict_interval(cells, level=LEVEL))
        words = (self._interval(column, each, at) for each in ends)
        return [f"{100 * LEVEL:.0f} % in {interval}" for interval in words], ends

    def _text(self, column: TypedColumn, number: float, at: Any, digits: int = 4) -> str:
        """Return a value of a column as text; an empty one for NaN."""
        if np.isnan(number):
            return ""
        if column.kind == "date":  # with its time, if one of the data has one
            return date_text(number, time=bool(np.any(self.original[:, at[0]] % 1 > 0)))
        if not column.is_class:
            return f"{number:.0f}" if 1000 <= abs(number) < 1e6 else f"{number:.{digits}g}"
        return str(column.classes[int(np.clip(round(number), 0, len(column.classes) - 1))])

    def _interval(self, column: TypedColumn, ends: Any, at: Any) -> str:
        """Return an interval of a column as text."""
        if column.kind == "date" or column.is_class:
            return " – ".join(self._text(column, end, at) for end in ends)
        return _ends(*ends)

    def _shares(self, column: TypedColumn, rows: Array, at: Array) -> Array | None:
        """Return the probability of each class; None for numbers, and levels without draws."""
        if column.is_class and self.posterior is not None:
            return mean_shares(self.posterior._draws, rows, at)
        if self.fitted is None or column.kind not in ("boolean", "categories"):
            return None
        shares = np.clip(self.fitted.block(rows, at), 0, 1)
        if not column.has_indicators:
            return np.hstack([1 - shares, shares])
        shares += np.finfo(float).tiny
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def judged(self) -> list[tuple[float, float]]:
        """Return the errors of hidden cells, and those of what is usual in their columns.

        They are the error of numbers in SD, and the fraction of classes that are right; or NaN.
        """
        hidden = np.isnan(self.observed) & ~np.isnan(self.original)
        squares, right = [np.empty((2, 0))], [np.empty((2, 0))]
        for column, at in self.table.blocks():
            if not (rows := np.flatnonzero(hidden[:, at[0]])).size:
                continue
            truth, known = (self._numbers(column, x[:, at]) for x in (self.original, self.observed))
            known = known[~np.isnan(known)]
            usual = np.bincount(known.astype(int)).argmax() if column.is_class else known.mean()
            guesses = np.stack([self._expected(column, rows, at), np.full(rows.size, usual)])
            if column.is_class:
                right.append(guesses == truth[rows])
            else:
                squares.append(((truth[rows] - guesses) / (known.std() or 1.0)) ** 2)
        means = (pd.DataFrame(np.hstack(each)).mean(axis=1) for each in (squares, right))
        return [(mean**0.5, share) for mean, share in zip(*means, strict=True)]

    def least_sure(self, names: list[str]) -> Record | None:
        """Return a table of the cells that the model is least sure of; None without draws."""
        if self.posterior is None:
            return None
        first = self.table.first_columns  # of the columns of the matrix
        (i, j), of = np.nonzero(np.isnan(self.original[:, first])), "missing"
        if not i.size:
            (i, j), of = np.nonzero(np.isnan(self.observed[:, first])), "held-out"
        some = in_sample(i.size, MAX_CHECKED)
        cells = cells_at(self.posterior._draws, i[some], first[j[some]])
        cells = cells.nlargest(12, "uncertainty")
        at = cells[["row", "column"]].to_numpy(dtype=np.intp)
        ends = np.asarray(self.posterior.predict_interval(entries_at(*at.T), level=LEVEL))
        rows = list[Any]()
        for (row, k), cell, interval in zip(at, cells.to_dict("records"), ends, strict=True):
            column, predicted = self.table.of_matrix[k], cell["predicted"]
            filled, sure = str(predicted), f"{100 * cell.get('probability', 1):.0f} %"
            if cell["kind"] == "number":
                filled = self._text(column, float(predicted), [k], 3)
                sure = self._interval(column, interval, [k])
            rows.append([f"row {names[row] if names else row}, {column.name}", filled, sure])
        said = f"The {len(rows)} most uncertain of {i.size} {of} cells, most uncertain first, with "
        said += f"{100 * LEVEL:.0f} % intervals, by their standard deviation or chance of another "
        said += "class over that of a guess by the column alone"
        said += f"; ⚠ {warning}" if (warning := doubt(self.posterior)) else ""
        head = ("cell", "filled with", "interval")
        return table("unsure", head, rows, ids=at.tolist(), caption=said)


def _scale(column: TypedColumn, data: Array) -> tuple[float, float, list[float]]:
    """Return the ends of the scale of a column, and the heights of a histogram, the largest 1."""
    finite, low, high, bins = data[np.isfinite(data)], 0.0, 1.0, 14
    if column.is_class:
        high, bins = float(max(len(column.classes) - 1, 1)), max(len(column.classes), 1)
    elif finite.size:
        low, high = float(finite.min()), float(finite.max())
    counts, _ = np.histogram(finite, bins, (low, high if high > low else low + 1))
    return low, high, (counts / max(counts.max(), 1)).round(3).tolist()


def _likely(column: TypedColumn, shares: Array) -> str:
    """Return the most probable classes of a cell, with their probabilities."""
    likely = np.argsort(-shares, kind="stable")[:3]
    return ", ".join(f"{column.classes[k]} {100 * shares[k]:.0f} %" for k in likely)


def _ends(low: float, high: float) -> str:
    """Return an interval as text, with as many decimals as give its width three digits.

    >>> _ends(16.9, 21.687), _ends(3101.2, 4867.4), _ends(3.0, 3.0), _ends(0.0, math.inf)
    ('16.90 – 21.69', '3101 – 4867', '3.00 – 3.00', '0 – inf')
    """
    width = np.clip(high - low or abs(high) or 1.0, 1e-6, 1e6)
    decimals = max(0, 2 - math.floor(math.log10(width)))
    return f"{low:.{decimals}f} – {high:.{decimals}f}"
