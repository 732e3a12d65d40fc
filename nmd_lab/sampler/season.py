"""A season of rows in order: an offset of each column at each phase of a period.

A sensor has a day of its own, which components that it shares with others describe badly.  With the
phase s(t) of row t, and the spread of each column as unit,

    T_tj = (WH)_tj + b_j + S_{s(t), j} + noise,     S_sj ~ N(0, τ_j),     τ_j ~ inverse Gamma.

The period is found in the data: the shortest lag at which rows resemble each other nearly as well
as at any other lag, much better than at the lags before, and again at twice the lag.  A column
without a season has a small τ_j, which shrinks S there.
"""

from __future__ import annotations

import numpy as np

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import Observations
from nmd_lab.data.row_places import RowPlaces

from .priors import Doubles
from .problem import SampledProblem

PROMINENCE, STANDARD_ERRORS, NEARLY = 0.2, 3.0, 0.25
"""How much larger than before the correlation at the period is, with so many standard errors, and
how far below the largest one it may be, as a share of the range of all."""

FEWEST_PERIODS = 3
"""Number of periods that the rows have at least."""

MAX_ROWS = 1 << 17
"""Rows of an evenly spaced grid up to which a period is looked for."""


def find_period(observations: Observations, places: RowPlaces) -> int:
    """Return the period in steps between rows; 0 if there is none."""
    at = places.on_grid_of(places)
    series = np.unique(places.series, return_inverse=True)[1]
    length = int(at.max(initial=0)) + 1
    i, j, x = observations.entries()
    if length * (series.max(initial=0) + 1) > MAX_ROWS or length < 2 * FEWEST_PERIODS:
        return 0
    longest = length // FEWEST_PERIODS
    products, counts = np.zeros((2, 2 * longest + 1))
    order, ends = np.argsort(j, kind="stable"), np.cumsum(observations.counts(0))
    for here in np.split(order, ends[:-1]):
        values = x[here].astype(np.float64)
        if values.size < 2 or np.ptp(values) == 0:
            continue
        z, seen = np.zeros((2, series.max() + 1, 2 * length))
        z[series[i[here]], at[i[here]]] = (values - values.mean()) / values.std()
        seen[series[i[here]], at[i[here]]] = 1.0
        for sums, of_rows in ((products, z), (counts, seen)):
            power = np.square(np.abs(np.fft.rfft(of_rows))).sum(axis=0)
            sums += np.fft.irfft(power)[: sums.size]
    r = products / np.maximum(counts, 1.0)
    needed = PROMINENCE + STANDARD_ERRORS / np.sqrt(len(at))
    peaks = [p for p in range(2, longest + 1) if _is_peak(r, p, needed)]
    if not peaks:
        return 0
    nearly = r[peaks].max() - NEARLY * np.ptp(r)
    return next(p for p in peaks if r[p] >= nearly)


def _is_peak(r: Doubles, p: int, needed: float) -> bool:
    """Return whether a correlation is a peak, and that at twice the lag is one as well."""
    rise, again = r[p] - r[:p].min(), r[2 * p - 1 : 2 * p + 2].max() - r[p : 2 * p].min()
    return bool(r[p] > r[p - 1] and r[p] >= r[p + 1] and min(rise, 2 * again) > needed)


def first_season(problem: SampledProblem, T: FloatArray) -> Doubles:
    """Return the season to begin with: means of T at each phase, less that of the column."""
    assert problem.order is not None
    shape, at = (problem.order.period, problem.shape[1]), problem.season_of_entries
    counts, sums = (np.bincount(at, each, np.prod(shape)).reshape(shape) for each in (None, T))
    means = sums.sum(axis=0) / np.maximum(counts.sum(axis=0), 1)
    return np.asarray((sums - counts * means) / np.maximum(counts, 1))


def draw_season(
    problem: SampledProblem,
    season: FloatArray,
    residual: FloatArray,
    rho: Doubles,
    rng: np.random.Generator,
) -> Doubles:
    """Return a draw of S, given T less all else at the entries."""
    at, weights = problem.season_of_entries, problem.weights_of_T
    rate = 0.5 * np.sum(season**2, axis=0)
    rate += problem.prior.noise_rate * problem.prior.spread**2
    inverse_variance = rng.gamma(1.0 + 0.5 * len(season), 1 / rate)
    weighted = residual if weights is None else residual * weights
    counts, sums = (
        rho * np.bincount(at, each, season.size).reshape(season.shape)
        for each in (weights, weighted)
    )
    precision = counts + inverse_variance
    return np.asarray(sums / precision + rng.standard_normal(season.shape) / np.sqrt(precision))
