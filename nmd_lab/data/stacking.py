"""Rows of several observations below one another, and some rows or entries of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ._csr import index_dtype
from .base import CsrRows, EntryLimits, Observations
from .labels import Labels
from .sparse_observations import SparseObservations


def stacked(parts: Sequence[SparseObservations]) -> SparseObservations:
    """Return the rows of all parts, without labels; the parts have the same columns."""
    sizes = [part.values.size for part in parts]
    dtype = index_dtype(sum(sizes))
    indptr = np.concatenate(
        [np.zeros(1, dtype)] + [part.indptr[1:] + sum(sizes[:k]) for k, part in enumerate(parts)]
    )
    weights = None
    if any(part.weights is not None for part in parts):
        weights = np.concatenate(
            [np.ones(part.values.size) if part.weights is None else part.weights for part in parts]
        )
    shape = sum(part.shape[0] for part in parts), parts[0].shape[1]
    return SparseObservations(
        np.concatenate([part.values for part in parts]),
        weights,
        indptr.astype(dtype),
        np.concatenate([part.indices for part in parts]).astype(dtype),
        Labels.plain(shape),
        parts[0].absent_are_zeros,
        _limits(parts),
    )


def _limits(parts: Sequence[SparseObservations]) -> EntryLimits | None:
    """Return the limits of all parts; a part without limits has none at any entry."""
    if all(part.limits is None for part in parts):
        return None
    every = [
        EntryLimits(np.zeros(part.values.size, np.int8)) if part.limits is None else part.limits
        for part in parts
    ]
    uppers = None
    if any(limits.uppers is not None for limits in every):
        uppers = np.concatenate(
            [
                part.values if limits.uppers is None else limits.uppers
                for part, limits in zip(parts, every, strict=True)
            ]
        )
    return EntryLimits(np.concatenate([limits.codes for limits in every]), uppers)


def some_rows(observations: SparseObservations, rows: NDArray[np.intp]) -> SparseObservations:
    """Return rows at positions, in this order, without labels."""
    lengths = np.diff(observations.indptr)[rows]
    indptr = np.append(0, np.cumsum(lengths))
    starts = observations.indptr[rows]
    entries = np.repeat(starts - indptr[:-1], lengths) + np.arange(indptr[-1])
    limits = observations.limits
    return replace(
        observations,
        values=observations.values[entries],
        weights=None if observations.weights is None else observations.weights[entries],
        indptr=indptr.astype(observations.indptr.dtype),
        indices=observations.indices[entries],
        labels=Labels.plain((len(rows), observations.shape[1])),
        limits=None if limits is None else limits.at(entries),
    )


def nonzero_rows(observations: Observations, block: slice) -> CsrRows:
    """Return those observed entries of a range of rows that are not zero, without weights."""
    if isinstance(observations, SparseObservations) and observations.absent_are_zeros:
        observations = replace(observations, absent_are_zeros=False)
    rows = observations.csr_rows(block)
    keep = rows.values != 0
    ends = np.append(0, np.cumsum(keep))
    return CsrRows.of(ends[rows.indptr], rows.indices[keep], rows.values[keep], None)
