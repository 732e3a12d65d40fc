"""Observations of dense input: arrays, masked arrays, DataFrames and DataArrays.

NaN, masked entries, and entries with ``mask == False`` or weight 0 are missing.  Values at missing
entries have no influence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ._entry_weights import EntryWeights
from ._masks_and_weights import dense_mask, dense_weights, infinity_error
from .base import float_dtype
from .dense_observations import DenseObservations
from .labels import is_frame, labels_of
from .sparse import is_sparse
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
        seen = seen & dense_mask(observed, X, labels)
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
