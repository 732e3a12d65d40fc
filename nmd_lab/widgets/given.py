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
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from nmd_lab.data.folds import split_observed
from nmd_lab.data.inputs import observe_dense
from nmd_lab.data.labels import is_frame, pandas_of, picture_of, plain_array
from nmd_lab.data.patches import CHANNELS
from nmd_lab.data.typed_table import MAX_CATEGORIES, TypedTable, kind_of_objects, plain_label

from .background import MAX_JUDGED, Array, Judged, Settings, Shape, in_sample
from .pictures import Paint
from .printer import expression, given_code

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
