"""Rows, columns and entries matched with those of another matrix, and the places of rows in order.

Every kind of input of `complete` is taken.  What has labels is matched by label.  Entries that a
sparse matrix does not store are missing, and no sparse input is made dense.

Rows may be in an order, such as that of time, and in several series.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy import sparse

from nmd_lab._runtime.checks import check_no_fit

from .cell_numbers import numbers_of
from .entries import FloatArray, row_pointers
from .inputs import aligned, observe
from .labels import Labels, is_frame
from .observations import Observations
from .sparse import SparseObservations
from .typed_table import TypedTable, plain_label

Axis = Literal["rows", "columns"]
AXES: tuple[Axis, Axis] = ("rows", "columns")


class MatchedData(NamedTuple):
    """Observed entries of data, and where another matrix has their rows and columns.

    Attributes
    ----------
    observations : Observations
        The data.
    rows, columns : ndarray of int (m,) and (n,)
        Position in the other matrix of each row and column of the data.
    """

    observations: Observations
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]

    def as_sparse(self, labels: Labels) -> SparseObservations:
        """Return the observed entries at their positions in the other matrix, with its labels."""
        observations: SparseObservations = self.observations.as_sparse()
        i, j, _ = observations.entries()
        rows, columns = self.rows[i], self.columns[j]
        m, n = labels.matrix_shape
        order, pointers = np.lexsort((columns, rows)), row_pointers(rows, m)
        here = Labels.plain((observations.shape[0], n))
        moved = replace(observations, indices=columns.astype(pointers.dtype), labels=here)
        return moved.at(order, pointers, labels)

    def to_rows(self, positions: NDArray[np.intp], shape: tuple[int, int]) -> FloatArray:
        """Return some rows of the other matrix, NaN where nothing is observed."""
        return self.as_sparse(Labels.plain(shape)).of_rows(positions).to_array()


def match_data(
    labels: Labels, X: Any, *, owner: str = "the fit", unknown: str | None = None, **options: Any
) -> MatchedData:
    """Return any accepted input with the positions of its rows and columns in another matrix."""
    return matched(labels, observe_like(labels, X, **options), owner, unknown)


def matched(
    labels: Labels, observations: Observations, owner: str = "the fit", unknown: str | None = None
) -> MatchedData:
    """Return observations with the positions of their rows and columns in another matrix."""
    rows, columns = (
        known_positions(observations.labels, labels, axis, owner, unknown) for axis in AXES
    )
    return MatchedData(observations, rows, columns)


def observe_like(labels: Labels, X: Any, **options: Any) -> Observations:
    """Return the observations of any accepted input, with the rows of another matrix."""
    check_no_fit("X", X)
    sample_dims = None
    if isinstance(X, xr.DataArray):  # rows along any dimension
        others = [str(dim) for dim in X.dims if dim not in labels.columns]
        if X.ndim > 2 or len(others) == 1:
            sample_dims = others
    return observe(X, sample_dims=sample_dims, table=labels.table, **options)


def known_positions(
    labels: Labels, other: Labels, axis: Axis, owner: str = "the fit", unknown: str | None = None
) -> NDArray[np.intp]:
    """Return what `match` does; raise ValueError for unknown labels that have to be known."""
    positions = match(labels, other, axis)
    if positions is None:
        size, wanted = (each.size(getattr(each, axis)) for each in (labels, other))
        raise ValueError(f"X has {size} {axis}: give the {wanted} of {owner}.")
    if unknown != "offsets" and np.any(positions < 0):
        dims = getattr(labels, axis)
        such = first_few(pd.Index(labels.flat(dims))[positions < 0])
        where = f"{', '.join(dims)!r}, such as {such}"
        remedy = "" if unknown is None else ", or give unknown='offsets'"
        raise ValueError(f"X has other labels along {where}: select those of {owner}{remedy}.")
    if axis == "columns" and labels.table is not None and other.table is not None:
        _check_levels(labels.table, other.table, owner)
    return positions


def _check_levels(table: TypedTable, other: TypedTable, owner: str) -> None:
    """Raise ValueError if levels of a column have other positions in the other table."""
    levels = {
        column.name: column.categories for column in other.columns if column.kind == "ordered"
    }
    for column in table.columns:
        wanted = levels.get(column.name, column.categories)
        if column.kind == "ordered" and column.categories != wanted:
            raise ValueError(
                f"X has the ordered values {first_few(column.categories)} in column "
                f"{column.name!r}: give those of {owner}, {first_few(wanted)}."
            )


def match(labels: Labels, other: Labels, axis: Axis) -> NDArray[np.intp] | None:
    """Return the position of each row (or column) of a matrix among those of another matrix.

    An axis with labels in both matrices is matched by label, so that `labels` may have some of the
    rows only, in any order.  The default labels 0, 1, 2, ... of a table whose index has no name
    count as no labels, unless those of the other are whole numbers, too.  Other axes are matched by
    position and must have equal sizes.
    """
    dims, other_dims = getattr(labels, axis), getattr(other, axis)
    if len(dims) == 1 and len(other_dims) == 1:
        return _match_dimension(labels, dims[0], other, other_dims[0])
    if set(dims) != set(other_dims):
        size = labels.size(dims)
        return np.arange(size) if size == other.size(other_dims) else None
    along = [_match_dimension(labels, dim, other, dim) for dim in dims]
    if any(positions is None for positions in along):
        return None
    places = np.arange(other.size(other_dims)).reshape([other.sizes[dim] for dim in other_dims])
    places = places.transpose([other_dims.index(dim) for dim in dims])
    # The position -1 along a dimension is that of the padding, which is none
    return np.pad(places, (0, 1), constant_values=-1)[np.ix_(*along)].ravel()


def _match_dimension(
    labels: Labels, dim: str, other: Labels, other_dim: str
) -> NDArray[np.intp] | None:
    """Return the positions along one dimension; see `match`."""
    index, target = labels.index(dim), other.index(other_dim)
    size = labels.sizes[dim]
    by_position = np.arange(size) if size == other.sizes[other_dim] else None
    if index is None or target is None or is_default(dim, index):
        return by_position
    if index.equals(target):
        return by_position
    for one, of in ((index, "X"), (target, "the fit")):
        if not one.is_unique:
            twice = plain_label(one[one.duplicated()][0])
            raise ValueError(
                f"{of} has the label {twice!r} twice along {dim!r}: make its labels unique, or "
                "give X without labels, in the order of the fit."
            )
    positions: NDArray[np.intp] = target.get_indexer(index)
    is_counted = index.dtype.kind in "iu"  # other numbers than 0, 1, 2, ... are other rows
    if np.any(positions < 0) and is_default(other_dim, target) and not is_counted:
        return positions if by_position is None else by_position
    return positions


def is_default(dim: str, index: Any) -> bool:
    """Return whether an index is what a table has whose rows or columns were given no labels."""
    if dim not in ("row", "column") or index.nlevels > 1 or index.dtype.kind not in "iu":
        return False
    return bool(np.array_equal(index, np.arange(len(index))))


def mixed(z: Any) -> Any:
    """Return well-mixed bits of 64-bit integers, as SplitMix64 does; also compiled."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def mixed_with(keys: NDArray[Any], numbers: NDArray[Any]) -> NDArray[np.int64]:
    """Return keys that depend on further numbers, such as positions."""
    odd = np.uint64(0x9E3779B97F4A7C15) * (numbers.astype(np.uint64) + np.uint64(1))
    found: NDArray[np.int64] = mixed(keys.view(np.uint64) + odd).view(np.int64)
    return found


def row_keys(observations: Observations, *, numbered: bool = False) -> NDArray[np.int64]:
    """Return a hash of the observed entries of each row, and of their weights other than 1.

    Equal rows have equal keys, unless they are numbered: then they differ from the second one on.
    """
    rows = observations.as_sparse()
    each = mixed_with((rows.values.astype(np.float64) + 0.0).view(np.int64), rows.indices)
    if rows.weights is not None:
        of_weights = rows.weights.astype(np.float64).view(np.int64)
        each = np.where(rows.weights == 1, each, mixed_with(each, of_weights))
    sums = np.append(np.int64(0), np.cumsum(each))  # of hashes, so that 64 bits may overflow
    keys = mixed_with(np.diff(sums[rows.indptr]), np.zeros(1))
    if not numbered:
        return keys
    number = pd.Series(keys).groupby(keys).cumcount().to_numpy()
    return np.where(number > 0, mixed_with(keys, number), keys)


def first_few(labels: Iterable[Any]) -> str:
    """Return labels as a text: the first few, and how many there are beyond them."""
    unique = list(dict.fromkeys(map(plain_label, labels)))
    text = ", ".join(map(repr, unique[:5]))
    return text if len(unique) <= 5 else f"{text} and {len(unique) - 5} more"


def like(X: Any, observations: Observations, values: FloatArray | None = None) -> Any:
    """Return observations, or other values at their entries, in the type of X.

    Of a DataFrame of several kinds, its own cells are returned as what they are.
    """
    if values is not None:
        observations = observations.as_sparse().with_values(values)
    if isinstance(X, SparseObservations):
        return observations
    if sparse.issparse(X):
        matrix = observations.as_sparse().to_csr()
        return sparse.csr_matrix(matrix) if isinstance(X, sparse.spmatrix) else matrix
    array, table = observations.to_array(), observations.labels.table
    if values is None and table is not None:
        return table.with_holes(X, ~np.isnan(array))
    return dense_like(X, observations.labels, array)


def dense_like(X: Any, labels: Labels, array: FloatArray) -> Any:
    """Return a matrix in the type of dense data, an ndarray for lists and masked arrays."""
    if isinstance(X, xr.DataArray):
        return X.copy(data=labels.label(array).values)
    if is_frame(X):
        columns = X.columns if labels.table is None else labels.table.labels
        return type(X)(array, index=X.index, columns=columns)
    return array


def row_groups(groups: Any, X: Any, observations: Observations) -> NDArray[np.intp]:
    """Return the group of each row as a number, from labels or the name of what has them in X."""
    m = observations.shape[0]
    if isinstance(groups, str):
        groups = _named_groups(groups, X, observations)
    elif is_frame(X) and hasattr(groups, "index") and hasattr(groups, "reindex"):
        groups = aligned("groups", groups, {"index": (groups.index, X.index)})
    labels = np.asarray(groups)
    if labels.shape != (m,):
        raise ValueError(f"groups has shape {labels.shape}: give a label for each of the {m} rows.")
    missing = pd.isna(labels)
    if np.any(missing):
        raise ValueError(f"groups has no label for row {np.argmax(missing)}: give one to each row.")
    text = labels.astype(str) if labels.dtype == object else labels
    return np.asarray(np.unique(text, return_inverse=True)[1].reshape(m))


def _named_groups(name: str, X: Any, observations: Observations) -> NDArray[Any]:
    """Return the labels of a column, an index level or a coordinate."""
    if is_frame(X) and name in X.columns:
        return np.asarray(X[name], dtype=object)
    if is_frame(X) and name in X.index.names:
        return np.asarray(X.index.get_level_values(name))
    dims = observations.labels.rows
    rows = observations.labels.labelled(np.empty(observations.shape[0]), dims)
    if name in rows.coords:
        return np.asarray(rows[name].broadcast_like(rows).transpose(*dims)).ravel()
    raise ValueError(
        f"groups={name!r} is no column, index level or coordinate of the rows of X: give the name "
        "of one, or a label for each row."
    )


DATES = pd.DatetimeIndex | pd.PeriodIndex
"""Indexes of dates."""


class RowPlaces(NamedTuple):
    """Places of the rows.

    Attributes
    ----------
    times : ndarray (m,)
        Place of each row in its series; dates as days.
    series : ndarray of int (m,)
        Key of its series.
    phases : ndarray of int (m,)
        Phase in the season, 0 if there is none.
    """

    times: NDArray[np.float64]
    series: NDArray[np.int64]
    phases: NDArray[np.int64]

    @property
    def sequence(self) -> NDArray[np.int64]:
        """Positions of the rows, one series after another."""
        return np.lexsort((self.times, self.series)).astype(np.int64)

    @property
    def steps(self) -> NDArray[np.float64]:
        """Step to each row of the sequence from the one before; infinite where a series begins."""
        at = self.sequence
        steps = np.diff(self.times[at], prepend=-np.inf)
        steps[1:][np.diff(self.series[at]) != 0] = np.inf
        return steps

    @property
    def median_step(self) -> float:
        """Median of the finite steps; 1 if there are none."""
        finite = self.steps[np.isfinite(self.steps)]
        return float(np.median(finite)) if finite.size else 1.0

    def on_grid_of(self, others: RowPlaces) -> NDArray[np.int64]:
        """Return the position of each row in an evenly spaced grid.

        The grid begins with the earliest of other rows; their months and years are even steps.
        """
        steps, most = others.steps, 1.5 * others.median_step
        unit = steps[steps < most].mean() if np.any(steps < most) else 1.0
        return np.asarray(np.rint((self.times - others.times.min()) / unit), dtype=np.int64)

    def with_phases(self, others: RowPlaces, period: int) -> RowPlaces:
        """Return the places with phases in a season of others; 0 is no season."""
        return self._replace(phases=self.on_grid_of(others) % max(period, 1))

    def at(self, rows: NDArray[np.integer]) -> RowPlaces:
        """Return the places of some rows, by position."""
        return RowPlaces(self.times[rows], self.series[rows], self.phases[rows])

    def followed_by(self, others: RowPlaces) -> RowPlaces:
        """Return the places of these rows and of others."""
        both: Any = zip(self, others, strict=True)
        return RowPlaces(*map(np.concatenate, both))


def row_places(observations: Observations, order: Any) -> RowPlaces:
    """Return the places of the rows.

    `order` is an array of them, or names of dimensions, levels of the index or columns: the last
    name is that of the places, and those before it, like other levels of the index, tell series
    apart.
    """
    names: list[Any] = names_of(order)
    if not names:
        values = list(np.atleast_1d(order))
        return _checked_places(values, np.zeros(len(values), np.int64), observations.shape[0])
    *of_series, last = names
    labels = observations.labels  # by dimension, or by level of the index
    of_rows = labels.flat_index(labels.rows).to_frame(index=False)
    of_series += [each for each in of_rows if last in of_rows and each not in names]
    for name in names:
        if name not in of_rows:
            of_rows[name] = _places_in_column(observations, name)
    series = np.zeros(len(of_rows), np.int64)
    if of_series:
        hashes = pd.util.hash_pandas_object(of_rows[of_series], index=False)
        series = hashes.to_numpy(np.uint64).view(np.int64)
    return _checked_places(of_rows[last], series, observations.shape[0])


def names_of(order: Any) -> list[str]:
    """Return the names that an order is given by, none for an array of places."""
    names = [order] if isinstance(order, str) else list(np.atleast_1d(order))
    return list(map(str, names)) if all(isinstance(name, str) for name in names) else []


def has_dates_in_order(labels: Labels) -> bool:
    """Return whether the rows are labelled by dates that rise."""
    index = labels.index(labels.rows[0])
    is_one = len(labels.rows) == 1 and isinstance(index, DATES)
    return is_one and index.is_monotonic_increasing and index.is_unique


def _places_in_column(observations: Observations, name: str) -> NDArray[Any]:
    """Return the values of a column of X in all rows, positions of classes."""
    labels = observations.labels
    names = labels.flat(labels.columns).tolist()
    if labels.table is not None:
        names = [column.name for column in labels.table.of_matrix]
    at = np.array([each == name for each in names])
    if not at.any():
        raise ValueError(
            f"order={name!r} is no dimension, level of the index or column of X: give the name of "
            "one, or an array of the places of the rows."
        )
    i, j, x = observations.entries()
    values, here = np.full((observations.shape[0], at.sum()), np.nan), at[j]
    values[i[here], np.cumsum(at)[j[here]] - 1] = x[here]
    _refuse_missing(np.asarray(np.isnan(values).all(axis=1)))
    return values[:, 0] if at.sum() == 1 else values.argmax(axis=1)


def _checked_places(order: Any, series: NDArray[np.int64], m: int) -> RowPlaces:
    """Return places that are numbers or dates, one for each row, and different in a series."""
    values: Any = pd.Series(order)
    if isinstance(values.dtype, pd.PeriodDtype):
        values = values.dt.to_timestamp()
    if len(values) != m:
        raise ValueError(f"order has {len(values)} places, and X {m} rows: give one for each row.")
    try:
        times = numbers_of(values)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"order has {values.iloc[0]!r}, which is no number or date: give numbers or dates."
        ) from error
    _refuse_missing(~np.isfinite(times))
    places = RowPlaces(times, series, np.zeros(m, np.int64))
    if repeated := places.times[places.sequence[places.steps == 0]].tolist():
        raise ValueError(
            f"order has the places {first_few(repeated)} twice: give the names of the series, "
            "too, such as order=['station', 'date']."
        )
    return places


def _refuse_missing(is_missing: NDArray[np.bool_]) -> None:
    """Raise ValueError if the place of a row, or its series, is missing."""
    if rows := np.flatnonzero(is_missing).tolist():
        raise ValueError(
            f"order has no place for the rows {first_few(rows)}: fill it, or leave them out."
        )
