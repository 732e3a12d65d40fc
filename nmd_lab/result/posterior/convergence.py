"""Convergence of chains: split R-hat and effective sample size.

Both are the classic versions (Gelman et al., *Bayesian Data Analysis*, 3rd edition, section 11.4-5;
the sum of correlations ends as in Geyer, 1992), on the numbers themselves and not on their ranks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FEWEST = 4
"""Smallest length of a chain that says something; shorter ones give NaN."""


def split_rhat(chains: Any) -> Array:
    """Return the split R-hat, near 1 if all halves of all chains have the same distribution."""
    halves = _halves(chains)
    if halves is None:
        return np.full(np.shape(chains)[2:], np.nan)
    within, total = _variances(halves)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt(total / within)
    return np.where((within == 0) & (total == 0), 1.0, ratio)


def effective_sample_size(chains: Any) -> Array:
    """Return the number of independent draws whose mean would be as exact."""
    halves = _halves(chains)
    if halves is None:
        return np.full(np.shape(chains)[2:], np.nan)
    n = halves.shape[1]
    size = halves.shape[0] * n
    within, total = _variances(halves)
    covariance = _autocovariances(halves).mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = 1 - (within - covariance * n / (n - 1)) / total
        correlation[0] = np.where(total > 0, 1, np.nan)
        pairs = correlation[: n // 2 * 2].reshape(n // 2, 2, *correlation.shape[1:]).sum(axis=1)
        # A sum of two neighbours is positive and falls; what comes after the first that is not
        # positive is noise.
        positive = np.logical_and.accumulate(pairs > 0, axis=0)
        falling = np.minimum.accumulate(np.where(positive, pairs, 0), axis=0)
        time = np.maximum(2 * falling.sum(axis=0) - 1, 1 / np.log10(size))
        return np.where(np.isfinite(pairs[0]), size / time, np.nan)


def _halves(chains: Any) -> Array | None:
    """Return the two halves of each chain as chains; None if they are too short."""
    array = np.asarray(chains, dtype=np.float64)
    n = array.shape[1] // 2
    if n < FEWEST // 2 or array.shape[1] < FEWEST:
        return None
    return np.concatenate([array[:, :n], array[:, -n:]])


def _variances(halves: Array) -> tuple[Array, Array]:
    """Return the variance within chains, and the estimate that has the one between them too."""
    n = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    return within, within * (n - 1) / n + between


def _autocovariances(halves: Array) -> Array:
    """Return the autocovariance of each chain at lags 0, 1, ..., along axis 1."""
    n = halves.shape[1]
    centred = halves - halves.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, 2 * n, axis=1)
    covariance: Array = np.fft.irfft(np.abs(spectrum) ** 2, 2 * n, axis=1)[:, :n] / n
    return covariance
