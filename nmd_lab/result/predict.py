"""Statistics of new observations at entries of X, from the draws, in blocks of bounded memory.

No function but `matrix` forms all entries of X.  None draws random numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from nmd_lab._runtime.checks import check_number
from nmd_lab.data.labels import Labels

from .draws import Draws, Positions
from .entries import Entries, entries_at, entries_of, positions_of
from .mixture import Array, Predictive, level_shares

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
    x = np.asarray(values, dtype=np.float64).ravel()
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
    out = np.empty(draws.shape, draws.dtype)
    for i, j in _blocks(draws):
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


def _blocks(draws: Draws) -> Iterator[tuple[slice, slice]]:
    """Yield rows and columns of blocks that cover X, of bounded memory."""
    m, n = draws.shape
    entries = draws.batch(max(each.numbers for each in draws.predictives))
    width = min(n, entries)
    height = max(entries // width, 1)
    for top in range(0, m, height):
        for left in range(0, n, width):
            yield slice(top, min(top + height, m)), slice(left, min(left + width, n))
