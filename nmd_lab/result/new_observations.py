"""New observations of entries from draws: within their limits, or with values that repeat."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.matching import MatchedData

from .draws import ENOUGH, Drawn
from .mixture import Array, Predictive
from .repeated_values import RepeatedValues, has_repeated_value

Positions = NDArray[np.integer]

MOST_TRIES = 1000
"""Draws of a value within its limits; then the limit itself is near enough."""

CELLS = 1000
"""Largest number of observed cells of a column that are replicated."""


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


def is_level_of(posterior: Drawn, columns: Positions) -> NDArray[np.bool_]:
    """Return whether columns of the matrix are levels."""
    return np.broadcast_to(np.array(posterior.noise) == "ordinal", posterior._shape[1])[columns]


def draw_within(
    posterior: Drawn,
    predictives: list[Predictive],
    draw: int,
    v: Array,
    entries: Bounded,
    rng: np.random.Generator,
) -> Array:
    """Return new observations from a single draw, again while they are beyond their limits."""
    x, outside = np.empty(v.size), np.arange(v.size)
    for _ in range(MOST_TRIES):
        columns = entries.j[outside]
        for predictive, at, u in posterior._by_noise(predictives, columns, v[outside]):
            x[outside[at]] = predictive.of_draw(draw).draw(u, rng)
        outside = np.flatnonzero((x < entries.low) | (x > entries.high))
        if outside.size == 0:
            break
    return np.asarray(np.clip(x, entries.low, entries.high))


def draws_within(posterior: Drawn, entries: Bounded) -> Array:
    """Return a new observation of each entry, within its limits, from each draw."""
    predictives, rng = posterior._predictives, np.random.default_rng(0)
    every = enumerate(posterior._drawn_at(entries.i, entries.j))
    return np.stack(
        [draw_within(posterior, predictives, draw, v, entries, rng) for draw, v in every]
    )


def draws_evenly(posterior: Drawn, n: int, start: int) -> NDArray[np.intp]:
    """Return the numbers of n draws from `start` on, evenly along the chain of each member.

    Fewer draws are the first of them.  A step of the golden section of all fills the largest gap.
    """
    size, member = posterior._n_draws, posterior._flat("member")
    by_member = np.arange(size) if member is None else np.argsort(member[:, 0], kind="stable")
    steps = range(round(0.618 * size), size + 1)
    step = next(each for each in steps if math.gcd(each, size) == 1)  # each draw has its turn
    return by_member[(start + step * np.arange(n)) % size]


def with_repeats(posterior: Drawn, data: MatchedData) -> list[Predictive]:
    """Return the distribution of each column, with the values that repeat among its numbers.

    Columns with limits have none: their limits repeat, and numbers beyond these are not observed.
    """
    predictives = posterior._predictives
    if posterior._kinds is None:
        return predictives
    x, rng = data.observations.to_array().astype(np.float64), np.random.default_rng(0)
    if (limits := data.observations.limits) is not None:
        limited = data.observations.stored_positions()[1][np.flatnonzero(limits.codes)]
        x[:, limited] = np.nan
    for column, values in zip(data.columns.tolist(), x.T, strict=True):
        rows = np.flatnonzero(~np.isnan(values))
        is_level, is_full = posterior.noise[column] == "ordinal", rows.size == values.size
        if is_level or is_full or not has_repeated_value(values[rows]):
            continue
        some = data.rows[np.sort(rng.choice(rows, min(rows.size, CELLS), replace=False))]
        ends = np.tile([[-np.inf], [np.inf]], some.size)
        cells = Bounded(some, np.full(some.size, column), *ends)
        replicates = [
            draw_within(
                posterior, predictives, d, posterior._drawn_at(some, cells.j, d)[0], cells, rng
            )
            for d in draws_evenly(posterior, ENOUGH, 0).tolist()
        ]
        repeated = RepeatedValues.of(values[rows], np.stack(replicates))
        noise = predictives[column].noise._replace(repeated=repeated)
        predictives[column] = type(predictives[column])(noise)
    return predictives
