"""Values that repeat in a column, such as 0 for no pool, which new numbers hold too.

The predictive distribution of a number is smooth.  The values that repeat divide the numbers into
intervals: one around each value that repeats, up to the middle between it and the next observed
value, and one between two of them.  A number in the interval of a value becomes this value.
Numbers are weighed by a ratio of their interval: the count of its observed cells over the one that
replicates of these cells expect (A. Gelman, X.-L. Meng and H. Stern, "Posterior predictive
assessment of model fitness via realized discrepancies", Statistica Sinica 6, 733-807, 1996).
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
"""Largest number of draws for a cell; if none is accepted, one of them is taken by its weight."""


def has_repeated_value(observed: Array) -> bool:
    """Return whether a value repeats among the observed numbers of a column."""
    return bool(np.any(np.unique(observed, return_counts=True)[1] >= REPEATED))


class RepeatedValues(NamedTuple):
    """Intervals of numbers; in some of them each number becomes the same value.

    Attributes
    ----------
    edges : ndarray (K - 1,)
        Ends of the intervals.
    values : ndarray (K,)
        Value that repeats; NaN for an interval between two of them.
    accepted : ndarray (K,)
        Probability with which a number in the interval is accepted.
    """

    edges: Array
    values: Array
    accepted: Array

    @classmethod
    def of(cls, observed: Array, replicates: Array) -> RepeatedValues:
        """Return the intervals for observed numbers (cells,) and replicates (draws, some cells)."""
        values, counts = np.unique(observed, return_counts=True)
        repeats = counts >= REPEATED
        first = np.flatnonzero(np.append(True, repeats[1:] | repeats[:-1]))  # of each interval
        edges = 0.5 * (values[first[1:]] + values[first[1:] - 1])
        at = np.searchsorted(edges, replicates.ravel())
        expected = np.bincount(at, minlength=first.size) * (observed.size / replicates.size)
        ratios = (np.add.reduceat(counts, first) + PRIOR) / (expected + PRIOR)
        return cls(edges, np.where(repeats[first], values[first], np.nan), ratios / ratios.max())

    def draw(
        self,
        smooth: Callable[[NDArray[np.intp]], Array],
        size: int,
        rng: np.random.Generator,
    ) -> Array:
        """Return a new number of each cell; `smooth` draws some cells without repeated values."""
        found, total, again = np.empty(size), np.zeros(size), np.arange(size)
        for _ in range(MOST_TRIES):
            x = smooth(again)
            at = np.searchsorted(self.edges, x)
            weight = self.accepted[at]
            total[again] += weight
            is_accepted = rng.random(again.size) < weight
            is_taken = is_accepted | (rng.random(again.size) * total[again] < weight)
            x = np.where(np.isnan(self.values[at]), x, self.values[at])
            found[again[is_taken]] = x[is_taken]
            again = again[~is_accepted]
            if not again.size:
                break
        return found
