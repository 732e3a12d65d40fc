"""Data as people bring them: the part that is fitted, what becomes of a table, and pictures.

Of data that are too large for a page that answers at once, some rows or fewer pixels are fitted.  A
fit, a result and the copied code are of this part alone, and the sentence names it.

Columns of a table may be left out.  Each change of another one is a line of code, which runs here
and stands in the copied code.

A matrix has hidden entries, at which models are compared.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from nmd_lab.data.folds import split_observed
from nmd_lab.data.inputs import observe_dense
from nmd_lab.data.labels import Picture, is_frame, pandas_of, picture_of, plain_array
from nmd_lab.data.patches import CHANNELS
from nmd_lab.data.typed_table import MAX_CATEGORIES, TypedTable, kind_of_objects, plain_label

from .background import MAX_JUDGED, Judged, in_sample
from .pictures import Paint
from .printer import expression, given_code

MAX_ENTRIES, ENTRIES = 2_000_000, 500_000  # of a matrix that is whole, and of some of its rows
MIN_ROWS = 2000  # rows of a wider matrix
MAX_PIXELS = 1_000_000  # of a photograph: 15 s of one processor until it is filled, colours 30 s


class Subset(NamedTuple):
    """All of some data, or a part of them."""

    data: Any
    code: str = ""  # what takes the part, behind the name of the data; empty if they are whole
    words: str = "{}"  # the number of rows with that of the whole, or the part of the pixels

    def line(self, name: str) -> str:
        """Return the line that takes the part of data with a name."""
        return f"{name} = {name}{self.code.format(name)}\n" * bool(self.code)


def some_rows(X: Any) -> Subset:
    """Return a table or matrix, or a random sample of the rows if there are too many."""
    if not is_frame(X) and not isinstance(X, np.ndarray | xr.DataArray):
        return Subset(X)
    m, size = len(X), math.prod(X.shape)
    most = max(MIN_ROWS, int(float(f"{ENTRIES * m / max(size, 1):.1g}")))
    if size <= MAX_ENTRIES or m <= most:
        return Subset(X)
    words = f"{{:,}} of {m:,}"
    if is_frame(X):
        code = f".sample({most}, random_state=0).sort_index()"
        return Subset(X.sample(most, random_state=0).sort_index(), code, words)
    code = f"[np.sort(np.random.default_rng(0).choice(len({{}}), {most}, replace=False))]"
    rows = np.sort(np.random.default_rng(0).choice(m, most, replace=False))
    return Subset(X[rows], code, words)


def some_pixels(X: Any) -> Subset:
    """Return a photograph, or every so many rows and columns of one with too many pixels."""
    step = math.ceil(math.sqrt(math.prod(X.shape[:2]) / MAX_PIXELS))
    if step <= 1:
        return Subset(X)
    return Subset(X[::step, ::step], f"[::{step}, ::{step}]", f"1 in {step**2} pixels of {{}}")


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


class GivenTable(NamedTuple):
    """A table of pandas as a fit takes it."""

    frame: Any
    subset: Subset  # all rows, or some of them
    first: str  # code behind the name of the data, such as ".to_pandas()"
    lines: str  # lines that change X after it
    left_out: dict[Any, str]  # why, by the name of the column
    taken: list[Any]  # columns that could be left out, too
    can_take: bool  # whether one of them could be taken in

    def loading(self, source: str | None) -> str:
        """Return the lines that make X of the data with a name; none if these are X already."""
        first = self.first or ".copy()" * bool(self.lines)  # the data of the user stay as they are
        source = source or "X" * bool(first) or None
        if source == "X" and ".drop(" in first:  # so that it runs twice
            first = f'{first[:-1]}, errors="ignore")'
        return given_code("X", source, first) + self.lines

    @property
    def words(self) -> str:
        """What is left out, and why; or what was taken in."""
        by_reason: dict[str, list[str]] = {}
        for name, why in self.left_out.items():
            by_reason.setdefault(why, []).append(str(name))
        said = ", ".join(f"{_named(names)} ({why})" for why, names in by_reason.items())
        words = {"left out: ": said, "taken in: ": _named(self.taken)}
        return "; ".join(word + names for word, names in words.items() if names)


def _named(names: list[Any]) -> str:
    """Return the first of some names."""
    return ", ".join(map(str, names[:4])) + " …" * (len(names) > 4)


def as_table(X: Any, *, take: bool = False) -> GivenTable | None:
    """Return a table of any library as a fit takes it, None for other data.

    Its columns of names, numbers of rows and free text are left out, unless they are to be taken.
    """
    frame = pandas_of(X)
    if not is_frame(frame):
        return None
    first = "" if frame is X or isinstance(X, pd.DataFrame) else ".to_pandas()"
    whole, subset = frame, some_rows(frame)
    frame, first = subset.data, first + subset.code
    as_it_is = GivenTable(frame, subset, first, "", {}, [], can_take=False)
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
    first += f".drop(columns={expression(list(left_out))})" * bool(left_out)
    table = frame.drop(columns=list(left_out)) if left_out or lines else frame
    exec("".join(lines), {"X": table, "pd": pd})  # which quotes all names
    taken = could if take else []
    return GivenTable(table, subset, first, "".join(lines), left_out, taken, can_take=bool(could))


def with_filled(rows: Any, filled: Any) -> Any:
    """Return rows of a table that the user gave with some columns filled."""
    rows = rows.copy()
    rows[filled.columns] = filled
    return rows


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


Array = NDArray[Any]
NO_PICTURE = (0, 0)  # layout of rows that are no pictures, whatever their labels
MIN_SIDE = 48  # pixels along a side of a photograph


class Given(NamedTuple):
    """What the user gave, as a matrix."""

    matrix: Any  # the matrix
    channels: int = 1  # neighbouring columns that make a pixel: 3 for a picture in colours
    code: str = ""  # what makes the matrix, after the name ``images``; empty if given as it is


def as_matrix(X: Any) -> Given:
    """Return X as a matrix: colours side by side, all but the first dimension stacked."""
    if isinstance(X, xr.DataArray) and X.ndim > 2:
        dims = tuple(map(str, X.dims[1:]))
        return Given(X.stack(pixel=dims), code=f".stack(pixel={dims!r})")
    if not isinstance(X, np.ndarray) or X.ndim != 3:
        return Given(X)
    if X.shape[2] not in (3, 4):
        raise ValueError(
            f"X has the shape {X.shape}: give an image (height, width, 3), or images as rows, "
            f"explore(X.reshape(len(X), -1), shape={X.shape[1:]})."
        )
    return Given(X[..., :3].reshape(len(X), -1), 3, "[..., :3].reshape(len(images), -1)")


class MatrixData:
    """A matrix as arrays with NaN where an entry is missing, and what of it a fit gets."""

    def __init__(
        self,
        X: Any,
        values: Mapping[str, Any],
        layout: tuple[int, int] | None,
        channels: int,
        paint: Paint,
        table: TypedTable | None = None,
    ) -> None:
        observations = observe_dense(X)
        self.labels, self.original = observations.labels, observations.to_array()
        if table is not None:  # of numbers in units of their own
            self.labels = replace(self.labels, table=table)
        share = float(values["missing"])
        split = X if share == 0 else split_observed(X, share, int(values["seed"]))[0]
        self.seen = split  # what the fit gets, with the labels of X
        self.observed, self.mask = observe_dense(self.seen).to_array(), None
        if paint.n_painted:
            self.seen = X
            self.mask = paint.mask(~np.isnan(self.observed))  # what the fit sees of it
            self.observed = np.where(self.mask, observe_dense(self.seen).to_array(), np.nan)
        row = X[0] if isinstance(X, xr.DataArray) else xr.DataArray(np.zeros(self.shape[1]))
        is_plain = channels > 1 or layout == NO_PICTURE
        self.picture: Picture | None = None if is_plain else picture_of(row, layout)
        self.channels, self.values, self.paint = channels, dict(values), paint
        # Rows and columns of the entries that only the fit misses
        self.hidden = np.nonzero(np.isnan(self.observed) & ~np.isnan(self.original))
        self.hides = self.hidden[0].size > 0
        self.has_holes = bool(np.isnan(self.observed).any())
        self.has_missing = bool(np.isnan(self.original).any())

    @property
    def has_gaps(self) -> bool:
        """Whether entries of a matrix that is no picture are missing in the data."""
        return self.picture is None and self.has_missing

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        m, n = self.original.shape
        return m, n

    @cached_property
    def judged(self) -> Judged:
        """Some of the held-out entries, or of those that are seen if there are none."""
        entries, most = (
            (self.hidden, 100_000)
            if self.hides
            else (np.nonzero(~np.isnan(self.observed)), MAX_JUDGED)
        )
        rows, columns = (each[in_sample(each.size, most)] for each in entries)
        where = "held out" if self.hides else "where seen"
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

    @cached_property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest original value."""
        return float(np.nanmin(self.original)), float(np.nanmax(self.original))


def is_small(X: Any) -> bool:
    """Return whether a matrix has too few entries to hide some, or one row or column alone."""
    try:
        shape = np.shape(X)
    except ValueError:  # of rows of unequal lengths, of which the library tells
        return False
    return min(shape, default=0) == 1 or math.prod(shape) < 40


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
        differences = np.abs(a - b)
    finite = differences[np.isfinite(differences)]
    return float(finite.mean()) if finite.size else 0.0


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
