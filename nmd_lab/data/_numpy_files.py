"""Arrays and sparse matrices from the files of NumPy and SciPy."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ._csr import check_structure
from ._file_limits import check_contents, errors_of

MAGIC = b"\x93NUMPY"
"""First bytes of an array in the format of NumPy."""

SPARSE = {"format", "shape", "data"}
"""Arrays that every file of `scipy.sparse.save_npz` has."""


def read_npy(path: Path, largest: float) -> Any:
    """Return the array of a file .npy."""
    with errors_of(path):
        check_contents(path, path.stat().st_size, largest)
        with path.open("rb") as stream:
            return _array(stream)


class Archive:
    """The arrays of a file .npz, each read when it is asked for.

    Parameters
    ----------
    path : Path
        File.
    largest : float
        Largest number of bytes of all arrays together.
    """

    def __init__(self, path: Path, largest: float) -> None:
        self.path = path
        with errors_of(path), zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            check_contents(path, sum(member.file_size for member in members), largest)
        self.members = {member.filename.removesuffix(".npy"): member for member in members}

    @property
    def names(self) -> list[str]:
        """Names of the arrays."""
        return list(self.members)

    @property
    def is_sparse(self) -> bool:
        """Whether the file holds one sparse matrix."""
        return set(self.names) >= SPARSE

    def read(self, name: str) -> Any:
        """Return an array."""
        with errors_of(self.path), zipfile.ZipFile(self.path) as archive:
            return _array(io.BytesIO(archive.read(self.members[name])))

    def read_sparse(self, largest: float) -> Any:
        """Return the sparse matrix, with indices that are all within its shape."""
        with errors_of(self.path):
            shape = tuple(int(size) for size in np.atleast_1d(self.read("shape")))
            if len(shape) != 2 or min(shape) < 0:
                raise ValueError(f"its shape is {shape}, not that of a matrix")
            check_contents(self.path, 4 * sum(shape), largest)
            X = _sparse(self, shape)
            check_structure("its matrix", X)
        return X


def _array(stream: Any) -> Any:
    """Return the array in a stream; objects are refused, since they may run any code."""
    if stream.read(len(MAGIC)) != MAGIC:
        raise ValueError("it is no array in the format of NumPy")
    stream.seek(0)
    return np.lib.format.read_array(stream, allow_pickle=False)


def _sparse(archive: Archive, shape: tuple[int, ...]) -> Any:
    """Return the sparse matrix of an archive as `scipy.sparse.load_npz` does."""
    word = archive.read("format").item()
    layout = word.decode("ascii") if isinstance(word, bytes) else str(word)
    if layout not in ("csr", "csc", "bsr", "dia", "coo"):
        raise ValueError(f"its sparse format is {layout[:20]!r}, not csr, csc, bsr, dia or coo")
    kind = "array" if "_is_array" in archive.names else "matrix"
    make = getattr(sparse, f"{layout}_{kind}")
    data = _numbers(archive.read("data"))
    if layout == "dia":
        return make((data, archive.read("offsets")), shape=shape)
    if layout == "coo":
        together = "coords" in archive.names
        places = archive.read("coords") if together else map(archive.read, ("row", "col"))
        return make((data, tuple(_integers(each) for each in places)), shape=shape)
    indices, indptr = (_integers(archive.read(name)) for name in ("indices", "indptr"))
    return make((data, indices, indptr), shape=shape)


def _numbers(array: Any) -> Any:
    """Return values in a type that SciPy computes with: native byte order, no float16."""
    if array.dtype.kind not in "buifc":
        raise ValueError(f"its data have dtype {array.dtype}, not numbers")
    dtype = array.dtype.newbyteorder("=")
    return array.astype(np.float32 if dtype == np.float16 else dtype, copy=False)


def _integers(array: Any) -> Any:
    """Return an array of indices, which must be integers in one dimension."""
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise ValueError(f"its indices have dtype {array.dtype} and {array.ndim} dimensions")
    return array
