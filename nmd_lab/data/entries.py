"""Stored entries as plain arrays: values, limits, weights, and compressed rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

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


def row_pointers(rows: IntArray, n_rows: int) -> IntArray:
    """Return `indptr` of entries, given the row of each entry, of the smallest type."""
    counts = np.bincount(rows, minlength=n_rows)
    return np.append(0, np.cumsum(counts)).astype(sparse.get_index_dtype(maxval=rows.size))


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


def first_duplicate(rows: IntArray, columns: IntArray) -> int | None:
    """Return the position of the first of two equal neighbours in sorted entries, None if none."""
    duplicate = (rows[1:] == rows[:-1]) & (columns[1:] == columns[:-1])
    return int(np.argmax(duplicate)) if duplicate.any() else None


def sorted_entries(X: Any) -> tuple[NDArray[Any], IntArray, IntArray]:
    """Return values, row pointers and columns of a SciPy matrix, sorted by row and column.

    Arrays that are sorted are not copied: they may lie in files.
    """
    csr = checked_csr("X", X)
    if X.format == "coo" and csr.nnz < X.nnz:  # the conversion added duplicates up
        order = np.lexsort((X.col, X.row))
        _check_unique(X.row[order], X.col[order])
    # A new matrix, since what SciPy remembers of the order is out of date after a change of arrays
    csr = sparse.csr_array((csr.data, csr.indices, csr.indptr), shape=csr.shape)
    if not csr.has_sorted_indices:
        csr = csr.sorted_indices()
    if not csr.has_canonical_format:
        _check_unique(row_of_entries(csr.indptr), csr.indices)
    return csr.data, csr.indptr, csr.indices


def checked_csr(name: str, X: Any) -> Any:
    """Return a sparse matrix in the format CSR, not sorted, with all entries in its shape.

    SciPy and compiled loops trust the indices of a sparse matrix: a wrong one ends the process.
    """
    X = X.tocoo() if X.format in ("dok", "dia") else X
    if X.format == "lil":
        pairs = zip(X.rows, X.data, strict=True)
        if len(X.rows) != X.shape[0] or any(len(columns) != len(x) for columns, x in pairs):
            raise ValueError(f"{name} is LIL with lists of unequal lengths: build it anew.")
        X = X.tocsr()
    names = ("row", "col") if X.format == "coo" else ("indices", "indptr")
    check_arrays(name, type(X), X.shape, X.data, *(getattr(X, each) for each in names))
    return X.tocsr()


def check_arrays(
    name: str, kind: Any, shape: tuple[int, ...], values: Any, *indices: NDArray[Any]
) -> None:
    """Raise ValueError if values and indices make no sparse matrix of a class of SciPy."""
    try:
        if any(each.dtype.kind not in "iu" for each in indices):
            raise ValueError("indices must be whole numbers")
        zeros = np.zeros(np.shape(values), bool)
        is_coo = issubclass(kind, sparse.coo_array | sparse.coo_matrix)
        matrix = kind((zeros, indices) if is_coo else (zeros, *indices), shape=shape)
        if hasattr(matrix, "check_format"):
            matrix.check_format()
    except (IndexError, TypeError, ValueError) as error:
        raise ValueError(
            f"{name} has arrays of no sparse matrix of shape {shape} ({error}): build it anew."
        ) from error


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


def check_matrix(X: Any) -> None:
    """Raise an error if X holds no entry, or other entries than real numbers."""
    if 0 in X.shape:
        raise ValueError(f"X has shape {X.shape}, which holds no entry: give a larger matrix.")
    if X.dtype.kind not in "buif":
        raise TypeError(f"X has dtype {X.dtype}: convert it to real numbers, X.astype(float).")


def check_shape(name: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    """Raise ValueError if an argument has another shape than X."""
    if shape != wanted:
        raise ValueError(f"{name} has shape {shape}: give it the shape of X, {wanted}.")


def check_weights(weights: NDArray[Any]) -> None:
    """Raise ValueError if a weight is negative, infinite or NaN."""
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError("weights holds a negative or non-finite number: give numbers >= 0.")


def infinity_error(row: int, column: int) -> ValueError:
    """Return the error for an infinite value of X."""
    return ValueError(
        f"X holds an infinity at row {row}, column {column}: replace it, or hide it with observed=."
    )
