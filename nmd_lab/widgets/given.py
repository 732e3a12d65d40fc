"""Data as people bring them: the part that is fitted, what becomes of a table, and pictures.

Of data that are too large for a page that answers at once, some rows or fewer pixels are fitted.  A
fit, a result and the copied code are of this part alone, and the sentence names it.

Columns of a table may be left out.  Each change of another one is a line of code, which runs here
and stands in the copied code.

A matrix has hidden entries, at which models are compared.
"""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from IPython.core.getipython import get_ipython

from nmd_lab._runtime.checks import evenly
from nmd_lab.api.fits import complete, decompose
from nmd_lab.data.folds import split_observed
from nmd_lab.data.inputs import observe_dense
from nmd_lab.data.labels import is_frame, pandas_of, picture_of, plain_array
from nmd_lab.data.patches import CHANNELS
from nmd_lab.data.typed_table import MAX_CATEGORIES, TypedTable, kind_of_objects, plain_label
from nmd_lab.model.nonlinearity import Nonlinearity
from nmd_lab.request.settings import ADMM, as_solver

from .background import MAX_JUDGED, Array, Judged, Settings, Shape, in_sample
from .pictures import Paint

IMPORTS = {  # what a line uses, and the import; the library stands below a blank line
    "np.": "import numpy as np\n",
    "pd.": "import pandas as pd\n",
    "": "\nimport nmd_lab as nmd\n",
    "Image.open(": "from PIL import Image\n",
    "read_matrix(": "from nmd_lab.data.readers import read_matrix\n",
}

# Lines that print the number of the page
PRINT_ERROR = 'print(f"relative error {fit.relative_error:.4g}")\n'
PRINT_HIDDEN = 'print(f"held-out {}: ±{{{}:.3g}}")\n'
DAYS = """.assign(
        **{{name: (each[name] - pd.Timestamp(0)) / pd.Timedelta(days=1) for name in {}}}
    )"""
PRINT_NUMBERS = """numbers, known = (
    each{2}.select_dtypes("number").astype(float) for each in (held_out, seen)
)
off = {0}.reconstruct().to_pandas()[numbers.columns] - numbers
off /= known.std(ddof=0).replace(0, 1)
print(f"held-out numbers{1}: ±{{np.sqrt(np.nanmean(off**2)):.3g}} SD")
"""
PRINT_CLASSES = """classes = held_out.select_dtypes(exclude=["number", "datetime"])
right = {0}.impute(seen)[classes.columns] == classes
print(f"held-out classes{1}: {{100 * right.to_numpy()[classes.notna()].mean():.0f}} % right")
"""


def cell(lines: str) -> str:
    """Return a notebook cell: the imports that lines need, and the lines."""
    used = "".join(line for words, line in IMPORTS.items() if words in lines)
    return f"{used.lstrip()}\n{lines}"


def given_code(name: str, source: str | None, more: str = "") -> str:
    """Return the line that gives data a name; none where they have it already."""
    about = "" if source is not None and source.startswith("nmd.") else "  # your data"
    held = f"({source})" if more and " / " in (source or "") else source or "..."
    return "" if f"{source}{more}" == name else f"{name} = {held}{more}{about}\n"


class Code(str):
    """Code that stands for itself, not for a text."""


def expression(value: Any) -> str:
    """Return the code of a value.

    >>> import nmd_lab as nmd
    >>> expression(nmd.MinMax(0, 1)), expression("l1")
    ('nmd.MinMax(0.0, 1.0)', '"l1"')
    """
    if isinstance(value, Nonlinearity):
        kind, inner = type(value), ", ".join(map(repr, value.parameters))
        where = "nmd.nonlinearities" if value.form in (None, "monotone") else "nmd"
        return f"{where}.{kind.__name__}({inner})"
    if isinstance(value, ADMM):
        values = {f.name: (getattr(value, f.name), f.default) for f in fields(value)}
        return call("nmd.ADMM", **{name: x for name, (x, usual) in values.items() if x != usual})
    if isinstance(value, Code):
        return str(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{', '.join(map(expression, value))}]"
    return repr(value.item() if hasattr(value, "item") else value)


def call(function: str, *positional: str, **named: Any) -> str:
    """Return the code of a call, with an argument a line if it is too long for one."""
    arguments = [*positional, *(f"{name}={expression(value)}" for name, value in named.items())]
    line = f"{function}({', '.join(arguments)})"
    if len(line) <= 88:
        return line
    return f"{function}(\n" + "".join(f"    {argument},\n" for argument in arguments) + ")"


def fit_call(fit: Any, verb: str, data: str, arguments: Mapping[str, Any]) -> str:
    """Return the code of a fit, with its components by size."""
    named = dict(arguments)
    if fit is not None:  # it stops where the first one did
        # The iteration that overflowed is not part of the result, but it has to be repeated
        named["max_iter"] = fit._n_iter + (fit.stop_reason.code == "not finite")
        if "validation" in named:
            named["solver"] = replace(as_solver(named["solver"]), patience=named["max_iter"])
    function = {"decompose": decompose, "complete": complete}[verb]
    defaults = {name: each.default for name, each in inspect.signature(function).parameters.items()}
    if defaults["nonlinearity"] is None:
        has_ridge = named.get("alpha", defaults["alpha"]) != "auto"
        defaults["nonlinearity"] = "identity" if has_ridge else "auto"
    defaults["solver"] = as_solver(defaults["solver"])
    named = {name: value for name, value in named.items() if value != defaults[name]}
    return f"fit = {call(f'nmd.{verb}', data, **named)}.rotate()\n"


def name_in_notebook(value: Any) -> str | None:
    """Return the variable or the output that holds an object in the notebook, or None."""
    shell: Any = get_ipython()
    variables = {} if shell is None else shell.user_ns
    outputs = {f"Out[{number}]": held for number, held in variables.get("Out", {}).items()}
    held = (name for name, each in (variables | outputs).items() if each is value)
    return next((name for name in held if not name.startswith("_")), None)


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
    words: str = ""  # which columns are left out, and why; or which were taken in
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
    out, could, lines = dict[Any, str](), list[Any](), list[str]()  # left out, or could be
    for name, column in frame.items():
        why, change = _reason(column, whole[name], mostly_known=mostly_known)
        could += [plain_label(name)] * bool(why and change is not None)
        if why and (change is None or not take):
            out[plain_label(name)] = why
        elif change:
            here = expression(plain_label(name))
            lines.append(f"X[{here}] = {change.format(here)}\n")
    if len(out) == frame.shape[1]:
        return as_it_is
    table = frame.drop(columns=list(out)) if out or lines else frame
    exec("".join(lines), {"X": table, "pd": pd})  # which quotes all names
    by_reason = {why: [name for name, x in out.items() if x == why] for why in out.values()}
    said = ", ".join(f"{_named(names)} ({why})" for why, names in by_reason.items())
    words = {"left out: ": said, "taken in: ": _named(could if take else ())}
    return as_it_is._replace(
        data=table,
        code=code + f".drop(columns={expression(list(out))})" * bool(out),
        lines="".join(lines),
        words="; ".join(word + names for word, names in words.items() if names),
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

    def printing(self, model: str = "fit") -> str:
        """Return the lines that print the number of the page for a model."""
        if not self.hides:
            return PRINT_ERROR
        if self.labels.table is not None:
            columns, by = self.labels.table.columns, "" if model == "fit" else ", by draws"
            classes = [column.is_class for column in columns]
            codes = [PRINT_NUMBERS] * (not all(classes)) + [PRINT_CLASSES] * any(classes)
            dates = [column.name for column in columns if column.kind == "date"]
            days = DAYS.format(expression(dates)) if dates else ""
            return "".join(code.format(model, by, days) for code in codes)
        at, among = ("held_out", "") if self.mask is None else ("X", ", observed=~mask")
        rmse = f"nmd.metrics.rmse({at}, {model}.reconstruct(){among})"
        return PRINT_HIDDEN.format("entries", rmse)


def guessed_shape(X: Array, most: float = 2.5, share: float = 0.75) -> tuple[int, int] | None:
    """Return the height and width of the pictures that rows seem to be, or None."""
    m, n = X.shape
    if n < 36 or m < 5:
        return None
    some = X[evenly(m, 200)]
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
