"""Matrix Market files: a reader in NumPy that checks every number before it uses it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ._file_limits import check_contents, read_bytes

FIELDS = ("real", "double", "integer", "unsigned-integer", "pattern")
"""Kinds of values that can be read; "complex" cannot."""

SYMMETRIES = ("general", "symmetric", "skew-symmetric")
"""Kinds of symmetry that can be read; "hermitian" belongs to complex values."""


class _Header(NamedTuple):
    """What the first lines of a file say, and its text after them."""

    layout: str
    field: str
    symmetry: str
    sizes: tuple[int, ...]
    body: bytes


def read_matrix_market(path: Path, largest: float) -> Any:
    """Return the matrix of a file .mtx or .mtx.gz.

    Parameters
    ----------
    path : Path
        File.
    largest : float
        Largest number of bytes of the contents.

    Returns
    -------
    coo_array or ndarray
        Sparse matrix of a file of coordinates, or dense matrix of an array.

    Raises
    ------
    ValueError
        If the file is damaged, or larger than `largest`.
    """
    header = _read_header(read_bytes(path, largest))
    m, n = header.sizes[:2]
    if header.symmetry != "general" and m != n:
        raise ValueError(f"it is {header.symmetry} with {m} rows and {n} columns")
    if header.layout == "array":
        check_contents(path, 8 * m * n, largest)
        return _dense(header, m, n)
    # Row pointers, counts of columns, and the table of numbers
    check_contents(path, max(4 * (m + n), 24 * header.sizes[2]), largest)
    return _sparse(header, m, n)


def _read_header(text: bytes) -> _Header:
    """Return the header of a file and the text after it."""
    line, _, rest = text.partition(b"\n")
    words = line.decode("latin-1").lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise ValueError("its first line is no header of the format Matrix Market")
    layout, field, symmetry = words[2:]
    if layout not in ("coordinate", "array") or (layout, field) == ("array", "pattern"):
        raise ValueError(f"its format is {layout!r} of {field!r}, not coordinate or array")
    if field not in FIELDS or symmetry not in SYMMETRIES:
        raise ValueError(f"its values are {field!r} and {symmetry!r}, not real numbers")
    while True:
        if not rest:
            raise ValueError("it ends before the line of sizes")
        line, _, rest = rest.partition(b"\n")
        if line.strip() and not line.startswith(b"%"):
            break
    sizes = line.split()
    expected = 3 if layout == "coordinate" else 2
    if len(sizes) != expected or not all(size.isdigit() for size in sizes):
        raise ValueError(f"its sizes are {line[:60].decode('latin-1')!r}, not {expected} numbers")
    return _Header(layout, field, symmetry, tuple(int(size) for size in sizes), rest)


def _numbers(header: _Header, expected: int) -> NDArray[np.float64]:
    """Return the numbers of the body, which must be as many as the header says."""
    if 2 * expected > len(header.body) + 1:
        raise ValueError(f"it announces {expected} numbers and is too short to hold them")
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # of NumPy < 2.3, instead of an error
        try:
            numbers = np.fromstring(header.body, sep=" ")
        except (DeprecationWarning, ValueError) as error:
            raise ValueError("it holds text where numbers should be") from error
    if numbers.size == 1 and not header.body.strip():
        numbers = numbers[:0]  # np.fromstring reads one number from nothing but blanks
    if numbers.size != expected:
        raise ValueError(f"it announces {expected} numbers and holds {numbers.size}")
    return numbers


def _values(header: _Header, numbers: NDArray[np.float64]) -> NDArray[Any]:
    """Return the values as integers if the header says so, and if they are."""
    small = np.abs(numbers) < 2**53
    if "integer" in header.field and np.all(small) and np.all(numbers == np.trunc(numbers)):
        return numbers.astype(np.int64)
    return numbers


def _sparse(header: _Header, m: int, n: int) -> sparse.coo_array:
    """Return the matrix of a file of coordinates."""
    stored = header.sizes[2]
    width = 2 if header.field == "pattern" else 3
    table = _numbers(header, width * stored).reshape(stored, width)
    places = table[:, :2]
    if not np.all((places >= 1) & (places <= (m, n)) & (places == np.trunc(places))):
        k = int(np.argmin(np.all((places >= 1) & (places <= (m, n)), axis=1)))
        raise ValueError(
            f"its entry {k + 1} is at row {places[k, 0]:g}, column {places[k, 1]:g} of a matrix "
            f"of {m} rows and {n} columns"
        )
    rows, columns = (places.T - 1).astype(np.int32 if max(m, n) < 2**31 else np.int64)
    values = np.ones(stored) if width == 2 else _values(header, table[:, 2])
    if header.symmetry != "general":
        mirrored = rows != columns
        if header.symmetry == "skew-symmetric" and not np.all(mirrored):
            raise ValueError("it is skew-symmetric with entries on its diagonal")
        sign = -1 if header.symmetry == "skew-symmetric" else 1
        values = np.concatenate([values, sign * values[mirrored]])
        rows, columns = (
            np.concatenate([rows, columns[mirrored]]),
            np.concatenate([columns, rows[mirrored]]),
        )
    return sparse.coo_array((values, (rows, columns)), shape=(m, n))


def _dense(header: _Header, m: int, n: int) -> NDArray[Any]:
    """Return the matrix of a file of an array, whose values come column by column."""
    if header.symmetry == "general":
        return _values(header, _numbers(header, m * n)).reshape(n, m).T
    skew = header.symmetry == "skew-symmetric"
    columns, rows = np.triu_indices(n, 1 if skew else 0)
    values = _values(header, _numbers(header, rows.size))
    X = np.zeros((n, n), dtype=values.dtype)
    X[columns, rows] = -values if skew else values
    X[rows, columns] = values
    return X
