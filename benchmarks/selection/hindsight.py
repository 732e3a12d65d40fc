"""The best of a grid of plain fits, judged by the test entries themselves.

At every rank a walk along alpha, in steps of 10^(1/4), goes downhill from the best alpha of the
rank before.  The other nonlinearities walk at the ranks that came near to the best, and the other
ridges of the offsets, and no offsets, are tried where nearly the best was found.  Every fit is
stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from .fits import function, plain, problem_of
from .problems import SETS, Problem
from .store import Answer, Store

RANKS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48)
LARGER_RANKS = (64, 100)
"""Further ranks of the sets with few ranks, up to the chosen one."""
QUICK_RANKS = (2, 4, 8, 16)
FEW_RANKS = (2, 6, 12, 24, 40)
"""Ranks of the sets whose fits take long, beside those next to the chosen one."""
EXPENSIVE = ("MovieLens 100K, 90/10", "flower, 60 %", "CBCL, 80 %")
"""Sets whose fits take long: they have a smaller grid."""
OFFSETS_ONCE = (*EXPENSIVE, "MovieLens small, 90/10")
"""Sets with all offsets at one rank and nonlinearity only."""
OFFSET_ALPHAS = (3.0, 1.0, 10.0, 30.0, -1.0)
"""Ridges of the offsets; -1 stands for no offsets."""
NEAR = 0.05
"""How near to the best rank with the first nonlinearity a rank must be for the others."""
CLOSE = 0.01
"""How near to the best a rank with a nonlinearity must be for all offsets."""
MOST = 4
"""Largest number of pairs of a rank and a nonlinearity with all offsets."""


class Point(NamedTuple):
    """A place of the grid; alpha is 10^(step / 4) times the standard deviation of the data."""

    rank: int
    nonlinearity: str
    step: int
    offset_alpha: float


def alpha_of(step: int, problem: Problem) -> float:
    """Return the ridge of a step."""
    return float(f"{problem.observed()[2].std() * 10 ** (step / 4):.4g}")


class Grid:
    """The fits of a set.

    Parameters
    ----------
    store : Store
        Where they are kept.
    name : str
        Which set.
    """

    def __init__(self, store: Store, name: str) -> None:
        self.store, self.name = store, name
        self.problem = problem_of(name)
        self.errors: dict[Point, float] = {}

    def error(self, point: Point) -> float:
        """Return the test error at a point."""
        if point not in self.errors:
            answer = self.store.get(
                plain,
                depends_on_code=False,
                name=self.name,
                rank=point.rank,
                nonlinearity=point.nonlinearity,
                alpha=alpha_of(point.step, self.problem),
                offset_alpha=point.offset_alpha,
            )
            self.errors[point] = answer["rmse"]
        return self.errors[point]

    def walk(self, point: Point, strides: tuple[int, ...] = (1,)) -> Point:
        """Go downhill along alpha from a point; return the lowest one."""
        for stride in strides:
            for sign in (-1, 1):
                while True:
                    other = point._replace(step=point.step + sign * stride)
                    if self.error(other) >= self.error(point):
                        break
                    point = other
        return point

    def first_step(self) -> int:
        """Return the step of a ridge that is about the largest singular value of noise."""
        m, n = self.problem.X.shape
        share = self.problem.observed()[0].size / (m * n)
        return round(4 * np.log10(0.7 * np.sqrt(share) * (np.sqrt(m) + np.sqrt(n))))

    def search(self, ranks: tuple[int, ...], words: tuple[str, ...], most: int) -> None:
        """Fit the grid, the best `most` pairs of a rank and a nonlinearity with all offsets."""
        best: dict[tuple[int, str], Point] = {}
        for word in words:
            point = Point(ranks[0], word, self.first_step(), OFFSET_ALPHAS[0])
            strides: tuple[int, ...] = (4, 2, 1)
            for rank in ranks:
                point = self.walk(point._replace(rank=rank), strides)
                best[rank, word] = point
                strides = (1,)
            ranks = self.near(best, words[0])
        for point in self.close(best.values(), CLOSE)[:most]:
            for offset_alpha in OFFSET_ALPHAS[1:]:
                self.walk(point._replace(offset_alpha=offset_alpha))

    def near(self, best: dict[tuple[int, str], Point], word: str) -> tuple[int, ...]:
        """Return the ranks at which a nonlinearity came near to its best, in their order."""
        points = [point for point in best.values() if point.nonlinearity == word]
        return tuple(sorted(point.rank for point in self.close(points, NEAR)))

    def close(self, points: Iterable[Point], share: float) -> list[Point]:
        """Return the points whose error is at most a fraction above the lowest, the best first."""
        ordered = sorted(points, key=self.error)
        return [p for p in ordered if self.error(p) <= (1 + share) * self.error(ordered[0])]


def ranks_of(name: str, chosen: int, quick: bool) -> tuple[int, ...]:
    """Return the ranks of a grid: few, and those next to the chosen one, if fits take long."""
    if quick:
        return QUICK_RANKS
    if name not in EXPENSIVE:
        return RANKS
    ranks = RANKS + tuple(rank for rank in LARGER_RANKS if rank <= chosen)
    place = int(np.argmin(np.abs(np.array(ranks) - chosen)))
    return tuple(sorted({*FEW_RANKS, *ranks[max(place - 1, 0) : place + 2]}))


def best_of_grid(store: Store, name: str, chosen: int, quick: bool) -> Answer:
    """Return the lowest test error of the grid, where it is, and the number of fits.

    Parameters
    ----------
    store : Store
        Where the fits are kept.
    name : str
        Which set.
    chosen : int
        Largest rank of the default calls.
    quick : bool
        Whether a small grid is enough.
    """
    grid = Grid(store, name)
    smallest = min(grid.problem.X.shape)
    ranks = tuple(rank for rank in ranks_of(name, chosen, quick) if rank <= smallest)
    grid.search(ranks, SETS[name][1], 0 if quick else 1 if name in OFFSETS_ONCE else MOST)
    best = min(grid.errors, key=grid.errors.__getitem__)
    return {
        "rmse": grid.errors[best],
        "rank": best.rank,
        "nonlinearity": repr(function(best.nonlinearity, grid.problem)),
        "alpha": alpha_of(best.step, grid.problem),
        "offset_alpha": best.offset_alpha,
        "n_fits": len(grid.errors),
    }
