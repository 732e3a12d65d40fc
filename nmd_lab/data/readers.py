"""Matrices from NumPy, CSV, Matrix Market and NetCDF files."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from .labels import RESULT_ATTRIBUTE
from .long_table import observations_from_table

TABLES = {".csv": ",", ".tsv": "\t", ".txt": None}
"""Column separator by file ending; None stands for white space."""


def read_matrix(
    path: str | os.PathLike[str],
    *,
    variable: str | None = None,
    row: str | None = None,
    column: str | None = None,
    value: str | None = None,
) -> Any:
    r"""Return the matrix in a file, as input for `complete`.

    Parameters
    ----------
    path : path-like
        Path of the file.  Its ending gives the format: .npy, .npz (of NumPy, or of
        ``scipy.sparse.save_npz``), .mtx or .mtx.gz (Matrix Market), .csv, .tsv or .txt (a matrix
        with or without names of its rows and columns, in which empty cells are missing), or .nc
        (NetCDF).
    variable : str, optional
        Name of the array in a .npz or .nc file; required if there are several.
    row, column, value : str, optional
        Columns of a long table with one observation in each line: row labels, column labels and
        values of the matrix.

    Returns
    -------
    ndarray, DataArray, DataFrame, scipy.sparse matrix or SparseObservations
        Matrix, with the labels of the file.

    Raises
    ------
    FileNotFoundError, ValueError, KeyError
        If the file does not exist, cannot be read, or has no such matrix.

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
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"file={str(path)!r} does not exist: check the name.")
    ending = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    columns = {"row": row, "column": column, "value": value}
    named = [argument for argument, name in columns.items() if name is not None]
    if named and ending not in TABLES:
        raise ValueError(
            f"{named[0]}={columns[named[0]]!r} is meant for tables: file is {path.name}."
        )
    if ending in TABLES:
        return _long_table(path, columns) if named else _table(path)
    if ending == ".npy":
        with _errors_of(path):
            return np.load(path, allow_pickle=False)
    if ending == ".npz":
        return _npz(path, variable)
    if ending in (".mtx", ".mtx.gz"):
        from scipy.io import mmread

        with _errors_of(path):
            return mmread(path, spmatrix=False)
    if ending == ".nc":
        return _netcdf(path, variable)
    raise ValueError(
        f"file={str(path)!r} has an unknown ending: give .npy, .npz, .mtx, .csv, .tsv, .txt or .nc."
    )


@contextmanager
def _errors_of(path: Path) -> Iterator[None]:
    """Turn errors of a reader into a ValueError that names the file."""
    try:
        yield
    except (EOFError, OSError, ValueError, zipfile.BadZipFile) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise ValueError(f"file={str(path)!r} cannot be read: {reason}.") from error


def _read_table(path: Path, **options: Any) -> Any:
    """Return a table as a DataFrame."""
    import pandas as pd

    with _errors_of(path):
        return pd.read_csv(path, sep=TABLES[path.suffix] or r"\s+", **options)


def _table(path: Path, n_lines: int = 20) -> Any:
    """Return a matrix of numbers; the first `n_lines` show whether it has names."""
    head = _read_table(path, header=None, nrows=n_lines, dtype=object)
    several = head.shape[1] > 1
    header = 0 if _has_text(head.iloc[0, 1:] if several else head.iloc[0]) else None
    first = head.iloc[0 if header is None else 1 :, 0]
    return _read_table(path, header=header, index_col=0 if several and _has_text(first) else None)


def _has_text(cells: Any) -> bool:
    """Return whether some of the cells are not numbers."""
    import pandas as pd

    filled = cells.dropna()
    return bool(pd.to_numeric(filled, errors="coerce").isna().any())


def _long_table(path: Path, columns: dict[str, str | None]) -> Any:
    """Return the observations of a table with one in each line."""
    for argument, name in columns.items():
        if name is None:
            raise ValueError(f"{argument} is not given: a long table needs row, column and value.")
    names = {argument: str(name) for argument, name in columns.items()}
    return observations_from_table(_read_table(path), **names)


def _npz(path: Path, variable: str | None) -> Any:
    """Return an array or a sparse matrix of a .npz file."""
    from scipy import sparse

    with _errors_of(path):
        archive = np.load(path, allow_pickle=False)
        names = list(archive)
        if {"format", "shape", "data"} <= set(names):
            return sparse.load_npz(path)
    name = _array_name(path, names, variable)
    with _errors_of(path), archive:
        return archive[name]


def _netcdf(path: Path, variable: str | None) -> Any:
    """Return an array of a NetCDF file."""
    with _errors_of(path), xr.open_dataset(path) as opened:
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
