"""Ranges of the rows of observations, as observations of their own without labels.

Such a block may have no observed entry at all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ._entry_weights import EntryWeights
from .base import CsrRows, Observations
from .dense import observe_dense
from .dense_observations import DenseObservations
from .labels import Labels
from .sparse_observations import SparseObservations


def rows_of(observations: Observations, rows: slice) -> Observations:
    """Return a range of rows."""
    labels = Labels.plain((rows.stop - rows.start, observations.shape[1]))
    if isinstance(observations, DenseObservations):
        stored = observations.stored_weights
        weights = None if stored is None else _entry_weights(stored.of_rows(rows))
        return DenseObservations(np.asarray(observations.stored[rows]), weights, labels)
    assert isinstance(observations, SparseObservations)
    pointers = observations.indptr[rows.start : rows.stop + 1]
    entries = slice(int(pointers[0]), int(pointers[-1]))
    weights_here = None if observations.weights is None else observations.weights[entries]
    return replace(
        observations,
        values=observations.values[entries],
        weights=weights_here,
        indptr=pointers - pointers[0],
        indices=observations.indices[entries],
        labels=labels,
    )


def some_rows(observations: Observations, number: int, rng: np.random.Generator) -> Observations:
    """Return at most so many of the rows, at random; columns keep their labels."""
    m = observations.shape[0]
    if m <= number:
        return observations
    rows = np.sort(rng.choice(m, number, replace=False))
    labels = _without_rows(observations.labels, number)
    if isinstance(observations, DenseObservations) and observations.limits is None:
        weights = observations.weights
        chosen = None if weights is None else _entry_weights(weights[rows])
        return DenseObservations(np.asarray(observations.stored[rows]), chosen, labels)
    keep = np.zeros(m, dtype=bool)
    keep[rows] = True
    sparse: SparseObservations = observations.as_sparse()
    entries = sparse.select(keep[sparse.rows])
    pointers = np.append(entries.indptr[:1], entries.indptr[rows + 1])
    return replace(entries, indptr=pointers, labels=labels)


def _entry_weights(weights: NDArray[Any]) -> EntryWeights:
    """Return a matrix of weights, or a mask, as it is stored."""
    is_mask = weights.dtype == bool
    return EntryWeights(weights, None) if is_mask else EntryWeights(None, weights)


def _without_rows(labels: Labels, number: int) -> Labels:
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


def nonzero_rows(observations: Observations, block: slice) -> CsrRows:
    """Return the observed nonzero entries of a range of rows, without weights."""
    if isinstance(observations, SparseObservations) and observations.absent_are_zeros:
        observations = replace(observations, absent_are_zeros=False)
    rows = observations.csr_rows(block)
    keep = rows.values != 0
    ends = np.append(0, np.cumsum(keep))
    return CsrRows.of(ends[rows.indptr], rows.indices[keep], rows.values[keep], None)


def dense_rows(X: Any, observed: Any, weights: Any, dtype: DTypeLike) -> DenseObservations:
    """Return the observations of a block of rows."""
    options: dict[str, Any] = {"observed": observed, "weights": weights, "dtype": dtype}
    return observe_dense(X, **options, may_be_empty=True)
