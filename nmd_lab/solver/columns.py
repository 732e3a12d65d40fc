"""The model of a mixed table: a nonlinearity and a loss for each column, or for each entry.

Which nonlinearity a column has follows from its loss, unless a dict says otherwise.  A loss with a
link of its own keeps it (`Loss.link`): log-odds and ordinal scores have the identity, counts the
exponential.  Every other loss takes the nonlinearity that is asked for all columns.

`nmd_lab.solver.column_units` chooses the units of the columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._checks import is_auto
from nmd_lab.data.base import FloatArray, Observations
from nmd_lab.data.labels import Labels
from nmd_lab.data.matching import plain_label
from nmd_lab.model.binary import Logistic
from nmd_lab.model.kind import Kind, make_kind
from nmd_lab.model.loss import Loss
from nmd_lab.model.losses import as_loss
from nmd_lab.model.mixed import Mixed
from nmd_lab.model.model import Model
from nmd_lab.model.nonlinearities import Nonlinearity, as_nonlinearity
from nmd_lab.model.ordinal import Ordinal

from .bounds import bounded
from .column_units import with_units

NonlinearityArgument = str | Nonlinearity | Mapping[Any, Any] | Sequence[Any]
"""A nonlinearity for all entries, or several."""

LossArgument = str | Loss | Mapping[Any, Any] | Sequence[Any]
"""A loss for all entries, or several."""

NUMBER = "frobenius"
"""Loss of a column of numbers of which nothing else is said."""


def is_mixed(each: Any) -> bool:
    """Return whether an argument gives nonlinearities or losses of columns or entries."""
    return isinstance(each, Mapping) or (isinstance(each, Sequence) and not isinstance(each, str))


class _Listed(NamedTuple):
    """Nonlinearities or losses of an argument.

    Attributes
    ----------
    parts : list
        Different parts; None stands for the default of a column.
    which : ndarray of int (n,) or (m, n)
        Position of each column's, or entry's, own among them.
    """

    parts: list[Any]
    which: NDArray[np.intp]


def mixed_model(nonlinearity: Any, loss: Any, observations: Observations) -> Model:
    """Return the model of several kinds that arguments describe, with units from the data."""
    labels, shape = observations.labels, observations.shape
    losses = _listed("loss", loss, labels, shape)
    functions = _listed("nonlinearity", nonlinearity, labels, shape)
    which: NDArray[np.intp]
    if losses.which.ndim == 1 and functions.which.ndim == 1:
        names, units = _names_and_units(labels)
        each = np.stack([units, losses.which, functions.which], axis=-1)
        _, first, which = np.unique(each, axis=0, return_index=True, return_inverse=True)
        which, kinds, alike = which.reshape(shape[1]), _kinds(labels), not is_mixed(loss)
        pairs = [
            (functions.parts[f], _loss_of(losses.parts[d], kinds[j], one_for_all=alike))
            for j, (_, d, f) in zip(first, each[first].tolist(), strict=True)
        ]
        groups = [f"column {plain_label(names[j])!r}" for j in first]
    else:
        both = np.stack(np.broadcast_arrays(losses.which, functions.which), axis=-1)
        positions, inverse = np.unique(both.reshape(-1, 2), axis=0, return_inverse=True)
        which = inverse.reshape(both.shape[:2])
        pairs = [(functions.parts[f], _loss_of(losses.parts[d])) for d, f in positions.tolist()]
        groups = [f"group {k}" for k in range(len(pairs))]
    explicit = is_mixed(nonlinearity)
    found = [
        _kind(f, as_loss(d), explicit, *entries, observations, group)
        for (f, d), group, entries in zip(
            pairs, groups, _entries_of(observations, which, len(pairs)), strict=True
        )
    ]
    model = Model(tuple(found), which)
    _check_limits(observations)
    return model


def _names_and_units(labels: Labels) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the name of each column for a message, and the first column with the same unit."""
    names, table = list(labels.flat(labels.columns)), labels.table
    if table is None:
        return names, np.arange(len(names), dtype=np.intp)
    either = zip(names, table.of_matrix, table.of_values, strict=True)
    return [column.name if shared else name for name, column, shared in either], table.first_of_unit


def _check_limits(observations: Observations) -> None:
    """Raise ValueError for a limit of a category, which has no order."""
    table = observations.labels.table
    if observations.limits is None or table is None:
        return
    sparse = observations.as_sparse()
    assert sparse.limits is not None
    rows, columns, _ = sparse.entries()
    unordered = np.array([column.kind == "categories" for column in table.of_matrix])
    wrong = (sparse.limits.codes != 0) & unordered[columns]
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(
            f"at_most or at_least is True at row {rows[at]} of "
            f"{table.of_matrix[columns[at]].name!r}, whose categories have no order: give limits "
            "of numbers, counts, booleans and ordered levels."
        )


def _entries_of(
    observations: Observations, which: NDArray[np.intp], count: int
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield the observed values and weights of each kind; limits count as values."""
    rows, columns, x = observations.entries()
    x, (_, weights) = x.astype(np.float64), observations.observed()
    at = which[columns] if which.ndim == 1 else which[rows, columns]
    order = np.argsort(at, kind="stable")
    ends = np.searchsorted(at[order], np.arange(count + 1))
    for k in range(count):
        chosen = order[ends[k] : ends[k + 1]]
        yield x[chosen], weights[chosen]


def _kinds(labels: Labels) -> list[Loss | None]:
    """Return the loss of each column that follows from its type; None for numbers."""
    if labels.table is None:
        return [None] * labels.matrix_shape[1]
    kinds: list[Loss | None] = []
    for column in labels.table.of_matrix:
        if column.kind == "ordered":
            kinds.append(Ordinal(column.levels))
        else:
            kinds.append(None if column.kind in ("number", "values") else Logistic(0))
    return kinds


def _loss_of(loss: Any, kind: Loss | None = None, one_for_all: bool = False) -> Any:
    """Return the loss of a column from the argument and the kind of the column, if it has one.

    One loss for all columns is meant for numbers: levels and categories keep their own.
    """
    if kind is not None and one_for_all:
        return kind
    if loss is None or is_auto(loss):
        return NUMBER if kind is None else kind
    return loss


def _listed(name: str, argument: Any, labels: Labels, shape: tuple[int, int]) -> _Listed:
    """Return the different parts of an argument; None stands for the default."""
    n = shape[1]
    if isinstance(argument, Mapping):
        return _by_label(name, argument, labels)
    if isinstance(argument, Mixed):
        return _Listed(list(argument.different), argument.which)
    if not is_mixed(argument):
        return _Listed([argument], np.zeros(n, dtype=np.intp))
    if len(argument) == 2 and isinstance(argument[1], np.ndarray):
        parts, which = list(argument[0]), argument[1]
        if which.shape not in ((n,), shape) or which.dtype.kind not in "iu":
            raise ValueError(
                f"{name} has positions of shape {which.shape} and type {which.dtype}: give whole "
                f"numbers of shape {(n,)} or {shape}."
            )
        if which.size and not 0 <= which.min() <= which.max() < len(parts):
            raise ValueError(
                f"{name} has the position {which.max() if which.min() >= 0 else which.min()} in a "
                f"list of {len(parts)}: give positions from 0 to {len(parts) - 1}."
            )
        return _Listed(parts, which.astype(np.intp))
    if len(argument) != n:
        raise ValueError(f"{name} has {len(argument)} parts: give one for each of the {n} columns.")
    return _Listed(list(argument), np.arange(n))


def _by_label(name: str, argument: Mapping[Any, Any], labels: Labels) -> _Listed:
    """Return the parts of a dict by column label; that of a block goes to all its indicators."""
    names = labels.flat(labels.columns).tolist()
    table = labels.table
    sources = names if table is None else [column.name for column in table.of_matrix]
    unknown = [label for label in argument if label not in names and label not in sources]
    if unknown:
        raise ValueError(
            f"{name} has the column {plain_label(unknown[0])!r}, which X does not have: give "
            "labels of X."
        )
    position = {label: k for k, label in enumerate(argument, start=1)}
    pairs = zip(names, sources, strict=True)
    which = [position.get(label, position.get(source, 0)) for label, source in pairs]
    return _Listed([None, *argument.values()], np.array(which, dtype=np.intp))


def _kind(
    f: Any,
    loss: Loss,
    explicit: bool,
    x: FloatArray,
    weights: FloatArray,
    observations: Observations,
    where: str,
) -> Kind:
    """Return the kind of a column, or of a group of entries, with its units."""
    if f is None or is_auto(f) or (loss.link and not explicit):
        f = loss.link or "identity"
    if not x.size:
        return make_kind(as_nonlinearity(f), loss)
    try:
        ends = float(x.min()), float(x.max())
        function: Nonlinearity = bounded(f, ends, observations.labels.valid_range)
        loss.check_data(*ends)
        loss = loss.for_data(x, weights)
        function = function.for_data(loss.target(x))
        kind = make_kind(function, loss)
    except ValueError as error:
        raise ValueError(f"In {where}, {error}") from error
    return with_units(kind, x, weights)
