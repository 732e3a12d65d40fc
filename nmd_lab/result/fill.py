"""Data with their missing cells filled, intervals of cells, and cells that stay empty on purpose.

A completed copy loses again what `fill` leaves empty.  The conditions of `fill` are found in a
table: nobody answers a question who gave some answer to another one.

Cells are filled by a fit, by a point of a posterior, or by its draws.  Draws are new observations
of entries, within their limits, or with values that repeat.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from keyword import iskeyword
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from nmd_lab._runtime.checks import as_generator, check_integer, check_word, sentence
from nmd_lab.data.entries import FloatArray, as_booleans
from nmd_lab.data.inputs import GivenLimits, dense_values
from nmd_lab.data.labels import Labels, is_frame, plain_array
from nmd_lab.data.matching import MatchedData, dense_like, known_positions, matched, observe_like
from nmd_lab.data.observations import Observations
from nmd_lab.data.typed_table import TypedColumn, plain_label, refuse_repeats, table_of
from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.model.model import each_group

from . import predict
from .draws import MIN_REPEATS, N_FILLING_DRAWS, Draws, Positions, RepeatedValues
from .entries import Entries, entries_at, refuse_sparse
from .fold_in import data_of, rows_of, unknown_row
from .predict import Tempered
from .predictive import Array, Predictive


def with_skips(filled: Any, X: Any, fill: Any) -> Any:
    """Return X as it was filled, or a list of it, without the cells that are not to be filled.

    What was filled is overwritten.  A condition sees the columns that come before it as they are
    returned.
    """
    if isinstance(filled, list):
        return [with_skips(each, X, fill) for each in filled]
    if isinstance(fill, dict) and is_frame(X):
        refuse_repeats(X.columns)
        for name, condition in fill.items():
            check_word("fill", name, X.columns)
            filled[name] = filled[name].where(X[name].notna() | _holds(filled, name, condition))
    elif fill is not None:
        labels = Labels(tuple(map(str, range(np.ndim(X)))), np.shape(X), ("0",))
        mask = as_booleans(dense_values("fill", fill, X, labels), "fill", "True = to be filled")
        keep = pd.notna(plain_array(X)) | mask.reshape(np.shape(X))
        if is_frame(X):
            return filled.where(keep)
        filled[...] = np.where(keep, filled, np.nan)
    return filled


def check_fill(X: Any, fill: Any) -> None:
    """Raise an error if `fill` does not go with X; conditions are tried on its observed values."""

    def observed(x: Any) -> Any:
        return x.iloc[np.resize(np.flatnonzero(x.notna()), len(x))].set_axis(x.index)

    if fill is not None:
        with_skips(X.apply(observed) if is_frame(X) else np.zeros(np.shape(X)), X, fill)


def _holds(filled: Any, name: Any, condition: Any) -> Any:
    """Return in which rows a condition holds, which it does not where its answer is missing."""
    try:
        found = condition(filled.copy()) if callable(condition) else filled.eval(condition)
        if pd.api.types.infer_dtype(np.ravel(found)) not in ("boolean", "empty"):
            raise TypeError("it gives no booleans")
        return pd.Series(found, filled.index, dtype="boolean").fillna(False).to_numpy(bool)
    except Exception as error:
        raise ValueError(
            f"fill={{{name!r}: {condition!r}}} fails ({sentence(error)}): give a condition such as "
            "\"smoker == 'yes'\", or a function of the filled DataFrame that returns booleans."
        ) from error


def skips_of(X: Any) -> dict[Any, str]:
    """Return the conditions, for `fill`, of columns that are empty wherever another has some value.

    A value has ten rows at least, and most of them have no more frequent one of these.  A table
    with cells missing completely at random seems to skip one with a probability of at most 0.1 %.
    """
    answers: list[Any] = []
    for name, x in X.filter(regex=r"\A[^`\n]+\Z").items():  # other names cannot be quoted
        quoted = name if str(name).isidentifier() and not iskeyword(name) else f"`{name}`"
        for value, rows in x.groupby(x, observed=True).indices.items():
            if rows.size >= 10 and isinstance(name, str) and not hasattr(value, "year"):
                answers.append((rows, f"{quoted} != {plain_label(value)!r}"))
    answers.sort(key=lambda answer: -answer[0].size)
    conditions: dict[Any, list[str]] = {name: [] for name in X}
    for name, texts in conditions.items():
        empty, skipped = X[name].isna().to_numpy(), np.zeros(len(X), bool)
        for rows, text in answers:
            elsewhere = (empty.sum() - rows.size + 1) / (len(X) - rows.size + 1)
            chance = len(answers) * X.shape[1] * min(abs(elsewhere), 1.0) ** rows.size
            if chance < 1e-3 and empty[rows].all() and 2 * skipped[rows].sum() <= rows.size:
                skipped[rows] = True
                texts.append(text)
    return {name: " and ".join(texts) for name, texts in conditions.items() if texts}


Point = Literal["auto", "mean", "median", "mode"]
"""What one number, level or class stands for a distribution."""

DOUBT_BEYOND_LIMITS = 0.3
"""Standard deviation, in units of a column, of noise that cells with limits get in addition: no
value shows the tail there.  90 % intervals of 76 metabolites with limits covered 0.78 without it,
and 0.81 with it.  Where nearly all of a column is explained, they are wider than they need be."""

OF_LIMITS = (
    "no value checks the tail of the model beyond a limit, where 90 % intervals covered 80 to 82 % "
    "of known concentrations of metabolites"
)
"""How far to trust cells with limits: see docs/limitations.md."""


def fill_by_fit(labels: Labels, fitted: FittedValues, X: Any) -> Any:
    """Return X with its missing cells filled by a fit; see `Decomposition.impute`."""
    refuse_sparse(X)
    data = matched(labels, observe_like(labels, X, may_be_empty=True))

    def classes(column: TypedColumn, rows: Positions, positions: Positions) -> Any:
        return predict.fitted_shares(fitted, column.name, column, positions, rows)[0].argmax(axis=1)

    return _filled(X, data, lambda of: fitted.at(of.i, of.j), classes, "is_class")


def fill_by_posterior(
    posterior: Any, X: Any, n: int | None, point: Point, limits: GivenLimits, random_state: Any
) -> Any:
    """Return X filled once by a point, or n times by draws; see `Posterior.impute`."""
    check_word("point", point, ["auto", "mean", "median", "mode"])
    count = None if n is None else check_integer("n", n, 1)
    enough = max(N_FILLING_DRAWS, count or 0)
    if count is not None and posterior._joint is not None:
        return _joint_copies(posterior, X, count, limits, as_generator(random_state))
    _, draws, data = rows_of(posterior, X, limits, enough, numbered=count is not None)
    if count is None:
        return filled(draws, X, data, point)
    return copies(draws, X, data, count, as_generator(random_state))


UNLIMITED = np.array([-np.inf, np.inf])
"""Limits of a number that has none."""


class Bounded(NamedTuple):
    """Entries of the matrix, with limits of their values; infinite where there is none."""

    i: Positions
    j: Positions
    low: Array
    high: Array

    @property
    def is_limited(self) -> NDArray[np.bool_]:
        """Whether an entry has a limit."""
        return np.asarray(np.isfinite(self.low) | np.isfinite(self.high))

    def at(self, where: Positions) -> Bounded:
        """Return some of the entries."""
        i, j, low, high = self
        return Bounded(i[where], j[where], low[where], high[where])


def filled(
    draws: Draws, X: Any, data: MatchedData, point: Point = "auto", others: Draws | None = None
) -> Any:
    """Return X, of which `data` has the positions, with best guesses in its missing cells.

    Rows at the positions -1, -2, ... are the first, second, ... row of the others.
    """

    def sources(i: Positions) -> Iterator[tuple[Any, Positions, Positions]]:
        for of, at in ((draws, np.flatnonzero(i >= 0)), (others, np.flatnonzero(i < 0))):
            if at.size:
                yield of, at, np.maximum(i[at], ~i[at])

    def numbers(entries: Bounded) -> Array:
        x = np.empty(entries.i.size)
        for of, at, i in sources(entries.i):
            x[at] = _best_numbers(of, entries.at(at)._replace(i=i), point)
        return x

    def classes(_: TypedColumn, rows: Positions, positions: Positions) -> Array:
        codes = np.empty(rows.size)
        for of, at, i in sources(rows):
            codes[at] = predict.mean_shares(of, i, positions).argmax(axis=1)
        return codes

    return _filled(X, data, numbers, classes)


def _best_numbers(draws: Draws, entries: Bounded, point: Point) -> Array:
    """Return the best guess of a number or level at each entry."""
    i, j, *_ = entries
    x = predict.summarise(draws, entries_at(i, j), lambda p, v, _: p.point(v, point))
    if point == "auto" and draws.model.is_mixed:
        x = np.clip(x, *_near_means(draws)[:, j])
    limited = np.flatnonzero(entries.is_limited)
    if limited.size:
        within = draws_within(draws, entries.at(limited))
        is_median = np.where(draws.is_level(j[limited]), point != "mean", point == "median")
        # A median of levels is a level
        median = np.quantile(within, 0.5, axis=0, method="inverted_cdf")
        x[limited] = np.where(is_median, median, within.mean(axis=0))
    return x


def _near_means(draws: Draws) -> NDArray[np.float64]:
    """Numbers between which a best guess lies in each column, (2, n); infinite for levels.

    They are five standard deviations from the mean of a column: a row with outliers may be
    predicted far beyond its column where f is not learned.
    """
    from nmd_lab.sampler.sampled_model import CLIPPED, knows_T

    ends = np.tile(UNLIMITED[:, None], len(draws.noises))
    for j, (noise, kind) in enumerate(zip(draws.noises, draws.model.column_models, strict=True)):
        if noise == CLIPPED or knows_T(noise, kind.nonlinearity):
            ends[:, j] = kind.modelled(np.array([-5.0, 5.0]))
    return ends


def copies(draws: Draws, X: Any, data: MatchedData, n: int, rng: np.random.Generator) -> list[Any]:
    """Return X n times with draws in its missing cells, different ones as long as there are."""
    member = draws.numbers.get("member", np.zeros((len(draws), 1)))
    order = np.argsort(member[:, 0], kind="stable")[_evenly(len(draws), n, rng)]
    fixed = np.random.default_rng(0)

    def replicate(rows: Positions, column: int) -> Array:
        some = np.sort(fixed.choice(rows, min(rows.size, 1000), replace=False))
        return draws_within(few, Bounded(some, np.full(some.size, column), *UNLIMITED))

    if draws.model.is_mixed:
        few = draws.evenly()
        draws = replace(draws, repeated=_repeated_values(draws, data, replicate))
    known: dict[int, Tempered] = {}  # the same cells are missing in each copy

    def copy(draw: int) -> Any:
        def numbers(entries: Bounded) -> Array:
            x = _draw_within(draws, draw, entries, rng)
            free = np.empty(0, np.intp)
            if "temperature" in draws.numbers:
                free = np.flatnonzero(draws.is_level(entries.j) & ~entries.is_limited)
            for k, at in each_group(entries.j[free], draws.shape[1]):
                codes = classes(None, entries.i[free[at]], np.array([k]))
                x[free[at]] = draws.predictive_of(k).levels[codes.astype(np.intp)]
            return x

        def classes(_: Any, rows: Positions, positions: Positions) -> Array:
            key = int(positions[0])
            if key not in known:
                known[key] = predict.tempered_shares(draws, rows, positions)
            return predict.draw_classes(draws, rows, positions, draw, known[key], rng)

        return _filled(X, data, numbers, classes)

    return [copy(draw) for draw in order.tolist()]


def _joint_copies(
    posterior: Any, X: Any, n: int, limits: GivenLimits, rng: np.random.Generator
) -> list[Any]:
    """Return X n times with draws of the joint distribution of a row in its missing cells."""
    from .joint_copies import JointCopies, draws_in

    new, _ = data_of(posterior, X, limits)
    columns = known_positions(new.labels, posterior._labels, "columns", "the posterior")
    data = MatchedData(new, np.arange(new.shape[0]), columns)
    joint = draws_in(posterior._joint)
    drawn = JointCopies(joint, posterior._draws, data, rng)
    drawn.repeated = _repeated_values(posterior._draws, data, drawn.replicates)

    def copy(k: int) -> Any:
        drawn.next(k)
        return _filled(X, data, drawn.numbers, drawn.classes)

    return [copy(k) for k in _evenly(len(joint.means), n, rng)]


def _evenly(size: int, n: int, rng: np.random.Generator) -> list[int]:
    """Return n of so many numbers, evenly, from any of them on; all of them before one again.

    A step of the golden section fills the largest gap.
    """
    steps = range(round(0.618 * size), size + 1)
    step = next(each for each in steps if math.gcd(each, size) == 1)
    found: list[int] = ((rng.integers(size) + step * np.arange(n)) % size).tolist()
    return found


def _repeated_values(
    draws: Draws, data: MatchedData, replicate: Callable[[Positions, int], Array]
) -> dict[int, RepeatedValues]:
    """Return the values that repeat among the numbers of each column with missing cells.

    Columns with limits have none: their limits repeat, and numbers beyond these are not observed.
    `replicate` returns numbers that replicate those of some rows of the posterior in a column.
    """
    x, found = data.observations.to_array().astype(np.float64), {}
    if (limits := data.observations.limits) is not None:
        limited = data.observations.stored_positions()[1][np.flatnonzero(limits.codes)]
        x[:, limited] = np.nan
    for column, values in zip(data.columns.tolist(), x.T, strict=True):
        rows = np.flatnonzero(~np.isnan(values))
        is_level, is_full = draws.noises[column] == "ordinal", rows.size == values.size
        repeats = np.unique(values[rows], return_counts=True)[1].max(initial=0) >= MIN_REPEATS
        if repeats and not (is_level or is_full):
            found[column] = RepeatedValues.of(values[rows], replicate(data.rows[rows], column))
    return found


def draws_within(draws: Draws, entries: Bounded) -> Array:
    """Return a new observation of each entry, within its limits, from each draw."""
    rng = np.random.default_rng(0)
    return np.stack([_draw_within(draws, d, entries, rng) for d in range(len(draws))])


def _draw_within(draws: Draws, draw: int, entries: Bounded, rng: np.random.Generator) -> Array:
    """Return new observations from a single draw, again while they are beyond their limits."""
    v = draws.drawn_at(entries.i, entries.j, draw)[0]
    x, outside = np.empty(v.size), np.arange(v.size)
    doubtful = entries.is_limited & ~draws.is_level(entries.j) & draws.model.is_mixed
    for _ in range(1000):  # then the limit itself is near enough
        near = v[outside]
        if (at := doubtful[outside]).any():
            near = near + DOUBT_BEYOND_LIMITS * at * rng.standard_normal(at.size)
        for predictive, at, u in draws.by_noise(entries.j[outside], near):
            x[outside[at]] = predictive.of_draw(draw).draw(u, rng)
        outside = np.flatnonzero((x < entries.low) | (x > entries.high))
        if outside.size == 0:
            break
    return np.asarray(np.clip(x, entries.low, entries.high))


def _filled(
    X: Any,
    data: MatchedData,
    numbers: Callable[[Bounded], FloatArray],
    classes: Callable[[TypedColumn, Positions, Positions], Array],
    by: str = "has_indicators",
) -> Any:
    """Return X filled by numbers at entries, and by the positions of classes of rows.

    `by` is the property of those columns that are filled by classes.
    """
    array, labels = data.observations.to_array(), data.observations.labels
    bounds, holes, table = _bounds(data.observations, array), np.isnan(array), labels.table
    limited = np.isfinite(bounds).any(axis=0)
    by_class = [False] if table is None else [getattr(each, by) for each in table.of_matrix]
    i, j = np.nonzero((holes & ~np.array(by_class)) | limited)
    array[i, j] = numbers(Bounded(data.rows[i], data.columns[j], *bounds[:, i, j]))
    if not is_frame(X):
        return dense_like(X, labels, array)
    filled, columns = X.copy(), table or table_of(X, numbers_too=True)
    for k, (column, at) in enumerate(columns.blocks()):  # type: ignore[union-attr]
        empty = X.iloc[:, k].isna().to_numpy() | limited[:, at[0]]
        values = array[:, at[0]].astype(np.float64)
        if getattr(column, by):
            rows = np.flatnonzero(holes[:, at[0]])
            values[rows] = classes(column, data.rows[rows], data.columns[at])
        elif column.is_class:
            values = column.nearest(values[:, None])
        if empty.any():
            filled.isetitem(k, column.filled(X.iloc[:, k], values, empty))
    return filled


def _bounds(observations: Observations, array: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the smallest and the largest value of each entry (2, m, n), infinite without any."""
    bounds = np.broadcast_to(UNLIMITED[:, None, None], (2, *array.shape))
    if (limits := observations.limits) is not None:
        bounds, some = bounds.copy(), np.flatnonzero(limits.codes)
        rows, columns = (each[some] for each in observations.stored_positions())
        bounds[:, rows, columns] = limits.at(some).ends(array[rows, columns].astype(np.float64))
    return bounds


BOUNDS = ("low", "high")
"""Names of the ends of an interval."""


def intervals_at(draws: Draws, entries: Entries, level: float, noise: bool = True) -> Array:
    """Return the ends (entries, 2) of equal-tailed intervals at entries.

    The distribution of an observation is a mixture: that of its noise around v in each draw.  A row
    that X does not have is drawn from the prior of rows.
    """
    tails = predict.tails_of(level)

    def ends_of(predictive: Predictive, v: Array, _: Positions | None = None) -> Array:
        if not noise:
            return np.asarray(np.quantile(predictive.mean(v), tails, axis=0).T)
        return np.stack([predictive.quantile(v, tail) for tail in tails], axis=1)

    ends, is_new = np.empty((entries.i.size, 2), draws.dtype), entries.i < 0
    for which in np.unique(is_new):
        of_rows = unknown_row(draws) if which else draws
        at = np.flatnonzero(is_new == which)
        i, j = np.maximum(entries.i[at], 0), entries.j[at]
        ends[at] = predict.summarise(of_rows, entries_at(i, j), ends_of, 2)
        if (other := j < 0).any():
            v = of_rows.linear_at_unknown_column(i[other])
            ends[at[other]] = ends_of(of_rows.predictives[0], v)
    return ends.clip(*draws.scale) if noise and draws.scale is not None else ends


def intervals_of_table(posterior: Any, X: Any, level: float, noise: bool) -> Any:
    """Return intervals of all cells of X; see `Posterior.intervals`."""
    tails = predict.tails_of(level)
    _, draws, data = rows_of(posterior, X)
    ordered, table = np.arange(data.columns.size), data.observations.labels.table
    if table is not None:  # the indicators of categories have no order
        ordered = np.flatnonzero([not column.has_indicators for column in table.of_matrix])
    grid = entries_at(data.rows[:, None], data.columns[ordered])
    found = intervals_at(draws, grid, level, noise)
    ends = np.full((data.rows.size, data.columns.size, 2), np.nan, found.dtype)
    ends[:, ordered] = found.reshape(data.rows.size, -1, 2)
    if noise and data.observations.limits is not None:
        bounds = _bounds(data.observations, data.observations.to_array())
        i, j = np.nonzero(np.isfinite(bounds).any(axis=0))
        limited = Bounded(data.rows[i], data.columns[j], *bounds[:, i, j])
        within = draws_within(draws, limited)
        ends[i, j] = np.quantile(within, tails, axis=0, method="inverted_cdf").T
    if is_frame(X):
        return _bounds_of_frame(X, data, ends)
    both = [data.observations.labels.label(ends[..., k]) for k in range(2)]
    array = xr.concat(both, "bound").transpose(..., "bound")
    return array.assign_coords(bound=list(BOUNDS))


def _bounds_of_frame(frame: Any, data: MatchedData, ends: Array) -> Any:
    """Return the ends (m, n, 2) of intervals in the types and with the labels of a DataFrame."""
    table: Any = data.observations.labels.table or table_of(frame, numbers_too=True)
    bounds, names = [], []
    empty, every = pd.Series(np.nan, frame.index, ends.dtype), np.ones(len(frame), bool)
    for name, (column, at) in zip(frame.columns, table.blocks(), strict=True):
        if column.kind == "categories":
            continue
        like = frame[name] if column.kind == "date" else empty
        for values, bound in zip(ends[:, at[0]].T, BOUNDS, strict=True):
            nearest = column.nearest(values[:, None]) if column.is_class else values
            bounds.append(column.filled(like, nearest, every))
            names.append((*(name if isinstance(name, tuple) else (name,)), bound))
    if not bounds:  # categories have no order
        return pd.DataFrame(index=frame.index)
    labels = pd.MultiIndex.from_tuples(names, names=[*frame.columns.names, "bound"])
    return pd.concat(bounds, axis=1).set_axis(labels, axis=1)
