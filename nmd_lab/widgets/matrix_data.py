"""The matrix of an explorer, with noise, without some entries, and under the brush; its code."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab import datasets
from nmd_lab.data.inputs import observe_dense
from nmd_lab.data.labels import Picture, picture_of
from nmd_lab.data.split import split_observed
from nmd_lab.result.decomposition import Decomposition

from .background import HiddenEntries
from .code import Code, call, fit_call
from .pictures import Frame

NOISES = ("none", "gaussian", "salt_and_pepper", "poisson")  # functions of `nmd_lab.datasets`
NO_PICTURE = (0, 0)  # layout of rows that are no pictures, whatever their labels
MASK_WIDTH = 92  # longest line of the code of a mask


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
            f"X has the shape {X.shape}: give a picture (height, width, 3), or pictures as rows, "
            f"explore(X.reshape(len(X), -1), shape={X.shape[1:]})."
        )
    return Given(X[..., :3].reshape(len(X), -1), 3, "[..., :3].reshape(len(images), -1)")


def as_shape(text: str) -> tuple[int, int]:
    """Return the height and width in a text.

    >>> as_shape("8 x 6")
    (8, 6)
    """
    sides = text.lower().replace("×", "x").replace(",", "x").strip("() ").split("x")
    if len(sides) != 2 or not all(side.strip().isdecimal() for side in sides):
        raise ValueError(
            f"shape={text!r} is no shape: give auto, none, or height x width, as 28 x 28."
        )
    height, width = (int(side) for side in sides)
    return height, width


def corrupted(X: Any, values: Mapping[str, Any]) -> Any:
    """Return X with noise added and with entries removed."""
    seed = int(values["seed"])
    if values["noise"] != "none":
        X = getattr(datasets, values["noise"])(X, values["level"], random_state=seed)
    if values["missing"] != 0:
        X, _ = split_observed(X, float(values["missing"]), seed)
    return X


def corrupting_code(values: Mapping[str, Any]) -> tuple[str, str]:
    """Return the code of `corrupted`, and the name of the matrix that the fit gets."""
    lines, name, seed = "", "X", int(values["seed"])
    if values["noise"] != "none":
        noisy = call(
            f"nmd.datasets.{values['noise']}", name, repr(values["level"]), random_state=seed
        )
        lines, name = f"noisy = {noisy}\n", "noisy"
    if values["missing"] > 0:
        split = call("nmd.split_observed", name, repr(float(values["missing"])), random_state=seed)
        lines, name = f"{lines}seen, held_out = {split}\n", "seen"
    return lines, name


class MatrixData:
    """A matrix as arrays with NaN where an entry is missing, and what of it a fit gets."""

    def __init__(
        self,
        X: Any,
        values: Mapping[str, Any],
        layout: tuple[int, int] | None,
        channels: int = 1,
        paint: Paint | None = None,
    ) -> None:
        observations = observe_dense(X)
        self.labels, self.original = observations.labels, observations.to_array()
        self.seen = corrupted(X, values)  # what the fit gets, with the labels of X
        self.observed, self.mask = observe_dense(self.seen).to_array(), None
        if paint is not None and paint.n_painted:
            self.seen = corrupted(X, {**values, "missing": 0})
            self.mask = paint.mask(~np.isnan(self.observed))  # what the fit sees of it
            self.observed = np.where(self.mask, observe_dense(self.seen).to_array(), np.nan)
        row = X[0] if isinstance(X, xr.DataArray) else xr.DataArray(np.zeros(self.shape[1]))
        is_plain = channels > 1 or layout == NO_PICTURE
        self.picture: Picture | None = None if is_plain else picture_of(row, layout)
        self.channels, self.values, self.paint = channels, dict(values), paint
        # Rows and columns of the entries that only the fit misses
        self.hidden = np.nonzero(np.isnan(self.observed) & ~np.isnan(self.original))
        self.has_holes = bool(np.isnan(self.observed).any())

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        m, n = self.original.shape
        return m, n

    @cached_property
    def unseen(self) -> HiddenEntries:
        """The entries where the iterates of a fit are measured."""
        rows, columns = self.hidden
        return HiddenEntries(self.original, rows, columns, seen=self.observed)

    @cached_property
    def observed_limits(self) -> tuple[float, float]:
        """The smallest and the largest value that the fit sees."""
        return float(np.nanmin(self.observed)), float(np.nanmax(self.observed))

    @cached_property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest original value."""
        return float(np.nanmin(self.original)), float(np.nanmax(self.original))


class Paint:
    """What the brush has done to the entries of a matrix."""

    def __init__(self, shape: tuple[int, int]) -> None:
        # -1 for hidden entries, 1 for revealed ones, 0 for the others
        self.signs = np.zeros(shape, dtype=np.int8)
        self.before: Paint | None = None  # before the last stroke

    @property
    def n_painted(self) -> int:
        """Number of entries that were hidden or revealed."""
        return int(np.count_nonzero(self.signs))

    def touched(self, frame: Frame, stroke: Mapping[str, Any]) -> Paint:
        """Return the paint after a stroke: discs of a radius around points of a picture."""
        result = Paint(self.signs.shape)
        result.signs = self.signs.copy()
        result.before = self.before if stroke.get("goes_on") else self
        picture, radius = int(stroke["picture"]), float(stroke["radius"])
        step, sign = frame.step, -1 if stroke["hide"] else 1
        for y, x in stroke["points"]:
            if frame.picture is None:
                m, n = self.signs.shape
                centre = (y + 0.5) * step - 0.5, (x + 0.5) * step - 0.5
                rows, pixels = disc((m, n // frame.channels), *centre, radius * step)
                for channel in range(frame.channels):
                    result.signs[rows, pixels * frame.channels + channel] = sign
            else:
                rows, columns = disc((frame.height, frame.width), y, x, radius)
                at = frame.columns_at(rows * frame.width + columns)
                result.signs[frame.rows[picture], at] = sign
        return result

    def mask(self, observed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which entries a fit sees, of those that it saw before."""
        return np.where(self.signs == 0, observed, self.signs > 0)

    def code(self) -> str:
        """Return the lines that change an array ``mask`` in the same way; empty without paint."""
        return "".join(
            _loop(runs(self.signs == sign), word) for sign, word in ((-1, "False"), (1, "True"))
        )


def disc(
    shape: tuple[int, int], y: float, x: float, radius: float
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows and columns of the pixels whose centres are within a radius of a point."""
    height, width = shape
    (top, bottom), (left, right) = (
        np.clip([math.ceil(at - radius), math.floor(at + radius) + 1], 0, size)
        for at, size in ((y, height), (x, width))
    )
    i, j = np.arange(top, bottom)[:, None], np.arange(left, right)
    inside = (i - y) ** 2 + (j - x) ** 2 <= radius**2
    rows, columns = np.nonzero(inside)
    return rows + top, columns + left


def runs(painted: NDArray[np.bool_]) -> list[tuple[int, int, int]]:
    """Return row, first column and column after the last of each run of painted entries.

    >>> runs(np.array([[0, 1, 1], [1, 0, 1]], dtype=bool))
    [(0, 1, 3), (1, 0, 1), (1, 2, 3)]
    """
    edges = np.diff(painted.astype(np.int8), axis=1, prepend=0, append=0)
    (rows, begins), (_, ends) = np.nonzero(edges == 1), np.nonzero(edges == -1)
    return list(zip(rows.tolist(), begins.tolist(), ends.tolist(), strict=True))


def _loop(painted: list[tuple[int, int, int]], word: str) -> str:
    """Return a loop that sets runs of ``observed``."""
    if not painted:
        return ""
    listed = " ".join(f"{run},".replace(" ", "_") for run in painted)  # no line ends within a run
    body = textwrap.indent(textwrap.fill(listed, MASK_WIDTH - 4), "    ").replace("_", " ")
    return f"for row, begin, end in [\n{body}\n]:\n    mask[row, begin:end] = {word}\n"


def fitting_code(
    data: MatrixData,
    arguments: Mapping[str, Any],
    result: Decomposition | None,
    before: Mapping[str, Any] | None,
) -> str:
    """Return the lines that add noise and gaps to X, and fit: before strokes and after them."""
    lines, seen = corrupting_code(data.values)
    # Without a choice there are no offsets to name
    named = {k: v for k, v in arguments.items() if k != "offsets" or arguments["alpha"] == "auto"}

    def fit(result: Decomposition | None, paint: Paint | None, **options: Any) -> str:
        if paint is None or not paint.n_painted:
            holes = data.values["missing"] > 0 or bool(np.isnan(data.original).any())
            verb = "complete" if holes or options else "decompose"
            return fit_call(result, verb, seen, named | options)
        _, noisy = corrupting_code({**data.values, "missing": 0})
        options["observed"] = Code("mask")
        return mask_code(seen, paint) + fit_call(result, "complete", noisy, named | options)

    if before is None:
        return lines + fit(result, data.paint)
    first = fit(before["fit"]["result"], before["fitted_data"].paint)
    return lines + first + fit(result, data.paint, init=Code("fit"))


def mask_code(seen: str, paint: Paint) -> str:
    """Return the lines that make the mask of what is seen."""
    return f"mask = np.isfinite(np.asarray({seen}, dtype=float))\n{paint.code()}"


def loading_lines(source: str | None, making: str, *, is_own: bool) -> str:
    """Return the lines that give X."""
    if making:
        lines = "" if source == "images" else f"images = {source or '...'}  # your data\n"
        return f"{lines}X = images{making}\n"
    if source == "X":
        return ""
    return f"X = {source or '...'}{'  # your data' if is_own else ''}\n"


def guessed_shape(
    X: NDArray[Any], most: float = 2.5, share: float = 0.75
) -> tuple[int, int] | None:
    """Return the height and width of the pictures that rows seem to be, or None."""
    m, n = X.shape
    if n < 36 or m < 5:
        return None
    some = X[np.unique(np.linspace(0, m - 1, min(m, 200)).astype(int))]
    shuffled = np.random.default_rng(0).permutation(n)
    any_two = _difference(some, some[:, shuffled])
    best, shape = share, None
    for width in range(6, n // 6 + 1):
        height = n // width
        if n % width or max(height, width) > most * min(height, width):
            continue
        # Pixels one below the other are alike, more than those a column further left or right
        below, left, right = (
            _difference(some[:, :-lag], some[:, lag:]) / (any_two or 1.0)
            for lag in (width, width - 2, width + 2)
        )
        if below < best and below < 0.97 * min(left, right):
            best, shape = below, (height, width)
    return shape


def _difference(a: NDArray[Any], b: NDArray[Any]) -> float:
    """Return the mean absolute difference of entries that are both there."""
    with np.errstate(all="ignore"):
        differences = np.abs(a - b)
    finite = differences[np.isfinite(differences)]
    return float(finite.mean()) if finite.size else 0.0
