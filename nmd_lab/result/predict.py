"""Predictions from draws: statistics of new observations at entries, and probabilities of classes.

They are computed in blocks of bounded memory; no function but `matrix` forms all entries of X.
Classes follow: their probabilities by a fit and by draws, and classes that are drawn.  Last come
the columns with the largest predictions of a row, which are what to recommend.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtr

from nmd_lab._runtime.checks import check_integer, check_number, check_word, errors_about
from nmd_lab.data.dates import numbers_of
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.labels import COMPONENT, Labels, plain_array
from nmd_lab.data.matching import AXES, match, observe_like
from nmd_lab.data.sparse import is_sparse
from nmd_lab.data.typed_table import TypedColumn
from nmd_lab.model.fitted_values import FittedValues

from .draws import ALL, Draws, Positions
from .entries import Entries, entries_at, entries_of, index_of, is_single, positions_of
from .mixture import Array, Predictive, level_masses, level_shares

OWNER = "the posterior"
"""What messages about data name."""

Statistic = Callable[[Predictive, Array, Positions], Array]
"""A function of a distribution, of v (draws, entries), and of the positions of these entries among
all, which returns one row for each entry."""


def summarise(draws: Draws, entries: Entries, statistic: Statistic, width: int = 0) -> Array:
    """Return a statistic of the draws at each entry."""
    size = entries.i.size
    out = np.empty((size, width) if width else size, draws.dtype)
    step = draws.batch(max(each.numbers for each in draws.predictives))
    for start in range(0, size, step):
        some = np.arange(start, min(start + step, size))
        i, j = entries.i[some], entries.j[some]
        for predictive, at, v in draws.by_noise(j, draws.drawn_at(i, j)):
            out[some[at]] = statistic(predictive, v, some[at])
    return out


def mean_of(predictive: Predictive, v: Array) -> Array:
    """Return the mean of an observation over all draws, for v (draws, entries)."""
    return predictive.expected(v)


def std_of(predictive: Predictive, v: Array, noise: bool) -> Array:
    """Return the standard deviation of a new observation, or of its mean over the draws."""
    if not noise:
        return np.asarray(predictive.mean(v).std(axis=0))
    return np.sqrt(predictive.variance(v))


def means(draws: Draws, entries: Entries) -> Array:
    """Return the mean of E f(T) at each entry."""
    return summarise(draws, entries, lambda p, v, _: mean_of(p, v))


def stds(draws: Draws, entries: Entries, noise: bool = True) -> Array:
    """Return the standard deviation at each entry; see `Posterior.predict_std`."""
    return summarise(draws, entries, lambda p, v, _: std_of(p, v, noise))


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
    if entries.data is not None:
        values = entries.data.observations.entries().values
    x = numbers_of(values)
    return summarise(draws, entries, lambda p, v, at: p.log_density(v, x[at]))


def level_probabilities(draws: Draws, labels: Labels, rows: Any, columns: Any) -> Array:
    """Return the probability of each level; see `Posterior.level_probabilities`."""
    noise = draws.noise_of(0)
    if draws.model.is_mixed or noise.levels is None:
        shown = draws.noises if draws.model.is_mixed else draws.noises[0]
        raise ValueError(
            f"level_probabilities() is for ordinal data, and noise={shown!r}: use "
            "probability(..., above=), or probabilities(column)."
        )
    entries, cuts = entries_of(labels, rows, columns, owner=OWNER), noise.cuts
    assert cuts is not None
    return summarise(draws, entries, lambda _, v, at: level_shares(cuts, v), len(noise.levels))


def matrix(draws: Draws, statistic: Callable[[Predictive, Array], Array] = mean_of) -> Array:
    """Return a statistic of the draws at each entry of X, as a matrix."""
    (m, n), out = draws.shape, np.empty(draws.shape, draws.dtype)
    entries = draws.batch(max(each.numbers for each in draws.predictives))  # of a block
    width = min(n, entries)
    height = max(entries // width, 1)
    for top in range(0, m, height):
        for left in range(0, n, width):
            i, j = slice(top, min(top + height, m)), slice(left, min(left + width, n))
            out[i, j] = block(draws, statistic, i, j)
    return out


def block(draws: Draws, statistic: Callable[[Predictive, Array], Array], i: Any, j: Any) -> Array:
    """Return a statistic of the draws for rows i and columns j, as a matrix."""
    m, n = (np.arange(size)[at].size for size, at in zip(draws.shape, (i, j), strict=True))
    columns, out = np.tile(np.arange(draws.shape[1])[j], m), np.empty(m * n)
    v = draws.with_spread(draws.linear_block(i, j), columns)
    for predictive, at, of_column in draws.by_noise(columns, v):
        out[at] = statistic(predictive, of_column)
    return out.reshape(m, n)


TINY = np.finfo(np.float64).tiny
"""What a category has at least, so that the probabilities of all can be divided by their sum."""


def class_probabilities(result: Any, column: Any, rows: Any) -> Any:
    """Return the probability of each class of a column; see `Fitted.probabilities`."""
    labels = result._labels
    typed, positions = _typed_column(labels, column)
    at = np.arange(labels.matrix_shape[0])
    if rows is not None:
        at = positions_of(labels, "rows", rows).ravel()
    shares, classes = result._class_shares(column, typed, positions, at)
    if typed is None:
        return _class_table(labels, shares, classes, at)
    table = _class_table(labels, shares, typed.classes, at)
    return table.reindex(columns=list(typed.declared) or typed.classes, fill_value=0.0)


def _typed_column(labels: Labels, column: Any) -> tuple[TypedColumn | None, NDArray[np.intp]]:
    """Return the typed column of a label, and its columns of the matrix."""
    if labels.table is not None:
        for typed, positions in labels.table.blocks():
            if typed.name == column and typed.is_class:
                return typed, positions
    return None, positions_of(labels, "columns", [column], name="column")


def _class_table(labels: Labels, shares: FloatArray, classes: list[Any], at: Positions) -> Any:
    """Return the probabilities of classes (rows, n_classes) as a DataFrame with labels."""
    rows = labels.flat(labels.rows)
    index = labels.coords.indexes.get(labels.rows[0]) if rows.ndim == 1 else None
    index = pd.Index(rows) if index is None or len(index) != len(rows) else index
    return pd.DataFrame(shares, index=index[at], columns=classes)


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
        return _softmax(t), typed.classes
    if loss.classes == "two":
        return _softmax(np.hstack([-t, t]) / 2), [loss.parameters[0], 1.0]
    if loss.classes == "ordered":
        shares = loss.probabilities(t[:, 0])
        return shares, list(loss.parameters[: shares.shape[1]])
    raise ValueError(
        f"column={column!r} has the loss {loss.name!r}, which gives classes no "
        "probability: name one with the loss 'logistic' or 'ordinal'."
    )


def _softmax(t: FloatArray) -> FloatArray:
    """Return fractions that are proportional to exp(t) in each row."""
    shares: FloatArray = np.exp(t - t.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    return shares


def drawn_shares(
    draws: Draws, column: Any, typed: TypedColumn | None, positions: Positions, rows: Any
) -> tuple[FloatArray, list[Any]]:
    """Return the probability of each class of a column over all draws, and the classes."""
    if not draws.is_level(positions[:1]).any():
        raise ValueError(
            f"column={column!r} holds numbers, which have no classes: use probability(..., above=)."
        )
    levels = draws.noise_of(int(positions[0])).levels or ()
    return mean_shares(draws, rows, positions), list(levels)


def mean_shares(draws: Draws, rows: Positions, positions: Positions) -> NDArray[np.float64]:
    """Return the calibrated probability of each class over all draws (rows, classes)."""
    return draws.tempering(positions).of(_mixed_shares(draws, rows, positions))


def _mixed_shares(draws: Draws, rows: Positions, positions: Positions) -> NDArray[np.float64]:
    """Return the mean over the draws of the probability of each class (rows, classes)."""
    cuts = draws.noise_of(int(positions[0])).cuts
    assert cuts is not None
    step = draws.batch(max(cuts.shape[1] + 1, positions.size))
    found = []
    for start in range(0, max(rows.size, 1), step):
        some = rows[start : start + step]
        if draws.has_indicators(positions):
            found.append(shares_in_draws(draws, some, positions).mean(axis=0))
        else:
            v = draws.linear_at(some, np.repeat(positions, some.size))
            found.append(level_shares(cuts, v))
    return np.concatenate(found)


def shares_in_draws(
    draws: Draws, rows: Positions, positions: Positions, some: slice = ALL
) -> NDArray[np.float64]:
    """Return the probability of each class in each of some draws (draws, rows, classes)."""
    i, j = np.repeat(rows, positions.size), np.tile(positions, rows.size)
    v = draws.linear_at(i, j, some)
    v = v.reshape(len(v), rows.size, positions.size)
    cuts = [draws.noise_of(int(position)).cuts for position in positions]
    if not draws.has_indicators(positions):
        assert cuts[0] is not None
        return np.moveaxis(level_masses(cuts[0][some], v[:, :, 0]), 0, -1)
    v -= np.concatenate([each[some] for each in cuts if each is not None], axis=1)[:, None]
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


KnownColumns = Callable[[int], NDArray[np.integer]]
"""A function of the position of a row, which returns the columns to leave out."""


Best = tuple[NDArray[np.intp], NDArray[np.floating]]
"""Columns of the largest numbers of a row, and these numbers."""


def top(result: Any, row: Any, k: Any, by: str, exclude: Any) -> xr.DataArray:
    """Return the largest predictions of rows, by label or position; see `Fitted.top`."""
    check_word("by", by, ["mean", "lower", "upper"])
    labels: Labels = result._labels
    rows = positions_of(labels, "rows", row, name="row").ravel()
    k, excluded = check_integer("k", k, 1), _known_columns(labels, exclude)
    best = [_best(labels, result._ranked_by(by, i), k, excluded(i)) for i in rows.tolist()]
    W = labels.label_rows(np.empty((labels.matrix_shape[0], 1)))
    along = _flat(W.isel({COMPONENT: 0}, drop=True), "row_")
    if not is_single(labels, "rows", row):
        found = _table(labels, along, rows, best, min(k, labels.matrix_shape[1]))
        return found.rename(labels.name or "prediction")
    (at, numbers), columns = best[0], _along_columns(labels)
    dim, position = str(columns.dims[0]), int(rows[0])
    chosen = columns.isel({dim: at}).copy(data=numbers).rename(labels.name or "prediction")
    of_row = along.isel({along.dims[0]: position}).coords
    names = {label: value for label, value in of_row.items() if label not in chosen.coords}
    return chosen.assign_coords({**names, "position": (dim, at)}).assign_attrs(row=position)


def main_columns(labels: Labels, H: xr.DataArray, k: Any) -> xr.DataArray:
    """Return the numbers of largest size in each row of H, with the labels of their columns."""
    k, rank = check_integer("k", k, 1), H.sizes[COMPONENT]
    each = H.values.reshape(rank, -1)
    best = [_best(labels, row, k, np.empty(0, np.intp), by_size=True) for row in each]
    components = xr.DataArray(np.arange(rank), dims=COMPONENT)
    return _table(labels, components, np.arange(rank), best, k).rename(H.name or "H")


def _best(
    labels: Labels,
    scores: NDArray[np.floating],
    k: int,
    excluded: NDArray[np.integer],
    by_size: bool = False,
) -> Best:
    """Return the columns of the k largest numbers of a row, and these numbers."""
    allowed = np.ones(scores.size, dtype=bool)
    if labels.table is not None and labels.table.of_values.any():  # attributes are in other units
        allowed = labels.table.of_values
    allowed[excluded] = False
    columns = np.flatnonzero(allowed)
    sizes = np.abs(scores) if by_size else scores
    best = columns[np.argsort(-sizes[columns], kind="stable")[:k]]
    return best, scores[best]


def _along_columns(labels: Labels) -> xr.DataArray:
    """Return an array along the columns, with their labels."""
    H = labels.label_columns(np.empty((1, labels.matrix_shape[1])))
    return _flat(H.isel({COMPONENT: 0}, drop=True), "column_")


def _table(
    labels: Labels, along_rows: xr.DataArray, rows: NDArray[np.intp], each: list[Best], most: int
) -> xr.DataArray:
    """Return the best numbers along rows and places, with the labels of the columns."""
    width = max((best.size for best, _ in each), default=most)
    position = np.full((rows.size, width), -1)
    numbers = np.full(position.shape, np.nan, each[0][1].dtype if each else np.float64)
    for line, (best, scores) in enumerate(each):
        position[line, : best.size], numbers[line, : best.size] = best, scores
    columns = _along_columns(labels)
    row_dim, column_dim = str(along_rows.dims[0]), str(columns.dims[0])
    place = "place"
    while place in {row_dim, column_dim, *labels.dims, *map(str, labels.coords.coords)}:
        place += "_"
    dims = (row_dim, place)
    table = xr.DataArray(numbers, dims=dims, coords=along_rows.isel({row_dim: rows}).coords)
    if columns.coords:
        columns = columns.reset_index(list(columns.indexes))
    for name, coordinate in columns.coords.items():
        if name not in table.coords and coordinate.dims == (column_dim,):
            picked = xr.DataArray(coordinate.values[position], dims=dims)
            filled = picked if (position >= 0).all() else picked.where(position >= 0)
            table = table.assign_coords({name: filled})
    places = np.arange(1, width + 1)
    return table.assign_coords({place: places, "position": (dims, position)})


def _flat(array: xr.DataArray, name: str) -> xr.DataArray:
    """Return an array with one dimension; several are stacked to one of a name."""
    return array.stack({name: array.dims}) if array.ndim > 1 else array


def _known_columns(labels: Labels, exclude: Any) -> KnownColumns:
    """Return the function that gives the columns of a row to leave out."""
    if np.ndim(exclude) < 2 and not is_sparse(exclude):
        columns = _listed_columns(labels, [] if exclude is None else exclude)
        return lambda row: columns
    are_flags = not is_sparse(exclude) and plain_array(exclude).dtype == bool
    with errors_about("exclude"):
        observations = observe_like(
            labels, exclude, observed=exclude if are_flags else None, may_be_empty=True
        )
    of_known = observations.labels
    row_positions, column_positions = (match(of_known, labels, axis) for axis in AXES)
    if row_positions is None or column_positions is None:
        raise ValueError(
            f"exclude has shape {of_known.shape}: give it the shape of X, {labels.shape}."
        )
    i, j, _ = observations.entries()
    i, j = row_positions[i], column_positions[j]
    both = (i >= 0) & (j >= 0)  # what the fit does not have, it cannot recommend
    stored = sparse.csr_array(
        (np.ones(both.sum(), bool), (i[both], j[both])), shape=labels.matrix_shape
    )
    return lambda row: stored.indices[stored.indptr[row] : stored.indptr[row + 1]]


def _listed_columns(labels: Labels, exclude: Any) -> NDArray[np.intp]:
    """Return the positions of a list of columns, or of those that a Series has values for."""
    index = index_of(labels, "columns")
    if hasattr(exclude, "index") and hasattr(exclude, "notna") and index is not None:
        chosen = exclude if exclude.dtype == bool else exclude.notna()
        found: NDArray[np.intp] = index.get_indexer(exclude.index[chosen.to_numpy()])
        return found[found >= 0]  # what the fit does not have, it cannot recommend
    return positions_of(labels, "columns", exclude, name="exclude").ravel()
