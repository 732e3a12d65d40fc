"""Parts of observations: training and test sets, ranges of the rows, and folds.

A fold has entries at random, moved gaps, test rows, or thinned counts.  A choice for large data has
some of the rows alone.

Where absent entries are zeros, every entry counts, so that none can be left out.  A part of a count
can: of x events each is held out with probability 1/10.  If x is a Poisson number, the two parts
are independent, and their means are as nine to one.  A fit to the larger part is judged by nine
times the smaller one at all entries.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy import ndimage

from nmd_lab._runtime.checks import as_generator, evenly

from .entries import FloatArray, IntArray, ObservedEntries
from .inputs import observe
from .labels import Labels, any_frame
from .matching import like, row_groups
from .observations import Observations
from .sparse import SparseObservations
from .typed_table import TypedTable


@any_frame
def split_observed(X: Any, test_size: float = 0.1, random_state: Any = None) -> tuple[Any, Any]:
    """Split the observed entries of X into a training and a test set.

    Parameters
    ----------
    X : scipy.sparse matrix, SparseObservations, ndarray, pandas.DataFrame or xarray.DataArray
        Data.  The stored entries of a sparse matrix are observed, and all entries of dense data but
        NaN.
    test_size : float or int, default 0.1
        Fraction (between 0 and 1) or number of the observed entries in the test set.
    random_state : int, Generator or None, default None
        Seed.

    Returns
    -------
    train, test : same type as X, CSR for sparse matrices
        Training and test set; each observed entry is in one of them.  Each row, column and class
        keeps at least one entry in `train`, so that `test` may be smaller than `test_size`.

    Raises
    ------
    ValueError, TypeError
        If `test_size` is out of range, or X is not valid.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine(as_frame=True).data  # 178 x 13
    >>> train, test = nmd.split_observed(wine, test_size=0.25, random_state=0)
    >>> int(train.isna().to_numpy().sum()), int(test.notna().to_numpy().sum())
    (578, 578)
    """
    observations = observe(X)
    train, test = split(observations, test_size, as_generator(random_state))
    return like(X, train), like(X, test)


@singledispatch
def split(
    observations: Observations, test_size: Any, rng: np.random.Generator
) -> tuple[Observations, Observations]:
    """Return a training and a test set of observations; see `split_observed`."""
    test = test_set(observations.entries(), observations.labels.table, test_size, rng)
    return observations.select(~test), observations.select(test)


def test_set(
    entries: ObservedEntries, table: TypedTable | None, test_size: Any, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Return which entries are in the test set; each row and column keeps another one."""
    rows, columns, values = entries
    order, test = rng.permutation(rows.size), np.zeros(rows.size, bool)
    # The last entry of each row and column stays.
    stays = [~pd.Series(each[order]).duplicated(keep="last") for each in (rows, columns)]
    test[order[~(stays[0] | stays[1])][: _test_count(test_size, rows.size)]] = True
    if table is not None:
        first = first_of_cells(rows, columns, table)  # the indicators of a category are together
        whole = test[first]
        left = np.bincount(rows[~whole], minlength=rows.max(initial=0) + 1)
        test = whole & (left > 0)[rows]
        # A class that no other cell shows stays, since a fit would not know it.
        is_class = np.array([column.is_class for column in table.of_matrix])[columns]
        different, codes = np.unique(values, return_inverse=True)
        codes = columns.astype(np.intp) * different.size + codes
        shown = np.bincount(codes[~test], minlength=codes.max(initial=0) + 1)[codes]
        alone = np.zeros(test.size, dtype=bool)
        alone[first[is_class & (shown == 0)]] = True
        test &= ~alone[first]
    return test


@singledispatch
def without(
    observations: Observations, held_out: Observations
) -> tuple[Observations, Observations]:
    """Return the observations at other positions than those of a matrix, and that matrix."""
    n = observations.shape[1]
    theirs, mine = (each.entries().flat(n) for each in (held_out, observations))
    keep = ~np.isin(mine, theirs, assume_unique=True)
    return observations if keep.all() else observations.select(keep), held_out.as_sparse()


def first_of_cells(rows: IntArray, columns: IntArray, table: TypedTable | None) -> NDArray[np.intp]:
    """Return the position of the first entry of the cell of each entry.

    The indicators of a category are one cell, since some of them would tell the others.
    """
    if table is None:
        return np.arange(rows.size)
    cells = rows.astype(np.int64) * table.source.size + table.first_of_cell[columns]
    return pd.Series(np.arange(rows.size)).groupby(cells).transform("first").to_numpy()


def _test_count(test_size: Any, n_observed: int) -> int:
    """Return the number of entries in the test set."""
    if not isinstance(test_size, bool):
        if isinstance(test_size, Integral) and 0 < int(test_size) < n_observed:
            return int(test_size)
        if isinstance(test_size, Real) and 0 < float(test_size) < 1:
            return max(1, round(float(test_size) * n_observed))
    raise ValueError(
        f"test_size={test_size!r} is out of range: give a fraction between 0 and 1, or a number "
        f"below the {n_observed} observed entries."
    )


def some_rows(
    observations: Observations,
    number: int,
    rng: np.random.Generator,
    besides: Sequence[int] | NDArray[np.intp] = (),
) -> Observations:
    """Return at most so many rows, at random, and some besides; columns keep their labels."""
    m = observations.shape[0]
    if m <= number:
        return observations
    rows = np.union1d(rng.choice(m, number, replace=False), np.asarray(besides, dtype=np.intp))
    return observations.of_rows(rows, without_rows(observations.labels, rows.size))


def without_rows(labels: Labels, number: int) -> Labels:
    """Return the labels of the columns, for so many rows without labels."""
    row = labels.rows[:1]
    return labels_of_new_rows(labels, Labels(row, (number,), row))


def labels_of_new_rows(labels: Labels, new_labels: Labels) -> Labels:
    """Return the labels of new rows with the columns of others."""
    rows, columns = new_labels.rows, labels.columns
    coords = xr.Dataset(coords=new_labels.coords_along(*rows))
    return replace(
        labels,
        dims=(*rows, *columns),
        shape=(*(new_labels.sizes[dim] for dim in rows), *(labels.sizes[dim] for dim in columns)),
        rows=rows,
        coords=coords.assign_coords(labels.coords_along(*columns)),
    )


HELD_OUT_SHARE = 0.1  # fraction of the observed entries that a fold holds out
MIN_CORRELATION = 0.25  # of missing entries of a row and the next, from which they are in runs
MIN_OBSERVED = 1 / 16  # share of observed entries below which missing ones are not in runs
MIN_HELD_OUT = 2000  # held-out entries from which one fold is enough
MAX_HELD_OUT = 100_000  # largest number of held-out entries of a fold
MAX_FOLDS = 10  # largest number of folds, with which each entry is held out about once


class Fold(NamedTuple):
    """Observed entries for a trial, and others at which it is judged.

    Attributes
    ----------
    rest : Observations
        Entries that are fitted.
    held_out : SparseObservations
        Entries that are not.
    """

    rest: Observations
    held_out: SparseObservations

    def sparse(self) -> Fold:
        """Return the same entries, of which only the observed ones are stored."""
        return self._replace(rest=self.rest.as_sparse())


def draw_folds(
    observations: Observations, rng: np.random.Generator, kind: str | None = None
) -> tuple[list[Fold], str]:
    """Return the folds, none if nothing can be held out, and how they were drawn.

    Without a kind the data decide.  A few thousand held-out entries are enough to tell settings
    apart.  If a fold has fewer, there are several.
    """
    if isinstance(observations, SparseObservations) and observations.absent_are_zeros:
        return thinned(observations, rng), "by thinning"
    kind = kind or ("blocks" if holes_depend_on_each_other(observations) else None)
    hide, how = KINDS[kind] if kind else (at_random, "at random")
    share = min(HELD_OUT_SHARE, MAX_HELD_OUT / observations.n_observed)
    fewest = 2 if kind else 1
    folds: list[Fold] = []
    for _ in range(MAX_FOLDS):
        if len(folds) >= fewest and n_held_out(folds) >= MIN_HELD_OUT:
            break
        hidden = hide(observations, share, rng)
        hidden = hidden if hidden.any() else at_random(observations, share, rng)
        if hidden.any():
            folds.append(make_fold(observations, hidden))
    return folds, how


def n_held_out(folds: list[Fold]) -> int:
    """Return the number of held-out entries of all folds."""
    return sum(fold.held_out.n_observed for fold in folds)


def make_fold(
    observations: Observations, held_out: NDArray[np.bool_], rest: NDArray[np.bool_] | None = None
) -> Fold:
    """Return a fold of masks of the observed entries; by default the rest is all others.

    There are no held-out entries of which only limits are known, unless all are so: a model that
    satisfies a limit may be far from the value, so that they measure no error.
    """
    judged = observations.select(held_out).as_sparse()
    fold = Fold(observations.select(~held_out if rest is None else rest), judged)
    is_known = judged.exact
    if is_known.all() or not is_known.any():
        return fold
    return fold._replace(held_out=judged.select(is_known))


def at_random(
    observations: Observations, share: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Return a mask of a fraction of the observed entries."""
    if observations.n_observed > 1:
        return test_set(observations.entries(), observations.labels.table, share, rng)
    return np.zeros(observations.n_observed, bool)


def holes_depend_on_each_other(observations: Observations) -> bool:
    """Return whether entries of a row are missing together, as in a block of pixels.

    For each pair of columns the number of rows in which both are missing is compared with what is
    expected if the missing entries of each column were in any rows; with twice as many they
    depend.
    """
    m, n = observations.shape
    share = observations.n_observed / (m * n)
    if share == 1 or share < 1 / 3 or min(m, n) < 4:  # nothing is missing, or most of it is
        return False
    # Some of the rows and columns are enough.
    rows, columns = (evenly(size, 500) for size in (m, n))
    if observations.labels.table is not None:  # the indicators of a category are always together
        columns = np.unique(observations.labels.table.first_of_cell[columns])
    excess = observations.missing()[np.ix_(rows, columns)].astype(float)
    excess -= excess.mean(axis=0)
    together = np.square(excess.T @ excess)
    variances = np.square(excess).mean(axis=0)
    by_chance = rows.size * (variances.sum() ** 2 - np.square(variances).sum())
    return bool(together.sum() - np.trace(together) > 2 * by_chance > 0)


def moved_holes(
    observations: Observations, share: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Return a mask of observed entries that are missing in other rows.

    Rows keep their order, so that a block of missing entries is moved as a whole.  Blocks are moved
    again and again until a fraction of the entries is hidden, or ten moves in turn hide nothing.  A
    row loses at most half of its entries, a column a fifth.
    """
    missing = observations.missing()
    if not missing.any():
        raise ValueError(
            "splitter='blocks' moves the missing regions of X, which has none: give masks, or "
            "leave it out."
        )
    hidden, seen, (m, _) = np.zeros_like(missing), ~missing, missing.shape
    of_row, of_column = _may_lose(seen.sum(axis=1), 0.5), _may_lose(seen.sum(axis=0), 0.2)
    with_holes = np.flatnonzero(missing.any(axis=1))
    to_hide, without_gain = share * np.count_nonzero(seen), 0
    for _ in range(1000):
        before, shift = to_hide, int(rng.integers(m // 4, m - m // 4)) if m > 4 else 1
        first = int(rng.integers(with_holes.size))
        for row in np.roll(with_holes, first).tolist():
            to = (row + shift) % m
            cells = np.flatnonzero(missing[row] & seen[to] & ~hidden[to])
            if 0 < cells.size <= of_row[to] and np.all(of_column[cells] >= 1):
                hidden[to, cells] = True
                of_row[to] -= cells.size
                of_column[cells] -= 1
                to_hide -= cells.size
            if to_hide <= 0:
                break
        without_gain = 0 if to_hide < before else without_gain + 1
        if to_hide <= 0 or without_gain == 10:
            break
    rows, columns, _ = observations.entries()
    return np.asarray(hidden[rows, columns])


KINDS = {"blocks": (moved_holes, "as the missing entries are")}
"""Kinds of folds by the word for `splitter`: what hides entries, and how they were drawn."""

ALONG = np.array([[0, 0, 0], [1, 1, 1], [0, 0, 0]])  # neighbours in a line


def moved_runs(
    observations: Observations,
    share: float,
    rng: np.random.Generator,
    sequence: NDArray[np.integer],
) -> NDArray[np.bool_]:
    """Return a mask of a fraction of the observed entries, in runs as the missing ones are.

    A run continues from row to row of a sequence: in one column, or in all columns of rows that
    have none of the entries that are missing anywhere.  The runs of a column are moved together, to
    other rows, and the indicators of a category are hidden together.
    """
    missing, table = observations.missing()[sequence], observations.labels.table
    of_column = np.arange(missing.shape[1]) if table is None else table.first_of_cell
    columns, of_column = np.unique(of_column, return_inverse=True)
    missing = missing[:, columns]
    has_gaps, (m, n) = missing.any(axis=0), missing.shape
    empty = missing[:, has_gaps].all(axis=1, keepdims=True)
    rows = np.roll(empty, rng.integers(1, m), axis=0)
    cells = (missing & ~empty)[(np.arange(m)[:, None] - rng.integers(1, m, n)) % m, np.arange(n)]
    # The number, from 1, of the run along its column that each entry is in
    of_rows, of_cells = (ndimage.label(each.T, ALONG)[0].T for each in (rows, cells))
    run = np.where(rows, of_rows, of_rows.max(initial=0) + of_cells)
    t, k = np.nonzero((rows & has_gaps | cells) & ~missing)
    # One run after another, at random; the last one may be cut.
    one_by_one = np.lexsort((t, rng.permutation(run.max(initial=0) + 1)[run[t, k]]))
    some = one_by_one[: max(round(share * np.count_nonzero(~missing)), 1)]
    hidden = np.zeros_like(missing)
    hidden[t[some], k[some]] = True
    found = np.zeros(observations.shape, dtype=bool)
    found[sequence] = hidden[:, of_column]
    i, j, _ = observations.entries()
    return np.asarray(found[i, j])


def missing_in_runs(observations: Observations, sequence: NDArray[np.integer]) -> bool:
    """Return whether entries of a column are missing in rows that follow each other in a sequence.

    The correlation of a missing entry with that behind it says so, or more rows than by chance
    without any of the entries that are missing anywhere.
    """
    m, n = observations.shape
    if observations.n_observed < MIN_OBSERVED * m * n:  # and so many cells need no mask
        return False
    missing = observations.missing()[sequence]
    share = missing.mean(axis=0)
    empty = np.count_nonzero(missing[:, share > 0].all(axis=1))
    if empty > 2 * m * share[share > 0].prod():  # than by chance
        return True
    both = np.count_nonzero(missing[1:] & missing[:-1], axis=0)
    ends = missing[[0, -1]].sum(axis=0)  # in one of the two sums that `both` is compared with
    together = np.sum(both - share * (2 * m * share - ends) + (m - 1) * share**2)
    return bool(together > MIN_CORRELATION * np.sum(m * share * (1 - share)) > 0)


def _may_lose(counts: NDArray[np.integer], share: float) -> FloatArray:
    """Return how many of its entries each row (or column) may lose; one stays at least."""
    return np.asarray(np.minimum(np.maximum(share * counts, 1), counts - 1))


RowSplit = tuple[NDArray[np.integer], NDArray[np.integer]]
"""Positions of the rows that teach a fit, and of those in which entries are held out."""


def row_splits(
    splitter: Any, groups: Any, X: Any, observations: Observations, rng: np.random.Generator
) -> list[RowSplit]:
    """Return the splits of the rows; a splitter without a seed gets one."""
    name, m = repr(splitter), observations.shape[0]
    arguments = {} if groups is None else {"groups": row_groups(groups, X, observations)}
    if getattr(splitter, "random_state", 0) is None:
        splitter = copy.copy(splitter)
        splitter.random_state = int(rng.integers(2**31))
    try:
        return list(splitter.split(np.zeros((m, 1)), **arguments))
    except (TypeError, ValueError) as error:
        remedy = "give groups=" if groups is None and "groups" in str(error) else "give another one"
        raise ValueError(
            f"splitter={name} cannot split the {m} rows of X ({str(error).rstrip('.')}): {remedy}."
        ) from error


def row_folds(
    splits: list[RowSplit], observations: Observations, rng: np.random.Generator
) -> list[Fold]:
    """Return folds in which a fifth of the columns is held out in the test rows, the largest first.

    Each split holds out another fifth, in all its test rows: what is known of these columns comes
    from the training rows alone.  The indicators of a category are held out together.
    """
    n, table = observations.shape[1], observations.labels.table
    n_parts = max(2, min(5, n))
    parts = rng.permutation(math.ceil(n / n_parts) * n_parts)[:n] % n_parts
    parts = parts if table is None else parts[table.first_of_cell]
    folds: list[Fold] = []
    for shift in range(max(1, min(n_parts, MAX_FOLDS // max(len(splits), 1)))):
        if n_held_out(folds) >= MIN_HELD_OUT:
            break
        for number, each in enumerate(splits):
            fold = _fold(each, parts == (number + shift) % n_parts, observations)
            folds += [] if fold is None else [fold]
    return sorted(folds, key=lambda fold: -fold.rest.n_observed)


def _fold(split: RowSplit, hidden: NDArray[np.bool_], observations: Observations) -> Fold | None:
    """Return the fold with some columns held out in the test rows; None if nothing can be.

    Neither rows that would keep no entry nor columns that no other row has are judged.
    """
    m, (rows, columns, _) = observations.shape[0], observations.entries()
    in_test, in_split = (np.isin(np.arange(m), each) for each in (split[1], np.concatenate(split)))
    held = in_test[rows] & hidden[columns]
    rest = in_split[rows] & ~held
    held &= np.isin(rows, rows[rest]) & np.isin(columns, columns[rest])
    return make_fold(observations, held, rest) if held.any() else None


MAX_CELLS = 300_000  # observed cells from which settings are chosen
MAX_CELLS_OF_TABLE = 100_000  # the same for a table with classes or levels, which take longer
MIN_ROWS = 1000  # least number of rows for that


def sample_of_rows(
    observations: Observations, rng: np.random.Generator, *, has_classes: bool
) -> Observations:
    """Return as many of the rows as a choice needs, or all of them."""
    m, n = observations.shape
    cells = MAX_CELLS_OF_TABLE if has_classes else MAX_CELLS
    number = max(MIN_ROWS, 4 * n, round(cells * m / observations.n_observed))
    return observations if m < 2 * number else some_rows(observations, number, rng)


def thinned(counts: SparseObservations, rng: np.random.Generator) -> list[Fold]:
    """Return folds: most of each count, and a multiple of the others with the same mean.

    The others have the entries of which something is held out; if they are few, there are several
    folds, and no event is held out twice.
    """
    x, folds = counts.values, list[Fold]()
    left = x.astype(np.int64)
    while len(folds) < MAX_FOLDS and n_held_out(folds) < MIN_HELD_OUT:
        # Of the events that are in no fold
        share = min(HELD_OUT_SHARE / (1 - HELD_OUT_SHARE * len(folds)), 1.0)
        held_out = rng.binomial(left, share)
        left -= held_out
        rest = x - held_out.astype(x.dtype)
        others = counts.with_values(((1 / HELD_OUT_SHARE - 1) * held_out).astype(x.dtype))
        others = replace(others.select(held_out > 0), absent_are_zeros=False)
        folds.append(Fold(counts.with_values(rest).select(rest > 0), others))
    return folds
