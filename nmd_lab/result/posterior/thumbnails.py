"""Small pictures of a posterior: mean and standard deviation at some entries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from nmd_lab._thumbnails import picture
from nmd_lab.data.labels import COMPONENT
from nmd_lab.result.thumbnail import Positions, small_picture

from .draws import CHAIN, DRAW
from .kernels import Array
from .mixture import Predictive
from .summaries import mean_of, std_of

FEW = 24
"""Draws of which the pictures are made."""

NUMBERS, FEWEST = 1 << 21, 6
"""Numbers of W and H in the draws that a representation reads, and least number of draws."""


def few_draws(posterior: Any, most: int) -> Any:
    """Return a posterior of about so many of the draws, evenly spaced; of fewer large ones."""
    sizes = posterior.draws.sizes
    most = min(most, max(NUMBERS // (sum(posterior.shape) * posterior.rank), FEWEST))
    step = -(-sizes[DRAW] // max(most // sizes[CHAIN], 1))
    draws = posterior.draws.isel({CHAIN: slice(most), DRAW: slice(None, None, step)})
    return replace(posterior, draws=draws)


def thumbnails(posterior: Any) -> list[str]:
    """Return pictures of the mean and the standard deviation of f(WH), from some of the draws."""
    few = few_draws(posterior, FEW)

    def drawn(name: str, summary: Callable[[Predictive, Array], Array]) -> str:
        def block(i: Positions, j: Positions) -> Array:
            rows, columns = (each.ravel() for each in np.meshgrid(i, j, indexing="ij"))
            values = summary(few.predictive.at(rows, columns), few.linear_block(i, j))
            return values.reshape(i.size, j.size)

        columns = few.draws["H"].isel({CHAIN: 0, DRAW: 0, COMPONENT: 0}, drop=True)
        each = few.kinds is not None
        return picture(small_picture(few.shape[0], columns, block, by_column=each), name)

    return [
        drawn("mean", mean_of),
        drawn("standard deviation", lambda p, v: std_of(p, v, noise=False)),
    ]
