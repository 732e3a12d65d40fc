"""Scores of a table: normal latent variables, and what its cells say of them.

A number is its own score, f⁻¹(x) without units.  A level lies between two cut points, and a limit
is one of the score.  A category of K classes has K - 1 scores: the first class is that of no score
above zero, another one that of the largest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.typed_table import TypedTable

from .cut_points import normal_cuts
from .problem import SampledProblem

Array = NDArray[np.float64]
Positions = NDArray[np.intp]


class Scores(NamedTuple):
    """What is known of the scores of rows.

    Attributes
    ----------
    low, high : ndarray (m, d)
        Limits of each score: equal where it is known, infinite where nothing is.
    classes : ndarray of int (m, d)
        Class of a category, 0 to K - 1, at its first score; -1 elsewhere, and where it is missing.
    widths : ndarray of int (d,)
        Number K - 1 of the scores of a category at its first score, 0 elsewhere.
    """

    low: Array
    high: Array
    classes: NDArray[np.int64]
    widths: NDArray[np.int64]

    def at(self, rows: Positions) -> Scores:
        """Return the scores of some rows."""
        return Scores(self.low[rows], self.high[rows], self.classes[rows], self.widths)

    @property
    def free_units(self) -> list[Positions]:
        """Scores with a unit that no cell determines: of two levels, and of a category."""
        signs = np.isin(self.low, (0.0, -np.inf)) & np.isin(self.high, (0.0, np.inf))
        units = [np.arange(j, j + self.widths[j]) for j in np.flatnonzero(self.widths)]
        of_class = np.concatenate([np.empty(0, np.intp), *units])
        alone = np.setdiff1d(np.flatnonzero(signs.all(axis=0)), of_class)
        return units + [np.array([j]) for j in alone]

    def first(self) -> Array:
        """Return scores that agree with what is known, with zero where nothing is."""
        z: Array = np.clip(0.0, self.low, self.high)
        for j in np.flatnonzero(self.widths):
            rows = np.flatnonzero(self.classes[:, j] >= 0)
            z[rows[:, None], j + np.arange(self.widths[j])] = -0.5
            above = rows[self.classes[rows, j] > 0]
            z[above, j + self.classes[above, j] - 1] = 0.5
        return z


def cut_points(problem: SampledProblem) -> Array:
    """Return the ends of the levels of each column in a row, with infinity behind the last.

    Of two levels the cut point is zero.  Of more, cut points are quantiles of the levels.
    """
    counts = [np.empty(0, np.int64) if each is None else each.counts for each in problem.levels]
    ends = np.full((len(counts), max(each.size for each in counts) + 1), np.inf)
    for row, each in zip(ends, counts, strict=True):
        if each.size:
            row[0], row[1 : each.size] = -np.inf, 0.0 if each.size == 2 else normal_cuts(each)
    return ends


def columns_with_scores(table: TypedTable | None, n: int) -> Positions:
    """Return the columns of the matrix that have a score: not the first class of a category."""
    has_none = [] if table is None else [at[0] for c, at in table.blocks() if c.has_indicators]
    return np.setdiff1d(np.arange(n), has_none)


def scores_of(problem: SampledProblem, table: TypedTable | None, cuts: Array) -> Scores:
    """Return what the cells of a problem say of the scores of their rows."""
    (m, n), values = problem.shape, problem.values.astype(np.float64)
    i, j = np.repeat(np.arange(m), np.diff(problem.starts)), problem.column_of
    ends = [values, values]
    if (limits := problem.limits) is not None:
        ends = [np.where(limits.limited, each, values) for each in limits[1:]]
    low, high = np.full((m, n), -np.inf), np.full((m, n), np.inf)
    for k, (noise, kind, at) in enumerate(problem.kinds):
        for upper, (bound, x) in enumerate(zip((low, high), ends, strict=True)):
            if noise == "ordinal":
                bound[i[at], k] = cuts[k, x[at].astype(np.intp) + upper]
            else:
                finite = at[np.isfinite(x[at])]
                bound[i[finite], k] = kind.pseudo_inverse(x[finite])
    classes, widths = np.full((m, n), -1, np.int64), np.zeros(n, np.int64)
    for column, at in () if table is None else table.blocks():
        if column.has_indicators:
            low[:, at], high[:, at] = -np.inf, np.inf
            is_one = np.isin(j, at) & (values == 1)
            classes[i[is_one], at[1]], widths[at[1]] = j[is_one] - at[0], at.size - 1
    scored = columns_with_scores(table, n)
    low, high = (np.ascontiguousarray(each[:, scored]) for each in (low, high))
    return Scores(low, high, np.ascontiguousarray(classes[:, scored]), widths[scored])
