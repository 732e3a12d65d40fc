"""The model of a mixed table: a nonlinearity and a loss for each column, or for each entry.

Which nonlinearity a column has follows from its loss, unless a dict selects another.  A loss with a
link of its own keeps it (`Loss.link`): log-odds and ordinal scores have the identity, counts the
exponential.  Every other loss takes the nonlinearity that is asked for all columns.

Each column has units of its own, so that none drowns another.

**Centre.**  The best constant y of a column is the value of lowest loss among those that f takes.
Its centre is the T with f(T) = y, so that WH = 0 stands for the constant.

**Weight.**  A loss that measures a distance, such as the Frobenius loss, has no natural unit.  It
is divided by twice its mean at the best constant.  For the Frobenius loss the column then has
variance one.  Every other loss is minus the logarithm of a likelihood, whose unit is that of noise.
It has the weight `NOISE`, as if this were the noise in a variance of 1 of the numbers: with
more, classes drown numbers, of which most is usually explained.  For a divergence whose mean at the
constant is large, as that of large counts may be, the smaller of the two weights is taken.

**Size.**  The unit of WH is such that the mean of the loss, weighted if it measures a distance, has
the second derivative one at the centre, so that a ridge restricts all columns alike.  For the
Frobenius loss this is the standard deviation.  A loss with a kink has the standard deviation, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from nmd_lab._runtime.checks import check_size, is_auto
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.labels import Labels
from nmd_lab.data.observations import Observations
from nmd_lab.data.typed_table import plain_label
from nmd_lab.model.binary import Logistic
from nmd_lab.model.kind import Kind, make_kind
from nmd_lab.model.losses import Loss, as_loss
from nmd_lab.model.mixed import Mixed, groups
from nmd_lab.model.model import Model
from nmd_lab.model.nonlinearities import Nonlinearity, as_nonlinearity
from nmd_lab.model.ordinal import Ordinal

from .bounds import bounded

NonlinearityArgument = str | Nonlinearity | Mapping[Any, Any] | Sequence[Any]
"""A nonlinearity for all entries, or several."""

LossArgument = str | Loss | Mapping[Any, Any] | Sequence[Any]
"""A loss for all entries, or several."""

NUMBER = "frobenius"
"""Default loss of a column of numbers."""


def is_mixed(each: Any) -> bool:
    """Return whether an argument gives nonlinearities or losses of columns or entries."""
    return isinstance(each, Mapping) or (isinstance(each, Sequence) and not isinstance(each, str))


def is_by_column(nonlinearity: Any, loss: Any, labels: Labels) -> bool:
    """Return whether arguments or types give columns nonlinearities and losses of their own."""
    return is_mixed(nonlinearity) or is_mixed(loss) or labels.table is not None


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
    """Return the model of several kinds that arguments describe, with units from the data.

    Limits count as values.
    """
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
        places = [f"column {plain_label(names[j])!r}" for j in first]
    else:
        both = np.stack(np.broadcast_arrays(losses.which, functions.which), axis=-1)
        positions, inverse = np.unique(both.reshape(-1, 2), axis=0, return_inverse=True)
        which = inverse.reshape(both.shape[:2])
        pairs = [(functions.parts[f], _loss_of(losses.parts[d])) for d, f in positions.tolist()]
        places = [f"group {k}" for k in range(len(pairs))]
    explicit, documented = is_mixed(nonlinearity), observations.labels.valid_range
    rows, columns, x = observations.entries()
    order, ends = groups(which[columns] if which.ndim == 1 else which[rows, columns], len(pairs))
    x, weights = x.astype(np.float64), observations.observed()[1]
    found: list[Kind] = []
    for k, ((f, d), where) in enumerate(zip(pairs, places, strict=True)):
        at = order[ends[k] : ends[k + 1]]
        found.append(_kind(f, as_loss(d), explicit, x[at], weights[at], documented, where))
    if observations.limits is not None and labels.table is not None:
        _check_limits(observations, labels.table.of_matrix)
    return Model(tuple(found), which)


def _names_and_units(labels: Labels) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the name of each column for a message, and the first column with the same unit."""
    names, table = list(labels.flat(labels.columns)), labels.table
    if table is None:
        return names, np.arange(len(names), dtype=np.intp)
    either = zip(names, table.of_matrix, table.of_values, strict=True)
    return [column.name if shared else name for name, column, shared in either], table.first_of_unit


def _check_limits(observations: Observations, of_matrix: Sequence[Any]) -> None:
    """Raise ValueError for a limit of a category, which has no order."""
    sparse = observations.as_sparse()
    assert sparse.limits is not None
    rows, columns, _ = sparse.entries()
    unordered = np.array([column.kind == "categories" for column in of_matrix])
    wrong = (sparse.limits.codes != 0) & unordered[columns]
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(
            f"at_most or at_least is True at row {rows[at]} of "
            f"{of_matrix[columns[at]].name!r}, whose categories have no order: give limits "
            "of numbers, counts, booleans and ordered levels."
        )


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
    documented: tuple[float, float] | None,
    where: str,
) -> Kind:
    """Return the kind of a column, or of a group of entries, with its units."""
    if f is None or is_auto(f) or (loss.link and not explicit):
        f = loss.link or "identity"
    if not x.size:
        return make_kind(as_nonlinearity(f), loss)
    try:
        ends = float(x.min()), float(x.max())
        check_size("X", max(map(abs, ends)), x.dtype)
        function: Nonlinearity = bounded(f, ends, documented)
        loss.check_data(*ends)
        loss = loss.for_data(x, weights)
        function = function.for_data(loss.target(x))
        kind = make_kind(function, loss)
    except ValueError as error:
        raise ValueError(f"In {where}, {error}") from error
    return with_units(kind, x, weights)


REACH = 5.0  # standard deviations of the starting T in which the best constant is looked for
GRID = 17  # constants that are compared first
PRECISION = 1e-8  # error of the best constant, as a fraction of this distance
STEP = 1e-2  # distance for the second derivative, in standard deviations of the starting T
LARGEST = 3.0  # size of a column whose T has a unit of its own (log-odds, logarithms), at most
NULL = 0.5  # mean loss at the best constant, to which a loss without a unit is brought
NOISE = 0.3  # weight of minus the logarithm of a likelihood; fraction of noise in the variance


def with_units(kind: Kind, x: FloatArray, weights: FloatArray) -> Kind:
    """Return the kind of a column with its units."""
    f, loss = kind.nonlinearity, kind.loss
    T = np.asarray(kind.pseudo_inverse(x), dtype=np.float64)
    mean = float(np.average(T, weights=weights))
    spread = math.sqrt(float(np.average(np.square(T - mean), weights=weights)))
    values, position = np.unique(x, return_inverse=True)
    shares = np.bincount(position, weights)

    def cost(t: float) -> float:
        value = float(np.average(loss(values, f(np.full(values.size, t))), weights=shares))
        return value if math.isfinite(value) else math.inf

    if loss.squares and f.form == "monotone":  # T has the units of X
        return kind._replace(centre=mean, size=spread or 1.0, weight=_weight(loss, cost(mean)))
    if f.even:  # the sign of T is not known: the centre has to be 0
        size = math.sqrt(float(np.average(np.square(T), weights=weights))) or 1.0
        return kind._replace(centre=0.0, size=size, weight=_weight(loss, cost(mean)))
    plain = loss.squares and f.linear
    centre = mean if plain else _best_constant(cost, mean, spread)
    median = float(np.median(T))
    if cost(median) <= (1 + PRECISION) * cost(centre):
        centre = median  # many constants may be best for absolute errors
    weight = _weight(loss, cost(centre))
    size = _size(loss, cost, centre, spread, weight)
    return kind._replace(centre=centre, size=size, weight=weight)


def measures_distance(loss: Loss) -> bool:
    """Return whether a loss compares x and y in the units of X, and is no likelihood."""
    return loss.smallest_at_x and not loss.link


def _weight(loss: Loss, null: float) -> float:
    """Return the factor of a loss, given its mean at the best constant."""
    distance = measures_distance(loss)
    largest = 1.0 if distance else NOISE
    if not 0 < null < math.inf:
        return largest
    if distance:
        return NULL / null
    return largest if loss.degree is None else min(largest, NULL / null)


def _size(
    loss: Loss, cost: Callable[[float], float], centre: float, spread: float, weight: float
) -> float:
    """Return the unit of T."""
    distance = measures_distance(loss)
    step = STEP * (spread or 1.0)
    size = spread or 1.0
    if loss.smooth and spread:
        change = cost(centre + step) + cost(centre - step) - 2 * cost(centre)
        curvature = (weight if distance else weight / NOISE) * change / step**2
        if 0 < curvature < math.inf:
            size = 1 / math.sqrt(curvature)
    return size if distance else min(size, LARGEST)


def _best_constant(cost: Callable[[float], float], mean: float, spread: float) -> float:
    """Return the T of lowest cost near the mean of the starting T."""
    reach = REACH * (spread or 1.0)
    grid = np.append(np.linspace(-1.0, 1.0, GRID), 0.0)
    costs = [cost(mean + reach * float(s)) for s in grid]
    best, step = int(np.argmin(costs)), 2.0 / (GRID - 1)
    found = minimize_scalar(
        lambda s: cost(mean + reach * s),
        bounds=(grid[best] - step, grid[best] + step),
        method="bounded",
        options={"xatol": PRECISION},
    )
    return mean + reach * float(found.x if found.fun < costs[best] else grid[best])
