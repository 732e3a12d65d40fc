"""Observed entries as plain arrays, their lower and upper limits, and rows in CSR form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating]
IntArray = NDArray[np.integer]

Transform = Callable[[FloatArray], FloatArray]
"""An entrywise function of arrays."""


class ObservedEntries(NamedTuple):
    """The observed entries, sorted by row and column.

    Attributes
    ----------
    rows, columns : ndarray of int (n_observed,)
        Positions.
    values : ndarray of float (n_observed,)
        Observed values.
    """

    rows: IntArray
    columns: IntArray
    values: FloatArray


@dataclass(frozen=True)
class EntryLimits:
    """What is known of each stored entry.

    Attributes
    ----------
    codes : ndarray of int8 (n_stored,)
        0: the value; 1: it is at most the value; 2: it is at least the value; 3: it lies between
        the value and an upper one.
    uppers : ndarray (n_stored,) or None
        Upper values; None if no entry has two limits.
    """

    codes: NDArray[np.int8]
    uppers: FloatArray | None = None

    def at(self, where: Any) -> EntryLimits:
        """Return the limits of some entries, which a slice or an array selects."""
        uppers = None if self.uppers is None else self.uppers[where]
        return EntryLimits(self.codes[where], uppers)

    def mapped(self, transform: Transform) -> EntryLimits:
        """Return the limits of transformed data; the transform must increase."""
        return self if self.uppers is None else replace(self, uppers=transform(self.uppers))

    def nearest(self, x: FloatArray, y: FloatArray, smallest: float = -np.inf) -> FloatArray:
        """Return the value nearest to y that an entry may have, x where its value is known."""
        return np.clip(y, *self.ends(x, smallest)).astype(x.dtype, copy=False)

    def ends(self, x: FloatArray, smallest: float = -np.inf) -> tuple[FloatArray, FloatArray]:
        """Return the smallest and the largest value that each entry may have, as for `nearest`."""
        upper = x if self.uppers is None else self.uppers
        low = np.where(self.codes == 1, np.minimum(smallest, x), x)
        high = np.where(self.codes == 2, np.inf, np.where(self.codes == 3, upper, x))
        return low, high


class CsrRows(NamedTuple):
    """The observed entries of a range of rows, in compressed form.

    Attributes
    ----------
    indptr : ndarray of int64 (n_rows + 1,)
        Row pointers: row i of the range has the entries indptr[i] to indptr[i + 1].
    indices : ndarray of int64 (n_entries,)
        Columns of the entries.
    values, weights : ndarray of float64 (n_entries,)
        Observed values and their weights.
    limits : EntryLimits or None
        Limits of the entries; None if all values are known.
    """

    indptr: IntArray
    indices: IntArray
    values: NDArray[np.float64]
    weights: NDArray[np.float64]
    limits: EntryLimits | None = None

    @classmethod
    def of(
        cls, indptr: Any, indices: Any, values: Any, weights: Any, limits: EntryLimits | None = None
    ) -> CsrRows:
        """Return the arrays with the types above; without weights, each weight is one."""
        weights = np.ones(values.size) if weights is None else weights
        return cls(
            np.asarray(indptr, dtype=np.int64),
            np.asarray(indices, dtype=np.int64),
            np.asarray(values, dtype=np.float64),
            np.asarray(weights, dtype=np.float64),
            limits,
        )

    @property
    def row_of_entry(self) -> NDArray[np.intp]:
        """Row of each entry, counted from the first one of the range."""
        return np.repeat(np.arange(self.indptr.size - 1), np.diff(self.indptr))

    def take(self, rows: NDArray[Any]) -> CsrRows:
        """Return some of the rows, by position or by a mask."""
        lengths = np.diff(self.indptr)[rows]
        indptr = np.append(0, np.cumsum(lengths))
        at = np.repeat(self.indptr[:-1][rows] - indptr[:-1], lengths) + np.arange(indptr[-1])
        return self.entries_at(at)._replace(indptr=indptr)

    def entries_at(self, at: NDArray[np.intp]) -> CsrRows:
        """Return the entries in another order, or some of them, with the same pointers."""
        limits = None if self.limits is None else self.limits.at(at)
        return CsrRows(self.indptr, self.indices[at], self.values[at], self.weights[at], limits)

    def mapped(self, transform: Transform) -> CsrRows:
        """Return the rows of transformed data; the transform must increase."""
        limits = None if self.limits is None else self.limits.mapped(transform)
        return self._replace(values=np.asarray(transform(self.values), np.float64), limits=limits)


def limits_content(limits: EntryLimits | None) -> Iterator[tuple[str, Iterable[NDArray[Any]]]]:
    """Yield the numbers of limits; see `Observations.content`."""
    if limits is not None:
        yield "limits", [limits.codes]
        if limits.uppers is not None:
            yield f"upper limits {limits.uppers.dtype}", [limits.uppers]
