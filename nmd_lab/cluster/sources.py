"""Where the rows of a partition come from, so that they can be made again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nmd_lab.data.base import Observations
from nmd_lab.data.labels import Labels
from nmd_lab.data.row_blocks import dense_rows
from nmd_lab.data.sparse_observations import SparseObservations
from nmd_lab.data.store import SparseStore


class Source(NamedTuple):
    """What the rows of one partition are made from.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    load : callable
        Function that makes them on a worker.
    arguments : list
        Its arguments, some of which may be futures.
    """

    n_rows: int
    load: Callable[..., Observations]
    arguments: list[Any]


def load_given(observations: Observations) -> Observations:
    """Return rows that the client has sent."""
    return observations


def load_stored(path: Path, rows: slice, absent_are_zeros: bool) -> Observations:
    """Return rows of a store, which are read from its files."""
    return SparseStore(path).rows(rows, absent_are_zeros=absent_are_zeros)


def load_block(X: Any, observed: Any, weights: Any, dtype: DTypeLike) -> Observations:
    """Return rows that tasks of Dask have made: a block of an array, of mask and weights."""
    return dense_rows(np.asarray(X), observed, weights, dtype)


def load_pieces(
    pieces: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]],
    shape: tuple[int, int],
    dtype: DTypeLike,
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
    return SparseObservations(matrix.data, None, matrix.indptr, matrix.indices, Labels.plain(shape))
