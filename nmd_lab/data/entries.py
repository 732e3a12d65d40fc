"""Stored entries as plain arrays: values, limits, weights, and compressed rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating]
IntArray = NDArray[np.integer]

Transform = Callable[[FloatArray], FloatArray]
"""An entrywise function of arrays."""


GivenOffsets = tuple[float, FloatArray | None, FloatArray | None]
"""A global offset, 0 for none, and offsets of rows (m,) and of columns (n,), None for none."""


def has_offsets(offsets: GivenOffsets) -> bool:
    """Return whether there is an offset."""
    mean, rows, columns = offsets
    return mean != 0 or rows is not None or columns is not None


class EntryReader(Protocol):
    """Stored values that can be read one range at a time, as an array can."""

    def __getitem__(self, entries: slice, /) -> Any:
        """Return the values of a range of stored entries, flat."""


class WeightReader(EntryReader, Protocol):
    """Weights that can be read so.

    Attributes
    ----------
    dtype : dtype
        Type of the weights.
    """

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the weights."""


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

    def flat(self, n_columns: int) -> NDArray[np.int64]:
        """Return the positions in the flat matrix."""
        return self.rows.astype(np.int64) * n_columns + self.columns


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
    def row_of_entry(self) -> IntArray:
        """Row of each entry, counted from the first one of the range."""
        return row_of_entries(self.indptr)

    def take(self, rows: NDArray[Any]) -> CsrRows:
        """Return some of the rows, by position or by a mask."""
        indptr, at = entries_of_rows(self.indptr, rows)
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


class EntryWeights:
    """Weights of all entries of a matrix, 0 where an entry is missing.

    Attributes
    ----------
    shape : tuple of int
        Number of rows and columns.
    dtype : dtype
        That of the weights; bool if there is a mask only.
    """

    def __init__(self, seen: Any, weights: Any, shape: tuple[int, int] | None = None) -> None:
        """Take a mask, which may be in bits, and weights, which may lie in a file; or one of both.

        Of a mask in bits, the shape has to be given.
        """
        self.shape = shape or (seen if weights is None else weights).shape
        self.dtype: np.dtype[Any] = np.dtype(bool) if weights is None else weights.dtype
        in_bits = seen is None or seen.dtype == np.uint8
        self._bits: NDArray[np.uint8] | None = seen if in_bits else np.packbits(seen)
        self._weights: FloatArray | None = None if weights is None else weights.ravel()

    def __getitem__(self, entries: slice, /) -> NDArray[Any]:
        """Return the weights of a range of entries, flat."""
        weights = None if self._weights is None else self._weights[entries]
        if self._bits is None:
            assert weights is not None
            return weights
        m, n = self.shape
        start, stop, _ = entries.indices(m * n)
        seen = np.unpackbits(self._bits[start // 8 : -(-stop // 8)]).view(bool)
        seen = seen[start % 8 : start % 8 + stop - start]
        return seen if weights is None else np.where(seen, weights, weights.dtype.type(0))

    def of_rows(self, rows: slice | IntArray) -> NDArray[Any]:
        """Return the weights of a range of rows, or of rows by position, as a matrix."""
        if not isinstance(rows, slice):
            return self.of_rows(slice(None))[rows]
        m, n = self.shape
        start, stop, _ = rows.indices(m)
        return self[start * n : max(start, stop) * n].reshape(-1, n)


def row_pointers(rows: IntArray, n_rows: int, dtype: Any) -> IntArray:
    """Return `indptr` of entries, given the row of each entry."""
    counts = np.bincount(rows, minlength=n_rows)
    return np.concatenate([[0], np.cumsum(counts)]).astype(dtype)


def row_of_entries(indptr: IntArray, dtype: Any = np.intp) -> IntArray:
    """Return the row of each entry."""
    return np.repeat(np.arange(indptr.size - 1, dtype=dtype), np.diff(indptr))


def entries_of_rows(indptr: IntArray, rows: slice | NDArray[Any]) -> tuple[IntArray, Any]:
    """Return the pointers of some rows, by position or by a mask, and where their entries are."""
    if isinstance(rows, slice):
        pointers = indptr[rows.start : rows.stop + 1]
        return pointers - pointers[0], slice(int(pointers[0]), int(pointers[-1]))
    lengths = np.diff(indptr)[rows]
    pointers = np.append(0, np.cumsum(lengths))
    at: NDArray[np.intp] = np.repeat(indptr[:-1][rows] - pointers[:-1], lengths) + np.arange(
        pointers[-1]
    )
    return pointers, at


def index_dtype(*sizes: int) -> type[np.signedinteger]:
    """Return the smallest integer type, of 32 or 64 bits, that holds all sizes."""
    return np.int32 if max(sizes) < 2**31 else np.int64


def first_duplicate(rows: IntArray, columns: IntArray) -> int | None:
    """Return the position of the first of two equal neighbours in sorted entries, None if none."""
    duplicate = (rows[1:] == rows[:-1]) & (columns[1:] == columns[:-1])
    return int(np.argmax(duplicate)) if duplicate.any() else None


def sorted_entries(X: Any) -> tuple[NDArray[Any], IntArray, IntArray]:
    """Return values, row pointers and columns of a SciPy matrix, sorted by row and column.

    Arrays that are sorted are not copied: they may lie in files.
    """
    if X.dtype.kind not in "buif":
        raise TypeError(f"X has dtype {X.dtype}: convert it to real numbers, X.astype(float).")
    csr = checked_csr("X", X)
    if X.format == "coo" and csr.nnz < X.nnz:  # the conversion added duplicates up
        order = np.lexsort((X.col, X.row))
        _check_unique(X.row[order], X.col[order])
    indptr = csr.indptr
    values, indices = csr.data[: indptr[-1]], csr.indices[: indptr[-1]]
    # What SciPy remembers of the order is out of date after a change of the arrays.
    ascending = indices[1:] > indices[:-1]
    starts = indptr[1:-1]
    ascending[starts[(starts > 0) & (starts < indices.size)] - 1] = True
    if not ascending.all():
        rows = row_of_entries(indptr, indices.dtype)
        order = np.lexsort((indices, rows))
        values, indices = values[order], indices[order]
        _check_unique(rows, indices)
    return values, indptr, indices


def checked_csr(name: str, X: Any) -> Any:
    """Return a sparse matrix in the format CSR, not sorted, after a check of its structure."""
    X = X.tocoo() if X.format in ("dok", "dia") else X
    check_structure(name, X)
    csr = X.tocsr()
    if X.format == "lil":
        check_structure(name, csr)
    return csr


def check_structure(name: str, X: Any) -> None:
    """Raise ValueError if a sparse matrix stores an entry outside its shape.

    SciPy and compiled loops trust the indices of a sparse matrix: a wrong one ends the process.
    """
    m, n = X.shape
    if X.format == "coo":
        stored = len(X.data)
        if len(X.row) != stored or len(X.col) != stored:
            raise ValueError(
                f"{name} is COO with {len(X.row)} rows and {len(X.col)} columns of {stored} "
                "values: build it anew."
            )
        check_indices(name, "row", X.row, m)
        check_indices(name, "column", X.col, n)
    elif X.format in ("csr", "csc", "bsr"):
        height, width = X.blocksize if X.format == "bsr" else (1, 1)
        axes = [("row", m // height), ("column", n // width)]
        if X.format == "csc":
            axes.reverse()
        (pointed, n_pointers), (indexed, n_indices) = axes
        check_pointers(name, pointed, X.indptr, n_pointers, min(len(X.indices), len(X.data)))
        check_indices(name, indexed, X.indices[: X.indptr[-1]], n_indices)
    elif X.format == "lil":
        pairs = zip(X.rows, X.data, strict=True)
        if len(X.rows) != m or any(len(columns) != len(values) for columns, values in pairs):
            raise ValueError(f"{name} is LIL with lists of unequal lengths: build it anew.")
    elif X.format == "dia" and X.data.shape[0] != len(X.offsets):
        raise ValueError(f"{name} is DIA with more or fewer offsets than rows: build it anew.")


def check_pointers(name: str, axis: str, indptr: Any, count: int, stored: int) -> None:
    """Raise ValueError if pointers do not divide `stored` entries among `count` rows or columns."""
    good = np.shape(indptr) == (count + 1,) and indptr.dtype.kind in "iu"
    if not (good and indptr[0] == 0 and indptr[-1] <= stored and np.all(indptr[1:] >= indptr[:-1])):
        found = np.array2string(np.asarray(indptr), threshold=6)
        raise ValueError(
            f"{name} has {np.size(indptr)} {axis} pointers (indptr), {found}, that do not divide "
            f"its {stored} entries among {count} {axis}s: build it anew."
        )


def check_indices(name: str, axis: str, indices: Any, count: int) -> None:
    """Raise ValueError if one of the indices of stored entries is not in 0 ... count - 1."""
    if np.ndim(indices) != 1 or indices.dtype.kind not in "iu":
        raise ValueError(f"{name} has {axis} indices of dtype {indices.dtype}: give whole numbers.")
    for extreme in (indices.min(), indices.max()) if indices.size else ():
        if not 0 <= extreme < count:
            raise ValueError(
                f"{name} stores an entry at {axis} {extreme}, and has {axis}s 0 to {count - 1}: "
                "build it anew with indices in this range."
            )


def _check_unique(rows: IntArray, columns: IntArray) -> None:
    """Raise ValueError if sorted entries hold one position twice."""
    k = first_duplicate(rows, columns)
    if k is not None:
        raise ValueError(
            f"X stores the entry at row {rows[k]}, column {columns[k]} more than once: keep one, "
            "or add them up with X.sum_duplicates()."
        )


def as_booleans(
    observed: NDArray[Any], name: str = "observed", meaning: str = "True = observed"
) -> NDArray[np.bool_]:
    """Return a mask as booleans; numbers other than 0 and 1 are refused."""
    if observed.dtype == bool:
        return observed
    if observed.dtype.kind not in "buif" or not np.all((observed == 0) | (observed == 1)):
        such = f", for example {name} > 0" if observed.dtype.kind in "ui" else ""
        raise TypeError(
            f"{name} has dtype {observed.dtype}: give booleans or 0 and 1{such}, {meaning}."
        )
    return observed.astype(bool)


def check_weights(weights: NDArray[Any]) -> None:
    """Raise ValueError if a weight is negative, infinite or NaN."""
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError("weights holds a negative or non-finite number: give numbers >= 0.")


def infinity_error(row: int, column: int) -> ValueError:
    """Return the error for an infinite value of X."""
    return ValueError(
        f"X holds an infinity at row {row}, column {column}: replace it, or hide it with observed=."
    )
