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
    """Return the stored entries of a SciPy matrix, sorted by row and column."""
    if X.dtype.kind not in "buif":
        raise TypeError(f"X has dtype {X.dtype}: convert it to real numbers, X.astype(float).")
    csr = checked_csr("X", X)
    if X.format == "coo" and csr.nnz < X.nnz:  # the conversion added duplicates up
        order = np.lexsort((X.col, X.row))
        _check_unique(X.row[order], X.col[order])
    indptr = csr.indptr
    values, indices = csr.data[: indptr[-1]], csr.indices[: indptr[-1]]
    rows = np.repeat(np.arange(X.shape[0], dtype=indices.dtype), np.diff(indptr))
    # What SciPy remembers of the order is out of date after a change of the arrays.
    if np.any((indices[1:] < indices[:-1]) & (rows[1:] == rows[:-1])):
        order = np.lexsort((indices, rows))
        values, indices = values[order], indices[order]
    _check_unique(rows, indices)
    return values, rows, indptr, indices


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
    problem = ""
    if np.ndim(indptr) != 1 or len(indptr) != count + 1:
        problem = f"{np.size(indptr)} of them for {count} {axis}s"
    elif indptr.dtype.kind not in "iu":
        problem = f"dtype {indptr.dtype}"
    elif indptr[0] != 0:
        problem = f"the first is {indptr[0]}, not 0"
    elif np.any(indptr[1:] < indptr[:-1]):
        k = int(np.argmax(indptr[1:] < indptr[:-1]))
        problem = f"they fall from {indptr[k]} to {indptr[k + 1]} at {axis} {k}"
    elif indptr[-1] > stored:
        problem = f"the last is {indptr[-1]}, and {stored} entries are stored"
    if problem:
        raise ValueError(f"{name} has wrong {axis} pointers (indptr), {problem}: build it anew.")


def check_indices(name: str, axis: str, indices: Any, count: int) -> None:
    """Raise ValueError if one of the indices of stored entries is not in 0 ... count - 1."""
    if np.ndim(indices) != 1 or indices.dtype.kind not in "iu":
        raise ValueError(
            f"{name} has {axis} indices of dtype {indices.dtype}: give a vector of integers."
        )
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
