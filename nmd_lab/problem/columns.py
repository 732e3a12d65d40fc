"""The model that arguments and data describe: one f and one loss, or one of each column or entry.

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
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from nmd_lab._runtime.checks import check_size, is_auto, many
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.labels import Labels
from nmd_lab.data.observations import Observations
from nmd_lab.data.typed_table import plain_label
from nmd_lab.model.column_model import ColumnModel, make_column_model
from nmd_lab.model.loss import Loss
from nmd_lab.model.losses import Logistic, as_loss
from nmd_lab.model.model import Mixed, Model, groups, make_model
from nmd_lab.model.nonlinearities import MinMax, Nonlinearity, as_nonlinearity
from nmd_lab.model.ordinal import Ordinal

from .problem import Problem

NonlinearityArgument = str | Nonlinearity | Mapping[Any, Any] | Sequence[Any]
"""A nonlinearity for all entries, or several."""

LossArgument = str | Loss | Mapping[Any, Any] | Sequence[Any]
"""A loss for all entries, or several."""

Ends = tuple[float, float]
"""The smallest and the largest value, of data or of f."""

NUMBER = "frobenius"
"""Default loss of a column of numbers."""


def is_mixed(each: Any) -> bool:
    """Return whether an argument gives nonlinearities or losses of columns or entries."""
    return isinstance(each, Mapping) or (isinstance(each, Sequence) and not isinstance(each, str))


def is_by_column(nonlinearity: Any, loss: Any, labels: Labels) -> bool:
    """Return whether arguments or types give columns nonlinearities and losses of their own."""
    return is_mixed(nonlinearity) or is_mixed(loss) or labels.table is not None


def model_for(nonlinearity: Any, loss: Any, ends: Ends, documented: Ends | None) -> Model:
    """Return the model of all entries, with bounds that the data decide; see `bounded`.

    The identity stands for "auto".
    """
    nonlinearity = "identity" if is_auto(nonlinearity) else nonlinearity
    d = make_model(nonlinearity, loss).loss  # refuses what does not go together
    d.check_data(*ends)
    return make_model(bounded(nonlinearity, ends, documented), d)


def with_data(model: Model, observations: Observations, *, centred: bool = False) -> Model:
    """Return a model that takes data with what they decide of its loss and of a learned f.

    If `centred`, f takes the mean of X near 0, where WH is without offsets.
    """
    x, weights = observations.observed()
    loss = model.loss.for_data(x, weights)
    return make_model(model.nonlinearity.for_data(loss.target(x), centred=centred), loss)


def mixed_model(nonlinearity: Any, loss: Any, observations: Observations) -> Model:
    """Return the model of several kinds that arguments describe, with units from the data.

    Limits count as values.
    """
    labels, shape = observations.labels, observations.shape
    losses, loss_of = _listed("loss", loss, labels, shape)
    functions, function_of = _listed("nonlinearity", nonlinearity, labels, shape)
    by_column = loss_of.ndim == function_of.ndim == 1
    names, table, units = list(labels.flat(labels.columns)), labels.table, np.arange(shape[1])
    if table is not None:  # the values of a long table have the name and the unit of one column
        either = zip(names, table.of_matrix, table.of_values, strict=True)
        names = [column.name if shared else name for name, column, shared in either]
        units = table.first_of_unit
    each = np.stack(np.broadcast_arrays(by_column * units, loss_of, function_of), axis=-1)
    parts, first, which = np.unique(
        each.reshape(-1, 3), axis=0, return_index=True, return_inverse=True
    )
    which = which.reshape(each.shape[:-1])
    pairs, places = list[tuple[Any, Any]](), list[str]()
    for j, (_, d, f) in zip(first.tolist(), parts.tolist(), strict=True):
        typed = table.of_matrix[j] if by_column and table is not None else None
        pairs.append((functions[f], _loss_of(losses[d], typed, one_for_all=not is_mixed(loss))))
        places.append(f"column {plain_label(names[j])!r}" if by_column else f"group {len(places)}")
    explicit, documented = is_mixed(nonlinearity), observations.labels.valid_range
    rows, columns, x = observations.entries()
    order, ends = groups(which[columns] if which.ndim == 1 else which[rows, columns], len(pairs))
    x, weights = x.astype(np.float64), observations.observed()[1]
    found: list[ColumnModel] = []
    for k, ((f, d), where) in enumerate(zip(pairs, places, strict=True)):
        at = order[ends[k] : ends[k + 1]]
        found.append(_kind(f, as_loss(d), explicit, x[at], weights[at], documented, where))
    if observations.limits is not None and labels.table is not None:
        _check_limits(observations, labels.table.of_matrix)
    return Model(tuple(found), which)


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
            "of numbers, counts, booleans and ordered categories."
        )


def _loss_of(loss: Any, typed: Any, one_for_all: bool) -> Any:
    """Return the loss of a column from the argument and the type of the column, None without one.

    One loss for all columns is meant for numbers: levels and categories keep their own.
    """
    is_open = loss is None or is_auto(loss)
    if typed is not None and typed.is_class and (is_open or one_for_all):
        return Ordinal(typed.levels) if typed.kind == "ordered" else Logistic(0)
    return NUMBER if is_open else loss


def _listed(
    name: str, argument: Any, labels: Labels, shape: tuple[int, int]
) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the different parts of an argument, and the position of each column's or entry's own.

    None stands for the default of a column.
    """
    n = shape[1]
    if isinstance(argument, Mapping):
        return _by_label(name, argument, labels)
    if isinstance(argument, Mixed):
        return list(argument.different), argument.which
    if not is_mixed(argument):
        return [argument], np.zeros(n, dtype=np.intp)
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
        return parts, which.astype(np.intp)
    if len(argument) != n:
        raise ValueError(f"{name} has {len(argument)} parts: give one for each of the {n} columns.")
    return list(argument), np.arange(n)


def _by_label(
    name: str, argument: Mapping[Any, Any], labels: Labels
) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the parts of a dict by column label; that of a block goes to all its indicators."""
    names = labels.flat(labels.columns).tolist()
    table = labels.table
    sources = names if table is None else [column.name for column in table.of_matrix]
    unknown = [label for label in argument if label not in names and label not in sources]
    if unknown:
        raise ValueError(
            f"{name} has the column {plain_label(unknown[0])!r}, unknown to X: give labels of X."
        )
    position = {label: k for k, label in enumerate(argument, start=1)}
    pairs = zip(names, sources, strict=True)
    which = [position.get(label, position.get(source, 0)) for label, source in pairs]
    return [None, *argument.values()], np.array(which, dtype=np.intp)


def _kind(
    f: Any,
    loss: Loss,
    explicit: bool,
    x: FloatArray,
    weights: FloatArray,
    documented: Ends | None,
    where: str,
) -> ColumnModel:
    """Return the kind of a column, or of a group of entries, with its units."""
    if f is None or is_auto(f) or (loss.link and not explicit):
        f = loss.link or "identity"
    if not x.size:
        return make_column_model(as_nonlinearity(f), loss)
    try:
        ends = float(x.min()), float(x.max())
        check_size("X", max(map(abs, ends)), x.dtype)
        function: Nonlinearity = bounded(f, ends, documented)
        loss.check_data(*ends)
        loss = loss.for_data(x, weights)
        function = function.for_data(loss.target(x))
        kind = make_column_model(function, loss)
    except ValueError as error:
        raise ValueError(f"In {where}, {error}") from error
    return with_units(kind, x, weights)


PRECISION = 1e-8  # error of the best constant, as a fraction of this distance
NOISE = 0.3  # weight of minus the logarithm of a likelihood; fraction of noise in the variance


def with_units(kind: ColumnModel, x: FloatArray, weights: FloatArray) -> ColumnModel:
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
    to_half = 0.5 / null  # which brings a loss without a unit to a mean of 1/2
    if distance:
        return to_half
    return largest if loss.degree is None else min(largest, to_half)


def _size(
    loss: Loss, cost: Callable[[float], float], centre: float, spread: float, weight: float
) -> float:
    """Return the unit of T."""
    distance = measures_distance(loss)
    step = 1e-2 * (spread or 1.0)  # for the second derivative
    size = spread or 1.0
    if loss.smooth and spread:
        change = cost(centre + step) + cost(centre - step) - 2 * cost(centre)
        curvature = (weight if distance else weight / NOISE) * change / step**2
        if 0 < curvature < math.inf:
            size = 1 / math.sqrt(curvature)
    return size if distance else min(size, 3.0)  # of log-odds and logarithms


def _best_constant(cost: Callable[[float], float], mean: float, spread: float) -> float:
    """Return the T of lowest cost near the mean of the starting T."""
    reach = 5.0 * (spread or 1.0)  # in standard deviations of the starting T
    grid = np.append(np.linspace(-1.0, 1.0, 17), 0.0)  # constants that are compared first
    costs = [cost(mean + reach * float(s)) for s in grid]
    best, step = int(np.argmin(costs)), 2.0 / 16
    found = minimize_scalar(
        lambda s: cost(mean + reach * s),
        bounds=(grid[best] - step, grid[best] + step),
        method="bounded",
        options={"xatol": PRECISION},
    )
    return mean + reach * float(found.x if found.fun < costs[best] else grid[best])


def with_bounds(nonlinearity: str | Nonlinearity, observations: Observations) -> Nonlinearity:
    """Return a nonlinearity, with bounds or knots that the observations decide; see `bounded`."""
    ends, documented = observations.range(), observations.labels.valid_range
    model = model_for(nonlinearity, "frobenius", ends, documented)
    return (with_data(model, observations) if model.takes_data else model).nonlinearity


def bounded(f_or_name: str | Nonlinearity, ends: Ends, valid_range: Ends | None) -> Nonlinearity:
    """Return a nonlinearity, with bounds that the data decide if it is only named.

    The bounds of "minmax" are the range that the data document, or else 0 and 1.
    """
    f = as_nonlinearity(f_or_name)
    if not isinstance(f_or_name, str) or not isinstance(f, MinMax):
        return f
    if valid_range is not None:
        return MinMax(*valid_range)
    if not goes_beyond(f, ends):
        return f
    raise ValueError(
        f"nonlinearity={f_or_name!r} has the bounds 0 and 1, and X goes from {ends[0]:g} to "
        f"{ends[1]:g}: give the bounds of your data, for example "
        f"nonlinearity=nmd.{MinMax(*ends)!r}."
    )


def goes_beyond(f: Nonlinearity, ends: Ends) -> bool:
    """Return whether data with these ends go beyond the range of f."""
    return any(outside.any() for outside in _outside(f, np.array(ends)))


def out_of_bounds(problem: Problem) -> str:
    """Return how many values of the data lie outside the range of f, empty if that says nothing.

    Bounds are given or documented, and all values beyond them count.  The range of another f is not
    a statement about the data: it is named if a tenth of their squares lies outside.
    """
    observations, f = problem.observations, problem.model.nonlinearity
    has_bounds, zeros = isinstance(f, MinMax), observations.absent_are_zeros

    def sums(x: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
        # A weight is the number of entries where one value stands for all absent zeros.
        number, squares = weights if zeros else np.ones(x.size), weights * x**2
        below, above = _outside(f, x)
        counts = number[below].sum(), number[above].sum()
        return np.array([*counts, squares[below | above].sum(), squares.sum()])

    below, above, squares, total = map(float, observations.sum_of_blocks(sums))
    if not has_bounds and squares < 0.1 * total:  # they are noise
        return ""
    remedy = "widen these" if has_bounds else "take another nonlinearity, such as 'identity',"
    return (
        f"X has {many(int(below), 'value')} below and {above:.0f} above the bounds of "
        f"{problem.units.model.nonlinearity!r}, of {observations.n_observed} observed: no fit "
        f"comes closer to them than the bounds, so {remedy} unless such values are noise."
    )


def _outside(f: Nonlinearity, values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return masks of the values below and above the bounds of f, by more than rounding."""
    a, b = f.range
    if (pieces := f.pieces()) is not None:
        each = [(piece, t) for piece in pieces for t in (piece.low, piece.high)]
        ends = [p.intercept + (p.slope * t if p.slope else 0.0) for p, t in each]
        a, b = min(ends), max(ends)
    sizes = [abs(bound) for bound in (a, b) if math.isfinite(bound)]
    rounding = float(np.finfo(values.dtype).eps) * max(sizes, default=0.0)
    # Of both bounds, or of the only one, a millionth does not count as outside.
    slack = rounding + 1e-6 * (b - a if len(sizes) == 2 else max(sizes, default=0.0))
    return values < a - slack, values > b + slack
