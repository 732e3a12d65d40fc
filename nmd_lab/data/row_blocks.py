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
        block = None if stored is None else stored.of_rows(rows)
        weights = None
        if block is not None:
            weights = (
                EntryWeights(block, None) if block.dtype == bool else EntryWeights(None, block)
            )
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


def chosen_rows(observations: Observations, rows: NDArray[np.intp]) -> SparseObservations:
    """Return some rows, in their order and without their labels; columns keep theirs."""
    keep = np.zeros(observations.shape[0], dtype=bool)
    keep[rows] = True
    sparse: SparseObservations = observations.as_sparse()
    labels = sparse.labels
    chosen: SparseObservations = sparse.select(keep[sparse.rows])
    columns = zip(labels.dims, labels.shape, strict=True)
    sizes = [size for dim, size in columns if dim in labels.columns]
    return replace(
        chosen,
        indptr=np.append(chosen.indptr[:1], chosen.indptr[rows + 1]),
        labels=replace(
            labels,
            dims=(labels.rows[0], *labels.columns),
            shape=(rows.size, *sizes),
            rows=labels.rows[:1],
            coords=labels.coords.drop_dims(labels.rows, errors="ignore"),
        ),
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
