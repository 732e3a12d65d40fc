"""Values that repeat in a column, such as 0 for no pool, which new numbers hold too.

The predictive distribution of a number is smooth.  A value that repeats gets the numbers to which
it is the nearest one.  These, and those of other values between two that repeat, are then accepted
in proportion to a ratio: their count among the observed cells over the one that replicates of these
cells expect (A. Gelman, X.-L. Meng and H. Stern, "Posterior predictive assessment of model fitness
via realized discrepancies", Statistica Sinica 6, 733-807, 1996).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

REPEATED = 5
"""Smallest count of a value that repeats."""

PRIOR = 10
"""Number of cells by which both counts of a ratio are larger, so that few decide little."""

MOST_TRIES = 30
"""Numbers that are drawn for one cell at most."""


def has_repeated_value(observed: Array) -> bool:
    """Return whether a value repeats among the observed numbers of a column."""
    return bool(np.any(np.unique(observed, return_counts=True)[1] >= REPEATED))


class RepeatedValues(NamedTuple):
    """Parts of the line, some of which have one value.

    Attributes
    ----------
    edges : ndarray (K - 1,)
        Numbers between the parts.
    values : ndarray (K,)
        Value that repeats; NaN of a part between two of them.
    accepted : ndarray (K,)
        Probability with which a number in the part is accepted.
    """

    edges: Array
    values: Array
    accepted: Array

    @classmethod
    def of(cls, observed: Array, replicates: Array) -> RepeatedValues:
        """Return those of observed numbers (cells,), given replicates (draws, some cells)."""
        values, counts = np.unique(observed, return_counts=True)
        repeats = counts >= REPEATED
        first = np.flatnonzero(np.append(True, repeats[1:] | repeats[:-1]))  # of each part
        edges = 0.5 * (values[first[1:]] + values[first[1:] - 1])
        at = np.searchsorted(edges, replicates.ravel())
        expected = np.bincount(at, minlength=first.size) * (observed.size / replicates.size)
        ratios = (np.add.reduceat(counts, first) + PRIOR) / (expected + PRIOR)
        of_parts = np.where(repeats[first], values[first], np.nan)
        return cls(edges, of_parts, ratios / ratios.max())

    def draw(
        self,
        smooth: Callable[[NDArray[np.intp]], Array],
        size: int,
        rng: np.random.Generator,
    ) -> Array:
        """Return a new number of each cell, given draws of some from the smooth distribution."""
        found, again = np.empty(size), np.arange(size)
        for _ in range(MOST_TRIES):
            x = smooth(again)
            at = np.searchsorted(self.edges, x)
            found[again] = np.where(np.isnan(self.values[at]), x, self.values[at])
            again = again[rng.random(again.size) > self.accepted[at]]
            if not again.size:
                break
        return found
