"""Summaries of the draws at some entries: mean, spread, interval."""

from __future__ import annotations

import numpy as np

from .mixture import Predictive
from .noise import Array


def mean_of(predictive: Predictive, v: Array) -> Array:
    """Return the mean of an observation over all draws, for v (draws, entries)."""
    mean: Array = predictive.mean(v).mean(axis=0)
    return mean


def std_of(predictive: Predictive, v: Array, noise: bool) -> Array:
    """Return the standard deviation of a new observation, or of its mean over the draws."""
    if not noise:
        return np.asarray(predictive.mean(v).std(axis=0))
    mean, variance = predictive.mean_and_variance(v)
    total: Array = np.sqrt(mean.var(axis=0) + np.broadcast_to(variance, v.shape).mean(axis=0))
    return total


def interval_of(predictive: Predictive, v: Array, level: float, noise: bool) -> Array:
    """Return the ends of an equal-tailed interval, as an array (entries, 2)."""
    tails = (1 - level) / 2, (1 + level) / 2
    if not noise:
        return np.asarray(np.quantile(predictive.mean(v), tails, axis=0).T)
    return np.stack([predictive.quantile(v, tail) for tail in tails], axis=1)
