"""Draws of the cut points of ordered levels, with T integrated out.

One cut point after the other takes a random-walk Metropolis step.  A move of all together would
rarely be accepted.  The first one stays where it is, because offsets can shift T.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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
    """The entries of each level.

    Attributes
    ----------
    counts : ndarray of int (number,)
        Number of entries of each level.
    """

    def __init__(self, codes: FloatArray, starts: NDArray[np.integer], number: int) -> None:
        levels = codes.astype(np.intp)
        order = np.argsort(levels, kind="stable")
        self.counts = np.bincount(levels, minlength=number)
        self._of_level = np.split(order, np.cumsum(self.counts)[:-1])
        rows = np.searchsorted(starts, np.arange(codes.size), side="right")
        self._ends = [_ends_of_runs(rows[entries]) for entries in self._of_level]
        self._products: list[Doubles] = []

    def look(self, v: FloatArray) -> None:
        """Take WH with offsets at the entries, flat."""
        self._products = [v[entries].astype(np.float64) for entries in self._of_level]

    def log_likelihoods(self, level: int, low: float, high: float) -> Doubles:
        """Return the log-likelihood of the entries of a level, for each row that has one."""
        ends = self._ends[level]
        totals: Doubles = np.empty(ends.size)
        _kernel()(self._products[level], ends, low, high, totals)
        return totals


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

    def draw(
        self,
        log_likelihood: Callable[[int, float, float], float],
        rng: np.random.Generator,
        *,
        tune: bool,
    ) -> float:
        """Do one step for each cut point, and return the log-likelihood of all levels."""

        def of(level: int, ends: Doubles) -> float:
            return log_likelihood(level, float(ends[level]), float(ends[level + 1]))

        n_levels = self.ends.size - 1
        own = [of(level, self.ends) for level in range(n_levels)]
        for cut in range(1, n_levels):
            step, threshold = rng.standard_normal(), math.log(rng.random())
            if cut == 1:
                continue
            proposed = self.ends.copy()
            proposed[cut] += self.steps[cut - 1] * step
            if not proposed[cut - 1] < proposed[cut] < proposed[cut + 1]:
                accepted = False
            else:
                new = [of(level, proposed) for level in (cut - 1, cut)]
                accepted = threshold < sum(new) - own[cut - 1] - own[cut]
                if accepted:
                    self.ends, own[cut - 1 : cut + 1] = proposed, new
            if tune:
                self.steps[cut - 1] *= math.exp(0.2 * (accepted - AIM))
        return sum(own)


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


def _log_masses(v, ends, low, high, totals):  # type: ignore[no-untyped-def]
    first = 0
    for row in range(ends.size):
        total = 0.0
        for k in range(first, ends[row]):
            total += log_mass_between(low - v[k], high - v[k])
        totals[row], first = total, ends[row]
