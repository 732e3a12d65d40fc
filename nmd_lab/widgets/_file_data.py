"""What is in a file, for an explorer that is given a path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from nmd_lab.data.labels import RESULT_ATTRIBUTE

from .code import call

READER_IMPORT = "from nmd_lab.data.readers import read_matrix\n"
"""Import of what `file_code` calls."""


def file_code(path: Path, options: Mapping[str, Any]) -> str:
    """Return the code that reads the matrix in a file.

    Parameters
    ----------
    path : Path
        The file.
    options : mapping
        Arguments of `read_matrix`.
    """
    return call("read_matrix", f'"{path.as_posix()}"', **options)


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
