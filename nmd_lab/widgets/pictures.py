"""Pictures as numbers, as HTML without a kernel, and the brush that hides entries of a matrix."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.checks import evenly, many
from nmd_lab._runtime.html import image
from nmd_lab.data.labels import Picture
from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.result.entries import entries_at
from nmd_lab.result.posterior import Posterior
from nmd_lab.result.summary import mosaic

from .background import Array, Judged, Record, Shape, at_most

MANY_MISSING = 0.25  # fraction of hidden entries from which data are shown without them
BEYOND = 0.05  # fraction of the uncertain entries that are beyond the end of their scale
MAX_VALUES = 4_000_000  # largest number of entries of which the data are sent, as a byte each
MAX_PIXELS = 640  # along a side; of longer sides, each pixel is a mean
MAX_ROWS = 40  # number of rows that are sent if each is a picture; a page shows those that fit

Rows = NDArray[np.intp]


class Frame(NamedTuple):
    """Entries of a matrix as pictures."""

    rows: Rows
    columns: Rows  # the entries are those at the crossings
    n_pictures: int  # number and size of the pictures; 3 channels for colours
    height: int
    width: int
    channels: int
    step: int  # each pixel is the mean of so many rows and columns of the matrix
    picture: Picture | None  # layout of a row, if each is a picture

    @property
    def size(self) -> dict[str, int]:
        """Size of a picture, by the names that the page has for it."""
        return {"height": self.height, "width": self.width, "channels": self.channels}

    def arranged(self, values: Array) -> bytes:
        """Return the values at the crossings, picture after picture, as float32."""
        if self.picture is not None:
            values = np.stack([self.picture(row) for row in values])
        return np.ascontiguousarray(values, dtype="<f4").tobytes()

    def means(self, shape: tuple[int, int], block: Callable[[Rows, Rows], Array]) -> Array:
        """Return the entries of a matrix, means of those in one pixel.

        A block has the entries at the crossings of rows and columns.
        """
        if self.step == 1:
            return block(self.rows, self.columns)
        m, n = shape
        count = self.step if m * n <= 8_000_000 else min(self.step, 3)  # a side
        steps = evenly(self.step, count)
        blocks: list[Array] = []
        for down, right in product(steps[steps < m], steps[steps * self.channels < n]):
            rows, columns = self.rows + down, self.columns + right * self.channels
            values = block(rows[rows < m], columns[columns < n])
            around = rows.size - len(values), columns.size - values.shape[1]
            blocks.append(np.pad(values, [(0, each) for each in around], constant_values=np.nan))
        means: Array = np.ma.masked_invalid(blocks).mean(axis=0).filled(np.nan)
        return means


def frame_of(
    shape: Shape, picture: Picture | None, channels: int = 1, rows: Rows | None = None
) -> Frame:
    """Return what is shown of a matrix."""
    m, n = shape
    if picture is not None:
        if rows is None or not rows.size:
            rows = evenly(m, MAX_ROWS)
        return Frame(rows, np.arange(n), rows.size, *picture.shape, 1, 1, picture)
    step = max(1, math.ceil(max(m, n // channels) / at_most(MAX_PIXELS, 400)))
    every = np.arange(0, m, step)
    pixels = np.arange(0, n // channels, step)
    columns = (pixels[:, None] * channels + np.arange(channels)).ravel()
    return Frame(every, columns, 1, every.size, pixels.size, channels, step, None)


def end_of_scale(spread: Array, paint: Paint, frame: Frame) -> float:
    """Return the uncertainty that has the deepest colour: few entries that are seen have more."""
    unsure = spread > 0
    if paint.n_painted and (unpainted := unsure & ~paint.touches(frame)).any():
        unsure = unpainted
    return float(np.quantile(spread[unsure], 1 - BEYOND)) if unsure.any() else 0.0


def at(frame: Frame, matrix: Array) -> Array:
    """Return a matrix at the entries of a frame; as many pixels are missing as there are entries.

    A mean of several entries is missing if the first one is.
    """
    m, n = matrix.shape
    means = frame.means((m, n), lambda i, j: matrix[np.ix_(i, j)])
    return np.where(np.isnan(matrix[np.ix_(frame.rows, frame.columns)]), np.nan, means)


def drawn_at(posterior: Posterior, frame: Frame) -> tuple[Array, Array]:
    """Return mean and standard deviation of the posterior at the entries of a frame."""
    entries, shape = entries_at(frame.rows[:, None], frame.columns), (-1, frame.columns.size)
    spread = posterior.predict_std(entries, noise=False)
    return np.reshape(posterior.predict(entries), shape), np.reshape(spread, shape)


def drawing_part(
    fitted: FittedValues, frame: Frame, rows: Array, X: Array | None, judged: Judged | None = None
) -> Record | None:
    """Return the numbers to draw f(WH) with; None for wide rows and several kinds of columns."""
    n = fitted.shape[1]
    if fitted.model.is_mixed or n > 4096 * frame.channels:
        return None
    of_rows, of_columns = fitted.offsets_at(slice(None), slice(None))  # two more components
    every_W = np.column_stack([fitted.W, of_rows, np.ones_like(of_rows)])
    every_H = np.vstack([fitted.H, np.ones_like(of_columns), of_columns])
    shown, H, W = every_W[frame.rows], every_H[:, frame.columns], every_W[rows]
    # With some of the components; the pointer reaches values that no row has
    high = 2 * float((np.abs(shown) @ np.abs(H)).max()) or 1.0
    steps = at_most(8192, 1024)  # of the table of f on each side of 0, where it may have a kink
    with np.errstate(all="ignore"):
        table = fitted.model.expected(high / steps * np.arange(-steps, steps + 1))
    errors, lost, ranks = list[float](), list[float](), range(fitted.W.shape[1])
    if judged is not None:  # of the first k components, from k = 0, and without each
        errors = [judged.error(fitted.without(ranks[k:])) for k in (*ranks, len(ranks))]
        lost = [judged.error(fitted.without([k])) for k in ranks]
    is_rows = frame.picture is not None
    codes = X is not None and is_rows and rows.size * n <= MAX_VALUES
    return {
        **frame.size,
        "rank": H.shape[0],
        "W": np.ascontiguousarray(W, dtype="<f4").tobytes() if is_rows else None,
        "shown": np.ascontiguousarray(shown, dtype="<f4").tobytes(),
        "H": frame.arranged(H),
        "low": -high,
        "high": high,
        "table": np.ascontiguousarray(table, dtype="<f4").tobytes(),
        "data": as_bytes(frame.arranged(X[rows])) if codes and X is not None else None,
        "errors": errors,
        "lost": lost,
        "where": "" if judged is None else judged.where,
    }


def as_bytes(values: bytes) -> Record:
    """Return float32 numbers as codes 0 to 254, and what these stand for; 255 stands for NaN."""
    numbers = np.frombuffer(values, "<f4")
    low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
    codes = np.nan_to_num((numbers - low) * (254 / ((high - low) or 1.0)), nan=255)
    return {"low": low, "high": high, "codes": np.rint(codes).astype(np.uint8).tobytes()}


WIDTH = 480  # of data and model side by side on the screen, in pixels


def still_html(pictures: Mapping[str, Any], modelled: bytes | None) -> str:
    """Return data and model of a page next to one another, as one picture in HTML."""
    layers = {"data": pictures["seen"] or pictures["original"], "model": modelled}
    shown = {name: layer for name, layer in layers.items() if layer}
    size = [pictures[name] for name in ("count", "height", "width", "channels")]
    if not shown:
        return ""
    tiles, across = (np.frombuffer(x, "<f4") for x in shown.values()), math.ceil(size[0] ** 0.5)
    sides = [mosaic(each.reshape(size), across) for each in tiles]
    picture = np.concatenate(sides, axis=1)[:-1, :-1]
    picture = picture[tuple(slice(None, None, -(-max(picture.shape) // 400)) for _ in "yx")]
    share = (picture - pictures["low"]) / ((pictures["high"] - pictures["low"]) or 1.0)
    levels = (255 * np.clip(np.nan_to_num(share, nan=1.0), 0, 1)).astype(np.uint8)
    levels = levels.squeeze(-1) if size[3] == 1 else levels
    height = round(min(max(WIDTH / levels.shape[1], 0.2), 8) * levels.shape[0])
    said = f"{', '.join(shown)}: {many(size[0], 'image')} of {size[1]} x {size[2]}"
    return image(levels, said, WIDTH, height, "jpeg" if size[0] == 1 else "png")


RAIN = 0.7  # fraction of the entries under the brush that rain hides

# What the brush does to an entry, and the code that does it to a run of them
HIDDEN, RAINED = -1, -2
STROKES = {"rain": RAINED, "solid": HIDDEN}
CHANGES = {HIDDEN: "= False", RAINED: "&= dry[row, begin:end]"}


class Paint:
    """What the brush has done to the entries of a matrix."""

    def __init__(self, shape: tuple[int, int]) -> None:
        # What was done to each entry: `HIDDEN`, `RAINED`, or 0 for nothing
        self.signs = np.zeros(shape, dtype=np.int8)
        self.before: Paint | None = None  # before the last stroke

    @property
    def n_painted(self) -> int:
        """Number of entries under strokes."""
        return int(np.count_nonzero(self.signs))

    def touched(self, frame: Frame, stroke: Mapping[str, Any]) -> Paint:
        """Return the paint after a stroke: discs of a radius around points of a picture."""
        result = Paint(self.signs.shape)
        result.signs = self.signs.copy()
        result.before = self.before if stroke.get("goes_on") else self
        radius, (m, n), step = float(stroke["radius"]), self.signs.shape, frame.step
        sign = RAINED if stroke.get("rain") else HIDDEN
        for y, x in stroke["points"]:
            if frame.picture is None:
                centre = (y + 0.5) * step - 0.5, (x + 0.5) * step - 0.5
                under = disc((m, n // frame.channels), *centre, radius * step)
                result.signs[np.repeat(under, frame.channels, axis=1)] = sign
            else:
                under = disc((frame.height, frame.width), y, x, radius).ravel()
                row = frame.rows[int(stroke["picture"])]
                result.signs[row, under[frame.picture.positions]] = sign
        return result

    def touches(self, frame: Frame) -> NDArray[np.bool_]:
        """Return which entries of a frame are under strokes; of colours, all of a pixel."""
        channels = frame.columns.max() // self.signs.shape[1] + 1
        return at(frame, np.repeat(1.0 * (self.signs != 0), channels, axis=1)) > 0

    def mask(self, observed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which entries a fit sees, of those that it saw before."""
        dry = np.random.default_rng(0).random(self.signs.shape) >= RAIN  # always the same
        return np.where((self.signs == 0) | (self.signs == RAINED) & dry, observed, False)

    def in_words(self, words: Callable[[str, Array], str], hidden: Array) -> str:
        """Return a line for each kind of strokes that hide some entries, given `words` on these."""
        under = {stroke: (self.signs == sign) & hidden for stroke, sign in STROKES.items()}
        said = (words(stroke, each) for stroke, each in under.items() if each.any())
        return ".\n".join(filter(None, said))

    def code(self) -> str:
        """Return the lines that change an array ``mask`` in the same way; empty without paint."""
        loops = [_loop(runs(self.signs == sign), change) for sign, change in CHANGES.items()]
        dry = f"dry = np.random.default_rng(0).random(mask.shape) >= {RAIN}\n"
        return dry * bool((self.signs == RAINED).any()) + "".join(loops)


def disc(shape: Shape, y: float, x: float, radius: float) -> NDArray[np.bool_]:
    """Return which pixels have centres within a radius of a point."""
    i, j = np.ogrid[: shape[0], : shape[1]]
    return np.asarray((i - y) ** 2 + (j - x) ** 2 <= radius**2)


def runs(painted: NDArray[np.bool_]) -> list[tuple[int, int, int]]:
    """Return row, first column and column after the last of each run of painted entries.

    >>> runs(np.array([[0, 1, 1], [1, 0, 1]], dtype=bool))
    [(0, 1, 3), (1, 0, 1), (1, 2, 3)]
    """
    edges = np.diff(painted.astype(np.int8), axis=1, prepend=0, append=0)
    (rows, begins), (_, ends) = np.nonzero(edges == 1), np.nonzero(edges == -1)
    return list(zip(rows.tolist(), begins.tolist(), ends.tolist(), strict=True))


def _loop(painted: list[tuple[int, int, int]], change: str) -> str:
    """Return a loop that changes runs of ``mask``."""
    if not painted:
        return ""
    listed = " ".join(f"{run},".replace(" ", "_") for run in painted)  # no line ends within a run
    body = textwrap.indent(textwrap.fill(listed, 88), "    ").replace("_", " ")
    return f"for row, begin, end in [\n{body}\n]:\n    mask[row, begin:end] {change}\n"


def mask_code(seen: str, paint: Paint) -> str:
    """Return the lines that make the mask of what is seen."""
    return f"mask = np.isfinite(np.asarray({seen}, dtype=float))\n{paint.code()}"
