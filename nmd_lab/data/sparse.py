"""Observations of a matrix of which some entries are stored, in compressed rows.

A stored zero is an observation.  Entries that are not stored are zeros for `decompose`
(``absent_are_zeros=True``), and missing for `complete`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from nmd_lab._runtime.checks import many
from nmd_lab._runtime.machine import Scratch

from .entries import (
    EntryLimits,
    FloatArray,
    GivenOffsets,
    IntArray,
    ObservedEntries,
    Transform,
    check_arrays,
    entries_of_rows,
    has_offsets,
    row_of_entries,
    row_pointers,
)
from .labels import Labels
from .observations import Observations, row_blocks


@dataclass(frozen=True)
class SparseObservations(Observations):
    """A matrix of which some entries are stored.

    Attributes
    ----------
    values : ndarray (n_stored,)
        Stored values row by row, float32 or float64.
    weights : ndarray (n_stored,) or None
        Weights > 0 of the stored entries; None if every weight is one.
    indptr : ndarray of int (m + 1,)
        Row pointers: row i has the stored entries indptr[i] to indptr[i + 1].
    indices : ndarray of int (n_stored,)
        Columns of the stored entries, ascending within a row.
    labels : Labels
        Dimensions and coordinates for results.
    absent_are_zeros : bool, default False
        Whether entries that are not stored are observed and equal to 0.
    limits : EntryLimits or None, default None
        Limits of the stored entries; None if all values are known.
    scratch : Scratch or None, default None
        Folder for further arrays of this size, if the entries lie in files.

    Examples
    --------
    >>> import pandas as pd, nmd_lab as nmd
    >>> table = pd.DataFrame({"who": ["ann", "bo"], "what": ["p", "q"], "stars": [5.0, 3.0]})
    >>> nmd.observations_from_table(table, row="who", column="what", value="stars")
    <nmd_lab.SparseObservations>  who: 2, what: 2, 2 stored entries (50 %), float64
    """

    values: FloatArray
    weights: FloatArray | None
    indptr: IntArray
    indices: IntArray
    labels: Labels
    absent_are_zeros: bool = False
    limits: EntryLimits | None = None
    scratch: Scratch | None = None

    def __post_init__(self) -> None:
        """Check the structure, which compiled loops trust."""
        self.check("SparseObservations")

    def check(self, name: str) -> None:
        """Raise ValueError if an entry is stored outside the shape."""
        stored, weights = self.values.size, self.weights
        if weights is not None and np.shape(weights) != (stored,):
            raise ValueError(f"{name} has weights of shape {weights.shape}: give {stored} of them.")
        check_arrays(name, sparse.csr_array, self.shape, self.values, self.indices, self.indptr)

    @property
    def pattern(self) -> tuple[IntArray, IntArray] | None:  # type: ignore[override]
        """`indptr` and `indices`, or None if absent entries are zeros."""
        return None if self.absent_are_zeros else (self.indptr, self.indices)

    @property
    def rows(self) -> IntArray:
        """Rows of the stored entries."""
        return row_of_entries(self.indptr, self.indices.dtype)

    @property
    def exact(self) -> NDArray[np.bool_]:
        """Whether each stored entry is a value, and not a limit."""
        return np.ones(self.values.size, bool) if self.limits is None else self.limits.codes == 0

    @property
    def row_labels(self) -> NDArray[Any]:
        """Label of each row, tuples of several dimensions, or positions without labels."""
        return self.labels.flat(self.labels.rows)

    @property
    def column_labels(self) -> NDArray[Any]:
        """Label of each column, likewise."""
        return self.labels.flat(self.labels.columns)

    def reader(self) -> Any:
        """Return the stored values; if absent entries are zeros, a reader of dense rows."""
        return _DenseRowReader(self.to_csr()) if self.absent_are_zeros else self.values

    def limit_reader(self) -> EntryLimits | None:
        """Return the limits; if absent entries are zeros, those of all entries."""
        if self.limits is None or not self.absent_are_zeros:
            return self.limits
        stored: Any = self.limits.codes, self.limits.uppers
        arrays: Any = (x if x is None else self.to_csr(x).toarray().ravel() for x in stored)
        return EntryLimits(*arrays)

    def stored_positions(self) -> tuple[IntArray, IntArray]:
        """Return row and column of the stored entries; of all entries if absent ones are zeros."""
        return super().stored_positions() if self.absent_are_zeros else (self.rows, self.indices)

    def centred(
        self, transform: Transform, offsets: GivenOffsets
    ) -> tuple[sparse.csr_array, float]:
        """Return transform(X) minus offsets; see `Observations.centred`."""
        T, (mean, rows, columns) = transform(np.asarray(self.values)), offsets
        if self.absent_are_zeros:  # there are no offsets then
            absent = float(transform(np.zeros(1, T.dtype))[0])
            return self.to_csr(T - T.dtype.type(absent) if absent else T), absent
        m, n = self.shape
        fill = 0.0 if has_offsets(offsets) else float(T.mean())
        by_row = np.zeros(m) if rows is None else rows
        by_column = np.zeros(n) if columns is None else columns
        R: Any = self.new_array(np.result_type(T.dtype, by_row.dtype, by_column.dtype))
        for rows_here in self.row_ranges():
            indptr, block = entries_of_rows(self.indptr, rows_here)
            of_rows = np.repeat(by_row[rows_here], np.diff(indptr))
            R[block] = T[block] - fill - mean - of_rows - by_column[self.indices[block]]
        return self.to_csr(R if self.scratch is None else R.array), fill

    def entries(self) -> ObservedEntries:
        """Return the stored entries, sorted by row and column."""
        return ObservedEntries(self.rows, self.indices, self.values)

    def select(self, keep: NDArray[np.bool_]) -> SparseObservations:
        """Return observations of those `entries` at which `keep` is True."""
        return self.at(keep, row_pointers(self.rows[keep], self.shape[0]), self.labels)

    def at(self, where: Any, indptr: IntArray, labels: Labels) -> SparseObservations:
        """Return some of the stored entries, with other row pointers and labels."""
        return replace(
            self,
            values=self.values[where],
            weights=None if self.weights is None else self.weights[where],
            indptr=indptr,
            indices=self.indices[where],
            labels=labels,
            limits=None if self.limits is None else self.limits.at(where),
        )

    def of_rows(self, rows: slice | IntArray, labels: Labels | None = None) -> SparseObservations:
        """Return some rows, by position, with other labels or none; a range is not copied."""
        indptr, entries = entries_of_rows(self.indptr, rows)
        labels = labels or Labels.plain((indptr.size - 1, self.shape[1]))
        return self.at(entries, indptr.astype(self.indptr.dtype, copy=False), labels)

    def csr_rows(self, block: slice) -> SparseObservations:
        """Return the observed entries of a range of rows, with zeros that are not stored."""
        rows = self.of_rows(block)
        if not self.absent_are_zeros:
            return rows
        (i, j), every = rows.stored_positions(), rows.to_array().ravel()
        pointers, limits = row_pointers(i, rows.shape[0]), rows.limit_reader()
        return SparseObservations(every, None, pointers, j, rows.labels, limits=limits)

    def as_sparse(self) -> SparseObservations:
        """Return the observations themselves."""
        return self

    def to_csr(self, values: FloatArray | None = None) -> sparse.csr_array:
        """Return the values, or other values at the same positions, without a copy."""
        values = self.values if values is None else values
        return sparse.csr_array((values, self.indices, self.indptr), shape=self.shape)

    def to_table(self) -> Any:
        """Return the stored entries as a long table, one in each line.

        Its columns are row labels, column labels (positions where there are none) and values, with
        the names of the dimensions and of the data ("value" if they have none).  Of a table with
        sorted lines that `observations_from_table` took, this is a copy.
        """
        axes = ((self.labels.rows, self.rows), (self.labels.columns, self.indices))
        frames = [self.labels.flat_index(dims)[at].to_frame(index=False) for dims, at in axes]
        table, name = pd.concat(frames, axis=1).infer_objects(), self.labels.name or "value"
        while name in table:
            name += "_"
        table[name] = self.values
        return table

    def with_values(self, values: FloatArray) -> SparseObservations:
        """Return other values with the same pattern, weights and labels."""
        return replace(self, values=values)

    def row_ranges(self) -> Iterator[slice]:
        """Yield ranges of rows with about `BLOCK` stored entries."""
        return row_blocks(self.indptr)

    def counts(self, axis: int) -> NDArray[np.integer]:
        """Return the number of observed entries of each column (axis 0) or row (axis 1)."""
        if self.absent_are_zeros:
            return np.full(self.shape[1 - axis], self.shape[axis])
        if axis == 1:
            return np.diff(self.indptr)
        blocks = (self.of_rows(rows).indices for rows in self.row_ranges())
        return np.asarray(sum(np.bincount(each, minlength=self.shape[1]) for each in blocks))

    def __repr__(self) -> str:
        row, column = (", ".join(dims) for dims in (self.labels.rows, self.labels.columns))
        m, n = self.shape
        share = 100 * self.values.size / (m * n)
        return (
            f"<nmd_lab.SparseObservations>  {row}: {m}, {column}: {n}, "
            f"{many(self.values.size, 'stored entry')} ({share:.3g} %), {self.values.dtype}"
        )


def is_sparse(X: Any) -> bool:
    """Return whether an input is a SciPy sparse matrix or `SparseObservations`."""
    return sparse.issparse(X) or isinstance(X, SparseObservations)


class _DenseRowReader:
    """Reader of a sparse matrix as dense rows, in which absent entries are zeros."""

    def __init__(self, matrix: sparse.csr_array) -> None:
        self.matrix = matrix

    def __getitem__(self, entries: slice) -> FloatArray:
        """Return the values of a range of entries, flat."""
        n = self.matrix.shape[1]
        first, last = entries.start // n, -(-entries.stop // n)
        rows = self.matrix[first:last].toarray().ravel()
        return np.asarray(rows[entries.start - first * n : entries.stop - first * n])
