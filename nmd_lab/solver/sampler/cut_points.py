"""Draws of the cut points of ordered levels, with T integrated out.

One cut point after the other takes a random-walk Metropolis step.  A move of all together would
rarely be accepted.  The first one stays where it is, because offsets can shift T.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from nmd_lab._numba import compile_inner, compile_kernel
from nmd_lab.data.base import FloatArray

AIM = 0.44
"""Share of accepted steps at which a random walk in one dimension mixes best."""

Doubles = NDArray[np.float64]


class Levels:
    """The entries of each level, and of each interval of levels.

    Parameters
    ----------
    low, high : ndarray (n_entries,)
        Positions of the lowest and of the highest level that each entry may have.
    starts : ndarray of int
        Positions of the first entry of each row, and behind the last row.
    number : int
        Number of levels.
    weights : ndarray (n_entries,), optional
        Weights of the entries.

    Attributes
    ----------
    counts : ndarray of int (number,)
        Number of entries of each level.
    bounds : list of tuple of int
        Lowest and highest level of each group of entries: of the levels, then of the intervals.
    """

    def __init__(
        self,
        low: FloatArray,
        high: FloatArray,
        starts: NDArray[np.integer],
        number: int,
        weights: FloatArray | None = None,
    ) -> None:
        first, last = low.astype(np.intp), high.astype(np.intp)
        wide = np.unique(first * number + last)
        wide = wide[wide % (number + 1) != 0]  # first = last has the number first * (number + 1)
        self.bounds = [(k, k) for k in range(number)]
        self.bounds += [divmod(int(each), number) for each in wide]
        group = np.where(
            first == last, first, number + np.searchsorted(wide, first * number + last)
        )
        order = np.argsort(group, kind="stable")
        sizes = np.bincount(group, minlength=len(self.bounds))
        self.counts = sizes[:number]
        self._entries = np.split(order, np.cumsum(sizes)[:-1])
        rows = np.searchsorted(starts, np.arange(low.size), side="right")
        self._ends = [_ends_of_runs(rows[entries]) for entries in self._entries]
        roots = np.empty(0) if weights is None else np.sqrt(weights.astype(np.float64))
        self._roots = [roots[entries] if roots.size else roots for entries in self._entries]
        self._products: list[Doubles] = []

    def look(self, v: FloatArray) -> None:
        """Take WH with offsets at the entries, flat."""
        self._products = [v[entries].astype(np.float64) for entries in self._entries]

    def log_likelihood(self, group: int, ends: Doubles) -> float:
        """Return the log-likelihood of a group of entries, for the ends of all levels."""
        rows, (first, last) = self._ends[group], self.bounds[group]
        totals: Doubles = np.empty(rows.size)
        low, high = float(ends[first]), float(ends[last + 1])
        _kernel()(self._products[group], self._roots[group], rows, low, high, totals)
        return float(totals.sum())


def _ends_of_runs(numbers: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the positions behind each run of equal numbers."""
    return np.append(np.flatnonzero(np.diff(numbers)) + 1, [numbers.size] * (numbers.size > 0))


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
        shares = (np.cumsum(counts)[:-1] + 0.5 * np.arange(1, number)) / (total + 0.5 * number)
        # the spread of T is that of WH and of the noise, which is 1
        ends = np.concatenate([[-np.inf], math.sqrt(2) * ndtri(shares), [np.inf]])
        return cls(ends, np.full(number - 1, 3.0 / math.sqrt(total / number + 1)))

    def scores(self) -> Doubles:
        """Return a number for each level: the middle of its cut points, near them at the ends."""
        inner = self.ends[1:-1]
        beyond = np.array([inner[0] - 1, inner[-1] + 1])
        ends: Doubles = np.concatenate([beyond[:1], inner, beyond[1:]])
        return 0.5 * (ends[1:] + ends[:-1])

    def draw(self, levels: Levels, rng: np.random.Generator, *, tune: bool) -> float:
        """Do one step for each cut point, and return the log-likelihood of all levels."""
        bounds = levels.bounds
        before = [levels.log_likelihood(group, self.ends) for group in range(len(bounds))]
        for cut in range(2, self.ends.size - 1):
            step, threshold = rng.standard_normal(), math.log(rng.random())
            proposed = self.ends.copy()
            proposed[cut] += self.steps[cut - 1] * step
            accepted = bool(proposed[cut - 1] < proposed[cut] < proposed[cut + 1])
            if accepted:
                at = [g for g, (first, last) in enumerate(bounds) if cut in (first, last + 1)]
                new = [levels.log_likelihood(group, proposed) for group in at]
                change = sum(new)
                for group in at:
                    change -= before[group]
                accepted = threshold < change
            if accepted:
                self.ends = proposed
                for group, value in zip(at, new, strict=True):
                    before[group] = value
            if tune:
                self.steps[cut - 1] *= math.exp(0.2 * (accepted - AIM))
        return sum(before)


def has_fixed_cut(cuts: CutPoints | None) -> bool:
    """Return whether a kind has two levels, whose cut point stays where it is."""
    return cuts is not None and cuts.steps.size == 1


def padded(cuts: list[CutPoints | None]) -> Doubles:
    """Return the cut points of each kind in a row, with NaN where a kind has fewer."""
    inner = [np.empty(0) if each is None else each.ends[1:-1] for each in cuts]
    rows: Doubles = np.full((len(inner), max(each.size for each in inner)), np.nan)
    for row, each in zip(rows, inner, strict=True):
        row[: each.size] = each
    return rows


def put(cuts: list[CutPoints | None], rows: Doubles) -> None:
    """Put what `padded` returned into the cut points of each kind."""
    for each, row in zip(cuts, rows, strict=True):
        if each is not None:
            each.ends[1:-1] = row[: each.ends.size - 2]


@cache
def _kernel() -> Any:
    return compile_kernel(_log_masses, "log_masses_of_a_level", cached=True)


def _log_mass_between(low, high):  # type: ignore[no-untyped-def]
    if low > 0:  # the tail on the left is more exact
        low, high = -high, -low
    mass = 0.5 * (math.erfc(-high / math.sqrt(2.0)) - math.erfc(-low / math.sqrt(2.0)))
    if mass > 1e-280:
        return math.log(mass)
    share = -math.expm1(0.5 * (high - low) * (high + low))  # of the tail
    return math.log(max(share, 1e-300) / max(-high, 1.0)) - 0.5 * high * high - 0.918938533204672742


log_mass_between = compile_inner(_log_mass_between)
"""``log_mass_between(low, high)``: log P(low < Z <= high) of a standard normal Z."""


def _log_masses(v, roots, ends, low, high, totals):  # type: ignore[no-untyped-def]
    first = 0
    for row in range(ends.size):
        total = 0.0
        for k in range(first, ends[row]):
            root = roots[k] if roots.size else 1.0
            total += log_mass_between(root * (low - v[k]), root * (high - v[k]))
        totals[row], first = total, ends[row]
