"""Parts of observations: training and test sets of the entries, and ranges of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch
from numbers import Integral, Real
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab._runtime.checks import as_generator
from nmd_lab._runtime.compiler import cached_kernel

from .dense import DenseObservations
from .entries import EntryWeights, IntArray, entries_of_rows
from .inputs import observe
from .labels import Labels, any_frame
from .matching import like
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
        Training and test set; each observed entry is in one of them.  Each row and column keeps
        at least one entry in `train`, so that `test` may be smaller than `test_size`.

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
    rows, columns, _ = observations.entries()
    test = test_set(rows, columns, observations.labels.table, test_size, rng)
    return observations.select(~test), observations.select(test)


def test_set(
    rows: IntArray,
    columns: IntArray,
    table: TypedTable | None,
    test_size: Any,
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    """Return which entries are in the test set; each row and column keeps another one."""
    n_test = _test_count(test_size, rows.size)
    counts = np.bincount(rows), np.bincount(columns)
    test: NDArray[np.bool_] = cached_kernel(_choose, f"choose_{rows.dtype}")(
        rng.permutation(rows.size), *map(np.ascontiguousarray, (rows, columns)), *counts, n_test
    )
    if table is not None:
        whole = test[first_of_cells(rows, columns, table)]  # indicators of a category are together
        left = np.bincount(rows[~whole], minlength=counts[0].size)
        test = whole & (left > 0)[rows]
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
    cells: NDArray[np.int64] = (
        rows.astype(np.int64) * table.source.size + table.first_of_cell[columns]
    )
    _, first, cell = np.unique(cells, return_index=True, return_inverse=True)
    return first[cell]


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


def _choose(order, rows, columns, row_counts, column_counts, n_test):  # type: ignore[no-untyped-def]
    """Return the mask of the test set: entries whose row and column keep another entry."""
    test = np.zeros(order.size, dtype=np.bool_)
    taken = 0
    for k in order:
        i, j = rows[k], columns[k]
        if taken < n_test and row_counts[i] > 1 and column_counts[j] > 1:
            row_counts[i] -= 1
            column_counts[j] -= 1
            test[k] = True
            taken += 1
    return test


def rows_of(observations: Observations, rows: slice) -> Observations:
    """Return a range of rows, without labels; of data without limits nothing else is read."""
    labels = Labels.plain((rows.stop - rows.start, observations.shape[1]))
    if isinstance(observations, SparseObservations):
        pointers = observations.indptr[rows.start : rows.stop + 1]
        entries = slice(int(pointers[0]), int(pointers[-1]))
        return observations.at(entries, pointers - pointers[0], labels)
    return _with_rows(observations, rows, labels)


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
    return _with_rows(observations, rows, without_rows(observations.labels, rows.size))


def _with_rows(observations: Observations, rows: slice | IntArray, labels: Labels) -> Observations:
    """Return some rows, by position, with other labels."""
    if isinstance(observations, DenseObservations) and observations.limits is None:
        weights = observations.stored_weights
        if weights is not None:
            chosen = weights.of_rows(rows)
            weights = EntryWeights(*((chosen, None) if chosen.dtype == bool else (None, chosen)))
        return DenseObservations(np.asarray(observations.stored[rows]), weights, labels)
    stored: SparseObservations = observations.as_sparse()
    indptr, at = entries_of_rows(stored.indptr, rows)
    return stored.at(at, indptr.astype(stored.indptr.dtype), labels)


def without_rows(labels: Labels, number: int) -> Labels:
    """Return the labels of the columns, for so many rows without labels."""
    sizes = [
        size for dim, size in zip(labels.dims, labels.shape, strict=True) if dim in labels.columns
    ]
    return replace(
        labels,
        dims=(labels.rows[0], *labels.columns),
        shape=(number, *sizes),
        rows=labels.rows[:1],
        coords=labels.coords.drop_dims(labels.rows, errors="ignore"),
    )


def labels_of_new_rows(labels: Labels, new_labels: Labels) -> Labels:
    """Return the labels of new rows with the columns of a posterior."""
    columns = without_rows(labels, 1)
    coords = xr.Dataset(coords=new_labels.coords_along(*new_labels.rows))
    return replace(
        columns,
        dims=(*new_labels.rows, *labels.columns),
        shape=(*(new_labels.sizes[dim] for dim in new_labels.rows), *columns.shape[1:]),
        rows=new_labels.rows,
        coords=coords.merge(columns.coords),
        valid_range=None,
    )
