"""Predictions from draws: statistics of new observations at entries, and probabilities of classes.

They are computed in blocks of bounded memory; no function but `matrix` has all entries of X.
Classes follow: their probabilities by a fit and by draws, and classes that are drawn.  Last come
the columns with the largest predictions of a row, which are what to recommend.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.special import ndtr, softmax

from nmd_lab._runtime.checks import (
    check_integer,
    check_number,
    check_share,
    check_word,
    errors_about,
)
from nmd_lab.data.cell_numbers import numbers_of
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.labels import COMPONENT, Labels, plain_array
from nmd_lab.data.matching import matched, observe_like
from nmd_lab.data.sparse import is_sparse
from nmd_lab.data.typed_table import TypedColumn
from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.model.model import each_group

from .draws import ALL, Draws, Positions
from .entries import Entries, entries_at, entries_in, entries_of, index_of, positions_of
from .predictive import Array, Predictive, level_masses

OWNER = "the posterior"
"""What messages about data name."""

Statistic = Callable[[Predictive, Array, Positions], Array]
"""A function of a distribution, of v (draws, entries), and of the positions of these entries among
all, which returns one row for each entry."""


def summarise(draws: Draws, entries: Entries, statistic: Statistic, width: int = 0) -> Array:
    """Return a statistic of the draws at each entry."""
    size = entries.i.size
    out = np.empty((size, width) if width else size, draws.dtype)
    step = draws.batch()
    for start in range(0, size, step):
        some = np.arange(start, min(start + step, size))
        i, j = entries.i[some], entries.j[some]
        for predictive, at, v in draws.by_noise(j, draws.drawn_at(i, j)):
            out[some[at]] = statistic(predictive, v, some[at])
    return out


def summarise_all(draws: Draws, statistic: Callable[[Predictive, Array], Array]) -> Array:
    """Return a statistic of the draws at each entry of X (m, n), by products of blocks."""
    (m, n), out = draws.shape, np.empty(draws.shape, draws.dtype)
    width = min(n, draws.batch())
    height = draws.batch(width)
    for top, left in product(range(0, m, height), range(0, n, width)):
        i, j = np.arange(top, min(top + height, m)), np.arange(left, min(left + width, n))
        columns, block = np.tile(j, i.size), np.empty(i.size * j.size)
        v = draws.with_spread(draws.linear_block(i, j), columns)
        for predictive, at, of_columns in draws.by_noise(columns, v):
            block[at] = statistic(predictive, of_columns)
        out[np.ix_(i, j)] = block.reshape(i.size, j.size)
    return out


def tails_of(level: float) -> tuple[float, float]:
    """Return the probabilities of the ends of an interval."""
    level = check_share("level", level, zero=False)
    return (1 - level) / 2, (1 + level) / 2


def means(draws: Draws, entries: Entries) -> Array:
    """Return the mean of E f(T) over draws at each entry."""
    return summarise(draws, entries, lambda p, v, _: p.expected(v))


def stds(draws: Draws, entries: Entries | None, noise: bool = True) -> Array:
    """Return the standard deviation at each entry, or at all; see `Posterior.predict_std`."""

    def std(predictive: Predictive, v: Array, _: Positions | None = None) -> Array:
        return np.sqrt(predictive.variance(v)) if noise else predictive.mean(v).std(axis=0)

    return summarise_all(draws, std) if entries is None else summarise(draws, entries, std)


def probabilities_above(draws: Draws, entries: Entries, above: float) -> Array:
    """Return the probability of an observation above a number; see `Posterior.probability`."""
    bound = check_number("above", above)
    return summarise(draws, entries, lambda p, v, _: 1 - p.cdf(v, np.full(v.shape[1], bound)))


def log_densities(draws: Draws, labels: Labels, rows: Any, columns: Any, values: Any) -> Array:
    """Return the log-density of values, or of test data; see `Posterior.log_density`."""
    if columns is not None:
        if values is None:
            raise TypeError("values=None goes with test data only: give the observations.")
        i = positions_of(labels, "rows", rows)
        j = positions_of(labels, "columns", columns)
        i, j, values = np.broadcast_arrays(i, j, np.atleast_1d(values))
        rows, columns = entries_at(i, j), None
    entries = entries_of(labels, rows, columns, owner=OWNER)
    x = numbers_of(values) if entries.data is None else entries.values
    return summarise(draws, entries, lambda p, v, at: p.log_density(v, x[at]))


def level_probabilities(draws: Draws, entries: Entries) -> Array:
    """Return the probability of each level; see `Posterior.level_probabilities`."""
    predictive: Any = draws.predictives[0]
    if draws.model.is_mixed or predictive.levels is None:
        shown = draws.noises if draws.model.is_mixed else draws.noises[0]
        raise ValueError(
            f"level_probabilities() is for ordinal data, and noise={shown!r}: use "
            "probability(..., above=), or probabilities(column)."
        )
    size = predictive.levels.size
    return summarise(draws, entries, lambda _, v, at: predictive.level_probabilities(v), size)


def matrix(values: FittedValues | Draws) -> FloatArray:
    """Return f(WH), or the mean of E f(T) over draws, at each entry of X."""
    if isinstance(values, FittedValues):
        return values.block()
    return summarise_all(values, lambda p, v: p.expected(v))


TINY = np.finfo(np.float64).tiny
"""What a category has at least, so that the probabilities of all can be divided by their sum."""


def class_probabilities(result: Any, column: Any, rows: Any) -> Any:
    """Return the probability of each class of a column; see `Fitted.probabilities`."""
    labels = result._labels
    typed, positions = _typed_column(labels, column)
    every = np.arange(labels.matrix_shape[0])
    at = every if rows is None else positions_of(labels, "rows", rows).ravel()
    shares_of: Any = drawn_shares if isinstance(result._values, Draws) else fitted_shares
    shares, classes = shares_of(result._values, column, typed, positions, at)
    index = labels.flat_index(labels.rows)
    if typed is None:
        return pd.DataFrame(shares, index[at], classes)
    table = pd.DataFrame(shares, index[at], typed.classes)
    return table.reindex(columns=list(typed.declared) or typed.classes, fill_value=0.0)


def _typed_column(labels: Labels, column: Any) -> tuple[TypedColumn | None, NDArray[np.intp]]:
    """Return the typed column of a label, and its columns of the matrix."""
    for typed, positions in () if labels.table is None else labels.table.blocks():
        if typed.name == column and typed.is_class:
            return typed, positions
    return None, positions_of(labels, "columns", [column], name="column")


def fitted_shares(
    fitted: FittedValues, column: Any, typed: TypedColumn | None, positions: Positions, rows: Any
) -> tuple[FloatArray, list[Any]]:
    """Return the probability of each class of a column by a fit, and the classes."""
    kind = fitted.model.of_column(int(positions[0]))
    if kind is None:
        raise ValueError(
            "The fit has a loss for each entry, so that a column has no probabilities: give "
            "the loss by column."
        )
    loss: Any = kind.loss
    linear = fitted.linear(rows, positions).astype(np.float64)
    t = fitted.model.modelled(linear, 0, positions)
    if typed is not None and typed.has_indicators:
        return softmax(t, axis=1), typed.classes
    if loss.classes == "two":
        return softmax(np.hstack([-t, t]) / 2, axis=1), [loss.parameters[0], 1.0]
    if loss.classes == "ordered":
        shares = loss.probabilities(t[:, 0])
        return shares, list(loss.parameters[: shares.shape[1]])
    raise ValueError(
        f"column={column!r} has the loss {loss.name!r}, which gives classes no "
        "probability: name one with the loss 'logistic' or 'ordinal'."
    )


def drawn_shares(
    draws: Draws, column: Any, typed: TypedColumn | None, positions: Positions, rows: Any
) -> tuple[FloatArray, list[Any]]:
    """Return the probability of each class of a column over all draws, and the classes."""
    if not draws.is_level(positions[:1]).any():
        raise ValueError(
            f"column={column!r} holds numbers, which have no classes: use probability(..., above=)."
        )
    levels = draws.predictive_of(int(positions[0])).levels
    return mean_shares(draws, rows, positions), [] if levels is None else levels.tolist()


def mean_shares(draws: Draws, rows: Positions, positions: Positions) -> NDArray[np.float64]:
    """Return the calibrated probability of each class over all draws (rows, classes)."""
    return draws.tempering(positions).of(_mixed_shares(draws, rows, positions))


def _mixed_shares(draws: Draws, rows: Positions, positions: Positions) -> NDArray[np.float64]:
    """Return the mean over the draws of the probability of each class (rows, classes)."""
    step = draws.batch(positions.size)
    blocks = (rows[start : start + step] for start in range(0, max(rows.size, 1), step))
    return np.concatenate([shares_in_draws(draws, b, positions).mean(axis=0) for b in blocks])


def shares_in_draws(
    draws: Draws, rows: Positions, positions: Positions, some: slice = ALL
) -> NDArray[np.float64]:
    """Return the probability of each class in each of some draws (draws, rows, classes)."""
    i, j = np.repeat(rows, positions.size), np.tile(positions, rows.size)
    v = draws.linear_at(i, j, some)
    v = v.reshape(len(v), rows.size, positions.size)
    cuts = [draws.predictive_of(position).cuts for position in positions.tolist()]
    if not draws.has_indicators(positions):
        return np.moveaxis(level_masses(cuts[0][some], v[:, :, 0]), 0, -1)
    v -= np.concatenate([each[some] for each in cuts], axis=1)[:, None]
    shares: NDArray[np.float64] = ndtr(v) + TINY
    shares /= shares.sum(axis=-1, keepdims=True)
    return shares


Tempered = tuple[NDArray[np.float64], NDArray[np.float64]] | None
"""Tempered probabilities of classes (rows, classes), and with which ones that of a draw is
accepted: otherwise another one is drawn from all.  None for temperature 1."""


def tempered_shares(draws: Draws, rows: Positions, positions: Positions) -> Tempered:
    """Return how classes are drawn so that over all draws they have the tempered probabilities."""
    if (tempering := draws.tempering(positions)).temperature == 1:
        return None
    mixed = np.maximum(_mixed_shares(draws, rows, positions), TINY)
    shares = tempering.of(mixed)
    ratio = shares / mixed
    return shares, ratio / ratio.max(axis=1, keepdims=True)


def draw_classes(
    draws: Draws,
    rows: Positions,
    positions: Positions,
    draw: int,
    tempered: Tempered,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return the position of a class for each row, from one draw.

    Over all draws they have the tempered probabilities, if these are given.
    """
    chosen = choose(shares_in_draws(draws, rows, positions, slice(draw, draw + 1))[0], rng)
    if tempered is not None:
        shares, accepted = tempered
        again = np.flatnonzero(rng.random(rows.size) > accepted[np.arange(rows.size), chosen])
        chosen[again] = choose(shares[again], rng)
    return chosen.astype(np.float64)


def choose(shares: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.intp]:
    """Return a position at random, given probabilities along the last axis."""
    below = np.cumsum(shares, axis=-1)[..., :-1]
    return np.asarray(np.sum(below < rng.random((*shares.shape[:-1], 1)), axis=-1))


Best = tuple[NDArray[np.intp], NDArray[np.floating]]
"""Columns of the largest numbers of a row, and these numbers."""


def top(result: Any, row: Any, k: Any, by: str, exclude: Any) -> xr.DataArray:
    """Return the largest predictions of rows, by label or position; see `Fitted.top`."""
    check_word("by", by, ["mean", "lower", "upper"])
    labels: Labels = result._labels
    at = positions_of(labels, "rows", row, name="row")
    rows, single = at.ravel(), at.ndim == 0
    k, excluded = check_integer("k", k, 1), _known_columns(labels, exclude)
    best = [_best(labels, _ranked(result, by, i), k, excluded(i)) for i in rows.tolist()]
    labels = labels.rename(labels.clashes(OF_TOP))
    along = _flat(labels.labelled(np.empty(labels.matrix_shape[0]), labels.rows), "row_")
    chosen = _labelled(labels, along[rows[0] if single else rows], best, k)
    if single:
        chosen.attrs["row"] = int(rows[0])
    return chosen.rename(labels.name or "prediction")


def _ranked(result: Any, by: str, row: int) -> NDArray[np.floating]:
    """Return the numbers of a row by which its columns are ranked."""
    entries = entries_at(row, np.arange(result._shape[1]))
    if by == "mean":
        return np.asarray(result.predict(entries))
    if isinstance(result._values, FittedValues):
        raise ValueError(f"by={by!r} needs the intervals of a posterior: use nmd_lab.sample().")
    low, high = result.predict_interval(entries, noise=False).T
    return np.asarray(low if by == "lower" else high)


def main_columns(labels: Labels, H: xr.DataArray, k: Any) -> xr.DataArray:
    """Return the numbers of largest size in each row of H, with the labels of their columns."""
    k, rank = check_integer("k", k, 1), H.sizes[COMPONENT]
    each = H.values.reshape(rank, -1)
    best = [_best(labels, row, k, [], by_size=True) for row in each]
    labels, components = labels.rename(labels.clashes(OF_TOP)), np.arange(rank)
    return _labelled(labels, xr.DataArray(components, dims=COMPONENT), best, k).rename(H.name)


def _best(labels: Labels, scores: Any, k: int, excluded: Any, by_size: bool = False) -> Best:
    """Return the columns of the k largest numbers of a row, and these numbers."""
    allowed = np.ones(scores.size, dtype=bool)
    if labels.table is not None and labels.table.of_values.any():  # attributes are in other units
        allowed = labels.table.of_values
    allowed[excluded] = False
    columns = np.flatnonzero(allowed)
    sizes = np.abs(scores) if by_size else scores
    best = columns[np.argsort(-sizes[columns], kind="stable")[:k]]
    return best, scores[best]


OF_TOP = ("place", "position")
"""Names that dimensions and coordinates of X do not have in the best columns."""


def _labelled(labels: Labels, of_rows: xr.DataArray, best: list[Best], k: int) -> xr.DataArray:
    """Return the best numbers of a row along the columns, or those of rows along places.

    `of_rows` has the labels of the row or rows.
    """
    columns = _flat(labels.labelled(np.empty(labels.matrix_shape[1]), labels.columns), "column_")
    width = max((at.size for at, _ in best), default=min(k, columns.size))
    position = np.full((len(best), width), -1)
    numbers = np.full(position.shape, np.nan, best[0][1].dtype if best else np.float64)
    for line, (at, scores) in enumerate(best):
        position[line, : at.size], numbers[line, : at.size] = at, scores
    if of_rows.ndim == 0:
        chosen = columns[position[0]].copy(data=numbers[0])
        return chosen.assign_coords({**of_rows.coords, "position": (columns.dims, position[0])})
    dims = *of_rows.dims, "place"
    columns = columns.reset_index(list(columns.indexes))
    chosen = columns[xr.DataArray(position, dims=dims)].copy(data=numbers)
    if (position < 0).any():
        along = {name: c.where(position >= 0) for name, c in chosen.coords.items() if c.ndim == 2}
        chosen = chosen.assign_coords(along)
    return chosen.assign_coords(
        {**of_rows.coords, "place": np.arange(1, width + 1), "position": (dims, position)}
    )


def _flat(array: xr.DataArray, name: str) -> xr.DataArray:
    """Return an array with one dimension; several are stacked to one of a name."""
    return array.stack({name: array.dims}) if array.ndim > 1 else array


def _known_columns(labels: Labels, exclude: Any) -> Callable[[int], Positions]:
    """Return a function of the position of a row, which gives the columns to leave out."""
    if np.ndim(exclude) < 2 and not is_sparse(exclude):
        columns = _listed_columns(labels, [] if exclude is None else exclude)
        return lambda row: columns
    are_flags = not is_sparse(exclude) and plain_array(exclude).dtype == bool
    with errors_about("exclude"):
        observed = exclude if are_flags else None
        known = observe_like(labels, exclude, observed=observed, may_be_empty=True)
        i, j, *_ = entries_in(matched(labels, known, unknown="offsets"))
    both = (i >= 0) & (j >= 0)  # what the fit does not have, it cannot recommend
    i, j = i[both], j[both]
    of_rows = {row: j[at] for row, at in each_group(i, labels.matrix_shape[0])}
    return lambda row: of_rows.get(row, j[:0])


def _listed_columns(labels: Labels, exclude: Any) -> NDArray[np.intp]:
    """Return the positions of a list of columns, or of those that a Series has values for."""
    index = index_of(labels, "columns")
    if hasattr(exclude, "index") and hasattr(exclude, "notna") and index is not None:
        chosen = exclude if exclude.dtype == bool else exclude.notna()
        found: NDArray[np.intp] = index.get_indexer(exclude.index[chosen.to_numpy()])
        return found[found >= 0]  # what the fit does not have, it cannot recommend
    return positions_of(labels, "columns", exclude, name="exclude").ravel()
