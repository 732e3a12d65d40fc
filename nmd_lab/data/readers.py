"""Matrices from files: NumPy, CSV, Matrix Market, NetCDF."""

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
"""Endings of tables, and what separates their columns (None: white space)."""


def read_matrix(
    path: str | os.PathLike[str],
    *,
    variable: str | None = None,
    row: str | None = None,
    column: str | None = None,
    value: str | None = None,
) -> Any:
    r"""Read a matrix from a file, as `complete` takes it.

    Parameters
    ----------
    path : path-like
        A file that ends in .npy, .npz (of NumPy, or of ``scipy.sparse.save_npz``), .mtx or .mtx.gz
        (Matrix Market), .csv, .tsv or .txt (a matrix, with or without names of its rows and
        columns; empty is missing) or .nc (NetCDF).
    variable : str, optional
        Which array of a .npz or .nc file; needed if there are several.
    row, column, value : str, optional
        The columns of a long table, with one observation a line, that hold the labels of the
        matrix's rows and columns and its values.

    Returns
    -------
    ndarray, DataArray, DataFrame, scipy.sparse matrix or SparseObservations
        With labels, if the file has some.

    Raises
    ------
    FileNotFoundError, ValueError, KeyError
        If there is no such file, or no matrix in it.

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
    long = {"row": row, "column": column, "value": value}
    given = [name for name, word in long.items() if word is not None]
    if given and ending not in TABLES:
        raise ValueError(f"{given[0]}={long[given[0]]!r} is meant for tables: file is {path.name}.")
    if ending in TABLES:
        return _long_table(path, long) if given else _table(path)
    if ending == ".npy":
        with _reading(path):
            return np.load(path, allow_pickle=False)
    if ending == ".npz":
        return _npz(path, variable)
    if ending in (".mtx", ".mtx.gz"):
        from scipy.io import mmread

        with _reading(path):
            return mmread(path, spmatrix=False)
    if ending == ".nc":
        return _netcdf(path, variable)
    raise ValueError(
        f"file={str(path)!r} has an unknown ending: give .npy, .npz, .mtx, .csv, .tsv, .txt or .nc."
    )


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Say in one sentence which file is damaged."""
    try:
        yield
    except (EOFError, OSError, ValueError, zipfile.BadZipFile) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise ValueError(f"file={str(path)!r} cannot be read: {reason}.") from error


def _read_table(path: Path, **options: Any) -> Any:
    import pandas as pd

    with _reading(path):
        return pd.read_csv(path, sep=TABLES[path.suffix] or r"\s+", **options)


def _table(path: Path) -> Any:
    """Read a matrix of numbers, whose first line and first column may be names."""
    head = _read_table(path, header=None, nrows=20, dtype=object)
    several = head.shape[1] > 1
    header = 0 if _are_words(head.iloc[0, 1:] if several else head.iloc[0]) else None
    first = head.iloc[0 if header is None else 1 :, 0]
    return _read_table(path, header=header, index_col=0 if several and _are_words(first) else None)


def _are_words(cells: Any) -> bool:
    """Return whether some of the cells are not numbers."""
    import pandas as pd

    filled = cells.dropna()
    return bool(pd.to_numeric(filled, errors="coerce").isna().any())


def _long_table(path: Path, names: dict[str, str | None]) -> Any:
    """Read one observation a line."""
    for name, word in names.items():
        if word is None:
            raise ValueError(f"{name} is not given: a long table needs row, column and value.")
    return observations_from_table(_read_table(path), **{n: str(w) for n, w in names.items()})


def _npz(path: Path, variable: str | None) -> Any:
    from scipy import sparse

    with _reading(path):
        archive = np.load(path, allow_pickle=False)
        names = list(archive)
        if {"format", "shape", "data"} <= set(names):
            return sparse.load_npz(path)
    wanted = _only(path, names, variable)
    with _reading(path), archive:
        return archive[wanted]


def _netcdf(path: Path, variable: str | None) -> Any:
    with _reading(path), xr.open_dataset(path) as opened:
        dataset = opened.load()
    if RESULT_ATTRIBUTE in dataset.attrs:
        raise ValueError(f"file={str(path)!r} is a result of nmd_lab: give one with data.")
    names = [str(name) for name, array in dataset.data_vars.items() if array.ndim > 1]
    return dataset[_only(path, names, variable)]


def _only(path: Path, names: list[str], wanted: str | None) -> str:
    """Return the array that is meant."""
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted in names:
        return wanted
    problem = "variable is not given" if wanted is None else f"variable={wanted!r} is unknown"
    raise ValueError(f"{problem}: file={str(path)!r} has {names}.")
