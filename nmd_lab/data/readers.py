"""Matrices from NumPy, CSV, Matrix Market and NetCDF files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from nmd_lab._checks import check_word

from ._file_limits import errors_of, largest_contents
from ._hdf5 import try_hdf5
from ._matrix_market import read_matrix_market
from ._numpy_files import Archive, read_npy
from ._separators import SEPARATORS
from ._tables import read_table
from .labels import RESULT_ATTRIBUTE


class FileContents(NamedTuple):
    """The matrix in a file.

    Attributes
    ----------
    X : ndarray, DataArray, DataFrame, scipy.sparse matrix or SparseObservations
        Matrix, with the labels of the file.
    what : str
        Line that says what was read, such as "60 rows x 40 columns from x.csv, first column taken
        as row labels, first line taken as column labels".
    """

    X: Any
    what: str


def read_matrix(
    path: str | os.PathLike[str],
    *,
    variable: str | None = None,
    row: str | None = None,
    column: str | None = None,
    value: str | None = None,
    header: bool | str = "auto",
    index: bool | str = "auto",
    max_bytes: int | str | None = "auto",
) -> Any:
    r"""Return the matrix in a file, as input for `complete`; `read_file` also says what it read.

    Parameters
    ----------
    path : path-like
        Path of the file.  Its ending gives the format: .npy, .npz (of NumPy, or of
        ``scipy.sparse.save_npz``), .mtx (Matrix Market), .csv, .tsv, .txt or .data (a matrix with
        or without names of its rows and columns, in which empty cells are missing, or a long
        table; semicolons and decimal commas are found), or .nc (NetCDF).  Text files may be
        compressed, as in .csv.gz.
    variable : str, optional
        Name of the array in a .npz or .nc file; required if there are several.
    row, column, value : str, optional
        Columns of a long table with one observation in each line: row labels, column labels and
        values of the matrix.  By default a table of three columns such as userId, movieId and
        rating, with a time or a title or neither, is a long table if row labels come more than
        once, and so is one of four columns without names, the last of which holds times;
        ``index=True`` reads it as a matrix.
    header, index : {"auto", True, False}, default "auto"
        Whether the first line and the first column of a table hold labels.  "auto": text is a
        label; so are whole numbers beside an empty first cell, as `DataFrame.to_csv` writes them.
        A number with a thousands separator, such as 1.000,5, is refused, not taken as a label.
    max_bytes : int, "auto" or None, default "auto"
        Largest number of bytes that the contents may take in memory.  "auto": 32 MiB, or 100 times
        the size of the file if that is more.  None: any number.  Unless None, .nc files are first
        read in another process, since a damaged one may end it.

    Returns
    -------
    ndarray, DataArray, DataFrame, scipy.sparse matrix or SparseObservations
        Matrix, with the labels of the file.

    Raises
    ------
    FileNotFoundError, ValueError, KeyError
        If the file does not exist, cannot be read, is larger than `max_bytes`, or has no such
        matrix.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from nmd_lab.data.readers import read_matrix
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "matrix.csv"
    ...     _ = path.write_text("1,2\n3,\n")
    ...     read_matrix(path).to_numpy()
    array([[ 1.,  2.],
           [ 3., nan]])
    """
    return read_file(
        path,
        variable=variable,
        row=row,
        column=column,
        value=value,
        header=header,
        index=index,
        max_bytes=max_bytes,
    ).X


def read_file(
    path: str | os.PathLike[str],
    *,
    variable: str | None = None,
    row: str | None = None,
    column: str | None = None,
    value: str | None = None,
    header: bool | str = "auto",
    index: bool | str = "auto",
    max_bytes: int | str | None = "auto",
) -> FileContents:
    r"""Return the matrix in a file, and a line that says what was read.

    Parameters
    ----------
    path, variable, row, column, value, header, index, max_bytes
        See `read_matrix`.

    Raises
    ------
    FileNotFoundError, ValueError, KeyError
        As `read_matrix` does.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from nmd_lab.data.readers import read_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "ratings.csv"
    ...     _ = path.write_text("userId,movieId,rating\n1,31,2.5\n1,10,3.0\n2,10,4.0\n")
    ...     print(read_file(path).what)  # doctest: +NORMALIZE_WHITESPACE
    2 rows (userId) x 2 columns (movieId), 3 values (rating) from ratings.csv, a long table with one
    value in each line
    """
    path = Path(path)
    for name, choice in (("header", header), ("index", index)):
        check_word(name, choice, ("auto", True, False))
    if not path.is_file():
        raise FileNotFoundError(f"file={str(path)!r} does not exist: check the name.")
    largest = largest_contents(path, max_bytes)
    ending = (path.with_suffix("") if path.suffix == ".gz" else path).suffix
    columns: dict[str, str | None] = {"row": row, "column": column, "value": value}
    if ending in SEPARATORS:
        return FileContents(*read_table(path, columns, header, index, largest))
    _refuse_table_options(path, columns | {"header": header, "index": index})
    if ending == ".mtx":
        with errors_of(path):
            X = read_matrix_market(path, largest)
    elif path.suffix == ".npy":
        X = read_npy(path, largest)
    elif path.suffix == ".npz":
        X = _npz(path, variable, largest)
    elif path.suffix == ".nc":
        X = _netcdf(path, variable, largest)
    else:
        raise ValueError(
            f"file={str(path)!r} has an unknown ending: give .npy, .npz, .mtx, .csv, .tsv, .txt, "
            ".data or .nc."
        )
    return FileContents(X, f"{_sizes(X)} from {path.name}")


def _refuse_table_options(path: Path, options: dict[str, Any]) -> None:
    """Raise ValueError if an option for tables is given with another file."""
    for name, choice in options.items():
        if choice not in (None, "auto"):
            raise ValueError(f"{name}={choice!r} is meant for tables: file is {path.name}.")


def _sizes(X: Any) -> str:
    """Return the sizes of a matrix in words."""
    if isinstance(X, xr.DataArray):
        return " x ".join(f"{size} {dim}" for dim, size in X.sizes.items())
    if len(X.shape) != 2:
        return f"array of shape {X.shape}"
    stored = "" if isinstance(X, np.ndarray) else f", {X.nnz} stored entries"
    return f"{X.shape[0]} rows x {X.shape[1]} columns{stored}"


def _npz(path: Path, variable: str | None, largest: float) -> Any:
    """Return an array or a sparse matrix of a .npz file."""
    archive = Archive(path, largest)
    if archive.is_sparse:
        return archive.read_sparse(largest)
    return archive.read(_array_name(path, archive.names, variable))


def _netcdf(path: Path, variable: str | None, largest: float) -> Any:
    """Return an array of a NetCDF file."""
    with errors_of(path):
        try_hdf5(path, largest)
        with xr.open_dataset(path) as opened:
            dataset = opened.load()
    if RESULT_ATTRIBUTE in dataset.attrs:
        raise ValueError(f"file={str(path)!r} is a result of nmd_lab: give one with data.")
    names = [str(name) for name, array in dataset.data_vars.items() if array.ndim > 1]
    return dataset[_array_name(path, names, variable)]


def _array_name(path: Path, names: list[str], variable: str | None) -> str:
    """Return the name of the array to read: `variable`, or the only one."""
    if variable is None and len(names) == 1:
        return names[0]
    if variable in names:
        return variable
    problem = "variable is not given" if variable is None else f"variable={variable!r} is unknown"
    raise ValueError(f"{problem}: file={str(path)!r} has {names}.")
