"""Positions of row and column labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._checks import label_error
from nmd_lab.data.labels import Labels
from nmd_lab.data.matching import Axis, plain_label


def positions_of(
    labels: Labels, axis: Axis, wanted: Any, unknown: str | None = None
) -> NDArray[np.intp]:
    """Return the positions of row or column labels.

    Parameters
    ----------
    labels : Labels
        Labels of the fit.
    axis : {"rows", "columns"}
        Axis of X that has the labels.
    wanted : array_like
        Labels, or a single one (`is_one_label`).
    unknown : {"error", "offsets"} or None
        "offsets": an unknown label gets the position -1.  None: there is no such choice.

    Returns
    -------
    ndarray of int
        Positions in the shape of `wanted`, (1,) for a single label.

    Raises
    ------
    KeyError
        If X had no such labels; the message names them.
    ValueError
        If the rows or columns have no labels, labels of more than one dimension, or the label more
        than once.
    """
    index = _index(labels, axis)
    listed, shape = _listed(index, wanted)
    if not index.is_unique:
        twice = set(index[index.duplicated()])
        for label in listed:
            if label in twice:
                raise ValueError(
                    f"{axis} have the label {plain_label(label)!r} more than once: use positions."
                )
        places = [index.get_loc(label) if label in index else -1 for label in listed]
        found: NDArray[np.intp] = np.array(places, dtype=np.intp)
    else:
        found = index.get_indexer(listed) if listed else np.empty(0, np.intp)
    if unknown != "offsets" and np.any(found < 0):
        missing = [label for label, place in zip(listed, found, strict=True) if place < 0]
        remedy = "" if unknown is None else "unknown='offsets'"
        raise label_error(axis, missing, index, remedy)
    return found.reshape(shape)


def have_labels(labels: Labels, axis: Axis) -> bool:
    """Return whether the rows or columns have labels of one dimension."""
    dims = labels.rows if axis == "rows" else labels.columns
    return len(dims) == 1 and dims[0] in labels.coords.indexes


def is_one_label(labels: Labels, axis: Axis, wanted: Any) -> bool:
    """Return whether `wanted` is a single label: not an array, or one tuple of several levels."""
    if isinstance(wanted, tuple):
        return _index(labels, axis).nlevels > 1 and not isinstance(wanted[0], tuple)
    return np.ndim(wanted) == 0


def _listed(index: Any, wanted: Any) -> tuple[list[Any], tuple[int, ...]]:
    """Return labels as a list, and the shape of the result."""
    if index.nlevels > 1:
        tuples = [wanted] if isinstance(wanted, tuple) else list(wanted)
        return tuples, (len(tuples),)
    if isinstance(wanted, list | tuple) and not any(np.ndim(one) for one in wanted):
        return list(wanted), (len(wanted),)  # NumPy would make one type of 1 and "1"
    array = np.asarray(wanted)
    return list(array.ravel()), array.shape or (1,)


def _index(labels: Labels, axis: Axis) -> Any:
    """Return the index of the rows or columns; raise ValueError if they have none."""
    if not have_labels(labels, axis):
        raise ValueError(f"{axis} have no labels of one dimension: use positions, predict().")
    dims = labels.rows if axis == "rows" else labels.columns
    return labels.coords.indexes[dims[0]]
