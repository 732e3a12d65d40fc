"""Draws of the cut points of ordered levels, with T integrated out.

One cut point after the other takes a random-walk Metropolis step.  A move of all together would
rarely be accepted.  The first one stays where it is, because offsets can shift T.
"""

from __future__ import annotations

import math
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


class CutPoints:
    """The cut points and their random walk.

    Parameters
    ----------
    codes : ndarray (n_entries,)
        Level of each entry, counted from 0.
    number : int
        Number of levels.

    Attributes
    ----------
    ends : ndarray (number + 1,)
        Minus infinity, the cut points, and infinity.
    """

    def __init__(self, codes: FloatArray, number: int) -> None:
        levels = codes.astype(np.intp)
        order = np.argsort(levels, kind="stable")
        counts = np.bincount(levels, minlength=number)
        self._of_level = np.split(order, np.cumsum(counts)[:-1])
        shares = (np.cumsum(counts)[:-1] + 0.5 * np.arange(1, number)) / (codes.size + 0.5 * number)
        # the spread of T is that of WH and of the noise, which is 1
        self.ends = np.concatenate([[-np.inf], math.sqrt(2) * ndtri(shares), [np.inf]])
        self.steps = np.full(number - 1, 3.0 / math.sqrt(codes.size / number + 1))

    def scores(self) -> Doubles:
        """Return a number for each level: the middle of its cut points, near them at the ends."""
        inner = self.ends[1:-1]
        beyond = np.array([inner[0] - 1, inner[-1] + 1])
        ends: Doubles = np.concatenate([beyond[:1], inner, beyond[1:]])
        return 0.5 * (ends[1:] + ends[:-1])

    def draw(self, v: FloatArray, rng: np.random.Generator, *, tune: bool) -> float:
        """Do one step for each cut point, and return the log-likelihood of all levels.

        Parameters
        ----------
        v : ndarray (n_entries,)
            WH with offsets at the entries.
        rng : Generator
            Random numbers.
        tune : bool
            Whether to adapt the step widths.
        """
        parts = [v[entries].astype(np.float64) for entries in self._of_level]
        own = [self._likelihood(parts, level, self.ends) for level in range(len(parts))]
        for cut in range(1, len(parts)):
            step, threshold = rng.standard_normal(), math.log(rng.random())
            if cut == 1:
                continue
            proposed = self.ends.copy()
            proposed[cut] += self.steps[cut - 1] * step
            if not proposed[cut - 1] < proposed[cut] < proposed[cut + 1]:
                accepted = False
            else:
                new = [self._likelihood(parts, level, proposed) for level in (cut - 1, cut)]
                accepted = threshold < sum(new) - own[cut - 1] - own[cut]
                if accepted:
                    self.ends, own[cut - 1 : cut + 1] = proposed, new
            if tune:
                self.steps[cut - 1] *= math.exp(0.2 * (accepted - AIM))
        return sum(own)

    @staticmethod
    def _likelihood(parts: list[Doubles], level: int, ends: Doubles) -> float:
        """Return the log-likelihood of the entries of a level."""
        return float(_kernel()(parts[level], ends[level], ends[level + 1]))


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


def _log_masses(v, low, high):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(v.size):
        total += log_mass_between(low - v[k], high - v[k])
    return total
