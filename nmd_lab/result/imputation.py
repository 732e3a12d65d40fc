"""Data with their missing cells filled by a posterior: by a point, or several times by draws.

Draws are new observations of entries, within their limits, or with values that repeat.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from nmd_lab._runtime.checks import as_generator, check_integer, check_word
from nmd_lab.data.dense import DenseObservations
from nmd_lab.data.entries import EntryLimits
from nmd_lab.data.inputs import NO_LIMITS, GivenLimits, with_limits
from nmd_lab.data.labels import any_frame, is_frame
from nmd_lab.data.matching import MatchedData, dense_like, match, matched, observe_like
from nmd_lab.data.observations import Observations
from nmd_lab.data.typed_table import TypedColumn
from nmd_lab.model.mixed import each_group
from nmd_lab.sampler.sampled_model import CLIPPED, knows_T

from .draws import ENOUGH, LIMITS, Drawn, TemperedShares
from .entries import entries_at, filled_frame, refuse_sparse
from .fold_in import NewRowsOfPosterior, observe_rows
from .intervals import summarise
from .mixture import Array, Predictive, RepeatedValues, has_repeated_value

Point = Literal["auto", "mean", "median", "mode"]
"""What one number, level or class stands for a distribution."""

Positions = NDArray[np.integer]

MOST_SPREADS = 5.0
"""Standard deviations from the mean of a column within which a best guess of a number lies: a row
with outliers may be predicted far beyond its column where f is not learned."""


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


class PosteriorImputation(NewRowsOfPosterior):
    """Completed data."""

    @any_frame
    def impute(
        self,
        X: Any,
        n: int | None = None,
        *,
        point: Point = "auto",
        at_most: ArrayLike | None = None,
        at_least: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        random_state: Any = None,
    ) -> Any:
        """Return data with their missing cells filled: once by a point, or n times by draws.

        Parameters
        ----------
        X : array_like, masked array, DataFrame or DataArray
            Data with missing entries, with the columns of the fitted data or, by label, some of
            them.  Their rows are those of the fitted data if all labels of rows occur there, each
            once, or if one of the two has no labels and they have as many; the default labels 0, 1,
            2, ... count as none.  Otherwise all are new rows, which are drawn as by `fold_in`, but
            from about 60 of the draws: the first rows of a table without labels are, too.  Use
            `fold_in` for all draws, and for as many new rows without labels.
        n : int, optional
            Number of completed copies, for multiple imputation.  By default there is one result,
            without randomness, for each entry its best guess.
        point : {"auto", "mean", "median", "mode"}, default "auto"
            The best guess.  "auto": the mean of a number (where columns have noise of their own,
            within five standard deviations of the mean of its column), the median of ordered levels
            (the first at which the cumulative probability reaches one half), and the most probable
            of yes and no or of classes.  "mean": of ordered levels that nearest to their mean.
            "median": also of a number.  "mode": also of ordered levels.
        at_most, at_least, upper : array_like, optional
            Entries of which only limits are known, as for `nmd_lab.sample`; by default those of
            the fit whose values are still the limits.  They are filled, too, by values within
            their limits; a best guess is then the mean or the median of draws.
        random_state : int, Generator, RandomState or None, default None
            Seed of the draws and of the noise of copies.

        Returns
        -------
        same type as X, an ndarray for a masked array, or a list of n of them
            Observed entries are kept, and a DataFrame has its columns, index, dtypes and
            categories, as that of `Decomposition.impute`.  Whole numbers are filled by whole ones
            if the type is one of integers, such as "Int64"; ``X.convert_dtypes()`` makes integers
            of floats without fractions.  The missing entries of a copy are new observations, with
            noise, from one random draw; two copies have different draws as long as there are
            enough.  Where columns have noise of their own, a value that X has at least five times
            in a column without limits, such as 0, is drawn as such.

        Raises
        ------
        ValueError, TypeError
            If X is sparse, has another number of columns or other labels of them, an argument is
            invalid, or limits are those of new rows.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> train, test = nmd.split_observed(wine, 0.1, random_state=0)
        >>> posterior = nmd.sample(train, 3, draws=50, random_state=0)
        >>> filled = posterior.impute(train)
        >>> bool(filled.notna().all(axis=None))
        True
        >>> len(posterior.impute(train, n=20, random_state=0))
        20
        """
        check_word("point", point, ["auto", "mean", "median", "mode"])
        count = None if n is None else check_integer("n", n, 1)
        limits = GivenLimits(at_most, at_least, upper)
        enough = max(ENOUGH, count or 0)
        posterior, data = self._matched(X, limits, enough, numbered=count is not None)
        if count is None:
            return filled(posterior, X, data, point)
        return copies(posterior, X, data, count, as_generator(random_state))

    def _matched(
        self,
        X: Any,
        limits: GivenLimits = NO_LIMITS,
        enough: int = ENOUGH,
        *,
        numbered: bool = False,
    ) -> tuple[Self, MatchedData]:
        """Return the posterior of the rows of X (for new ones so many draws), and their places.

        Equal new rows have draws of their own if they are numbered.
        """
        refuse_sparse(X)
        new = observe_like(self._labels, X, may_be_empty=True)
        try:
            rows = match(new.labels, self._labels, "rows")
        except ValueError:  # a label comes twice
            rows = None
        if rows is not None and np.all(rows >= 0):
            data = matched(self._labels, new, self._owner)
            if limits:
                data = data._replace(observations=with_limits(data.observations, X, limits))
            elif self._limits is not None:
                data = data._replace(observations=_with_known_limits(self._limits, self, data))
            return self, data
        if limits:
            raise ValueError(
                "at_most= and at_least= go with rows of the fitted data, and X has new ones: give "
                "new rows NaN there."
            )
        if isinstance(X, xr.DataArray):  # rows along any dimension
            new = observe_rows(self._labels, X)
        posterior = self._with_draws(enough)._of_new_rows(new, numbered=numbered)
        return posterior, matched(posterior._labels, new, self._owner)


def filled(
    posterior: Drawn,
    X: Any,
    data: MatchedData,
    point: Point = "auto",
    others: Drawn | None = None,
) -> Any:
    """Return X, of which `data` has the positions, with best guesses in its missing cells.

    Rows at the positions -1, -2, ... are the first, second, ... row of the others.
    """

    def of_each(i: Positions, guess: Callable[[Any, Positions, Positions], Array]) -> Array:
        found = np.empty(i.size)
        for of, at in ((posterior, np.flatnonzero(i >= 0)), (others, np.flatnonzero(i < 0))):
            if at.size:
                found[at] = guess(of, np.maximum(i[at], ~i[at]), at)
        return found

    def numbers(entries: Bounded) -> Array:
        def guess(of: Any, i: Positions, at: Positions) -> Array:
            return _best_numbers(of, entries.at(at)._replace(i=i), point)

        return of_each(entries.i, guess)

    def classes(rows: Positions, positions: Positions) -> Array:
        def guess(of: Any, i: Positions, _: Positions) -> Array:
            return np.asarray(of._mean_class_shares(i, positions).argmax(axis=1), np.float64)

        return of_each(rows, guess)

    return _filled(X, data, numbers, classes)


def _best_numbers(posterior: Drawn, entries: Bounded, point: Point) -> Array:
    """Return the best guess of a number or level at each entry."""
    i, j, *_ = entries
    x = summarise(posterior, entries_at(i, j), lambda p, v, _: p.point(v, point))
    if point == "auto" and posterior._kinds is not None:
        x = np.clip(x, *_near_means(posterior)[:, j])
    limited = np.flatnonzero(entries.is_limited)
    if limited.size:
        within = draws_within(posterior, entries.at(limited))
        is_level = is_level_of(posterior, j[limited])
        is_median = np.where(is_level, point != "mean", point == "median")
        x[limited] = np.where(is_median, _quantile(within, 0.5), within.mean(axis=0))
    return x


def _near_means(posterior: Drawn) -> NDArray[np.float64]:
    """Numbers between which a best guess lies in each column, (2, n); infinite for levels."""
    assert posterior._kinds is not None
    ends = np.tile([[-np.inf], [np.inf]], len(posterior.noise))
    for j, (noise, kind) in enumerate(
        zip(posterior.noise, posterior._kinds.column_models, strict=True)
    ):
        if noise == CLIPPED or knows_T(noise, kind.nonlinearity):
            ends[:, j] = kind.modelled(MOST_SPREADS * np.array([-1.0, 1.0]))
    return ends


def copies(
    posterior: Drawn, X: Any, data: MatchedData, n: int, rng: np.random.Generator
) -> list[Any]:
    """Return X n times with draws in its missing cells, different ones as long as there are."""
    order = draws_evenly(posterior, n, int(rng.integers(posterior._n_draws)))
    predictives = with_repeats(posterior, data)
    known: dict[int, TemperedShares | None] = {}  # the same cells are missing in each copy

    def copy(draw: int) -> Any:
        def numbers(entries: Bounded) -> Array:
            v = posterior._drawn_at(entries.i, entries.j, draw)[0]
            x = draw_within(posterior, predictives, draw, v, entries, rng)
            free = np.empty(0, np.intp)
            if "temperature" in posterior.draws:
                free = np.flatnonzero(is_level_of(posterior, entries.j) & ~entries.is_limited)
            for k, at in each_group(entries.j[free], posterior._shape[1]):
                codes = classes(entries.i[free[at]], np.array([k]))
                levels = np.array(posterior._noise_of(k).levels)
                x[free[at]] = levels[codes.astype(np.intp)]
            return x

        def classes(rows: Positions, positions: Positions) -> Array:
            key = int(positions[0])
            if key not in known:
                known[key] = posterior._tempered_shares(rows, positions)
            return posterior._draw_classes(rows, positions, draw, known[key], rng)

        return _filled(X, data, numbers, classes)

    return [copy(draw) for draw in order.tolist()]


def _quantile(draws: Array, level: Any) -> Array:
    """Return quantiles of draws that are among these, as levels have to be."""
    return np.asarray(np.quantile(draws, level, axis=0, method="inverted_cdf"))


def intervals_within(posterior: Drawn, data: MatchedData, level: float) -> tuple[Any, Array]:
    """Return which entries of data have limits, and their intervals within these (entries, 2)."""
    array = data.observations.to_array()
    bounds = _bounds(data.observations, array)
    i, j = at = np.nonzero(np.isfinite(bounds).any(axis=0))
    tails = (1 - level) / 2, (1 + level) / 2
    if not i.size:
        return at, np.empty((0, 2))
    entries = Bounded(data.rows[i], data.columns[j], *bounds[:, i, j])
    return at, _quantile(draws_within(posterior, entries), tails).T


def _filled(
    X: Any,
    data: MatchedData,
    numbers: Callable[[Bounded], Array],
    classes: Callable[[Positions, Positions], Array],
) -> Any:
    """Return X filled by numbers at entries, and by the positions of classes of rows."""
    array, labels = data.observations.to_array(), data.observations.labels
    bounds, holes, table = _bounds(data.observations, array), np.isnan(array), labels.table
    limited = np.isfinite(bounds).any(axis=0)
    by_class = [False] if table is None else [each.has_indicators for each in table.of_matrix]
    i, j = np.nonzero((holes & ~np.array(by_class)) | limited)
    array[i, j] = numbers(Bounded(data.rows[i], data.columns[j], *bounds[:, i, j]))
    if not is_frame(X):
        return dense_like(X, labels, array)

    def missing(column: TypedColumn, at: NDArray[np.intp]) -> NDArray[np.floating]:
        if column.has_indicators:
            positions, rows = np.zeros(len(array)), np.flatnonzero(holes[:, at[0]])
            positions[rows] = classes(data.rows[rows], data.columns[at])
            return positions
        values = array[:, at[0]].astype(np.float64)
        return values if column.kind == "number" else column.nearest(values[:, None])

    hidden = limited if table is None else limited[:, table.first_columns]
    return filled_frame(X, labels, missing, hidden)


def _bounds(observations: Observations, array: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the smallest and the largest value of each entry (2, m, n), infinite without any."""
    limits = observations.limits
    bounds = np.broadcast_to(np.reshape([-np.inf, np.inf], (2, 1, 1)), (2, *array.shape))
    if limits is None:
        return bounds
    bounds, some = bounds.copy(), np.flatnonzero(limits.codes)
    rows, columns = (each[some] for each in observations.stored_positions())
    bounds[:, rows, columns] = limits.at(some).ends(array[rows, columns].astype(np.float64))
    return bounds


def _with_known_limits(limits: xr.Dataset, posterior: Drawn, data: MatchedData) -> Observations:
    """Return data with the limits of the fit where they still have these as values."""
    observations, place = data.observations, np.full(posterior._shape, -1)
    rows, columns, codes, values, uppers = (limits[name].values for name in LIMITS)
    place[rows, columns] = np.arange(rows.size)
    at = place[np.ix_(data.rows, data.columns)].ravel()
    x = observations.to_array().ravel()
    is_limit = (at >= 0) & (x.astype(values.dtype) == values[at])
    known = EntryLimits(
        np.where(is_limit, codes[at], 0).astype(np.int8), np.where(is_limit, uppers[at], x)
    )
    assert isinstance(observations, DenseObservations)
    return replace(observations, limits=known)
