"""Data as people bring them: the part that is fitted, what becomes of a table, and pictures.

Of data that are too large for a page that answers at once, some rows or fewer pixels are fitted.  A
fit, a result and the copied code are of this part alone, and the sentence names it.

Columns of a table may be left out.  Each change of another one is a line of code, which runs here
and stands in the copied code.

A matrix has hidden entries, at which models are compared.

A table is shown as one, each column on a scale of its own, with a histogram in its head.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from nmd_lab.data.cell_numbers import date_text
from nmd_lab.data.folds import split_observed
from nmd_lab.data.inputs import observe_dense
from nmd_lab.data.labels import is_frame, pandas_of, picture_of, plain_array
from nmd_lab.data.patches import CHANNELS
from nmd_lab.data.typed_table import (
    MAX_CATEGORIES,
    TypedColumn,
    TypedTable,
    kind_of_objects,
    plain_label,
)
from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.result.entries import entries_at
from nmd_lab.result.posterior import Posterior
from nmd_lab.result.predict import mean_shares
from nmd_lab.result.report import cells_at

from .background import MAX_JUDGED, Array, Judged, Record, Settings, Shape, at_most, in_sample
from .charts import table
from .pictures import Paint
from .words import LEVEL, doubt, expression, given_code

MAX_ENTRIES, ENTRIES = 2_000_000, 500_000  # of a matrix that is whole, and of some of its rows
MIN_ROWS = 2000  # rows of a wider matrix
MAX_PIXELS = 1_000_000  # of a photograph: 15 s of one processor until it is filled, colours 30 s


class Given(NamedTuple):
    """What is fitted of the data of a user, and the code that takes it, which has run here."""

    data: Any
    code: str = ""  # what takes them, behind the name of the data, such as ".to_pandas()"
    lines: str = ""  # lines that change X after it
    extent: str = "{}"  # the number of rows with that of all, or the part of the pixels, in words
    channels: int = 1  # neighbouring columns that make a pixel: 3 for a picture in colours
    rows: Any = None  # of a table: these rows with all of their columns
    left_out: Mapping[Any, str] = {}  # why, by the name of the column
    taken: Sequence[Any] = ()  # columns that could be left out, too
    button: tuple[str, str] | None = None  # takes such columns in, or leaves them out

    def loading(self, source: str | None, name: str = "X") -> str:
        """Return the lines that take data of a user; none if they are what they are to be."""
        code = self.code or ".copy()" * bool(self.lines)  # the data of the user stay as they are
        source = source or "X" * bool(code) or None
        if source == name and ".drop(" in code:  # so that it runs twice
            code = f'{code[:-1]}, errors="ignore")'
        return given_code(name, source, code) + self.lines

    def with_filled(self, filled: Any) -> Any:
        """Return what was filled, of a table with the columns that are left out."""
        if self.rows is None:
            return filled
        rows = self.rows.copy()
        rows[filled.columns] = filled
        return rows

    @property
    def words(self) -> str:
        """What is left out, and why; or what was taken in."""
        out = self.left_out
        by_reason = {why: [name for name, x in out.items() if x == why] for why in out.values()}
        said = ", ".join(f"{_named(names)} ({why})" for why, names in by_reason.items())
        words = {"left out: ": said, "taken in: ": _named(self.taken)}
        return "; ".join(word + names for word, names in words.items() if names)


def _named(names: Sequence[Any]) -> str:
    """Return the first of some names."""
    return ", ".join(map(str, names[:4])) + " …" * (len(names) > 4)


def taken(X: Any, code: str) -> Any:
    """Return what code behind the name of data takes of them."""
    return eval(f"X{code}", {"X": X, "np": np})


def as_given(X: Any, *, take: bool = False) -> Given:
    """Return data of a user as a fit takes them: a table with some columns, or a matrix."""
    if is_frame(frame := pandas_of(X)):
        to_pandas = "" if frame is X or isinstance(X, pd.DataFrame) else ".to_pandas()"
        return _as_table(frame, to_pandas, take=take)
    some, extent = some_pixels(X) if is_photograph(X) else some_rows(X)
    matrix, channels = _as_matrix(taken(X, some))
    return Given(taken(X, some + matrix), some + matrix, extent=extent, channels=channels)


def as_photograph(X: Any, *, whole: bool = False) -> Given:
    """Return the pixels of a photograph that are filled, without opacity."""
    some, extent = ("", "{}") if whole else some_pixels(X)
    some += "[..., :3]" * (np.shape(X)[2:] == (4,))
    return Given(taken(X, some), some, extent=extent)


def some_rows(X: Any) -> tuple[str, str]:
    """Return the code that takes a random sample of rows that are too many, in words too."""
    if not is_frame(X) and not isinstance(X, np.ndarray | xr.DataArray):
        return "", "{}"
    m, size = len(X), math.prod(X.shape)
    most = max(MIN_ROWS, int(float(f"{ENTRIES * m / max(size, 1):.1g}")))
    if size <= MAX_ENTRIES or m <= most:
        return "", "{}"
    code = f"[np.sort(np.random.default_rng(0).choice({m}, {most}, replace=False))]"
    if is_frame(X):
        code = f".sample({most}, random_state=0).sort_index()"
    return code, f"{{:,}} of {m:,}"


def some_pixels(X: Any) -> tuple[str, str]:
    """Return the code that takes a part of too many pixels of a photograph, in words too."""
    step = math.ceil(math.sqrt(math.prod(X.shape[:2]) / MAX_PIXELS))
    if step <= 1:
        return "", "{}"
    return f"[::{step}, ::{step}]", f"1 in {step**2} pixels of {{}}"


def _as_matrix(X: Any) -> tuple[str, int]:
    """Return the code that puts colours side by side and stacks dimensions, and the channels."""
    if isinstance(X, xr.DataArray) and X.ndim > 2:
        return f".stack(pixel={tuple(map(str, X.dims[1:]))!r})", 1
    if not isinstance(X, np.ndarray) or X.ndim != 3:
        return "", 1
    if X.shape[2] not in (3, 4):
        raise ValueError(
            f"X has the shape {X.shape}: give an image (height, width, 3), or images as rows, "
            f"explore(X.reshape(len(X), -1), shape={X.shape[1:]})."
        )
    return f"[..., :3].reshape({len(X)}, -1)", 3


ID = re.compile(r"(?i:(^|[_ -])id$)|[a-z]I[dD]$")  # end of the name of such a column

CLASSES = 'X[{}].map(str, na_action="ignore").astype("category")'
KINDS = {  # why a column is left out, and what makes numbers or classes of it, by what it holds
    "numbers": ("", "pd.to_numeric(X[{}])"),
    "date texts": ("", 'pd.to_datetime(X[{}], format="ISO8601")'),
    "durations": ("", "X[{}] / pd.Timedelta(seconds=1)"),
    "empty": ("no value", None),
    "words": ("numbers with words", 'pd.to_numeric(X[{}], errors="coerce")'),
    "identifiers": ("free text", CLASSES),
    "mixed": ("several types", CLASSES),
    "others": ("several types", CLASSES),
}
DIFFERENT = "all different"
TAKE = "take them in", "Fit these columns too: texts as classes, and numbers as they are"
LEAVE = "leave them out", "Fit without these columns"


def _as_table(whole: Any, to_pandas: str, *, take: bool) -> Given:
    """Return some rows of a table as a fit takes them.

    Its columns of names, numbers of rows and free text are left out, unless they are to be taken.
    """
    some, extent = some_rows(whole)
    frame, code = taken(whole, some), to_pandas + some
    as_it_is = Given(frame, code, extent=extent, rows=frame)
    if not frame.columns.is_unique or frame.columns.nlevels > 1:
        return as_it_is
    mostly_known = 2 * frame.count().sum() >= frame.size
    left_out, could, lines = dict[Any, str](), list[Any](), list[str]()
    for name, column in frame.items():
        why, change = _reason(column, whole[name], mostly_known=mostly_known)
        could += [plain_label(name)] * bool(why and change is not None)
        if why and (change is None or not take):
            left_out[plain_label(name)] = why
        elif change:
            here = expression(plain_label(name))
            lines.append(f"X[{here}] = {change.format(here)}\n")
    if len(left_out) == frame.shape[1]:
        return as_it_is
    table = frame.drop(columns=list(left_out)) if left_out or lines else frame
    exec("".join(lines), {"X": table, "pd": pd})  # which quotes all names
    return as_it_is._replace(
        data=table,
        code=code + f".drop(columns={expression(list(left_out))})" * bool(left_out),
        lines="".join(lines),
        left_out=left_out,
        taken=could if take else (),
        button=(LEAVE if take else TAKE) if could else None,
    )


def _reason(column: Any, whole: Any, *, mostly_known: bool) -> tuple[str, str | None]:
    """Return why a column is left out, if it is, and the code that takes it; None without any.

    `column` has those rows of the `whole` that are fitted.
    """
    kind = kind_of_objects(column) or ""
    if mostly_known and column.isna().all():
        kind = "empty"
    elif kind == "dates" and column.dtype == object:
        kind = "date texts"
    why, change = KINDS.get(kind, ("", ""))
    if change == CLASSES and column.map(str).nunique() > MAX_CATEGORIES:
        change = None
    numbers = pd.to_numeric(column) if kind == "numbers" else whole
    differs = kind == "identifiers" and column.dropna().is_unique
    return DIFFERENT if differs or _are_ids(whole.name, numbers) else why, change


def _are_ids(name: Any, column: Any) -> bool:
    """Return whether whole numbers are those of the rows, by their values or their name."""
    if getattr(column.dtype, "kind", "O") not in "iu" or not column.is_unique:
        return False
    n, low = len(column), column.min()
    counted = n >= 10 and low in (0, 1) and column.max() - low == n - 1
    return bool(counted or ID.search(str(name)))


NO_PICTURE = (0, 0)  # layout of rows that are no pictures, whatever their labels
MIN_SIDE = 48  # pixels along a side of a photograph


class MatrixData:
    """A matrix as arrays with NaN where an entry is missing, and what of it a fit gets."""

    def __init__(
        self, X: Any, values: Settings, layout: Shape | None, paint: Paint, table: TypedTable | None
    ) -> None:
        observations = observe_dense(X)
        self.labels, self.original = observations.labels, observations.to_array()
        if table is not None:  # of numbers in units of their own
            self.labels = replace(self.labels, table=table)
        share = float(values["missing"])
        # What the fit gets, with the labels of X, and a mask of what it sees of that
        self.seen = X if share == 0 else split_observed(X, share, int(values["seed"]))[0]
        self.observed, self.mask = observe_dense(self.seen).to_array(), None
        if paint.n_painted:
            self.seen, self.mask = X, paint.mask(~np.isnan(self.observed))
            self.observed = np.where(self.mask, self.original, np.nan)
        self.shape: tuple[int, int] = self.original.shape
        row = X[0] if isinstance(X, xr.DataArray) else xr.DataArray(np.zeros(self.shape[1]))
        self.picture = None if layout == NO_PICTURE else picture_of(row, layout)
        self.values, self.paint = dict(values), paint
        # Rows and columns of the entries that only the fit misses
        self.hidden = np.nonzero(np.isnan(self.observed) & ~np.isnan(self.original))
        self.hides = self.hidden[0].size > 0
        self.has_missing = bool(np.isnan(self.original).any())
        self.has_gaps = self.picture is None and self.has_missing  # in what is no picture
        self.limits = observations.range()

    @cached_property
    def judged(self) -> Judged:
        """Some of the held-out entries, or of those that are seen if there are none."""
        entries, most, where = self.hidden, 100_000, "held out"
        if not self.hides:
            entries, most, where = np.nonzero(~np.isnan(self.observed)), MAX_JUDGED, "where seen"
        rows, columns = (each[in_sample(each.size, most)] for each in entries)
        return Judged(self.original[rows, columns], rows, columns, where)

    @cached_property
    def unit(self) -> float:
        """What relative errors are multiplied by: nothing hidden leaves them relative."""
        if not self.hides or self.labels.table is not None:
            return 1.0
        return float(np.sqrt(np.nanmean(np.square(self.observed)))) or 1.0

    @cached_property
    def is_constant(self) -> bool:
        """Whether no column has two values, so that there is nothing to be guessed."""
        return not np.any(np.fmax.reduce(self.original) > np.fmin.reduce(self.original))

    @cached_property
    def scale(self) -> tuple[float, float]:
        """The ends of the grey scale: of a matrix, few large entries do not take all of it."""
        low, high = map(float, np.nanpercentile(self.original, (1, 99)))
        return self.limits if self.picture is not None or low == high else (low, high)


def guessed_shape(X: Array, most: float = 2.5, share: float = 0.75) -> tuple[int, int] | None:
    """Return the height and width of the pictures that rows seem to be, or None."""
    m, n = X.shape
    if n < 36 or m < 5:
        return None
    some = X[np.unique(np.linspace(0, m - 1, min(m, 200)).astype(int))]
    shuffled = np.random.default_rng(0).permutation(n)
    any_two = mean_difference(some, some[:, shuffled])
    best, shape = share, None
    for width in range(6, n // 6 + 1):
        height = n // width
        if n % width or max(height, width) > most * min(height, width):
            continue
        # Pixels one below the other are alike, more than those a column further left or right
        below, left, right = (
            mean_difference(some[:, :-lag], some[:, lag:]) / (any_two or 1.0)
            for lag in (width, width - 2, width + 2)
        )
        if below < best and below < 0.97 * min(left, right):
            best, shape = below, (height, width)
    return shape


def mean_difference(a: Array, b: Array) -> float:
    """Return the mean absolute difference of entries that are both there."""
    with np.errstate(all="ignore"):
        return float(pd.Series(np.abs(a - b).ravel()).mean())


def is_photograph(X: Any) -> bool:
    """Return whether data are one picture: in colours, or with neighbouring pixels alike."""
    if type(X) not in (np.ndarray, xr.DataArray) or X.dtype.kind not in "fiu":
        return False
    sides = X.shape[:2]
    if X.ndim == 3:
        named = isinstance(X, np.ndarray) or X.dims[-1] in CHANNELS
        return named and X.shape[-1] in (3, 4) and min(sides) >= MIN_SIDE // 2
    if X.ndim != 2 or min(sides) < MIN_SIDE or max(sides) > 4 * min(sides):
        return False
    pixels = plain_array(X).astype(float)
    return all(_are_alike(each) for each in (pixels, pixels.T))


def _are_alike(pixels: Array) -> bool:
    """Return whether rows are like the next ones, compared with any two."""
    other = np.random.default_rng(0).permutation(len(pixels))
    next_one = mean_difference(pixels[1:], pixels[:-1])
    return next_one < 0.6 * mean_difference(pixels, pixels[other])


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
