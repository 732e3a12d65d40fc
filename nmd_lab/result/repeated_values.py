"""Values that repeat in a column, such as 0 for no pool, which new numbers hold too.

The predictive distribution of a number is smooth.  Around each value that repeats is an interval,
up to the middle to the next observed value.  On each side it has as many other observed cells as
there are of the value, at most a twentieth of all others and none beyond the middle to the next
value that repeats.  A number in an interval becomes that of one of the observed cells there.
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

ONE_OF = 20
"""An interval has at most one of so many other cells of the column on each side of its value."""

MOST_TRIES = 30
"""Largest number of draws for a cell; if none is accepted, one of them is taken by its weight."""


def has_repeated_value(observed: Array) -> bool:
    """Return whether a value repeats among the observed numbers of a column."""
    return bool(np.any(np.unique(observed, return_counts=True)[1] >= REPEATED))


class RepeatedValues(NamedTuple):
    """Intervals of numbers: before, around and after each value that repeats.

    Attributes
    ----------
    edges : ndarray (2 K,)
        Ends of the intervals around K values.
    observed : ndarray (cells,)
        Observed numbers in their order.
    starts : ndarray (2 K + 2,)
        Position of the first observed number of each interval, and the number of all.
    accepted : ndarray (2 K + 1,)
        Probability with which a number in the interval is accepted.
    """

    edges: Array
    observed: Array
    starts: NDArray[np.intp]
    accepted: Array

    @classmethod
    def of(cls, observed: Array, replicates: Array) -> RepeatedValues:
        """Return the intervals for observed numbers (cells,) and replicates (draws, some cells)."""
        observed, size = np.sort(observed), observed.size
        values, first, counts = np.unique(observed, return_index=True, return_counts=True)
        at = np.flatnonzero(counts >= REPEATED)
        v, first, after = values[at], first[at], first[at] + counts[at]
        near = np.minimum(counts[at], (size - counts[at]) // ONE_OF)
        middles = np.concatenate([[-np.inf], 0.5 * (observed[1:] + observed[:-1]), [np.inf]])
        low = middles[np.maximum(first - near, 0)]
        high = middles[np.minimum(after + near, size)]
        between = 0.5 * (v[1:] + v[:-1])
        low[1:], high[:-1] = np.maximum(low[1:], between), np.minimum(high[:-1], between)

        edges = np.column_stack([low, high]).ravel()
        starts = np.concatenate([[0], np.searchsorted(observed, edges, side="right"), [size]])
        found = np.searchsorted(edges, replicates.ravel())
        expected = np.bincount(found, minlength=edges.size + 1) * (size / replicates.size)
        ratios = (np.diff(starts) + PRIOR) / (expected + PRIOR)
        return cls(edges, observed, starts, ratios / ratios.max())

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
            around = np.flatnonzero(at % 2)
            of = at[around]
            x[around] = self.observed[rng.integers(self.starts[of], self.starts[of + 1])]
            found[again[is_taken]] = x[is_taken]
            again = again[~is_accepted]
            if not again.size:
                break
        return found
