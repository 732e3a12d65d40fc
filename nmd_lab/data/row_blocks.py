"""Ranges of the rows of observations, as observations of their own without labels.

Such a block may have no observed entry at all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from nmd_lab._files import Scratch

from ._entry_weights import EntryWeights
from .base import CsrRows, Observations
from .dense import observe_dense
from .dense_observations import DenseObservations
from .labels import Labels
from .sparse_observations import SparseObservations
from .stored import observe_stored


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


def nonzero_rows(observations: Observations, block: slice) -> CsrRows:
    """Return the observed nonzero entries of a range of rows, without weights."""
    if isinstance(observations, SparseObservations) and observations.absent_are_zeros:
        observations = replace(observations, absent_are_zeros=False)
    rows = observations.csr_rows(block)
    keep = rows.values != 0
    ends = np.append(0, np.cumsum(keep))
    return CsrRows.of(ends[rows.indptr], rows.indices[keep], rows.values[keep], None)


def dense_rows(
    X: Any, observed: Any, weights: Any, dtype: DTypeLike, scratch: Scratch | None = None
) -> DenseObservations:
    """Return the observations of a block of rows."""
    options: dict[str, Any] = {"observed": observed, "weights": weights, "dtype": dtype}
    if scratch is None:
        return observe_dense(X, **options, may_be_empty=True)
    return observe_stored(X, scratch, **options, may_be_empty=True)


def in_files(observations: Observations, scratch: Scratch) -> Observations:
    """Return observations whose values lie in files of a folder."""
    if isinstance(observations, DenseObservations):
        weights = observations.weights
        is_mask = weights is not None and weights.dtype == bool
        mask, floats = (weights, None) if is_mask else (None, weights)
        return dense_rows(observations.stored, mask, floats, observations.dtype, scratch)
    assert isinstance(observations, SparseObservations)
    names = ("values", "weights", "indices")
    arrays = {name: getattr(observations, name) for name in names}
    copies: dict[str, Any] = {
        name: scratch.copy_of(a) for name, a in arrays.items() if a is not None
    }
    return replace(observations, **copies, scratch=scratch)
