"""Arrays and sparse matrices in files of NumPy, SciPy, Matrix Market and NetCDF."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from scipy import sparse
from scipy.io import mmread

from ._csr import check_structure
from ._file_errors import errors_of
from .labels import RESULT_ATTRIBUTE

SPARSE = {"format", "shape", "data"}
"""Arrays that every file of `scipy.sparse.save_npz` has."""


def read_npy(path: Path) -> Any:
    """Return the array of a file .npy."""
    with errors_of(path):
        return _array(np.load(path, allow_pickle=False))


def read_npz(path: Path, variable: str | None) -> Any:
    """Return an array or the sparse matrix of a file .npz."""
    with path.open("rb") as stream:  # NumPy leaves a damaged file open
        with errors_of(path):
            archive = np.load(stream, allow_pickle=False)
            names = list(archive.files)
            if set(names) >= SPARSE:
                return _checked(sparse.load_npz(path))
        name = _array_name(path, names, variable)
        with errors_of(path):
            return _array(archive[name])


def read_matrix_market(path: Path) -> Any:
    """Return the sparse or dense matrix of a file .mtx or .mtx.gz."""
    with errors_of(path):
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        # SciPy's reader leaves its memory at a zero byte, and after a last line without an end.
        if b"\0" in content:
            raise ValueError("it holds a zero byte, which is no text")
        X = mmread(io.BytesIO(content + b"\n"), spmatrix=False)
        return _checked(X) if sparse.issparse(X) else X


def read_netcdf(path: Path, variable: str | None) -> xr.DataArray:
    """Return an array of a file .nc."""
    with errors_of(path), xr.open_dataset(path) as opened:
        dataset = opened.load()
    if RESULT_ATTRIBUTE in dataset.attrs:
        raise ValueError(f"file={str(path)!r} is a result of nmd_lab: give one with data.")
    names = [str(name) for name, array in dataset.data_vars.items() if array.ndim > 1]
    return dataset[_array_name(path, names, variable)]


def _array(content: Any) -> Any:
    """Return what NumPy read, which must be an array."""
    if not isinstance(content, np.ndarray):
        raise ValueError("it is no array in the format of NumPy")
    return content


def _checked(X: Any) -> Any:
    """Return a sparse matrix of real numbers, in native byte order, with indices in its shape."""
    if X.ndim != 2 or X.dtype.kind not in "buif":
        raise ValueError(f"its data have shape {X.shape} and dtype {X.dtype}, not real numbers")
    check_structure("its matrix", X)
    dtype = X.dtype.newbyteorder("=")
    return X.astype(np.float32 if dtype == np.float16 else dtype, copy=False)


def _array_name(path: Path, names: list[str], variable: str | None) -> str:
    """Return the name of the array to read: `variable`, or the only one."""
    if variable is None and len(names) == 1:
        return names[0]
    if variable in names:
        return variable
    problem = "variable is not given" if variable is None else f"variable={variable!r} is unknown"
    raise ValueError(f"{problem}: file={str(path)!r} has {names}.")
