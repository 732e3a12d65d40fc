"""What each row of a posterior has for itself."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.base import FloatArray


class DrawsOfRows(NamedTuple):
    """What each row has for itself in each draw.

    Attributes
    ----------
    vectors : ndarray (draws, m, rank [+ 1])
        Rows of W, with their offsets if there are some.
    levels : dict of ndarray (draws, m)
        Noise levels, by the names of the draws; empty if rows have none.
    """

    vectors: FloatArray
    levels: dict[str, FloatArray]

    def at(self, positions: NDArray[np.integer], others: DrawsOfRows | None = None) -> DrawsOfRows:
        """Return some rows; where a position is -1, the next row of others."""

        def chosen(ours: FloatArray, theirs: FloatArray | None) -> FloatArray:
            rows = ours[:, positions]
            if theirs is not None:
                rows[:, positions < 0] = theirs
            return rows

        levels = {
            name: chosen(each, None if others is None else others.levels[name])
            for name, each in self.levels.items()
        }
        return DrawsOfRows(chosen(self.vectors, None if others is None else others.vectors), levels)
