"""`observe`: observations of any accepted input.

This module alone decides what NaN, a mask, weights and the absent entries of a sparse matrix mean.
In dense input, NaN, masked entries, and entries with ``observed == False`` or weight 0 are missing;
their values have no influence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, DTypeLike, NDArray

from nmd_lab._runtime.disk import Scratch

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


def observe_dense(
    X: Any,
    *,
    observed: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    sample_dims: str | Sequence[str] | None = None,
    table: TypedTable | None = None,
    may_be_empty: bool = False,
) -> DenseObservations:
    """Return the observations of a dense input, which is not modified."""
    if is_sparse(X):
        raise TypeError("X is a scipy.sparse matrix: only decompose() and complete() take one.")
    labels, plain = labels_of(X, sample_dims), X
    if is_frame(X) and X.size:
        typed = table_of(X) if table is None else table.columns_of(X)
        if typed is not None:
            plain = typed.encode(X)
            labels = replace(labels_of(plain), table=typed)
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
    if isinstance(X, np.ma.MaskedArray):
        array, seen = X.data, ~np.ma.getmaskarray(X)
    else:
        if isinstance(X, xr.DataArray):
            array = X.values
        elif is_frame(X):
            array = X.to_numpy(dtype=_frame_dtype(X), na_value=np.nan)
        else:
            array = np.asarray(X)
        seen = np.ones(array.shape, dtype=bool)
    if array.dtype.kind not in "buif":
        raise TypeError(f"X has dtype {array.dtype}: convert it to real numbers, X.astype(float).")
    return array, seen


def _frame_dtype(frame: Any) -> type:
    """Return float32 for a frame of float32 only, float64 for other numbers."""
    return np.float32 if all(str(t).lower() == "float32" for t in frame.dtypes) else np.float64


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
    may_be_empty: bool = False,
) -> Observations:
    """Return the observations of any accepted input, sparse ones of sparse input."""
    observations: DenseObservations | SparseObservations
    X, observed, weights = (without_tensors(each) for each in (X, observed, weights))
    options: dict[str, Any] = {"observed": observed, "weights": weights, "dtype": dtype}
    options["may_be_empty"] = may_be_empty
    if is_sparse(X):
        observations = observe_sparse(X, **options, absent_are_zeros=absent_are_zeros)
        observations = replace(observations, scratch=scratch)
    elif scratch is not None:
        return observe_stored(X, scratch, **options, sample_dims=sample_dims)
    else:
        observations = observe_dense(X, **options, sample_dims=sample_dims, table=table)
    return with_limits(observations, X, limits)
