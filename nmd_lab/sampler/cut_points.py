"""Draws of the cut points of ordered levels, with T integrated out.

One cut point after the other takes a random-walk Metropolis step.  A move of all together would
rarely be accepted.  The first one stays where it is, because offsets can shift T.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from nmd_lab._runtime.compiler import cached_kernel, compile_inner
from nmd_lab.data.entries import FloatArray
from nmd_lab.model.ordinal import log_probability

Doubles = NDArray[np.float64]


class Levels:
    """The entries of each level, and of each interval of levels.

    Parameters
    ----------
    low, high : ndarray (n_entries,)
        Positions of the lowest and of the highest level that each entry may have.
    number : int
        Number of levels.
    weights : ndarray (n_entries,), optional
        Weights of the entries.

    Attributes
    ----------
    counts : ndarray of int (number,)
        Number of entries of each level.
    bounds : ndarray of int (n_groups, 2)
        Lowest and highest level of each group of entries: of the levels and of the intervals.
    starts : ndarray of int (n_groups + 1,)
        Position of the first entry of each group, and behind the last.
    roots : ndarray (n_entries,)
        Square roots of the weights, group by group; empty if every one is 1.
    """

    def __init__(
        self, low: FloatArray, high: FloatArray, number: int, weights: FloatArray | None = None
    ) -> None:
        first, last = low.astype(np.intp), high.astype(np.intp)
        alone = np.arange(number) * (number + 1)  # first = last has such a number
        numbers = np.concatenate([alone, first * number + last])
        found, group = np.unique(numbers, return_inverse=True)
        self.bounds = np.column_stack(np.divmod(found, number))
        self._levels, group = np.split(group, [number])
        self._order = np.argsort(group, kind="stable")
        sizes = np.bincount(group, minlength=found.size)
        self.counts = sizes[self._levels]
        self.starts = np.concatenate([[0], np.cumsum(sizes)])
        self.roots = np.empty(0)
        if weights is not None:
            self.roots = np.sqrt(weights[self._order].astype(np.float64))

    def first_of(self, level: int, number: int) -> NDArray[np.intp]:
        """Return the positions of the first entries of a level, at most so many."""
        group = self._levels[level]
        first, last = self.starts[group : group + 2]
        return np.asarray(self._order[first : min(last, first + number)])

    def arranged(self, v: FloatArray) -> Doubles:
        """Return WH with offsets at the entries group by group."""
        return v[self._order].astype(np.float64)


def normal_cuts(counts: NDArray[np.integer]) -> Doubles:
    """Return standard normal quantiles between levels with these numbers of entries."""
    below = np.cumsum(counts)[:-1] + 0.5 * np.arange(1, counts.size)
    return np.asarray(ndtri(below / (counts.sum() + 0.5 * counts.size)))


@dataclass
class CutPoints:
    """The cut points and their random walk.

    Attributes
    ----------
    ends : ndarray (n_levels + 1,)
        Minus infinity, the cut points, and infinity.
    steps : ndarray (n_levels - 1,)
        Widths of the steps.
    """

    ends: Doubles
    steps: Doubles

    @classmethod
    def first(cls, counts: NDArray[np.integer]) -> CutPoints:
        """Return those of levels with these numbers of entries, if WH explains nothing."""
        number, total = counts.size, int(counts.sum())
        # the spread of T is that of WH and of the noise, which is 1
        ends = np.concatenate([[-np.inf], math.sqrt(2) * normal_cuts(counts), [np.inf]])
        return cls(ends, np.full(number - 1, 3.0 / math.sqrt(total / number + 1)))

    def scores(self) -> Doubles:
        """Return a number for each level: the middle of its cut points, near them at the ends."""
        inner = self.ends[1:-1]
        ends = np.concatenate([inner[:1] - 1, inner, inner[-1:] + 1])
        return np.asarray(0.5 * (ends[1:] + ends[:-1]))

    def draw(self, levels: Levels, v: FloatArray, rng: np.random.Generator, *, tune: bool) -> float:
        """Do one step for each cut point given WH, and return the log-likelihood of all levels."""
        numbers = [(rng.standard_normal(), math.log(rng.random())) for _ in self.steps[1:]]
        self.ends = self.ends.copy()
        entries = (levels.arranged(v), levels.roots, levels.starts, levels.bounds)
        kernel = cached_kernel(_draw_cuts, "draw_cut_points")
        return float(kernel(*entries, np.array(numbers), self.ends, self.steps, tune))


def padded(cuts: list[CutPoints | None]) -> Doubles:
    """Return the cut points of each kind in a row, with NaN where a kind has fewer."""
    inner = ends_in_rows(cuts)[:, 1:-1]
    return np.where(np.isfinite(inner), inner, np.nan)


def ends_in_rows(cuts: list[CutPoints | None]) -> Doubles:
    """Return the ends of the levels of each kind in a row, with infinity behind the last."""
    rows = np.full((len(cuts), max(0 if each is None else each.ends.size for each in cuts)), np.inf)
    for row, each in zip(rows, cuts, strict=True):
        if each is not None:
            row[: each.ends.size] = each.ends
    return rows


def put(cuts: list[CutPoints | None], rows: Doubles) -> None:
    """Put what `padded` returned into the cut points of each kind."""
    for each, row in zip(cuts, rows, strict=True):
        if each is not None:
            each.ends[1:-1] = row[: each.ends.size - 2]


@compile_inner
def _log_likelihood(v, roots, first, last, low, high):  # type: ignore[no-untyped-def]
    """Return the log-likelihood of some entries between two cut points."""
    total = 0.0
    for k in range(first, last):
        root = roots[k] if roots.size else 1.0
        total += log_probability(root * (low - v[k]), root * (high - v[k]))
    return total


def _draw_cuts(v, roots, starts, bounds, numbers, ends, steps, tune):  # type: ignore[no-untyped-def]
    """Do one step for each cut point, in place, and return the log-likelihood of all levels."""
    n_groups = bounds.shape[0]
    present, new = np.empty(n_groups), np.empty(n_groups)
    for g in range(n_groups):
        low, high = ends[bounds[g, 0]], ends[bounds[g, 1] + 1]
        present[g] = _log_likelihood(v, roots, starts[g], starts[g + 1], low, high)
    for cut in range(2, ends.size - 1):
        before, (move, threshold) = ends[cut], numbers[cut - 2]
        ends[cut] += steps[cut - 1] * move
        accepted = ends[cut - 1] < ends[cut] < ends[cut + 1]
        if accepted:
            change = 0.0
            for g in range(n_groups):
                new[g] = present[g]
                if bounds[g, 0] == cut or bounds[g, 1] + 1 == cut:
                    low, high = ends[bounds[g, 0]], ends[bounds[g, 1] + 1]
                    new[g] = _log_likelihood(v, roots, starts[g], starts[g + 1], low, high)
                    change += new[g] - present[g]
            accepted = threshold < change
        if accepted:
            present[:] = new
        else:
            ends[cut] = before
        if tune:  # to the share of accepted steps at which a walk in one dimension mixes best
            steps[cut - 1] *= math.exp(0.2 * (accepted - 0.44))
    return present.sum()
