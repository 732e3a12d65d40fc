"""The brush: which entries of a matrix it has hidden, and the code of their mask."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .pictures import Frame

MASK_WIDTH = 92  # longest line of the code of a mask
RAIN = 0.7  # fraction of the entries under the brush that rain hides
DRY = f"np.random.default_rng(0).random({{}}) >= {RAIN}"  # code of `dry`

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
        before = self if self.n_painted else None
        result.before = self.before if stroke.get("goes_on") else before
        picture, radius = int(stroke["picture"]), float(stroke["radius"])
        step, sign = frame.step, RAINED if stroke.get("rain") else HIDDEN
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
        shown = (self.signs == 0) | (self.signs == RAINED) & dry(self.signs.shape)
        return np.where(shown, observed, False)

    def code(self) -> str:
        """Return the lines that change an array ``mask`` in the same way; empty without paint."""
        loops = [_loop(runs(self.signs == sign), change) for sign, change in CHANGES.items()]
        before = f"dry = {DRY.format('mask.shape')}\n" if (self.signs == RAINED).any() else ""
        return before + "".join(loops)


def dry(shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return the entries that rain does not hide, which are always the same."""
    return np.random.default_rng(0).random(shape) >= RAIN


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


def _loop(painted: list[tuple[int, int, int]], change: str) -> str:
    """Return a loop that changes runs of ``mask``."""
    if not painted:
        return ""
    listed = " ".join(f"{run},".replace(" ", "_") for run in painted)  # no line ends within a run
    body = textwrap.indent(textwrap.fill(listed, MASK_WIDTH - 4), "    ").replace("_", " ")
    return f"for row, begin, end in [\n{body}\n]:\n    mask[row, begin:end] {change}\n"


def mask_code(seen: str, paint: Paint) -> str:
    """Return the lines that make the mask of what is seen."""
    return f"mask = np.isfinite(np.asarray({seen}, dtype=float))\n{paint.code()}"
