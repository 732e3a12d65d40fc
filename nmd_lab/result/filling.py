"""Probabilities of classes, and data with their holes filled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.labels import Labels
from nmd_lab.data.matching import MatchedData, match_data
from nmd_lab.data.sparse import is_sparse
from nmd_lab.data.typed_table import TypedColumn, table_of

from .draws import ALL, NUMBERS, FittedDraws
from .entries import positions_of
from .mixture import Array
from .predictive import level_masses, level_shares

TINY = np.finfo(np.float64).tiny
"""What a category has at least, so that the probabilities of all can be divided by their sum."""


def typed_column(labels: Labels, column: Any) -> tuple[TypedColumn | None, NDArray[np.intp]]:
    """Return the typed column of a label, and its columns of the matrix."""
    if labels.table is not None:
        for typed, positions in labels.table.blocks():
            if typed.name == column and typed.is_class:
                return typed, positions
    return None, positions_of(labels, "columns", [column], name="column")


def class_table(labels: Labels, p: FloatArray, classes: list[Any], at: NDArray[np.intp]) -> Any:
    """Return the probabilities of classes (rows, n_classes) as a DataFrame with labels."""
    import pandas as pd

    rows = labels.flat(labels.rows)
    index = labels.coords.indexes.get(labels.rows[0]) if rows.ndim == 1 else None
    index = pd.Index(rows) if index is None or len(index) != len(rows) else index
    return pd.DataFrame(p, index=index[at], columns=classes)


def filled_frame(
    frame: Any, labels: Labels, missing: Callable[[TypedColumn, NDArray[np.intp]], FloatArray]
) -> Any:
    """Return a DataFrame with its holes filled by a function of a column.

    It returns a value for each row: a number, or the position of a level or category.
    """
    table = labels.table or table_of(frame, numbers_too=True)
    assert table is not None
    filled = frame.copy()
    for k, (column, at) in enumerate(table.blocks()):
        series = frame.iloc[:, k]
        if series.isna().any():
            filled.isetitem(k, column.filled(series, missing(column, at)))
    return filled


def data_to_fill(labels: Labels, X: Any, owner: str = "the fit") -> MatchedData:
    """Return dense data with the positions of their rows and columns in a result."""
    refuse_sparse(X)
    return match_data(labels, X, owner=owner)


def refuse_sparse(X: Any) -> None:
    """Raise ValueError for data whose holes cannot be filled."""
    if is_sparse(X):
        raise ValueError("X is sparse, and with its holes filled would not be: give dense data.")


def mean_shares(
    fitted: FittedDraws, rows: NDArray[np.integer], positions: NDArray[np.integer]
) -> Array:
    """Return the probability of each class over all draws (rows, classes)."""
    cuts = fitted.noise_of(int(positions[0])).cuts
    assert cuts is not None
    step = max(NUMBERS // (fitted.n_draws * max(cuts.shape[1] + 1, positions.size)), 1)
    blocks = (rows[start : start + step] for start in range(0, max(rows.size, 1), step))
    return np.concatenate([_mean_shares(fitted, b, positions, cuts) for b in blocks])


def _mean_shares(
    fitted: FittedDraws, rows: NDArray[np.integer], positions: NDArray[np.integer], cuts: Array
) -> Array:
    """Return the probability of each class over all draws, of a block of rows."""
    if _has_indicators(fitted, int(positions[0])):
        indicated: Array = class_shares(fitted, rows, positions).mean(axis=0)
        return indicated
    return level_shares(cuts, fitted.linear_at(rows, np.repeat(positions, rows.size)))


def class_shares(
    fitted: FittedDraws,
    rows: NDArray[np.integer],
    positions: NDArray[np.integer],
    draws: slice = ALL,
) -> Array:
    """Return the probability of each class in each draw (draws, rows, classes)."""
    i, j = np.repeat(rows, positions.size), np.tile(positions, rows.size)
    v = fitted.linear_at(i, j, draws)
    v = v.reshape(len(v), rows.size, positions.size)
    cuts = [fitted.noise_of(int(position)).cuts for position in positions]
    if not _has_indicators(fitted, int(positions[0])):
        assert cuts[0] is not None
        return np.moveaxis(level_masses(cuts[0][draws], v[:, :, 0]), 0, -1)
    v -= np.concatenate([each[draws] for each in cuts if each is not None], axis=1)[:, None]
    shares: Array = ndtr(v) + TINY
    shares /= shares.sum(axis=-1, keepdims=True)
    return shares


def _has_indicators(fitted: FittedDraws, position: int) -> bool:
    """Return whether a column of X is one of the indicators of categories."""
    table = fitted.labels.table
    return table is not None and table.of_matrix[position].has_indicators


def draw_classes(
    fitted: FittedDraws,
    rows: NDArray[np.integer],
    positions: NDArray[np.integer],
    draw: int,
    rng: np.random.Generator,
) -> Array:
    """Return the position of a class for each row, from one draw."""
    shares = class_shares(fitted, rows, positions, slice(draw, draw + 1))[0]
    below = np.cumsum(shares, axis=1)[:, :-1]
    chosen: Array = np.sum(below < rng.random((rows.size, 1)), axis=1).astype(np.float64)
    return chosen
