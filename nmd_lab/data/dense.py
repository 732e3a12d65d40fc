"""The observations of a dense matrix, of which some entries may be missing.

The values are those that the user gave, without a copy where that is possible.  What they hold at
missing entries is never used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.machine import Scratch

from .entries import (
    EntryLimits,
    FloatArray,
    GivenOffsets,
    IntArray,
    ObservedEntries,
    Transform,
    has_offsets,
    row_pointers,
)
from .labels import Labels
from .observations import Observations
from .sparse import SparseObservations


@dataclass(frozen=True)
class DenseObservations(Observations):
    """A dense, partly observed matrix.

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
