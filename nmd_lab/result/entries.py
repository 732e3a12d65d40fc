"""Entries that a person names or that are observed in data, and a fit there.

One rule holds for everything that takes rows or columns, such as `predict` and `top`:

- An integer is a position, and all else is a label: text, a date, the tuple of a MultiIndex.
- Where labels are integers, an integer is a label, as for ``.loc`` and ``.sel``.
- The labels 0, 1, 2, ..., in this order, are positions, so that -1 is the last row or column.
- Where all labels are digits as text, an integer could be either, and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.checks import check_positions, check_word, nearest
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.labels import Labels
from nmd_lab.data.matching import AXES, Axis, MatchedData, first_few, like, match_data
from nmd_lab.data.sparse import is_sparse
from nmd_lab.data.typed_table import plain_label

Unknown = Literal["error", "offsets"]
"""Treatments of labels that a fit does not have, and of rows without entries."""


def positions_of(
    labels: Labels, axis: Axis, wanted: Any, unknown: str | None = None, name: str = ""
) -> NDArray[np.intp]:
    """Return the positions of rows or columns in the shape of `wanted`, -1 for unknown labels."""
    index, size, name = index_of(labels, axis), labels.matrix_shape[AXES.index(axis)], name or axis
    listed, shape = _listed(index, wanted)
    by_position = _are_integers(listed)
    if index is None and not by_position.all():
        raise TypeError(
            f"{name} holds {plain_label(listed[~by_position][0])!r}, and no labels of one "
            f"dimension are there for {axis}: give integer positions."
        )
    if index is not None and "integer" in index.inferred_type:
        if not np.array_equal(index, np.arange(size)):
            by_position[:] = False
        elif unknown == "offsets":
            by_position[by_position] = listed[by_position].astype(np.int64) < size
    elif index is not None and by_position.any() and _are_digits(index):
        raise _label_error(name, listed[by_position].tolist(), index)
    found = np.empty(listed.size, dtype=np.intp)
    found[by_position] = check_positions(name, listed[by_position].astype(np.int64), size)
    if not by_position.all():
        found[~by_position] = _labelled(index, name, listed[~by_position], unknown)
    return found.reshape(shape)


def check_unknown(unknown: str) -> None:
    """Raise ValueError if `unknown` is no such choice."""
    check_word("unknown", unknown, get_args(Unknown))


def index_of(labels: Labels, axis: Axis) -> Any:
    """Return the index of the rows or columns; None if they have no labels of one dimension."""
    dims = labels.rows if axis == "rows" else labels.columns
    return labels.coords.indexes.get(dims[0]) if len(dims) == 1 else None


def _listed(index: Any, wanted: Any) -> tuple[NDArray[Any], tuple[int, ...]]:
    """Return what is named as a flat array, and the shape of the result, () for a single name."""
    levels = 1 if index is None else index.nlevels
    if levels > 1 and isinstance(wanted, tuple) and _is_flat(wanted):
        return _listed(index, [wanted])[0], ()  # one tuple of several levels
    if isinstance(wanted, list | tuple) and (levels > 1 or _is_flat(wanted)):
        # NumPy would make one type of 1 and "1"
        return np.fromiter(wanted, dtype=object, count=len(wanted)), (len(wanted),)
    array = np.asarray(wanted)
    return array.ravel(), array.shape


def _is_flat(wanted: Sequence[Any]) -> bool:
    """Return whether a list or tuple holds no further ones."""
    return not any(np.ndim(one) for one in wanted)


def _are_integers(listed: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which of the names are integers; a boolean is none."""
    if listed.dtype.kind != "O":
        return np.full(listed.size, listed.dtype.kind in "iu" or listed.size == 0)
    whole = (isinstance(one, Integral) and not isinstance(one, bool) for one in listed)
    return np.fromiter(whole, dtype=bool, count=listed.size)


def _are_digits(index: Any) -> bool:
    """Return whether all labels are texts of digits, such as "7" or "007"."""
    return index.inferred_type == "string" and bool(index.str.isdecimal().all())


def _labelled(index: Any, name: str, wanted: NDArray[Any], unknown: str | None) -> NDArray[np.intp]:
    """Return the positions of labels, -1 for unknown ones if these may be."""
    listed = wanted.tolist() if wanted.dtype.kind == "O" else list(wanted)
    twice = set() if index.is_unique else set(index[index.duplicated()])
    for label in listed:
        if label in twice:
            remedy = "make them unique" if "integer" in index.inferred_type else "use positions"
            raise ValueError(
                f"{name} holds the label {plain_label(label)!r}, which X has more than once: "
                f"{remedy}."
            )
    found: NDArray[np.intp] = index.get_indexer_for(wanted if wanted.dtype.kind in "iu" else listed)
    if unknown != "offsets" and np.any(found < 0):
        missing = [label for label, place in zip(listed, found, strict=True) if place < 0]
        raise _label_error(name, missing, index, "" if unknown is None else "unknown='offsets'")
    return found


def _label_error(name: str, labels: Sequence[Any], index: Any, remedy: str = "") -> KeyError:
    """Return the error for labels that X does not have; a single one gets the nearest label."""
    label = plain_label(labels[0])
    named = first_few(labels)
    hint = ""
    if named == repr(label):
        same = [one for one in index.tolist() if str(one) == str(label)]
        if not same and isinstance(label, Real) and _are_digits(index):
            same = [one for one in index.tolist() if int(one) == label]
        if same:
            hint = f"did you mean {same[0]!r}?"
        elif isinstance(label, str):
            hint = nearest(label, index.tolist()) or ""
        elif isinstance(label, Real) and index.dtype.kind in "iuf":
            hint = f"the labels are numbers from {index.min()} to {index.max()}."
    if hint and remedy:
        hint = f"{hint[:-1]} (or give {remedy}){hint[-1]}"
    elif not hint:
        hint = f"give {remedy}, or labels of the fit." if remedy else "use labels of the fit."
    return KeyError(f"{name} has no label {named}: {hint}")


class Entries(NamedTuple):
    """Positions of entries in X, and the test data that they are from.

    Attributes
    ----------
    i, j : ndarray of int (n_entries,)
        Positions of rows and columns; -1 for what X does not have.
    test : object or None
        Test data.
    data : MatchedData or None
        Observed entries of the test data, whose values are `values`.
    """

    i: NDArray[np.intp]
    j: NDArray[np.intp]
    test: Any = None
    data: Any = None

    @property
    def values(self) -> NDArray[np.float64]:
        """Values of the test data."""
        return np.asarray(self.data.observations.entries().values, dtype=np.float64)

    def back(self, values: NDArray[Any]) -> Any:
        """Return one number for each entry, in the type of the test data if there are some."""
        return values if self.data is None else like(self.test, self.data.observations, values)


def entries_at(i: Any, j: Any) -> Entries:
    """Return the entries at positions, which broadcast; methods take them in the place of rows."""
    i, j = np.broadcast_arrays(np.atleast_1d(i), np.atleast_1d(j))
    return Entries(i.ravel(), j.ravel())


def entries_of(
    labels: Labels, rows: Any, columns: Any, unknown: Unknown | None = None, owner: str = "the fit"
) -> Entries:
    """Return the entries of rows and columns by position or label, or those of test data."""
    if isinstance(rows, Entries):
        return rows
    if unknown is not None:
        check_unknown(unknown)
    if columns is not None:
        return entries_at(
            positions_of(labels, "rows", rows, unknown),
            positions_of(labels, "columns", columns, unknown),
        )
    if not is_sparse(rows) and np.ndim(rows) < 2:
        raise TypeError(
            "columns=None goes with test data only: give columns, or data with rows and columns."
        )
    return entries_in(match_data(labels, rows, owner=owner, unknown=unknown), rows)


def entries_in(data: MatchedData, test: Any = None) -> Entries:
    """Return the observed entries of test data."""
    i, j, _ = data.observations.entries()
    return Entries(data.rows[i], data.columns[j], test, data)


def compared_entries(
    fit: Any, X: Any, observed: Any = None, weights: Any = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return observed values of X, the model there, and their weights, as float64."""
    data = match_data(fit._labels, X, observed=observed, weights=weights)
    values, own_weights = data.observations.observed()
    i, j, *_ = entries_in(data)
    model = fit._fitted.at(i, j)
    return values, model.astype(np.float64), own_weights


def refuse_sparse(X: Any) -> None:
    """Raise ValueError for data whose missing cells cannot be filled."""
    if is_sparse(X):
        raise ValueError(
            "X is sparse, and a filled X would be dense: take predict() of a fit for some entries, "
            "or reconstruct() for all."
        )
