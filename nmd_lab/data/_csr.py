"""Stored entries in compressed rows, as in a CSR matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .base import IntArray


def row_pointers(rows: IntArray, n_rows: int, dtype: Any) -> IntArray:
    """Return `indptr` of entries, given the row of each entry."""
    counts = np.bincount(rows, minlength=n_rows)
    return np.concatenate([[0], np.cumsum(counts)]).astype(dtype)


def index_dtype(*sizes: int) -> type[np.signedinteger]:
    """Return the smallest integer type, of 32 or 64 bits, that holds all sizes."""
    return np.int32 if max(sizes) < 2**31 else np.int64


def first_duplicate(rows: IntArray, columns: IntArray) -> int | None:
    """Return the position of the first of two equal neighbours in sorted entries, None if none."""
    duplicate = (rows[1:] == rows[:-1]) & (columns[1:] == columns[:-1])
    return int(np.argmax(duplicate)) if duplicate.any() else None


def sorted_entries(X: Any) -> tuple[NDArray[Any], IntArray, IntArray, IntArray]:
    """Return the stored entries of a SciPy matrix, sorted by row and column.

    Parameters
    ----------
    X : scipy.sparse matrix or array (m, n)
        Data in any format.

    Returns
    -------
    values : ndarray (n_stored,)
        Stored values.
    rows : ndarray of int (n_stored,)
        Rows of the values.
    indptr : ndarray of int (m + 1,)
        Row pointers.
    indices : ndarray of int (n_stored,)
        Columns of the values.

    Raises
    ------
    TypeError
        If X does not hold real numbers.
    ValueError
        If X stores an entry more than once.
    """
    if X.dtype.kind not in "buif":
        raise TypeError(f"X has dtype {X.dtype}: convert it to real numbers, X.astype(float).")
    csr = X.tocsr()
    if X.format == "coo" and csr.nnz < X.nnz:  # the conversion added duplicates up
        order = np.lexsort((X.col, X.row))
        _check_unique(X.row[order], X.col[order])
    if not csr.has_sorted_indices:
        csr = csr.copy() if csr is X else csr
        csr.sort_indices()
    indptr = csr.indptr
    values, indices = csr.data[: indptr[-1]], csr.indices[: indptr[-1]]
    rows = np.repeat(np.arange(X.shape[0], dtype=indices.dtype), np.diff(indptr))
    _check_unique(rows, indices)
    return values, rows, indptr, indices


def _check_unique(rows: IntArray, columns: IntArray) -> None:
    """Raise ValueError if sorted entries hold one position twice."""
    k = first_duplicate(rows, columns)
    if k is not None:
        raise ValueError(
            f"X stores the entry at row {rows[k]}, column {columns[k]} more than once: keep one, "
            "or add them up with X.sum_duplicates()."
        )
