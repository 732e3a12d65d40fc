"""How predictions are judged: errors, and the probability of the rating that came."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import ndtr

from .problems import Array, Ratings

LEAST = 1e-6
"""Probabilities below this one count as this one: a single rating must not decide."""

Above = Callable[[Array, Array, float], Array]
"""Probability (n,) that the ratings at rows and columns are above a value."""


def clipped(guess: Array, train: Ratings) -> Array:
    """Return predictions within the range of the training ratings; their mean for NaN."""
    guess = np.nan_to_num(np.asarray(guess, dtype=float), nan=float(train.data.mean()))
    return np.clip(guess, train.data.min(), train.data.max())


def rmse(guess: Array, values: Array) -> float:
    """Return the root mean squared error."""
    return float(np.sqrt(np.mean((guess - values) ** 2)))


def mae(guess: Array, values: Array) -> float:
    """Return the mean absolute error."""
    return float(np.mean(np.abs(guess - values)))


def gaussian(predict: Callable[[Array, Array], Array], spread: float) -> Above:
    """Return probabilities from single predictions, with Gaussian noise of this spread."""

    def above(rows: Array, columns: Array, value: float) -> Array:
        return ndtr((predict(rows, columns) - value) / spread)

    return above


def log_likelihood(
    above: Above, rows: Array, columns: Array, values: Array, levels: Array
) -> float:
    """Return the mean logarithm of the probabilities of the ratings.

    The probability of a level is that of all values which are nearer to it than to another level.

    Parameters
    ----------
    above : callable
        Probability that ratings are above a value.
    rows, columns, values : ndarray (n,)
        Ratings.
    levels : ndarray (K,)
        The levels of the training ratings, in order.  A rating between two of them counts as
        the nearest.
    """
    middles = (levels[1:] + levels[:-1]) / 2
    tails = [np.ones(len(values)), *(above(rows, columns, c) for c in middles.tolist())]
    mass = np.array([*tails, np.zeros(len(values))])
    level = np.abs(levels[:, None] - values).argmin(axis=0)
    every = np.arange(len(values))
    return float(np.mean(np.log(np.maximum(mass[level, every] - mass[level + 1, every], LEAST))))
