"""Entries that the user hides or reveals with a brush, and the code that does the same."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab.result.decomposition import Decomposition

from .frame import Frame

WIDTH = 92  # longest line of the code


class Paint:
    """What the brush has done to the entries of a matrix."""

    def __init__(self, shape: tuple[int, int]) -> None:
        # -1 for hidden entries, 1 for revealed ones, 0 for the others
        self.signs = np.zeros(shape, dtype=np.int8)

    @property
    def n_painted(self) -> int:
        """Number of entries that were hidden or revealed."""
        return int(np.count_nonzero(self.signs))

    def touched(
        self,
        frame: Frame,
        picture: int,
        points: Iterable[Sequence[float]],
        radius: float,
        *,
        hide: bool,
    ) -> Paint:
        """Return the paint after discs around some points of a picture have been touched."""
        result = Paint(self.signs.shape)
        result.signs = self.signs.copy()
        step, sign = frame.step, -1 if hide else 1
        for y, x in points:
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


class BeforeBrush(NamedTuple):
    """What was there before the first stroke of the brush after a run."""

    fit: Decomposition
    paint: Paint | None  # that of the fit
    saved: dict[str, Any]  # what brings it back, see `FitState.recall`


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
    lines, line = [], "   "
    for run in painted:
        text = f" {run},"
        if len(line) + len(text) > WIDTH:
            lines.append(line)
            line = "   "
        line += text
    body = "\n".join([*lines, line])
    return f"for row, begin, end in [\n{body}\n]:\n    mask[row, begin:end] = {word}\n"
