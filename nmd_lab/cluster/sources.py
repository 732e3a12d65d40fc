"""Where the rows of a part come from, so that they can be made again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nmd_lab._files import Scratch
from nmd_lab.data.base import Observations
from nmd_lab.data.labels import Labels
from nmd_lab.data.row_blocks import dense_rows, in_files, rows_of
from nmd_lab.data.sparse_observations import SparseObservations
from nmd_lab.data.store import SparseStore

from .tasks import Tasks


class Source(Protocol):
    """What the rows of one part are made from."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def n_bytes(self) -> int:
        """Size of the stored values."""

    def on(self, tasks: Tasks, worker: str) -> list[Any]:
        """Return what the rows are made from on a worker, such as futures."""


@dataclass(frozen=True)
class GivenRows:
    """Rows that the client has, and sends."""

    observations: Observations
    rows: slice

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.rows.stop - self.rows.start)

    @property
    def n_bytes(self) -> int:
        """Size of the stored values."""
        of_row = self.observations.n_stored / self.observations.shape[0]
        return int(of_row * self.n_rows * self.observations.dtype.itemsize)

    def on(self, tasks: Tasks, worker: str) -> list[Any]:
        """Send the rows to the worker."""
        rows = rows_of(self.observations, self.rows)
        return [tasks.put(rows, worker)]


def load_given(observations: Observations, scratch: Scratch | None = None) -> Observations:
    """Return rows that the client has sent."""
    return observations if scratch is None else in_files(observations, scratch)


@dataclass(frozen=True)
class StoredRows:
    """Rows of a `SparseStore` whose folder the workers can read."""

    path: Path
    rows: slice
    n_stored: int
    absent_are_zeros: bool

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.rows.stop - self.rows.start)

    @property
    def n_bytes(self) -> int:
        """Size of values and positions."""
        return 8 * self.n_stored

    def on(self, tasks: Tasks, worker: str) -> list[Any]:
        """Return what the worker reads."""
        return [self.path, self.rows, self.absent_are_zeros]


def load_stored(
    path: Path, rows: slice, absent_are_zeros: bool, scratch: Scratch | None = None
) -> Observations:
    """Return rows of a store, which are read from its files."""
    own = SparseStore(path).rows(rows, absent_are_zeros=absent_are_zeros)
    return own if scratch is None else in_files(own, scratch)


@dataclass(frozen=True)
class BlockRows:
    """Rows that tasks of Dask make: blocks of a Dask array, with those of mask and weights."""

    n_rows: int
    n_bytes: int
    blocks: tuple[Any, Any, Any]
    dtype: Any

    def on(self, tasks: Tasks, worker: str) -> list[Any]:
        """Begin to make the rows on the worker."""
        where = {"workers": [worker], "allow_other_workers": True}
        given = [b if b is None else tasks.client.compute(b, **where) for b in self.blocks]
        return [*given, self.dtype]


def load_block(
    X: Any, observed: Any, weights: Any, dtype: DTypeLike, scratch: Scratch | None = None
) -> Observations:
    """Return rows that tasks of Dask have made, arrays or SciPy matrices."""
    return dense_rows(np.asarray(X), observed, weights, dtype, scratch)


@dataclass(frozen=True)
class TableRows:
    """Rows of a long table that tasks of Dask have brought together."""

    n_rows: int
    n_columns: int
    n_stored: int
    pieces: list[Any]
    dtype: Any

    @property
    def n_bytes(self) -> int:
        """Size of values and positions."""
        return 12 * self.n_stored

    def on(self, tasks: Tasks, worker: str) -> list[Any]:
        """Begin to make the pieces on the worker."""
        where = {"workers": [worker], "allow_other_workers": True}
        pieces = [tasks.client.compute(piece, **where) for piece in self.pieces]
        return [pieces, (self.n_rows, self.n_columns), self.dtype]


def load_pieces(
    pieces: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]],
    shape: tuple[int, int],
    dtype: DTypeLike,
    scratch: Scratch | None = None,
) -> Observations:
    """Return rows from their entries in any order."""
    from scipy.sparse import csr_array

    rows, columns, values = (np.concatenate(each) for each in zip(*pieces, strict=True))
    order = np.lexsort((columns, rows))
    rows, columns, values = rows[order], columns[order], values[order].astype(dtype)
    twice = (np.diff(rows) == 0) & (np.diff(columns) == 0)
    if twice.any():
        raise ValueError("X has an entry twice in the table: keep one of each row and column.")
    matrix = csr_array((values, (rows, columns)), shape=shape)
    found = SparseObservations(
        matrix.data, None, matrix.indptr, matrix.indices, Labels.plain(shape)
    )
    return found if scratch is None else in_files(found, scratch)
