"""The observations of a dense matrix, of which some entries may be missing.

The values are those that the user gave, without a copy where that is possible.  What they hold at
missing entries is never used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.disk import Scratch

from .entries import (
    EntryLimits,
    EntryWeights,
    FloatArray,
    GivenOffsets,
    IntArray,
    ObservedEntries,
    Transform,
    has_offsets,
    index_dtype,
    limits_content,
    row_pointers,
)
from .labels import Labels
from .observations import BLOCK, Observations
from .sparse import SparseObservations


@dataclass(frozen=True)
class DenseObservations(Observations):
    """A dense, partly observed matrix.

    Attributes
    ----------
    stored : ndarray (m, n)
        Values in C order, float32 or float64; anything, NaN too, at missing entries.
    stored_weights : EntryWeights or None
        Weights, or the mask of the observed entries; None if every entry has weight 1.
    labels : Labels
        Dimensions and coordinates for results.
    limits : EntryLimits or None, default None
        Limits of all entries; None if all observed values are known.
    scratch : Scratch or None, default None
        Folder for arrays of the size of X, if `stored` lies in a file (`FileArray`).
    """

    stored: FloatArray
    stored_weights: EntryWeights | None
    labels: Labels
    limits: EntryLimits | None = None
    scratch: Scratch | None = None

    pattern = None
    absent_are_zeros = False

    @cached_property
    def values(self) -> FloatArray:  # type: ignore[override]
        """Values (m, n), 0 at missing entries: a copy if there are any."""
        if self.stored_weights is None:
            return self.stored
        return self.transformed(lambda x: x).reshape(self.shape)

    @property
    def weights(self) -> NDArray[Any] | None:  # type: ignore[override]
        """Weights (m, n), floats >= 0 or booleans (True = observed); None if every one is 1."""
        return None if self.stored_weights is None else self.stored_weights.of_rows(slice(None))

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        return self.stored.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        m, n = self.stored.shape
        return m, n

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Mask of the observed entries, shape (m, n)."""
        seen = np.ones(self.shape, bool)
        for block, weights in self._weight_blocks():
            seen.reshape(-1)[block] = weights > 0
        return seen

    @property
    def n_observed(self) -> int:
        """Number of observed entries."""
        if self.stored_weights is None:
            return self.stored.size
        return sum(int(np.count_nonzero(weights)) for _, weights in self._weight_blocks())

    def reader(self) -> FloatArray:
        """Return the values, flat; anything at missing entries."""
        return self.stored.ravel()

    def weight_reader(self) -> EntryWeights | None:
        """Return the weights, to be read one range at a time; None if every one is 1."""
        return self.stored_weights

    def transformed(self, transform: Transform) -> FloatArray:
        """Return transform(X) as a new flat array; transform(0) at missing entries."""
        size, scratch = self.stored.size, self.scratch
        T: Any = np.empty(size, self.dtype) if scratch is None else scratch.zeros(size, self.dtype)
        for block, x in zip(self._blocks(), self._known_blocks(), strict=True):
            T[block] = transform(x)  # it may need temporary arrays
        return T  # type: ignore[no-any-return]

    def mapped(self, transform: Transform) -> DenseObservations:
        """Return observations of transform(X), with the same weights and labels."""
        limits = None if self.limits is None else self.limits.mapped(transform)
        stored = self.transformed(transform).reshape(self.shape)
        return replace(self, stored=stored, limits=limits)

    def centred(self, transform: Transform, offsets: GivenOffsets) -> tuple[FloatArray, float]:
        """Return transform(X) minus offsets; see `Observations.centred`."""
        if self.stored_weights is None and not has_offsets(offsets) and self.scratch is None:
            return np.asarray(transform(self.stored)), 0.0
        T, fill = self.transformed(transform).reshape(self.shape), 0.0
        if has_offsets(offsets):
            mean, rows, columns = offsets
            for block in self._row_blocks():
                rows_of_T = T[block]
                rows_of_T -= T.dtype.type(mean)
                if rows is not None:
                    rows_of_T -= rows[block].astype(T.dtype)[:, None]
                if columns is not None:
                    rows_of_T -= columns.astype(T.dtype)
        elif self.stored_weights is not None:
            fill = self._mean(T)
        for block, weights in self._weight_blocks():
            np.copyto(T.reshape(-1)[block], T.dtype.type(fill), where=weights == 0)
        return T, 0.0

    def _mean(self, T: FloatArray) -> float:
        """Return the mean of T at the observed entries, in double precision."""
        assert self.stored_weights is not None
        total = 0.0
        for rows in self._row_blocks():
            seen = self.stored_weights.of_rows(rows) > 0
            total += float(np.sum(T[rows][seen], dtype=np.float64))
        return total / self.n_observed

    def _row_blocks(self) -> Iterator[slice]:
        """Yield ranges of rows of about `BLOCK` entries."""
        m, n = self.shape
        rows = max(1, BLOCK // n)
        return (slice(first, min(first + rows, m)) for first in range(0, m, rows))

    def observed_blocks(self, size: int = BLOCK) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield what `observed` returns in blocks; see `Observations.observed_blocks`."""
        values, weights = self.stored.ravel(), self.stored_weights
        for block in self._blocks(size):
            x, w = values[block], None if weights is None else weights[block]
            if w is None:
                yield x.astype(np.float64, copy=False), np.broadcast_to(1.0, x.size)
            else:
                yield x[w > 0].astype(np.float64), w[w > 0].astype(np.float64)

    def entries(self) -> ObservedEntries:
        """Return the observed entries, sorted by row and column."""
        seen = self.seen
        rows, columns = np.nonzero(seen)
        return ObservedEntries(rows, columns, self.stored[seen])

    def select(self, keep: NDArray[np.bool_]) -> DenseObservations:
        """Return observations of those `entries` at which `keep` is True."""
        seen = self.seen
        seen[seen] = keep
        return replace(self, stored_weights=EntryWeights(seen, self._float_weights()))

    def _float_weights(self) -> FloatArray | None:
        """Return the weights (m, n) if they are more than a mask."""
        weights = self.stored_weights
        return None if weights is None or weights.dtype == bool else weights.of_rows(slice(None))

    def of_rows(self, rows: slice | IntArray, labels: Labels) -> DenseObservations:
        """Return some rows, by position, with other labels; nothing else is read."""
        weights, limits = self.stored_weights, self.limits
        if weights is not None:
            chosen = weights.of_rows(rows)
            weights = EntryWeights(*((chosen, None) if chosen.dtype == bool else (None, chosen)))
        if limits is not None:
            codes, uppers = limits.codes.reshape(self.shape)[rows].ravel(), limits.uppers
            uppers = None if uppers is None else uppers.reshape(self.shape)[rows].ravel()
            limits = EntryLimits(codes, uppers)
        return DenseObservations(np.asarray(self.stored[rows]), weights, labels, limits)

    def as_sparse(self) -> SparseObservations:
        """Return the observed entries as `SparseObservations`."""
        seen, weights = self.seen, self._float_weights()
        rows, columns = np.nonzero(seen)
        dtype = index_dtype(columns.size)
        return SparseObservations(
            self.stored[seen],
            None if weights is None else weights[seen],
            row_pointers(rows, self.shape[0], dtype),
            columns.astype(dtype),
            self.labels,
            limits=None if self.limits is None else self.limits.at(seen.ravel()),
        )

    def to_array(self) -> FloatArray:
        """Return the matrix (m, n), with NaN at missing entries."""
        return np.where(self.seen, self.stored, self.dtype.type(np.nan))

    def with_values(self, values: FloatArray) -> DenseObservations:
        """Return other values with the same weights and labels."""
        return replace(self, stored=values.reshape(self.shape))

    def counts(self, axis: int) -> NDArray[np.integer]:
        """Return the number of observed entries of each column (axis 0) or row (axis 1)."""
        if self.stored_weights is None:
            return np.full(self.shape[1 - axis], self.shape[axis])
        counts = np.zeros(self.shape[1 - axis], np.intp)
        for rows in self._row_blocks():
            seen = self.stored_weights.of_rows(rows) > 0
            if axis:
                counts[rows] = np.count_nonzero(seen, axis=1)
            else:
                counts += np.count_nonzero(seen, axis=0)
        return counts

    def content(self) -> Iterator[tuple[str, Iterable[NDArray[Any]]]]:
        """Yield values and weights block by block; see `Observations.content`."""
        yield f"values {self.dtype} {self.shape}", self._known_blocks()
        weights = self.stored_weights
        if weights is not None:
            blocks = (block for _, block in self._weight_blocks())
            yield f"weights {weights.dtype} {self.shape}", blocks
        yield from limits_content(self.limits)

    def _blocks(self, size: int = BLOCK) -> Iterator[slice]:
        """Yield ranges of entries."""
        end = self.stored.size
        return (slice(first, min(first + size, end)) for first in range(0, end, size))

    def _known_blocks(self) -> Iterator[FloatArray]:
        """Yield the values of each block, 0 at missing entries."""
        values, weights = self.stored.ravel(), self.stored_weights
        for block in self._blocks():
            x = values[block]
            yield x if weights is None else np.where(weights[block] > 0, x, x.dtype.type(0))

    def _weight_blocks(self) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Yield the positions and the weights of each block, if there are weights."""
        if self.stored_weights is not None:
            for block in self._blocks():
                yield block, self.stored_weights[block]
