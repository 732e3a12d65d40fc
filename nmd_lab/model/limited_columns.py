"""The f of a column with limits: above 0 unless a value or a limit is below 0.

A column of concentrations has values below a detection limit.  A straight line would draw negative
ones there, and an f that is learned from the values would take the limits for values.  A value x
has the limits x and x.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import ndtr

from .monotone import Monotone

Array = NDArray[np.float64]

FEWEST = 5  # different known values from which their distribution is learned
FAR = -1e4  # knot at which f is 0, in standard deviations or limits: no draw is there
RARE = 0.01  # fraction of a normal column below 0, of that below a limit, that is harmless


def f_within_limits(low: Array, high: Array) -> Monotone | None:
    """Return the f of a column, given the limits of its values; None for the straight line.

    It is the exponential function if normal logarithms are likelier than normal values.  Where
    values are likelier, and many would be negative below a limit, it is the line with an
    exponential tail to 0.
    """
    known, x = low == high, np.where(np.isfinite(low), low, high)
    if np.unique(x[known]).size < FEWEST or x.min() < 0 or (x[~known] == 0).any():
        return None
    above = x > 0
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum([low[above], high[above]], 0))
    (of_x, centre, spread), (of_log, mean, sd) = _normal(low, high), _normal(*logs)
    if of_log - logs[0][known[above]].sum() > of_x:
        t = mean + sd * np.append(FAR, np.linspace(-5, 4, 19))
        return Monotone(t.tolist(), [0.0, *np.exp(t[1:]).tolist()])
    largest = float(high[np.isneginf(low)].max(initial=0))
    below_0, below = ndtr((np.array([0.0, largest]) - centre) / spread)
    if largest == 0 or below_0 < RARE * below:
        return None
    t = np.concatenate([[FAR], np.linspace(-4, 1, 18), [2]])
    values = np.where(t < 1, np.exp(np.minimum(t, 1) - 1), t)
    least = float(x[above].min())
    return Monotone((least * t).tolist(), [0.0, *(least * values[1:]).tolist()])


def _normal(low: Array, high: Array) -> tuple[float, float, float]:
    """Return the largest log-likelihood of a normal distribution, with its mean and deviation."""
    known = low == high
    x, low, high = low[known], low[~known], high[~known]
    centre, size = float(x.mean()), float(x.std())

    def cost(numbers: Array) -> float:
        mean, sd = centre + size * numbers[0], size * np.exp(numbers[1])
        z, below, above = ((each - mean) / sd for each in (x, low, high))
        mass = np.maximum(ndtr(above) - ndtr(below), np.finfo(float).tiny)
        return float(0.5 * z @ z + z.size * np.log(sd) - np.log(mass).sum())

    best = minimize(cost, np.zeros(2), method="Nelder-Mead")
    return -float(best.fun), centre + size * best.x[0], size * float(np.exp(best.x[1]))
