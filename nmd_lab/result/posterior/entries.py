"""Summaries of a posterior at entries, in blocks of bounded memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nmd_lab.result.entries import Entries

from .draws import NUMBERS, DrawnFactors
from .mixture import Predictive
from .noise import Array

Summary = Callable[[Predictive, Array, slice], Array]
"""A function of the distribution, of v (draws, entries), and of the place of these entries among
all, which returns one row for each entry."""


def summarise(posterior: DrawnFactors, entries: Entries, summary: Summary, width: int = 0) -> Array:
    """Return a summary of the draws at each entry."""
    predictive, size = posterior.predictive, entries.i.size
    out = np.empty((size, width) if width else size, posterior.dtype)
    step = max(NUMBERS // (posterior.n_draws * predictive.numbers), 1)
    for start in range(0, size, step):
        some = slice(start, min(start + step, size))
        i, j = entries.i[some], entries.j[some]
        out[some] = summary(predictive.at(i, j), posterior.linear_at(i, j), some)
    return out
