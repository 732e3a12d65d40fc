"""Matrices from NumPy, CSV, Matrix Market and NetCDF files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from nmd_lab._checks import check_word

from ._binary_files import read_matrix_market, read_netcdf, read_npy, read_npz
from ._separators import SEPARATORS
from ._tables import read_table
from .labels import is_frame


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
) -> Any:
    r"""Return the matrix in a file, as input for `complete`; `read_file` also says what it read."""
    return read_file(
        path,
        variable=variable,
        row=row,
        column=column,
        value=value,
        header=header,
        index=index,
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
) -> FileContents:
    r"""Return the matrix in a file, and a line that says what was read."""
    path = Path(path)
    for name, choice in (("header", header), ("index", index)):
        check_word(name, choice, ("auto", True, False))
    if not path.is_file():
        raise FileNotFoundError(f"file={str(path)!r} does not exist: check the name.")
    ending = (path.with_suffix("") if path.suffix == ".gz" else path).suffix
    columns: dict[str, str | None] = {"row": row, "column": column, "value": value}
    if ending in SEPARATORS:
        return FileContents(*read_table(path, columns, header, index))
    _refuse_table_options(path, columns | {"header": header, "index": index})
    X: Any
    if ending == ".mtx":
        X = read_matrix_market(path)
    elif path.suffix == ".npy":
        X = read_npy(path)
    elif path.suffix == ".npz":
        X = read_npz(path, variable)
    elif path.suffix == ".nc":
        X = read_netcdf(path, variable)
    else:
        raise ValueError(
            f"file={str(path)!r} has an unknown ending: give .npy, .npz, .mtx, .csv, .tsv, .txt, "
            ".data or .nc."
        )
    return FileContents(X, f"{_sizes(X)} from {path.name}")


def with_categories(X: Any, names: Sequence[str]) -> Any:
    """Return a table with some of its columns as categories."""
    if names and not is_frame(X):
        raise ValueError(f"categories={names[0]!r} is meant for tables: leave it out.")
    by_text = {str(name): name for name in X.columns} if names else {}
    for name in names:
        if name not in by_text:
            raise ValueError(f"categories={name!r} is no column of the table: it has {[*by_text]}.")
    return X.astype({by_text[name]: "category" for name in names}) if names else X


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
