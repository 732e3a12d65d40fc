"""`SparseStore`: ratings, counts and other sparse data on disk, read by ranges of rows.

A store is a folder with the entries in compressed rows: `indptr` (int64), `indices` (int32) and
`values` (float32 or float64) as they lie in memory, the labels of rows and columns, and `meta.json`
with the sizes and the SHA-256 of each file.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Self

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab._files import Scratch

from .labels import Labels
from .sparse_observations import SparseObservations
from .store_writing import ARRAYS, CHUNK_LINES, LAYOUT, write_matrix, write_table

PathLike = str | os.PathLike[str]


class SparseStore:
    """A sparse matrix in a folder, for `complete`.

    Parameters
    ----------
    path : path-like
        Folder that one of the functions `from_...` has made.

    Attributes
    ----------
    shape : tuple of int
        Number of rows and columns.
    n_stored : int
        Number of stored entries.
    dtype : dtype
        Type of the values.

    Raises
    ------
    FileNotFoundError
        If there is no such store.
    ValueError
        If a file is damaged in its size, or of a newer version.

    Examples
    --------
    >>> import os, tempfile
    >>> import pandas as pd, nmd_lab as nmd
    >>> table = pd.DataFrame(
    ...     {"user": ["bo", "ann", "bo"], "item": [7, 7, 9], "rating": [4.0, 5.0, 3.0]}
    ... )
    >>> folder = os.path.join(tempfile.mkdtemp(), "ratings")
    >>> store = nmd.SparseStore.from_table(table, folder)
    >>> store.shape, store.n_stored
    ((2, 2), 3)
    >>> fit = nmd.complete(store, 1, alpha=0.1, offsets="both", random_state=0)
    >>> fit.predict("ann", 9).shape
    (1,)
    """

    ndim = 2

    def __init__(self, path: PathLike) -> None:
        self.path = Path(path)
        meta = self.path / "meta.json"
        if not meta.is_file():
            raise FileNotFoundError(
                f"path={str(path)!r} is no store: make one, for example with "
                "SparseStore.from_table()."
            )
        try:
            about = json.loads(meta.read_text(encoding="utf-8"))
            newer = about["layout"] > LAYOUT
            m, n = about["shape"]
            self.shape, self.n_stored = (int(m), int(n)), int(about["n_stored"])
            self.dtype, self._about = np.dtype(about["dtype"]), about
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"path={str(path)!r} is damaged: make the store again.") from error
        if newer:
            raise ValueError(
                f"path={str(path)!r} has the layout {about['layout']}, this version reads up to "
                f"{LAYOUT}: install a newer nmd_lab."
            )
        for name, size in about["sizes"].items():
            file = self.path / name
            if not file.is_file() or file.stat().st_size != size:
                raise ValueError(
                    f"path={str(path)!r} is damaged: its file {name!r} has not the {size} bytes "
                    "that it had, make the store again."
                )

    @property
    def size(self) -> int:
        """Number of stored entries."""
        return self.n_stored

    @classmethod
    def from_matrix(cls, matrix: Any, path: PathLike) -> Self:
        """Write a SciPy matrix.

        Parameters
        ----------
        matrix : scipy.sparse matrix or array, or SparseObservations (m, n)
            Data, without weights.
        path : path-like
            Folder to make.

        Raises
        ------
        FileExistsError
            If the folder exists.

        Examples
        --------
        >>> import os, tempfile
        >>> import numpy as np, nmd_lab as nmd
        >>> from scipy.sparse import csr_array
        >>> folder = os.path.join(tempfile.mkdtemp(), "store")
        >>> nmd.SparseStore.from_matrix(csr_array(np.eye(3)), folder)
        <nmd_lab.SparseStore>  3 x 3, 3 stored entries, float64
        """
        write_matrix(matrix, Path(path))
        return cls(path)

    @classmethod
    def from_table(
        cls,
        table: Any,
        path: PathLike,
        *,
        row: str = "user",
        column: str = "item",
        value: str = "rating",
        dtype: Any = np.float32,
        lines: int = CHUNK_LINES,
    ) -> Self:
        """Write a long table, which is read by chunks of lines and sorted on disk.

        Parameters
        ----------
        table : path-like, DataFrame, or sequence of these
            CSV files (also compressed), Parquet files (extra "parquet"), or tables.
        path : path-like
            Folder to make.
        row, column, value : str
            Columns of the table: labels of rows and columns, and values.
        dtype : float32 or float64, default float32
            Type of the values.
        lines : int, default 2000000
            Number of lines that are in memory at a time.

        Raises
        ------
        FileExistsError
            If the folder exists.
        KeyError, TypeError, ValueError
            If the table has not these columns, a value is no number, or a pair comes twice.
        ImportError
            If a file is Parquet and pyarrow is missing.

        Examples
        --------
        >>> import os, tempfile
        >>> import pandas as pd, nmd_lab as nmd
        >>> table = pd.DataFrame({"who": [1, 2], "what": ["p", "q"], "stars": [5, 3]})
        >>> folder = os.path.join(tempfile.mkdtemp(), "store")
        >>> nmd.SparseStore.from_table(table, folder, row="who", column="what", value="stars")
        <nmd_lab.SparseStore>  2 x 2, 2 stored entries, float32
        """
        write_table(table, Path(path), (row, column, value), np.dtype(dtype), lines)
        return cls(path)

    @classmethod
    def from_movielens(cls, file: PathLike, path: PathLike) -> Self:
        """Write the ratings of an edition of MovieLens.

        Parameters
        ----------
        file : path-like
            ``ratings.csv``, ``ratings.dat`` or ``u.data``.
        path : path-like
            Folder to make.

        Raises
        ------
        FileExistsError
            If the folder exists.

        Examples
        --------
        >>> import nmd_lab as nmd
        >>> store = nmd.SparseStore.from_movielens("ml-25m/ratings.csv", "ml")  # doctest: +SKIP
        """
        write_table(file, Path(path), ("user", "item", "rating"), np.dtype(np.float32), CHUNK_LINES)
        return cls(path)

    def verify(self) -> None:
        """Read all files, and raise ValueError if one is not as it was written.

        Examples
        --------
        >>> import os, tempfile
        >>> import numpy as np, nmd_lab as nmd
        >>> from scipy.sparse import csr_array
        >>> folder = os.path.join(tempfile.mkdtemp(), "store")
        >>> nmd.SparseStore.from_matrix(csr_array(np.eye(3)), folder).verify()
        """
        for name, digest in self._about["checksums"].items():
            with (self.path / name).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            if found != digest:
                raise ValueError(
                    f"path={str(self.path)!r} is damaged: its file {name!r} is not as it was "
                    "written, make the store again."
                )

    def observations(self, scratch: Scratch | None = None) -> SparseObservations:
        """Return the entries, whose arrays are read from the files when they are used.

        Parameters
        ----------
        scratch : Scratch, optional
            Folder for further arrays of this size; by default they are in memory.

        Examples
        --------
        >>> import os, tempfile
        >>> import numpy as np, nmd_lab as nmd
        >>> from scipy.sparse import csr_array
        >>> folder = os.path.join(tempfile.mkdtemp(), "store")
        >>> nmd.SparseStore.from_matrix(csr_array(np.eye(3)), folder).observations().values
        array([1., 1., 1.])
        """
        arrays = {name: self._mapped(name, dtype) for name, dtype in ARRAYS.items()}
        values = self._mapped("values", self.dtype)
        return SparseObservations(
            values, None, arrays["indptr"], arrays["indices"], self._labels(), scratch=scratch
        )

    def rows(self, rows: slice, *, absent_are_zeros: bool = False) -> SparseObservations:
        """Return a range of rows, without labels, read from the files when they are used."""
        indptr = self._mapped("indptr", ARRAYS["indptr"])[rows.start : rows.stop + 1]
        entries = slice(int(indptr[0]), int(indptr[-1]))
        return SparseObservations(
            self._mapped("values", self.dtype)[entries],
            None,
            indptr - indptr[0],
            self._mapped("indices", ARRAYS["indices"])[entries],
            Labels.plain((rows.stop - rows.start, self.shape[1])),
            absent_are_zeros,
        )

    def _labels(self) -> Labels:
        """Return the labels."""
        dims = tuple(self._about["dims"])
        coords = {}
        for dim, name in zip(dims, ("row_labels", "column_labels"), strict=True):
            if name in self._about["labels"]:
                coords[dim] = _read_labels(self.path / name, self._about["labels"][name])
        return Labels(dims, self.shape, dims[:1], xr.Dataset(coords=coords), self._about["name"])

    def _mapped(self, name: str, dtype: Any) -> NDArray[Any]:
        """Return an array of the store, which is read when it is used."""
        if not (self.path / name).stat().st_size:
            return np.empty(0, dtype)
        return np.asarray(np.memmap(self.path / name, dtype, "r"))

    def __repr__(self) -> str:
        m, n = self.shape
        return f"<nmd_lab.SparseStore>  {m} x {n}, {self.n_stored} stored entries, {self.dtype}"


def _read_labels(path: Path, kind: str) -> NDArray[Any]:
    """Return labels: text, one in each line of JSON, or numbers."""
    if kind == "text":
        return np.array(json.loads(path.read_text(encoding="utf-8")), dtype=object)
    return np.fromfile(path, np.dtype(kind))
