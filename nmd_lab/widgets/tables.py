"""A table as a table: each column on a scale of its own, with a histogram in its head."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from nmd_lab.data.dates import date_text
from nmd_lab.data.typed_table import TypedColumn, TypedTable
from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.result.entries import entries_at
from nmd_lab.result.posterior import Posterior
from nmd_lab.result.predict import mean_shares
from nmd_lab.result.report import cells_at

from .background import Array, Record, at_most, in_sample
from .charts import table
from .words import LEVEL, doubt

MAX_CHECKED = 5000  # cells that are looked at, a sample of more
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
