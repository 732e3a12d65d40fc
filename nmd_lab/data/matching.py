"""Rows and columns of one matrix among those of another, by label or by position."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .labels import Labels

Axis = Literal["rows", "columns"]
AXES: tuple[Axis, Axis] = ("rows", "columns")


def match(own: Labels, other: Labels, axis: Axis) -> NDArray[np.intp] | None:
    """Return the position of each row (or column) of a matrix among those of another matrix.

    An axis with labels in both matrices is matched by label, so that `own` may have some of the
    rows only, in any order.  The default labels 0, 1, 2, ... of a table whose index has no name
    count as no labels.  Other axes are matched by position and must have equal sizes.
    """
    dims, other_dims = getattr(own, axis), getattr(other, axis)
    if len(dims) == 1 and len(other_dims) == 1:
        return _match_dimension(own, dims[0], other, other_dims[0])
    if set(dims) != set(other_dims):
        size = _size(own, dims)
        return np.arange(size) if size == _size(other, other_dims) else None
    along = {}
    for dim in dims:
        positions = _match_dimension(own, dim, other, dim)
        if positions is None:
            return None
        along[dim] = positions
    shape = [other.shape[other.dims.index(dim)] for dim in other_dims]
    grid = np.ix_(*(along[dim] for dim in other_dims))
    inside = np.ones([1] * len(shape), dtype=bool)
    for one in grid:
        inside = inside & (one >= 0)
    flat = np.ravel_multi_index(grid, shape, mode="clip")
    order = [other_dims.index(dim) for dim in dims]
    matched: NDArray[np.intp] = np.where(inside, flat, -1).transpose(order).ravel()
    return matched


def unknown_labels(own: Labels, other: Labels, axis: Axis) -> str:
    """Return the name of an axis, and the labels that `match` did not find, for a message."""
    dims = getattr(own, axis)
    for dim in dims:
        other_dim = dim if len(dims) > 1 else getattr(other, axis)[0]
        along = _match_dimension(own, dim, other, other_dim)
        if along is not None and np.any(along < 0):
            return f"{dim!r}, such as {first_few(_index(own, dim)[along < 0])}"
    return repr(", ".join(dims))


def _match_dimension(
    own: Labels, dim: str, other: Labels, other_dim: str
) -> NDArray[np.intp] | None:
    """Return the positions along one dimension; see `match`."""
    index, target = _index(own, dim), _index(other, other_dim)
    size = own.shape[own.dims.index(dim)]
    other_size = other.shape[other.dims.index(other_dim)]
    by_position = np.arange(size) if size == other_size else None
    if index is None or target is None or is_default(dim, index):
        return by_position
    if index.equals(target):
        return by_position
    for one, of in ((index, "X"), (target, "the fit")):
        if not one.is_unique:
            twice = plain_label(one[one.duplicated()][0])
            raise ValueError(
                f"{of} has the label {twice!r} twice along {dim!r}: make its labels unique, or "
                "give X without labels, in the order of the fit."
            )
    positions: NDArray[np.intp] = target.get_indexer(index)
    if np.any(positions < 0) and is_default(other_dim, target) and by_position is not None:
        return by_position
    return positions


def _index(labels: Labels, dim: str) -> Any:
    """Return the index of a dimension, None if it has no labels."""
    return labels.coords.indexes.get(dim)


def is_default(dim: str, index: Any) -> bool:
    """Return whether an index is what a table has whose rows or columns were given no labels."""
    if dim not in ("row", "column") or index.nlevels > 1 or index.dtype.kind not in "iu":
        return False
    return bool(np.array_equal(index, np.arange(len(index))))


def _size(labels: Labels, dims: tuple[str, ...]) -> int:
    """Return the number of entries along some dimensions."""
    return math.prod(labels.shape[labels.dims.index(dim)] for dim in dims)


def plain_label(label: Any) -> Any:
    """Return a label as a Python object, for a message."""
    return label.item() if isinstance(label, np.generic) else label


def first_few(labels: Iterable[Any], most: int = 5) -> str:
    """Return labels as a text: the first few, and how many there are beyond them."""
    unique = list(dict.fromkeys(map(plain_label, labels)))
    text = ", ".join(map(repr, unique[:most]))
    return text if len(unique) <= most else f"{text} and {len(unique) - most} more"
