"""`observe`: observations of any accepted input, dense ones here, and `form_of`, its form.

This module alone decides what NaN, a mask, weights, limits and the absent entries of a sparse
matrix mean.  In dense input, NaN, masked entries, and entries with ``observed == False`` or weight
0 are missing; their values have no influence.

A limit means that an entry is only known to be at most, or at least, a value.  A value below the
detection limit of an instrument is at most that limit.  A value of a saturated sensor is at least
the largest value that it shows.  X has the limit at such an entry.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from nmd_lab._runtime.machine import FileArray, Scratch

from .entries import (
    EntryLimits,
    FloatArray,
    GivenOffsets,
    IntArray,
    ObservedEntries,
    Transform,
    as_booleans,
    check_matrix,
    check_shape,
    check_weights,
    checked_csr,
    has_offsets,
    infinity_error,
    row_of_entries,
    row_pointers,
    sorted_entries,
)
from .labels import (
    Labels,
    is_frame,
    labels_of,
    pandas_of,
    plain_array,
    values_and_mask,
    without_tensors,
)
from .observations import Observations, float_dtype, row_ranges
from .sparse import SparseObservations
from .typed_table import TypedTable, table_of

LIMITING = ("at_most", "at_least")
"""Names of the masks that are False where they say nothing."""

AT_MOST, AT_LEAST = 1, 2
"""Codes of the two kinds of limits; their sum stands for both."""


@dataclass(frozen=True)
class GivenLimits:
    """The arguments of a fit that describe limits.

    Attributes
    ----------
    at_most, at_least : array_like of bool (m, n) or scipy.sparse matrix, optional
        True where X is only an upper limit, or only a lower limit.
    upper : array_like (m, n) or scipy.sparse matrix, optional
        Upper limits where both are True; X has the lower ones.
    """

    at_most: ArrayLike | None = None
    at_least: ArrayLike | None = None
    upper: ArrayLike | None = None

    @property
    def named(self) -> str | None:
        """Name of the first argument that is given."""
        return next((name for name, each in vars(self).items() if each is not None), None)

    def __bool__(self) -> bool:
        return self.named is not None


NO_LIMITS = GivenLimits()


class Form(NamedTuple):
    """How X is given.

    Attributes
    ----------
    is_sparse, is_frame, is_dask : bool
        Whether it is a SciPy sparse matrix or `SparseObservations`, a DataFrame of pandas, and a
        collection of Dask or a DataArray over one.
    in_files : bool
        Whether it is a matrix in files that have not been read.
    device : str or None
        Device of a tensor of PyTorch; None for any other input.
    table : TypedTable or None
        Columns of a DataFrame or of observations, if not all are numbers.
    is_weighted, is_limited : bool
        Whether it has weights and limits of its own.
    """

    is_sparse: bool
    is_frame: bool
    is_dask: bool
    in_files: bool
    device: str | None
    table: TypedTable | None
    is_weighted: bool
    is_limited: bool


def form_of(X: Any, table: TypedTable | None = None) -> Form:
    """Return how X is given; raise an error for columns that hold neither numbers nor classes.

    The columns of a given table are those of a DataFrame, too.
    """
    entries = X if isinstance(X, SparseObservations) else None
    torch, module = sys.modules.get("torch"), type(X).__module__.partition(".")[0]
    device = str(X.device) if torch is not None and isinstance(X, torch.Tensor) else None
    is_dask, is_frame_ = module in ("dask", "dask_expr"), isinstance(X, pd.DataFrame)
    is_sparse_ = entries is not None or sparse.issparse(X)
    in_files = isinstance(X, np.memmap) or module in ("h5py", "zarr")
    if is_sparse_:
        in_files = _is_mapped(getattr(X, "data", None) if entries is None else entries.values)
    elif isinstance(X, xr.DataArray):
        is_dask = X.chunks is not None
        in_files = X.ndim >= 2 and not X.variable._in_memory and X.dtype.kind in "buif"
    elif in_files:  # and a matrix
        in_files = getattr(X, "ndim", 0) == 2 and X.dtype.kind in "buif"
    if is_frame_ and X.size:
        table = table_of(X) if table is None else table.columns_of(X)
    else:
        table = None if entries is None else entries.labels.table
    stored = (None, None) if entries is None else (entries.weights, entries.limits)
    weighted, limited = (each is not None for each in stored)
    return Form(is_sparse_, is_frame_, is_dask, in_files, device, table, weighted, limited)


def _is_mapped(array: Any) -> bool:
    """Return whether an array lies in a file, as itself or as a part of such an array."""
    while isinstance(array, np.ndarray) and not isinstance(array, np.memmap):
        array = array.base
    return isinstance(array, np.memmap | mmap.mmap)


@dataclass(frozen=True)
class DenseObservations(Observations):
    """A dense, partly observed matrix.

    What the values hold at missing entries is never used.

    Attributes
    ----------
    stored : ndarray (m, n)
        Values in C order, float32 or float64; anything, NaN too, at missing entries.
    weights : ndarray (m, n) or None
        Weights >= 0, or booleans (True = observed); None if every entry has weight 1.
    labels : Labels
        Dimensions and coordinates for results.
    limits : EntryLimits or None, default None
        Limits of all entries; None if all observed values are known.
    scratch : Scratch or None, default None
        Folder for arrays of the size of X, if `stored` lies in a file (`FileArray`).
    """

    stored: FloatArray
    weights: NDArray[Any] | None
    labels: Labels
    limits: EntryLimits | None = None
    scratch: Scratch | None = None

    pattern = None
    absent_are_zeros = False

    @cached_property
    def values(self) -> FloatArray:  # type: ignore[override]
        """Values (m, n), 0 at missing entries: a copy if there are any."""
        if self.weights is None:
            return self.stored
        return self.transformed(lambda x: x).reshape(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        return self.stored.dtype

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Mask of the observed entries, shape (m, n)."""
        return np.concatenate([self._seen(rows) for rows in self.row_ranges()])

    def reader(self) -> FloatArray:
        """Return the values, flat; anything at missing entries."""
        return self.stored.reshape(-1)

    def weight_reader(self) -> NDArray[Any] | None:
        """Return the weights, flat; None if every one is 1."""
        return None if self.weights is None else self.weights.reshape(-1)

    def centred(self, transform: Transform, offsets: GivenOffsets) -> tuple[FloatArray, float]:
        """Return transform(X) minus offsets; see `Observations.centred`."""
        (mean, rows, columns), (m, n) = offsets, self.shape
        T, fill = self.transformed(transform).reshape(m, n), 0.0
        if not has_offsets(offsets):
            fill = self.sum_of(lambda x, _: transform(x)) / self.n_observed
        by_row = np.zeros(m) if rows is None else rows
        by_column = np.zeros(n) if columns is None else columns
        for block in self.row_ranges():
            less = T[block] - mean - by_row[block, None] - by_column
            T[block] = np.where(self._seen(block), less, fill)
        return T, 0.0

    def _seen(self, rows: slice) -> NDArray[np.bool_]:
        """Return the mask of the observed entries of a range of rows."""
        if self.weights is None:
            return np.ones((rows.stop - rows.start, self.shape[1]), bool)
        return self.weights[rows] > 0

    def entries(self) -> ObservedEntries:
        """Return the observed entries, sorted by row and column."""
        seen = self.seen
        rows, columns = np.nonzero(seen)
        return ObservedEntries(rows, columns, self.stored[seen])

    def select(self, keep: NDArray[np.bool_]) -> DenseObservations:
        """Return observations of those `entries` at which `keep` is True."""
        seen = self.seen
        seen[seen] = keep
        return replace(self, weights=seen if self.weights is None else self.weights * seen)

    def of_rows(self, rows: slice | IntArray, labels: Labels | None = None) -> DenseObservations:
        """Return some rows, by position, with other labels or without; nothing else is read."""
        stored, weights, limits = np.asarray(self.stored[rows]), self.weights, self.limits
        if weights is not None:
            weights = np.asarray(weights[rows])
        if limits is not None:
            m, n = self.shape
            limits = limits.at((np.arange(m)[rows, None] * n + np.arange(n)).ravel())
        return DenseObservations(stored, weights, labels or Labels.plain(stored.shape), limits)

    def as_sparse(self) -> SparseObservations:
        """Return the observed entries as `SparseObservations`."""
        seen, weights, (rows, columns, values) = self.seen, self.weights, self.entries()
        pointers = row_pointers(rows, self.shape[0])
        return SparseObservations(
            values,
            None if weights is None or weights.dtype == bool else weights[seen],
            pointers,
            columns.astype(pointers.dtype),
            self.labels,
            limits=None if self.limits is None else self.limits.at(seen.ravel()),
        )

    def with_values(self, values: FloatArray) -> DenseObservations:
        """Return other values with the same weights and labels."""
        return replace(self, stored=values.reshape(self.shape))

    def counts(self, axis: int) -> NDArray[np.integer]:
        """Return the number of observed entries of each column (axis 0) or row (axis 1)."""
        counts = (np.count_nonzero(self._seen(rows), axis=axis) for rows in self.row_ranges())
        return np.concatenate(list(counts)) if axis else np.asarray(sum(counts))


def observe_dense(
    X: Any,
    *,
    observed: Any = None,
    weights: Any = None,
    dtype: DTypeLike | None = None,
    sample_dims: str | Sequence[str] | None = None,
    form: Form | None = None,
    may_be_empty: bool = False,
    scratch: Scratch | None = None,
) -> DenseObservations:
    """Return the observations of a dense input, which is not modified.

    If there is a working folder, X is a matrix in a file, which is not read as a whole.  A
    `numpy.memmap` of floats in C order is used as it is.  Everything else (another type or order,
    a zarr array, a dataset of HDF5, a DataArray that xarray has not loaded) is copied block by
    block into a file of the working folder, once.
    """
    form = form_of(X) if form is None else form
    if form.is_sparse:
        raise TypeError("X is a scipy.sparse matrix: only decompose() and complete() take one.")
    is_labelled = scratch is None or isinstance(X, xr.DataArray)
    labels, plain = labels_of(X, sample_dims) if is_labelled else Labels.plain(X.shape), X
    if form.table is not None:
        plain = form.table.encode(X)
        labels = replace(labels_of(plain), table=form.table)
    if form.is_frame:
        single = {str(dtype).lower() for dtype in X.dtypes} == {"float32"}
        plain = plain.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)
    if scratch is not None:
        check_matrix(X)
        values: Any = _matrix(X, labels, dtype, scratch)
        for name, array in (("observed", observed), ("weights", weights)):
            if array is not None:
                check_shape(name, np.shape(array), values.shape)
    else:
        array, seen = values_and_mask(plain)
        array, seen = labels.flatten(array), labels.flatten(seen)
        check_matrix(array)
        with np.errstate(over="ignore"):  # what overflows is found later
            values = array.astype(float_dtype(array, dtype), order="C", copy=False)
        if observed is not None:
            seen = seen & as_booleans(dense_values("observed", observed, X, labels))
        if weights is not None:
            weights = dense_values("weights", weights, X, labels)
            if weights.dtype.kind not in "buif":
                raise TypeError(f"weights has dtype {weights.dtype}: give real numbers >= 0.")
        observed = seen
    found = _weights(values, observed, weights, scratch, may_be_empty=may_be_empty)
    return DenseObservations(values, found, labels, scratch=scratch)


def _matrix(X: Any, labels: Labels, dtype: DTypeLike | None, scratch: Scratch) -> FileArray:
    """Return a matrix of floats in C order that is read by rows."""
    wanted = float_dtype(X, dtype)
    if isinstance(X, np.memmap) and X.dtype == wanted and X.flags.c_contiguous and X.mode != "c":
        mapping: Any = X._mmap  # type: ignore[attr-defined]
        base = np.frombuffer(mapping, np.uint8).__array_interface__["data"][0]
        array = np.asarray(X).view(np.ndarray)
        return FileArray(array, mapping, X.__array_interface__["data"][0] - base)
    out, dim = scratch.zeros(X.size, wanted), labels.rows[0]
    m = labels.sizes[dim]
    n = X.size // m
    for block in row_ranges(m, X.size):
        here = X[block]
        if isinstance(X, xr.DataArray):
            here = X.isel({dim: block}).transpose(*labels.rows, *labels.columns)
        with np.errstate(over="ignore"):  # what overflows is found later
            out[block.start * n : block.stop * n] = plain_array(here).ravel()
    return out.reshape(labels.matrix_shape)


def _weights(
    stored: Any, observed: Any, weights: Any, scratch: Scratch | None, *, may_be_empty: bool
) -> Any:
    """Return the weights, or the mask of the observed entries; None if all have the weight 1.

    They are read block by block, and lie in a file if there is a folder for it.
    """
    m, n = stored.shape
    dtype, n_seen = bool if weights is None else stored.dtype, 0
    new = np.zeros if scratch is None else scratch.zeros
    found: Any = new(m * n, dtype).reshape(m, n)
    for block in row_ranges(m, m * n):
        x = stored[block]
        seen = ~np.isnan(x)
        if observed is not None:
            seen &= as_booleans(plain_array(observed[block]))
        if weights is not None:
            weights_here = plain_array(weights[block])
            check_weights(weights_here)
            seen &= weights_here > 0
        if np.any(np.isinf(x) & seen):
            i, j = np.argwhere(np.isinf(x) & seen)[0]
            raise infinity_error(block.start + i, j)
        n_seen += int(np.count_nonzero(seen))
        found[block] = seen if weights is None else np.where(seen, weights_here, 0)
    if not (n_seen or may_be_empty):
        raise ValueError("X has no observed entry: check observed=, weights= and the NaN in X.")
    return None if weights is None and n_seen == m * n else found


def observe_sparse(
    X: Any,
    *,
    observed: Any = None,
    weights: Any = None,
    dtype: DTypeLike | None = None,
    absent_are_zeros: bool = False,
    may_be_empty: bool = False,
) -> SparseObservations:
    """Return the observations of a sparse input, which is neither modified nor made dense."""
    labels = X.labels if isinstance(X, SparseObservations) else labels_of(X)
    check_matrix(X)
    if isinstance(X, SparseObservations):
        X.check("X")  # again, since arrays can change
        stored, indptr, indices = X.values, X.indptr, X.indices
        weights = X.weights if weights is None else weights
    else:
        stored, indptr, indices = sorted_entries(X)
    with np.errstate(over="ignore"):  # what overflows is found below
        values: Any = stored.astype(float_dtype(stored, dtype), copy=False)
    keep = ~np.isnan(values)
    if observed is not None:
        rows = row_of_entries(indptr, indices.dtype)
        keep &= as_booleans(at_entries("observed", observed, X.shape, rows, indices))
    infinite = np.isinf(values)
    infinite &= keep
    if infinite.any():
        k = int(np.argmax(infinite))
        raise infinity_error(int(np.searchsorted(indptr, k, side="right")) - 1, indices[k])
    if weights is not None:
        rows = row_of_entries(indptr, indices.dtype)
        weights = at_entries("weights", weights, X.shape, rows, indices).astype(values.dtype)
        check_weights(weights)
        keep &= weights > 0
    if absent_are_zeros and (weights is not None or not keep.all()):
        raise ValueError(
            "X is sparse with absent entries that count, so observed=, weights= and NaN are not "
            "supported: use complete(), or a dense X."
        )
    if not (keep.any() or absent_are_zeros or may_be_empty):
        raise ValueError("X has no observed entry: check observed=, weights= and what X stores.")
    limits = X.limits if isinstance(X, SparseObservations) else None
    found = SparseObservations(values, weights, indptr, indices, labels, absent_are_zeros, limits)
    return found if keep.all() else found.select(keep)


def observe(
    X: Any,
    *,
    observed: Any = None,
    weights: Any = None,
    dtype: DTypeLike | None = None,
    sample_dims: str | Sequence[str] | None = None,
    absent_are_zeros: bool = False,
    limits: GivenLimits = NO_LIMITS,
    table: TypedTable | None = None,
    scratch: Scratch | None = None,
    form: Form | None = None,
    may_be_empty: bool = False,
) -> Observations:
    """Return the observations of any accepted input, sparse ones of sparse input.

    `form` is that of X; the columns of a DataFrame are those of `table`, if there is one.
    """
    observations: DenseObservations | SparseObservations
    if form is None or form.device is not None:
        X = without_tensors(pandas_of(X))
        form = form_of(X, table)
    options: dict[str, Any] = {"dtype": dtype, "may_be_empty": may_be_empty}
    options |= {"observed": without_tensors(observed), "weights": without_tensors(weights)}
    if form.is_sparse:
        observations = observe_sparse(X, **options, absent_are_zeros=absent_are_zeros)
        observations = replace(observations, scratch=scratch)
    else:
        options |= {"sample_dims": sample_dims, "form": form, "scratch": scratch}
        observations = observe_dense(X, **options)
    return with_limits(observations, X, limits) if limits else observations


def dense_values(name: str, other: Any, X: Any, labels: Labels) -> NDArray[Any]:
    """Return a mask or numbers as a matrix in the order of X, by label where both have labels."""
    if isinstance(other, xr.DataArray) and isinstance(X, xr.DataArray):
        if set(other.dims) != set(X.dims):
            raise ValueError(f"{name} has the dimensions {other.dims}: X has {X.dims}.")
        indexes, of_X = other.indexes, X.indexes
        axes = {dim: (indexes[dim], of_X[dim]) for dim in X.dims if dim in indexes and dim in of_X}
        other = aligned(name, other.transpose(*X.dims), axes)
    elif is_frame(other) and is_frame(X):
        axes = {"index": (other.index, X.index), "columns": (other.columns, X.columns)}
        other = aligned(name, other, axes)
        if name == "upper" and labels.table is not None:
            other = labels.table.encode(other)
    if is_frame(other) and {getattr(dtype, "kind", "") for dtype in other.dtypes} == {"b"}:
        other = other.to_numpy(dtype=bool, na_value=False)  # as where a comparison has no answer
    array = plain_array(other)
    shape = labels.shape
    if labels.table is not None:
        shape = (shape[0], len(labels.table.columns))
        if array.shape == shape:
            return array[:, labels.table.source]
    if array.shape != labels.shape:
        raise ValueError(f"{name} has shape {array.shape}: give it the shape of X, {shape}.")
    return labels.flatten(array)


def aligned(name: str, other: Any, axes: Mapping[Any, tuple[Any, Any]]) -> Any:
    """Return labelled values in the order of X, given both indexes of each axis.

    Limits may have some of the labels of X only.
    """
    if all(index.equals(target) for index, target in axes.values()):
        return other
    for axis, (index, target) in axes.items():
        if not (index.is_unique and target.is_unique):
            raise ValueError(
                f"{name} has a label along {axis!r} more than once, or X has: give an array in the "
                "order of X."
            )
        absent = target[~target.isin(index)]
        if len(absent) and not (name in LIMITING and index.isin(target).all()):
            raise ValueError(f"{name} lacks the label {absent[0]!r} of X: give it all labels of X.")
    fill = {"fill_value": False} if name in LIMITING else {}
    return other.reindex(**{str(axis): target for axis, (_, target) in axes.items()}, **fill)


def at_entries(
    name: str, other: Any, shape: tuple[int, int], rows: IntArray, columns: IntArray
) -> NDArray[Any]:
    """Return a mask or weights at the stored entries of a sparse matrix."""
    if not sparse.issparse(other):
        other = plain_array(other)
        if other.shape == rows.shape:
            return np.asarray(other)
    check_shape(name, other.shape, shape)
    if other.dtype.kind not in "buif":
        raise TypeError(f"{name} has dtype {other.dtype}: give real numbers or booleans.")
    if not sparse.issparse(other):
        return np.asarray(other[rows, columns])
    selected = checked_csr(name, other)[rows, columns]  # a 1-D sparse array, or a matrix of one row
    array = selected.toarray() if hasattr(selected, "toarray") else selected
    return np.asarray(array).ravel()


def is_mask(entries: Any) -> bool:
    """Return whether a matrix holds booleans, and not values."""
    if is_frame(entries):
        kinds = {getattr(dtype, "kind", "") for dtype in entries.dtypes}
        return kinds == {"b"} and not bool(entries.isna().any(axis=None))
    entries = without_tensors(entries)
    dtype = entries.dtype if hasattr(entries, "dtype") else np.asarray(entries).dtype
    return bool(dtype.kind == "b")


def at_stored(name: str, other: Any, X: Any, observations: Observations) -> NDArray[Any]:
    """Return a mask or numbers in the shape of X at the entries that are stored, flat."""
    if isinstance(observations, SparseObservations):
        return at_entries(name, other, observations.shape, observations.rows, observations.indices)
    return dense_values(name, other, X, observations.labels).ravel()


def at_observed(name: str, mask: Any, X: Any, observations: Observations) -> NDArray[np.bool_]:
    """Return a mask in the shape of X at the observed entries, flat."""
    X, mask = without_tensors(X), without_tensors(mask)
    if isinstance(observations, DenseObservations):
        mask = mask.toarray() if hasattr(mask, "toarray") else mask
        mask = mask.astype(bool) if is_frame(mask) else mask
    values = at_stored(name, mask, X, observations)
    if isinstance(observations, DenseObservations):
        values = values[observations.seen.ravel()]
    return as_booleans(values, name, "True = held out")


def with_limits(observations: Observations, X: Any, limits: GivenLimits) -> Observations:
    """Return observations with limits."""
    if isinstance(observations, DenseObservations):
        values, seen = observations.stored.ravel(), observations.seen.ravel()
        rows, columns = observations.stored_positions()
    else:
        rows, columns, values = observations.entries()
        seen = np.ones(values.size, bool)

    def place(wrong: NDArray[np.bool_]) -> str:
        entry = int(np.argmax(wrong))
        return f"row {rows[entry]}, column {columns[entry]}"

    codes = np.zeros(values.size, np.int8)
    for name, code in zip(LIMITING, (AT_MOST, AT_LEAST), strict=True):
        mask = getattr(limits, name)
        if mask is None:
            continue
        at = as_booleans(at_stored(name, mask, X, observations), name, "True where X is a limit")
        if np.any(at & ~seen):
            raise ValueError(
                f"{name} is True at {place(at & ~seen)}, where X has no value: put the limit into "
                "X there."
            )
        codes += np.where(at, np.int8(code), np.int8(0))
    both, uppers = codes == AT_MOST + AT_LEAST, None
    if limits.upper is not None and not both.any():
        raise ValueError(
            "upper= has no use where no entry has two limits: give at_most=True and at_least=True "
            "there."
        )
    if both.any():
        if limits.upper is None:
            raise ValueError(
                f"at_most and at_least are both True at {place(both)}, but upper=None: give it."
            )
        uppers = at_stored("upper", limits.upper, X, observations)
        if uppers.dtype.kind not in "buif":
            raise TypeError(f"upper has dtype {uppers.dtype}: give numbers, or a table as X.")
        uppers = uppers.astype(values.dtype)
        wrong = both & ~((uppers >= values) & np.isfinite(uppers))
        if wrong.any():
            first = int(np.argmax(wrong))
            raise ValueError(
                f"upper={uppers[first]:g} at {place(wrong)} is no upper limit of X, which has the "
                f"lower one, {values[first]:g}: give finite numbers that are not below it."
            )
        uppers = np.where(both, uppers, values)
    if not codes.any():
        return observations
    assert isinstance(observations, DenseObservations | SparseObservations)
    return replace(observations, limits=EntryLimits(codes, uppers))
