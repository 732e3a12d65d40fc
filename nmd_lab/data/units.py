"""What data say in a few numbers: their size and range, and the units and ends of their columns.

Tables whose columns have different units, such as years and fractions, are found:

>>> import numpy as np
>>> from nmd_lab.data.inputs import observe
>>> years, share = np.arange(1900.0, 2000.0), np.linspace(0.0, 0.05, 100)
>>> units_of_columns(facts_of(observe(np.column_stack([years, share])), by_column=True))
UnitsApart(smallest=1, largest=0, ratio=1980.0)

Values at the ends of columns, such as the zeros of an amount, are found, too.

>>> amount, age = np.maximum(np.arange(-4.0, 16), 0), np.arange(20.0, 40)
>>> facts_of(observe(np.column_stack([amount, age])), by_column=True).columns.ends
array([[  0.,  inf],
       [-inf,  inf]])
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .entries import FloatArray
from .labels import Labels
from .observations import Observations
from .typed_table import plain_label, refuse_repeats


class Columns(NamedTuple):
    """What the observed values of each column say.

    Attributes
    ----------
    lowest, highest, deviation : ndarray (n,)
        Smallest and largest value, inf and -inf without any, and standard deviation.
    share : ndarray (n,)
        Fraction of the values that are equal to the smallest one.
    ends : ndarray (n, 2)
        The smallest and the largest value if many are just that, otherwise -inf and inf.  A
        constant has both, and so has a column of 0 and 1 alone.  A column with limits, which say
        more, has none, and neither have the values of a long table.
    is_code : ndarray of bool (n,)
        Whether it is a column of numbers that are 0 and 1 alone.
    """

    lowest: FloatArray
    highest: FloatArray
    deviation: FloatArray
    share: FloatArray
    ends: FloatArray
    is_code: NDArray[np.bool_]


class Facts(NamedTuple):
    """What data say in numbers, for messages and decisions that need no data then.

    Attributes
    ----------
    labels : Labels
        Dimensions and coordinates.
    n_observed : int
        Number of observed entries.
    range : tuple of float
        Smallest and largest observed value.
    counts : tuple of ndarray
        Number of observed entries of each row and of each column.
    is_sparse, is_limited, is_small_table : bool
        Whether only observed entries are stored, some are limits, and it is a small table.
    absent_are_zeros : bool
        Whether entries without a stored value are 0.
    columns : Columns or None
        What the columns say; None if nothing asks for it.
    """

    labels: Labels
    n_observed: int
    range: tuple[float, float]
    counts: tuple[NDArray[np.integer], NDArray[np.integer]]
    is_sparse: bool
    is_limited: bool
    is_small_table: bool
    absent_are_zeros: bool
    columns: Columns | None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.labels.matrix_shape

    @property
    def n_missing(self) -> int:
        """Number of missing entries."""
        return math.prod(self.shape) - self.n_observed

    @property
    def empty(self) -> list[NDArray[np.intp]]:
        """Positions of the rows and of the columns without an observed entry."""
        return [np.flatnonzero(counts == 0) for counts in self.counts]


def facts_of(observations: Observations, *, by_column: bool) -> Facts:
    """Return what data say; of columns only if that is asked for."""
    (m, n), labels, columns = observations.shape, observations.labels, None
    if by_column:
        has_ends, is_number = np.ones((2, n), dtype=bool)
        if labels.table is not None:
            has_ends = ~labels.table.of_values
            is_number = np.array([column.kind == "number" for column in labels.table.of_matrix])
        _, j, x = observations.entries()
        if observations.limits is not None:
            has_ends[j[observations.as_sparse().limits.codes != 0]] = False
        size, lowest, highest = np.bincount(j, minlength=n), np.full(n, np.inf), np.full(n, -np.inf)
        np.minimum.at(lowest, j, x)
        np.maximum.at(highest, j, x)
        at_lowest, at_highest = (np.bincount(j, x == end[j], n) for end in (lowest, highest))
        different = np.bincount(pd.DataFrame({"j": j, "x": x}).drop_duplicates()["j"], minlength=n)
        is_binary = (different == 2) & (lowest == 0) & (highest == 1)
        # A column with fewer different values counts or grades, and has no end.
        is_amount = (different >= 8) | ((different == 1) & (size >= min(20, m / 2)))
        often = [is_binary | (is_amount & (at >= 0.1 * size)) for at in (at_lowest, at_highest)]
        low, high = np.where(has_ends & often, (lowest, highest), [[-np.inf], [np.inf]])
        deviation = units_of_groups(j, x, n).deviation * (different > 1)
        share, ends = at_lowest / np.maximum(size, 1), np.column_stack([low, high])
        columns = Columns(lowest, highest, deviation, share, ends, is_binary & is_number)
    return Facts(
        labels,
        observations.n_observed,
        observations.range(),
        (observations.counts(1), observations.counts(0)),
        observations.pattern is not None,
        observations.limits is not None,
        observations.is_small_table,
        observations.absent_are_zeros,
        columns,
    )


def smallest_value(lowest: float) -> float:
    """Return the smallest value that an entry may have, given that of X: 0 if none is negative."""
    return 0.0 if lowest >= 0 else -math.inf


MIN_RATIO, MAX_RATIO = 20.0, 1000.0
"""Ratios of the spreads of columns from which their units are taken to be different: when a tenth
of the columns is left out at either end, and of the largest and the smallest one.

Standardised columns of 10 made and real tables, times numbers of a ratio of 4, 8, 16 and 32, are
completed with errors 2, 7, 11 and 20 % larger (median), and sampled with 0, 1, 1 and 3 %.  Columns
of one unit whose spreads are like those of normal numbers have 13 without the tenths.
"""


class UnitsApart(NamedTuple):
    """Columns in different units.

    Attributes
    ----------
    smallest, largest : object
        Labels of the columns of smallest and largest spread, or size.
    ratio : float
        Ratio of their standard deviations, or of their largest values if that is far above.
    """

    smallest: Any
    largest: Any
    ratio: float

    def sentence(self, remedy: str) -> str:
        """Return the warning, with what to do."""
        return (
            f"column {self.largest!r} has {self.ratio:g} times the standard deviation or size of "
            f"column {self.smallest!r}, so that the result follows the large columns alone: "
            f"{remedy}."
        )


def units_of_columns(facts: Facts, *, distance: bool = True) -> UnitsApart | None:
    """Return the columns whose units are most different, None if the units seem to be the same.

    Counts and other numbers whose loss is no distance may differ more (`distance=False`).

    Both the spread and the largest absolute value have to differ by a large factor, and columns
    count only if most of their values are above the smallest one of all, so that pixels or counts
    that are rarely above zero are not taken for other units.  Constant columns do not count.
    Sparse observations and data in files have the same unit everywhere.
    """
    columns = facts.columns
    if columns is None or not facts.is_small_table:
        return None
    spread, largest = columns.deviation, np.maximum(-columns.lowest, columns.highest)
    # Columns that are mostly at the smallest value of all, or constant, do not count.
    is_rare = (columns.lowest == facts.range[0]) & (columns.share >= 0.5)
    varying = np.flatnonzero(~is_rare & (spread > 1e-13 * np.maximum(largest, 0)))
    if varying.size < 2:
        return None
    order = varying[np.argsort(spread[varying], kind="stable")]
    sizes = largest[varying]
    ratio = float(spread[order[-1]] / spread[order[0]])
    tenth = (varying.size - 1) // 10
    usual = float(spread[order[-1 - tenth]] / spread[order[tenth]])
    of_sizes = float(sizes.max() / sizes.min())
    alike = min(usual, of_sizes) < MIN_RATIO and min(ratio, of_sizes) < MAX_RATIO
    if of_sizes >= MAX_RATIO**2 > ratio:  # such as dates in seconds, however little they vary
        order, ratio = varying[np.argsort(sizes, kind="stable")], of_sizes
    elif alike or (not distance and ratio < MAX_RATIO**2):
        return None
    first, last = int(order[0]), int(order[-1])
    names = facts.labels.flat(facts.labels.columns)
    return UnitsApart(plain_label(names[first]), plain_label(names[last]), float(f"{ratio:.3g}"))


class Units(NamedTuple):
    """Means and standard deviations, of columns or entries; or one of each for all.

    Attributes
    ----------
    mean, deviation : ndarray or float
        Numbers in the units of X.
    """

    mean: Any
    deviation: Any

    def at(self, columns: Any) -> Units:
        """Return the units of some columns."""
        return Units(self.mean[columns], self.deviation[columns])

    def standard(self, values: FloatArray) -> FloatArray:
        """Return numbers less the mean, in standard deviations."""
        return np.asarray((values - self.mean) / self.deviation)

    def restore(self, numbers: FloatArray) -> FloatArray:
        """Return such numbers in the units of X."""
        return np.asarray(numbers * self.deviation + self.mean)


def column_units(observations: Observations) -> Units:
    """Return mean and standard deviation of each column; the values of a long table share them."""
    _, columns, x = observations.entries()
    n, table = observations.shape[1], observations.labels.table
    shared = np.arange(n) if table is None else table.first_of_unit
    return units_of_groups(shared[columns], x, n).at(shared)


def units_of_groups(group: NDArray[np.integer], x: FloatArray, number: int) -> Units:
    """Return mean and standard deviation of each group of values, 1 for constants."""
    x = x.astype(np.float64)
    counts = np.maximum(np.bincount(group, minlength=number), 1)
    means = np.bincount(group, x, number) / counts
    variances = np.bincount(group, np.square(x - means[group]), number) / counts
    return Units(means, np.sqrt(np.where(variances > 0, variances, 1.0)))


def refuse_table(labels: Labels, counts: NDArray[np.integer], attrs: Any) -> None:
    """Raise ValueError for a name that comes twice, one row, or a column of X without a value.

    If most cells are missing, some columns may be, too, as in a table of ratings; `attrs` of X may
    allow them in any table.
    """
    refuse_repeats(labels.coords.indexes[labels.columns[0]])
    m, names = labels.matrix_shape[0], labels.flat(labels.columns).tolist()
    if m == 1:
        raise ValueError("X has one row, and relations of columns need several: add some.")
    if labels.table is not None:  # the columns of the frame
        counts = counts[labels.table.first_columns]
        names = [column.name for column in labels.table.columns]
    empty = [name for name, count in zip(names, counts, strict=True) if not count]
    may_be_empty = "keep_empty_features" in attrs or 2 * counts.sum() < counts.size * m
    if empty and not may_be_empty:
        raise ValueError(
            f"X has no observed value in column {plain_label(empty[0])!r}: drop it by "
            "X.dropna(axis=1, how='all'), or use MatrixCompletion(), which leaves it out."
        )


def scale_of(values: FloatArray, counts: NDArray[np.integer]) -> list[float] | None:
    """Return the ends of a scale: 0 and 1 alone, or few different values, both ends often."""
    # A scale has few values, and some of all at either end.
    often = counts[[0, -1]].min() >= max(0.01 * counts.sum(), 2)
    is_scale = values.tolist() == [0, 1] or (often and 1 < values.size <= 20)
    return [float(values[0]), float(values[-1])] if is_scale else None


def names_of_codes(facts: Facts) -> list[Any]:
    """Return the columns of numbers of a table that are 0 and 1 alone."""
    is_code = False if facts.columns is None else facts.columns.is_code
    return list(facts.labels.flat(facts.labels.columns)[is_code])
