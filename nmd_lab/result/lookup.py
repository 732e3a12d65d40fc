"""Positions of row and column labels."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from nmd_lab._checks import check_word, nearest
from nmd_lab.data.labels import Labels
from nmd_lab.data.matching import Axis, first_few, plain_label

Unknown = Literal["error", "offsets"]
"""What may be done with labels that a fit does not know, and with rows without entries."""


def positions_of(
    labels: Labels, axis: Axis, wanted: Any, unknown: str | None = None
) -> NDArray[np.intp]:
    """Return the positions of row or column labels."""
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
        raise _label_error(axis, missing, index, remedy)
    return found.reshape(shape)


def check_unknown(unknown: str) -> None:
    """Raise ValueError if `unknown` is no such choice."""
    check_word("unknown", unknown, get_args(Unknown))


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


def _label_error(name: str, labels: Sequence[Any], known: Any, remedy: str = "") -> KeyError:
    """Return the error for labels that X does not have; a single one gets the nearest label."""
    label = plain_label(labels[0])
    named = first_few(labels)
    hint = ""
    if named == repr(label):
        same = [one for one in known.tolist() if str(one) == str(label)]
        if same:
            hint = f"did you mean {same[0]!r}?"
        elif isinstance(label, str):
            hint = nearest(label, known.tolist()) or ""
        elif isinstance(label, Real) and known.dtype.kind in "iuf":
            hint = f"the labels are numbers from {known.min()} to {known.max()}."
    if hint and remedy:
        hint = f"{hint[:-1]} (or give {remedy}){hint[-1]}"
    elif not hint:
        hint = f"give {remedy}, or labels of the fit." if remedy else "use labels of the fit."
    return KeyError(f"{name} has no label {named}: {hint}")


def _index(labels: Labels, axis: Axis) -> Any:
    """Return the index of the rows or columns; raise ValueError if they have none."""
    if not have_labels(labels, axis):
        raise ValueError(f"{axis} have no labels of one dimension: use positions, predict().")
    dims = labels.rows if axis == "rows" else labels.columns
    return labels.coords.indexes[dims[0]]
