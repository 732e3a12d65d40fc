"""The units of columns, and detection of tables in which they differ, such as years and fractions.

>>> import numpy as np
>>> from nmd_lab.data.inputs import observe
>>> years, share = np.arange(1900.0, 2000.0), np.linspace(0.0, 0.05, 100)
>>> units_of_columns(observe(np.column_stack([years, share])))
UnitsApart(smallest=1, largest=0, ratio=1980.0)

Values at the ends of columns, such as the zeros of an amount, are found, too.

>>> amount, age = np.maximum(np.arange(-4.0, 16), 0), np.arange(20.0, 40)
>>> ends_of_columns(observe(np.column_stack([amount, age])))
array([[  0.,  inf],
       [-inf,  inf]])
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .entries import FloatArray
from .observations import Observations
from .typed_table import plain_label, refuse_repeats

APART, FAR = 20.0, 1000.0
"""Ratios of the spreads of columns from which their units are taken to be different: when a tenth
of the columns is left out at either end, and of the largest and the smallest one.

Standardised columns of 10 made and real tables, times numbers of a ratio of 4, 8, 16 and 32, are
completed with errors 2, 7, 11 and 20 % larger (median), and sampled with 0, 1, 1 and 3 %.  Columns
of one unit whose spreads are like those of normal numbers have 13 without the tenths.
"""

LEAST = 1e-13  # standard deviation of a column, over its largest size, up to which it is constant
RARE = 0.5  # fraction of a column at the smallest value of all, from which it does not count


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


def units_of_columns(observations: Observations, *, distance: bool = True) -> UnitsApart | None:
    """Return the columns whose units are most different, None if the units seem to be the same.

    Counts and other numbers whose loss is no distance may differ more (`distance=False`).

    Both the spread and the largest absolute value have to differ by a large factor, and columns
    count only if most of their values are above the smallest one of all, so that pixels or counts
    that are rarely above zero are not taken for other units.  Constant columns do not count.
    Sparse observations and data in files have the same unit everywhere.
    """
    if not observations.is_small_table:
        return None
    spread, largest = np.zeros((2, observations.shape[1]))
    lowest = observations.range()[0]
    for j, values in enumerate(values_of_columns(observations)):
        x = values.astype(np.float64)
        if np.count_nonzero(x == lowest) < RARE * x.size:
            spread[j], largest[j] = np.std(x), np.max(np.abs(x))
    varying = np.flatnonzero(spread > LEAST * largest)
    if varying.size < 2:
        return None
    order = varying[np.argsort(spread[varying], kind="stable")]
    sizes = largest[varying]
    ratio = float(spread[order[-1]] / spread[order[0]])
    tenth = (varying.size - 1) // 10
    usual = float(spread[order[-1 - tenth]] / spread[order[tenth]])
    of_sizes = float(sizes.max() / sizes.min())
    alike = min(usual, of_sizes) < APART and min(ratio, of_sizes) < FAR
    if of_sizes >= FAR**2 > ratio:  # such as dates in seconds, however little they vary
        order, ratio = varying[np.argsort(sizes, kind="stable")], of_sizes
    elif alike or (not distance and ratio < FAR**2):
        return None
    first, last = int(order[0]), int(order[-1])
    names = observations.labels.flat(observations.labels.columns)
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


def refuse_table(observations: Observations, X: Any) -> None:
    """Raise ValueError for a name that comes twice, one row, or a column of X without a value.

    If most cells are missing, some columns may be, too, as in a table of ratings.
    """
    refuse_repeats(observations.labels.coords.indexes[observations.labels.columns[0]])
    if observations.shape[0] == 1:
        raise ValueError("X has one row, and relations of columns need several: add some.")
    counts, table = observations.counts(0), observations.labels.table
    if table is not None:
        counts = counts[table.first_columns]  # those of the columns of the frame
    empty = X.columns[counts == 0] if 2 * counts.sum() >= counts.size * len(X) else []
    if len(empty) and "keep_empty_features" not in X.attrs:
        raise ValueError(
            f"X has no observed value in column {plain_label(empty[0])!r}: drop it by "
            "X.dropna(axis=1, how='all'), or use MatrixCompletion(), which leaves it out."
        )


SHARE = 0.1  # of the observed values of a column, at its smallest or its largest one
FEWEST = 8  # different values of a column; one with fewer counts or grades, and has no end
MOST_LEVELS, OFTEN = 20, 0.01  # values of a scale, and fraction of all that either end has at least
OF_CONSTANT = 20  # observed values of a constant, or half of the rows; fewer may be equal by chance


def values_of_columns(observations: Observations) -> list[FloatArray]:
    """Return the observed values of each column."""
    _, columns, x = observations.entries()
    order = np.argsort(columns, kind="stable")
    bounds = np.searchsorted(columns[order], np.arange(1, observations.shape[1]))
    return np.split(x[order], bounds)


def ends_of_columns(observations: Observations) -> NDArray[np.float64]:
    """Return the smallest and the largest value of each column (n, 2) if many are just that.

    A constant has both, and so has a column of 0 and 1 alone.  They are -inf and inf in a
    column with limits, which says more, and in the values of a long table.
    """
    n = observations.shape[1]
    ends = np.tile([-np.inf, np.inf], (n, 1))
    _, columns, _ = observations.entries()
    limits = observations.as_sparse().limits
    table, enough = observations.labels.table, min(OF_CONSTANT, observations.shape[0] / 2)
    limited = np.zeros(n, dtype=bool) if table is None else table.of_values.copy()
    if limits is not None:
        limited[columns[limits.codes != 0]] = True
    of_columns = values_of_columns(observations)
    for j in np.flatnonzero(~limited):
        values, counts = np.unique(of_columns[j], return_counts=True)
        if values.size >= FEWEST or (values.size == 1 and counts[0] >= enough):
            many = counts[[0, -1]] >= SHARE * counts.sum()
            ends[j, many] = values[[0, -1]][many]
        elif values.tolist() == [0, 1]:
            ends[j] = 0, 1
    return ends


def scale_of(values: FloatArray, counts: NDArray[np.integer]) -> list[float] | None:
    """Return the ends of a scale: 0 and 1 alone, or few different values, both ends often."""
    often = counts[[0, -1]].min() >= max(OFTEN * counts.sum(), 2)
    is_scale = values.tolist() == [0, 1] or (often and 1 < values.size <= MOST_LEVELS)
    return [float(values[0]), float(values[-1])] if is_scale else None


def names_of_codes(observations: Observations) -> list[Any]:
    """Return the columns of numbers of a table that are 0 and 1 alone."""
    _, columns, x = observations.entries()
    n, table = observations.shape[1], observations.labels.table
    zeros, ones, values = (
        np.bincount(columns[at], minlength=n) for at in (x == 0, x == 1, np.isfinite(x))
    )
    is_code = (zeros > 0) & (ones > 0) & (zeros + ones == values)
    if table is not None:
        is_code &= [column.kind == "number" for column in table.of_matrix]
    return list(observations.labels.flat(observations.labels.columns)[is_code])
