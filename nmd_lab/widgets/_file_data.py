"""The matrix in a file, for an explorer that is given a path."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from nmd_lab.data.labels import RESULT_ATTRIBUTE
from nmd_lab.data.readers import read_matrix

from ._completion_data import table_columns
from .code import call

READER_IMPORT = "from nmd_lab.data.readers import read_matrix\n"
"""Import of what the code of a `FileData` calls."""


class FileData(NamedTuple):
    """The matrix in a file, and the code that reads it.

    Attributes
    ----------
    X : object
        Data as `nmd_lab.complete` takes them.
    what : str
        Line that says what was read.
    code : str
        Code that reads the data.
    """

    X: Any
    what: str
    code: str


def read_file_data(path: Path, **options: Any) -> FileData:
    """Return the matrix in a file.

    Parameters
    ----------
    path : Path
        File in one of the formats of `read_matrix`.
    **options
        Arguments of `read_matrix`; without any, usual names of columns show a long
        table.
    """
    X = read_matrix(path, **options)
    if not options:
        labelled = getattr(getattr(X, "index", None), "name", None) is not None
        columns = table_columns(X.reset_index() if labelled else X)
        if columns is not None:
            options = columns
            X = read_matrix(path, **options)
    m, n = np.shape(X) if isinstance(X, np.ndarray) else X.shape
    dims = getattr(getattr(X, "labels", None), "dims", ("rows", "columns"))
    what = f"{m} {dims[0]} x {n} {dims[1]} from {path.name}"
    if options:
        given = ", ".join(f"{name}={value}" for name, value in options.items())
        what += f", read with {given}"
    return FileData(X, what, call("read_matrix", f'"{path.as_posix()}"', **options))


def kind_of_result(path: Path) -> str | None:
    """Return "fit" or "study" for a file of a result, None for any other file."""
    if path.suffix != ".nc" or not path.is_file():
        return None
    try:
        with xr.open_dataset(path) as opened:
            return kind_of_dataset(opened)
    except (LookupError, OSError, RuntimeError, TypeError, ValueError):
        return None


def kind_of_dataset(dataset: xr.Dataset) -> str | None:
    """Return "fit" or "study" for the Dataset of a result, None for any other one."""
    if RESULT_ATTRIBUTE not in dataset.attrs:
        return None
    return "fit" if {"W", "H"} <= set(dataset.variables) else "study"
