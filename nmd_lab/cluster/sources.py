"""Where the rows of a partition come from, so that they can be made again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nmd_lab.data.labels import Labels
from nmd_lab.data.observations import Observations
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.data.split import dense_rows


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
