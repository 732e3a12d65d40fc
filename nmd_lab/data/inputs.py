"""`observe`: observations of any accepted input, and `form_of`, the form of an input.

This module alone decides what NaN, a mask, weights and the absent entries of a sparse matrix mean.
In dense input, NaN, masked entries, and entries with ``observed == False`` or weight 0 are missing;
their values have no influence.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, DTypeLike, NDArray

from nmd_lab._runtime.disk import Scratch

from .any_frame import values_and_mask
from .blocks_on_disk import observe_stored
from .dense import DenseObservations
from .entries import EntryWeights, row_of_entries, sorted_entries
from .frames import without_tensors
from .labels import is_frame, labels_of
from .masks import (
    NO_LIMITS,
    GivenLimits,
    as_booleans,
    at_entries,
    check_weights,
    dense_values,
    dense_weights,
    infinity_error,
    with_limits,
)
from .observations import Observations, float_dtype
from .sparse import SparseObservations, check_sparse_observations, is_sparse
from .typed_table import TypedTable, table_of


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
    has_device = torch is not None and isinstance(X, torch.Tensor)
    is_dask, is_frame_, is_sparse_ = module in ("dask", "dask_expr"), is_frame(X), is_sparse(X)
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
    return Form(
        is_sparse_,
        is_frame_,
        is_dask,
        in_files,
        device=str(X.device) if has_device else None,
        table=table,
        is_weighted=entries is not None and entries.weights is not None,
        is_limited=entries is not None and entries.limits is not None,
    )


def _is_mapped(array: Any) -> bool:
    """Return whether an array lies in a file, as itself or as a part of such an array."""
    while isinstance(array, np.ndarray) and not isinstance(array, np.memmap):
        array = array.base
    return isinstance(array, np.memmap | mmap.mmap)


def observe_dense(
    X: Any,
    *,
    observed: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    sample_dims: str | Sequence[str] | None = None,
    table: TypedTable | None = None,
    form: Form | None = None,
    may_be_empty: bool = False,
) -> DenseObservations:
    """Return the observations of a dense input, which is not modified."""
    form = form_of(X, table) if form is None else form
    if form.is_sparse:
        raise TypeError("X is a scipy.sparse matrix: only decompose() and complete() take one.")
    labels, plain = labels_of(X, sample_dims), X
    if form.table is not None:
        plain = form.table.encode(X)
        labels = replace(labels_of(plain), table=form.table)
    array, seen = (labels.flatten(each) for each in _array_and_mask(plain))
    if array.size == 0:
        raise ValueError(f"X has shape {array.shape}, which holds no entry: give a larger matrix.")
    if observed is not None:
        seen = seen & as_booleans(dense_values("observed", observed, X, labels))
    with np.errstate(over="ignore"):  # what overflows is found below
        values = array.astype(float_dtype(array, dtype), order="C", copy=False)
    seen &= ~np.isnan(values)
    if np.any(np.isinf(values) & seen):
        raise infinity_error(*np.argwhere(np.isinf(values) & seen)[0])
    floats = None if weights is None else dense_weights(weights, X, labels, values.dtype)
    counted = seen if floats is None else seen & (floats > 0)
    if not (may_be_empty or counted.any()):
        raise ValueError("X has no observed entry: check observed=, weights= and the NaN in X.")
    missing = None if seen.all() else seen
    stored_weights = None if missing is None and floats is None else EntryWeights(missing, floats)
    return DenseObservations(np.ascontiguousarray(values), stored_weights, labels)


def _array_and_mask(X: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the values of a dense input, and the mask of those that are not masked."""
    if is_frame(X):
        all_single = {str(dtype).lower() for dtype in X.dtypes} == {"float32"}
        X = X.to_numpy(dtype=np.float32 if all_single else np.float64, na_value=np.nan)
    array, seen = values_and_mask(X)
    if array.dtype.kind not in "buif":
        raise TypeError(f"X has dtype {array.dtype}: convert it to real numbers, X.astype(float).")
    return array, seen


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
    m, n = labels.matrix_shape
    if m * n == 0:
        raise ValueError(f"X has shape {(m, n)}, which holds no entry: give a larger matrix.")
    if isinstance(X, SparseObservations):
        check_sparse_observations("X", X)  # again, since arrays can change
        stored, indptr, indices = X.values, X.indptr, X.indices
        weights = X.weights if weights is None else weights
    else:
        stored, indptr, indices = sorted_entries(X)
    with np.errstate(over="ignore"):  # what overflows is found below
        values: Any = stored.astype(float_dtype(stored, dtype), copy=False)
    keep = ~np.isnan(values)
    if observed is not None:
        rows = row_of_entries(indptr, indices.dtype)
        keep &= as_booleans(at_entries("observed", observed, (m, n), rows, indices))
    infinite = np.isinf(values)
    infinite &= keep
    if infinite.any():
        k = int(np.argmax(infinite))
        raise infinity_error(int(np.searchsorted(indptr, k, side="right")) - 1, indices[k])
    if weights is not None:
        rows = row_of_entries(indptr, indices.dtype)
        weights = at_entries("weights", weights, (m, n), rows, indices).astype(values.dtype)
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
    form = form_of(X, table) if form is None else form
    if form.device is not None:
        X = without_tensors(X)
        form = form_of(X)
    observed, weights = without_tensors(observed), without_tensors(weights)
    options: dict[str, Any] = {"observed": observed, "weights": weights, "dtype": dtype}
    options["may_be_empty"] = may_be_empty
    if form.is_sparse:
        observations = observe_sparse(X, **options, absent_are_zeros=absent_are_zeros)
        observations = replace(observations, scratch=scratch)
    elif scratch is not None:
        return observe_stored(X, scratch, **options, sample_dims=sample_dims)
    else:
        observations = observe_dense(X, **options, sample_dims=sample_dims, form=form)
    return with_limits(observations, X, limits) if limits else observations
