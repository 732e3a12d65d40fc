"""Sparse input: SciPy matrices in any format, and observations of one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from ._csr import row_pointers, sorted_entries
from ._masks_and_weights import as_booleans, at_entries, check_weights, infinity_error
from .base import float_dtype
from .labels import labels_of
from .sparse_observations import SparseObservations, check_sparse_observations


def is_sparse(X: Any) -> bool:
    """Return whether an input is a SciPy sparse matrix or `SparseObservations`."""
    return sparse.issparse(X) or isinstance(X, SparseObservations)


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
        stored: Any = X.values
        rows, indptr, indices = X.rows, X.indptr, X.indices
        weights = X.weights if weights is None else weights
    else:
        stored, rows, indptr, indices = sorted_entries(X)
    with np.errstate(over="ignore"):  # what overflows is found below
        values = stored.astype(float_dtype(stored, dtype), copy=False)
    keep = ~np.isnan(values)
    if observed is not None:
        keep &= as_booleans(at_entries("observed", observed, (m, n), rows, indices))
    if np.any(np.isinf(values) & keep):
        k = int(np.argmax(np.isinf(values) & keep))
        raise infinity_error(rows[k], indices[k])
    if weights is not None:
        weights = at_entries("weights", weights, (m, n), rows, indices).astype(values.dtype)
        check_weights(weights)
        keep &= weights > 0
    if absent_are_zeros and (weights is not None or not keep.all()):
        raise ValueError(
            "X is sparse with absent entries that count, so observed=, weights= and NaN are not "
            "supported: use complete(), or a dense X."
        )
    if not keep.all():
        values, indices = values[keep], indices[keep]
        weights = None if weights is None else weights[keep]
        indptr = row_pointers(rows[keep], m, indptr.dtype)
    if not (values.size or absent_are_zeros or may_be_empty):
        raise ValueError("X has no observed entry: check observed=, weights= and what X stores.")
    limits = X.limits if isinstance(X, SparseObservations) else None
    if limits is not None and not keep.all():
        limits = limits.at(keep)
    return SparseObservations(values, weights, indptr, indices, labels, absent_are_zeros, limits)
